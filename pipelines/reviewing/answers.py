"""Answers of real tools, decided by a person: from a file of `ask-real` into `OUT/answers.jsonl`, each decision once.

Input: a file whose lines have `accepted` true, false or null. Output: canonical lines, and what is still undecided. Does not
see: whether an answer is right; and whether its session exists: the next run does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from env_builder.runtime.canonical import canonical
from extractors.formats.real_answer import problem_of
from pipelines.durable_files import append_durably
from warehouse.errors import InputError

Row = dict[str, Any]
FIELDS = ("service", "session_id", "task_id", "tool_calls", "looks", "as_of", "asked_at", "accepted", "reviewer")


class Accepted(NamedTuple):
    """What became of the lines of a file."""

    n_new: int
    n_known: int
    """Lines that were there before."""
    undecided: list[Row]
    rejected: list[Row]
    """{"line", "problem"} of each line that is no answer."""


def accept_answers(path: Path, target: Path, reviewer: str, now: datetime, accept_all: bool = False) -> Accepted:
    """Append the decided answers of a file to `target`, unless they were decided so before. `reviewer`: of lines that name
    none; `accept_all`: accept what is undecided, unless an earlier call of it was answered otherwise. Raises InputError if the
    file cannot be read."""
    undecided, rejected, decided = list[Row](), list[Row](), list[Row]()
    for number, row in _lines(path):
        if row.get("accepted") is None and accept_all and row.get("differs") is None:
            row["accepted"] = True
        is_undecided = row.get("accepted") is None
        row["reviewer"] = row.get("reviewer") or reviewer
        problem = problem_of({**row, "accepted": False} if is_undecided else row)
        if problem is not None:
            rejected.append({"line": number, "problem": problem})
        elif is_undecided:
            undecided.append(row)
        else:
            decided.append({name: row[name] for name in FIELDS if row.get(name) is not None})
    n_new = _append(target, decided, now)
    return Accepted(n_new, len(decided) - n_new, undecided, rejected)


def _append(target: Path, decided: list[Row], now: datetime) -> int:
    """Append what is no repetition of the latest decision on the same calls; return how many lines."""
    target.parent.mkdir(parents=True, exist_ok=True)
    stamp, lines = now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"), []
    with FileLock(target.parent / ".answers.lock"):
        latest = {_name(row): _decision(row) for _, row in _lines(target)} if target.is_file() else {}
        for row in decided:
            if latest.get(_name(row)) != _decision(row):
                latest[_name(row)] = _decision(row)
                lines.append(canonical({**row, "reviewed_at": stamp}) + "\n")
        append_durably(target, "".join(lines).encode())
    return len(lines)


def _name(row: Row) -> str:
    """Name the session and the calls that were decided on."""
    return canonical([row.get("session_id"), [[call["tool"], call["arguments"]] for call in row.get("tool_calls", ())]])


def _decision(row: Row) -> str:
    return canonical([row.get(name) for name in FIELDS])


def _lines(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        texts = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the answers cannot be read ({error})", str(path), "write them with: traceroom ask-real") from error
    for number, text in enumerate(texts, 1):
        if text.strip():
            try:
                row = json.loads(text)
            except ValueError:
                row = None
            yield number, row if isinstance(row, dict) else {}
