"""LangSmith feedback: opinions of people and of models on runs.

Sees: key, score or value, correction, comment, the run it is on, who gave it (the event's `tool`: api, app, model). It
reaches the session that a link event of the same source names for the run's trace; `session_id` is the project, no session.
Does not see: to which trace a run belongs where the record does not state it (then the run is taken for a root).
"""

from __future__ import annotations

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.model_payloads import loaded
from extractors.formats.platform_spans import alias
from extractors.formats.values import first_of, object_of, written


def claims(head: Head) -> bool:
    """Return whether the first object has a run, a key and a score."""
    return {"run_id", "key", "score"} <= head.first.keys() and not {"feedback_source", "trace_id"}.isdisjoint(head.first)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One answer a record."""
    value = record.value if isinstance(record.value, dict) else {}
    run_id, name = value.get("run_id"), value.get("key")
    trace_id = value.get("trace_id") or run_id
    answer = first_of(value, ("score", "value", "correction"))
    if not isinstance(name, str) or not trace_id or (answer is None and not value.get("comment")):
        raise RejectedRecord("incomplete_feedback", "the record lacks a run, a key, or a score and a value; complete it")
    emit.event(record, "feedback", session_id=alias(str(trace_id)), name=name, value=written(answer),
               happened_at=microseconds(value.get("created_at")), content=value.get("comment") or None,
               call_id=str(run_id) if run_id else None,
               tool=object_of(loaded(value.get("feedback_source"))).get("type"))


FORMAT = Format(name="langsmith_feedback", claims=claims, read=read, sample=sample("langsmith_feedback.jsonl"), rank=25)
