"""The files of a room: rows of JSON lines, the same rows packed for a quick start, and tasks (docs/environment.md)."""

from __future__ import annotations

import json
import marshal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .records import Limits, Task

PACKED = ".packed"
"""Ending of a file that holds the rows of the JSON lines of the same name: in an image, in their place."""
TASKS = "tasks.jsonl"
_VERSION = 2
"""Of marshal's format: the last one whose bytes depend on the values alone, read by every Python since 2.5."""


def rows_of(path: Path) -> Iterable[dict[str, Any]]:
    """Objects of a file of JSON lines, or of the packed one that stands in its place, in order.

    OSError, ValueError where it cannot be read.
    """
    packed = path.with_suffix(PACKED)
    if packed.exists() and not path.exists():
        names, rows = marshal.loads(packed.read_bytes())
        yield from (dict(zip(names[row[0]], row[1:], strict=True)) for row in rows)
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def pack(lines: str) -> bytes:
    """Rows of JSON lines as `rows_of` reads them back, in a quarter of the time: ([names of fields, …], [[which of these,
    value, …], …]) in marshal's format."""
    names: dict[tuple[str, ...], int] = {}
    rows = [json.loads(line) for line in lines.split("\n") if line]
    values = [[names.setdefault(tuple(row), len(names)), *row.values()] for row in rows]
    return marshal.dumps(([list(own) for own in names], values), _VERSION)


def task_of(row: dict[str, Any]) -> Task:
    """A row of tasks.jsonl as a `Task`."""
    return Task(
        task_id=row["task_id"], session_ids=tuple(row["session_ids"]), split=row["split"], limits=Limits(**row["limits"]),
        family=row["family"], goal=row["goal"], starts_at=row["starts_at"], opening=tuple(row["opening"]),
        user_turns=tuple(row["user"]["turns"]), user=row["user"], slots=row["slots"], segment_of=row["segment_of"],
        derived_from=row["derived_from"],
    )
