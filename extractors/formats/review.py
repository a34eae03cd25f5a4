"""A person's review of a session: one JSON line for each answer to "is this session's work right?".

    {"session_id": SESSION, "right": true, "reason": "…", "reviewer": "Ada", "sampled": false,
     "service": "…", "task_id": "…", "reviewed_at": "2026-03-09T10:00:00Z"}

`session_id`, `right` and `reviewer` are required. `sampled`: the session was drawn at random (`traceroom review --sample`).
Does not see: whether the session exists, and whether other reviewers agree; the stage `sessions` does.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds

NAME = "review"
REQUIRED = ("session_id", "right", "reviewer")
_TEXTS = ("reason", "service", "task_id")
_CLAIMING = 2
"""How many of the required names a first line must have, so that an incomplete one is rejected as a review."""


def claims(head: Head) -> bool:
    """Return whether the first line answers whether a session is right."""
    return (head.layout == "lines" and "right" in head.first
            and sum(name in head.first for name in REQUIRED) >= _CLAIMING)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """Read an event from a line; a line that is no complete review is rejected, with its first problem."""
    value = record.value if isinstance(record.value, dict) else {}
    problem = problem_of(value)
    if problem is not None:
        raise RejectedRecord("malformed_review", f"{problem}; repair the line, or review the session again")
    answer = {"right": value["right"], "sampled": value.get("sampled") or False}
    emit.event(
        record, "review", happened_at=microseconds(value.get("reviewed_at")), session_id=value["session_id"].strip(),
        service=value.get("service") or None, call_id=value.get("task_id") or None, name=value["reviewer"].strip(),
        content=(value.get("reason") or "").strip(), value=orjson.dumps(answer, option=orjson.OPT_SORT_KEYS).decode())


def problem_of(line: Row) -> str | None:
    """Return what keeps an object from being a review, in a few words; None if it is one."""
    for name in ("session_id", "reviewer"):
        if not isinstance(line.get(name), str) or not line[name].strip():
            return f"'{name}' is no text"
    if not isinstance(line.get("right"), bool):
        return "'right' is neither true nor false"
    if not isinstance(line.get("sampled") or False, bool):
        return "'sampled' is neither true nor false"
    wrong: Any = next((name for name in _TEXTS if not isinstance(line.get(name) or "", str)), None)
    if wrong:
        return f"'{wrong}' is no text"
    if line.get("reviewed_at") is not None and microseconds(line["reviewed_at"]) is None:
        return "'reviewed_at' is no time"
    return None


FORMAT = Format(name=NAME, claims=claims, read=read, sample=sample("review.jsonl"), rank=5)
