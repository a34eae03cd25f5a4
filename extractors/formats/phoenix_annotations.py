"""Annotations of Phoenix: what people, models or code said of a span, a trace or a session.

In: annotations a line, or pages of them. Out: feedback; the session of a span is the one that an export of the spans names
(alias `span:<id>`). Notes are feedback too. Does not see: which of several annotations of one name holds; all are kept.
"""

from __future__ import annotations

from extractors.formats.format import Emit, Format, Head, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.otlp_span import hex_id
from extractors.formats.span_dialects import judgement
from extractors.formats.values import object_of, objects_of, written

_OTHER_FACTS = ("annotator_kind", "identifier", "metadata", "source", "user_id")


def claims(head: Head) -> bool:
    """Return whether the first object is an annotation, or a page of them."""
    return head.layout in ("lines", "document", "table") and any(map(_is_annotation, objects_of(head.first)))


def read(records: LogRecords, emit: Emit) -> None:
    """One annotation a record, or a page of them."""
    for record in records:
        n_before = len(emit.events)
        with emit.guarded(record):
            for value in filter(_is_annotation, objects_of(record.value)):
                others = {key: value.get(key) for key in _OTHER_FACTS}
                span_id, trace_id = hex_id(value.get("span_id")), hex_id(value.get("trace_id"))
                alias = f"span:{span_id}" if span_id else f"trace:{trace_id}" if trace_id else None
                emit.event(
                    record, "feedback", session_id=written(value.get("session_id")) or alias, call_id=span_id or None,
                    service=emit.envelope.service(value),
                    happened_at=microseconds(value.get("updated_at")) or microseconds(value.get("created_at")),
                    **judgement({"name": value["name"], **object_of(value["result"]), **others}))
        if len(emit.events) == n_before:
            emit.reject(record, "no_annotation", "the record holds no annotation with a name and a result; complete or drop it")


def _is_annotation(value: Row) -> bool:
    return "name" in value and "annotator_kind" in value and "result" in value and (
        "span_id" in value or "trace_id" in value or "session_id" in value)


FORMAT = Format(name="phoenix_annotations", claims=claims, read=read, sample=sample("phoenix_annotations.jsonl"), rank=25)
