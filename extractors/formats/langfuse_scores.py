"""Langfuse scores, of the blob export or of the API: opinions of people and models on sessions, traces and observations.

Sees: value, label (categorical and boolean scores), comment, target, who gave it (the event's `tool`: ANNOTATION, API, EVAL).
A score on a trace reaches the session that a link event of the same source names.
Does not see: scores of dataset runs (they are on no session) and corrections.
"""

from __future__ import annotations

from extractors.formats.format import Emit, Format, Head, LogRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import first_of, objects_of, written

_KINDS = ("NUMERIC", "BOOLEAN", "CATEGORICAL", "TEXT", "CORRECTION")


def claims(head: Head) -> bool:
    """Rows, or a page of them, with a score's data type and its target."""
    inner = head.first.get("data")
    first = _with_target(inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], dict) else head.first)
    stated = first.get("data_type", first.get("dataType"))
    return stated in _KINDS and not {"trace_id", "traceId", "session_id"}.isdisjoint(first)


def _with_target(value: Row) -> Row:
    """Return a score of the third API with its target as the earlier ones name it."""
    target = value.get("subject")
    if not isinstance(target, dict):
        return value
    ids = {f"{target.get('kind')}Id": target.get("id")}
    return {"traceId": target.get("traceId"), **value, **ids}


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One score a record, or a page of them."""
    n_before = len(emit.events)
    for value in objects_of(record.value):
        score(record, value, emit)
    if len(emit.events) == n_before:
        emit.reject(record, "no_score", "the record holds no score with a name and a target; complete or drop it")


def score(record: LogRecord, value: Row, emit: Emit, session_id: str | None = None) -> None:
    """Emit one score; `session_id`: of the trace that holds it."""
    value = _with_target(value)
    name, trace_id = value.get("name"), first_of(value, ("trace_id", "traceId"))
    session_id = first_of(value, ("session_id", "sessionId")) or session_id or (f"trace:{trace_id}" if trace_id else None)
    if not isinstance(name, str) or session_id is None:
        return
    label = first_of(value, ("string_value", "stringValue")) or value.get("longStringValue") or None
    is_label = label is not None and first_of(value, ("data_type", "dataType")) != "NUMERIC"
    emit.event(record, "feedback", place=f"score/{value.get('id') or name}", session_id=str(session_id), name=name,
               happened_at=microseconds(value.get("timestamp")), value=written(label if is_label else value.get("value")),
               tool=value.get("source") or None, content=value.get("comment") or None,
               call_id=first_of(value, ("observation_id", "observationId")) or trace_id or None)


FORMAT = Format(name="langfuse_scores", claims=claims, read=read, sample=sample("langfuse_scores.jsonl"), rank=25)
