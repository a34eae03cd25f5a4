"""Feedback: a CSV or JSON lines with a session, what was asked (`kind`, `question` …) and the answer (`value` …).

The answer is kept as written: no scale, no direction is read into it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.samples import sample

_NAMES = ("kind", "question", "name", "key", "metric", "label_name")
_VALUES = ("value", "answer", "score", "rating", "label", "value_minor")
_COMMENTS = ("comment", "explanation", "remark")


def claims(head: Head) -> bool:
    """Rows with a session, a name of what was asked, and an answer; and no conversation in them."""
    first = head.first
    if head.layout == "text" or "messages" in first or "request" in first:
        return False
    return _key(first, ("session_id", "sessionId", "conversation_id")) is not None and \
        _key(first, _NAMES) is not None and _key(first, _VALUES) is not None


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One answer a record."""
    for record in records:
        value = record.value if isinstance(record.value, dict) else {}
        session_id, name, answer = emit.envelope.session_id(value), _key(value, _NAMES), _key(value, _VALUES)
        if session_id is None or name is None or answer is None or value[answer] in (None, ""):
            emit.reject(record, "incomplete_feedback", "the row lacks a session, a name or a value; complete or drop it")
            continue
        comment = _key(value, _COMMENTS)
        with emit.guarded(record):
            emit.event(record, "feedback", session_id=session_id, service=emit.envelope.service(value),
                       happened_at=emit.envelope.time(value), name=_text(value[name]), value=_text(value[answer]),
                       content=_text(value[comment]) if comment and value[comment] else None)


def _key(value: Row, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in value), None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


FORMAT = Format(name="feedback", claims=claims, read=read, sample=sample("feedback.jsonl"), rank=45)
