"""Feedback and outcomes in anybody's table: CSV, Parquet, JSON lines or a JSON list, one row for what was said of a session.

Sees the session under many names (a ticket's, a conversation's, a trace's id), long rows (`kind`, `value`) and wide ones
(`CSAT`, `Resolved?` …), the comment, the answer or call that it is on. The answer is kept as written: no scale, no
direction is read into it; an empty one was not given. Columns that say something else are kept in `lossy`.
Does not see: sessions that only a person's id or a window of time would tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats.feedback_columns import is_outcome, said, speaks
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.samples import sample

_LISTS = ("feedback", "feedbacks", "ratings", "scores", "responses", "results", "data", "items", "rows")
_OTHERS = frozenset((
    "messages", "request", "role", "tool_calls", "spans", "traj", "trajectory", "simulations", "samples", "level", "logger",
    "severity", "hostname", "@timestamp", "method", "path", "req", "res", "jsonrpc", "specversion", "op", "change", "action",
    "messageId", "originalTimestamp", "feedback_source", "annotator_kind", "assessment_name", "data_type", "dataType",
    "run_type", "observation_id", "observationId", "dotted_order", "op_name", "attributes", "payload", "parentUuid", "tool",
    "arguments", "logName", "logEvents", "object", "satisfaction_rating", "conversation_rating", "conversation_parts",
    "concept:name"))
"""Keys of records that are something else."""


def claims(head: Head) -> bool:
    """Rows with a session and an answer; and nothing in them of a conversation or of another log."""
    first = next(_rows(head.first), {})
    return head.layout in ("lines", "document", "table") and _OTHERS.isdisjoint(first) and speaks(first)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """An event for each answer of a row."""
    for record in records:
        rows = list(_rows(record.value))
        if not rows:
            emit.reject(record, "incomplete_feedback", "the record is no row with names; repair or drop it")
        for row in rows:
            with emit.guarded(record):
                _answers(record, row, emit)


def _answers(record: LogRecord, row: Row, emit: Emit) -> None:
    found = said(row)
    session_id = emit.envelope.mapped("session_id", row) or found.session or emit.envelope.session_id(row)
    if found.comment is not None and not found.answers:
        found.answers = [("comment", found.comment)]
    if session_id is None or not found.answers:
        emit.reject(record, "incomplete_feedback", "the row lacks a session, a name or a value; complete or drop it")
        return
    stated = emit.envelope.time(row)
    service, comment = emit.envelope.service(row), found.comment
    for name, answer in found.answers:
        emit.event(record, "outcome" if is_outcome(name) else "feedback", session_id=str(session_id), service=service,
                   happened_at=stated if stated is not None else found.happened_at, call_id=found.target, name=name,
                   value=answer, content=comment, lossy=found.rest)
        comment = None


def _rows(value: Any) -> Iterator[Row]:
    """The row that a record is, or the rows of the one list that it holds."""
    if not isinstance(value, dict):
        return
    for name in _LISTS:
        inner = value.get(name)
        if isinstance(inner, list) and inner and all(isinstance(each, dict) for each in inner):
            yield from inner
            return
    yield value


FORMAT = Format(name="feedback", claims=claims, read=read, sample=sample("feedback.jsonl"), rank=45)
