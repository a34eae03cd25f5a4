"""Annotations of Phoenix: what people, models or code said of a span, a trace or a session.

In: annotations a line, or pages of them. Out: feedback; the session of a span is the one that an export of the spans names
(alias `span:<id>`). Notes are feedback too. Does not see: which of several annotations of one name holds; all are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.openinference import judgement
from extractors.formats.otlp_span import hex_id, written
from extractors.formats.samples import sample

_BESIDE = ("annotator_kind", "identifier", "metadata", "source", "user_id")


def claims(head: Head) -> bool:
    """The first object is an annotation, or a page of them."""
    return head.layout in ("lines", "document", "table") and any(_is_annotation(each) for each in _each(head.first))


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One annotation a record, or a page of them."""
    for record in records:
        n_found = 0
        with emit.guarded(record):
            for value in _each(record.value):
                if _is_annotation(value):
                    _tell(record, value, emit)
                    n_found += 1
        if not n_found:
            emit.reject(record, "no_annotation", "the record holds no annotation with a name and a result; complete or drop it")


def _tell(record: LogRecord, value: Row, emit: Emit) -> None:
    result = value["result"] if isinstance(value["result"], dict) else {}
    facts = {"name": value["name"], **result, **{key: value.get(key) for key in _BESIDE}}
    span_id, trace_id = hex_id(value.get("span_id")), hex_id(value.get("trace_id"))
    alias = f"span:{span_id}" if span_id else f"trace:{trace_id}" if trace_id else None
    emit.event(record, "feedback", session_id=written(value.get("session_id")) or alias, call_id=span_id or None,
               service=emit.envelope.service(value), happened_at=microseconds(value.get("updated_at")) or microseconds(
                   value.get("created_at")), **judgement(facts))


def _each(value: Any) -> Iterator[Row]:
    data = value.get("data") if isinstance(value, dict) else None
    yield from (each for each in (data if isinstance(data, list) else [value]) if isinstance(each, dict))


def _is_annotation(value: Row) -> bool:
    return "name" in value and "annotator_kind" in value and "result" in value and (
        "span_id" in value or "trace_id" in value or "session_id" in value)


FORMAT = Format(name="phoenix_annotations", claims=claims, read=read, sample=sample("phoenix_annotations.jsonl"), rank=25)
