"""Spans that Phoenix exports: its REST API (a span a line, or pages of them) and its dataframes (Parquet, CSV, JSON lines).

Attributes are OpenInference's; in a dataframe they are columns, and lists of messages are lists or their JSON text.
Does not see: spans exported as OTLP (`extractors.formats.otlp` reads those); columns that a query left out.
"""

from __future__ import annotations

import math

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.otlp_span import TraceSpan, hex_id
from extractors.formats.span_dialects import KIND
from extractors.formats.span_gathering import SpanGatherer
from extractors.formats.values import loaded, objects_of, written

_COLUMN = "attributes."


def claims(head: Head) -> bool:
    """Return whether the first object is a span of the API, a page of them, or a row of a dataframe."""
    return any(map(_is_span, objects_of(head.first)))


def read(records: LogRecords, emit: Emit) -> None:
    """All spans of the file first; then each conversation in the order of time."""
    gathering = SpanGatherer(emit, spans_linked=True)
    for record in records:
        light = gathering.record(record)
        with emit.guarded(light):
            for each in objects_of(record.value):
                with emit.guarded(light):
                    gathering.add(_span(light, each, emit))
    gathering.tell()


def _is_span(value: Row) -> bool:
    context = value.get("context")
    if isinstance(context, dict):
        return "trace_id" in context and "span_id" in context and "span_kind" in value
    return "context.span_id" in value and "context.trace_id" in value


def _span(record: LogRecord, value: Row, emit: Emit) -> TraceSpan:
    context = value.get("context")
    if not isinstance(context, dict):
        context = {"trace_id": value.get("context.trace_id"), "span_id": value.get("context.span_id")}
    raw = value.get("attributes")
    if isinstance(raw, str):
        raw = loaded(raw)
    if not isinstance(raw, dict):
        raw = {key[len(_COLUMN):]: each for key, each in value.items() if key.startswith(_COLUMN)}
    raw = {key: each for key, each in raw.items() if each is not None and each != "" and not (
        isinstance(each, float) and math.isnan(each))}
    if value.get("span_kind") is not None:
        raw[KIND] = value["span_kind"]
    status = str(value.get("status_code")).upper()
    return TraceSpan(
        record=record, trace_id=hex_id(context.get("trace_id")), span_id=hex_id(context.get("span_id")),
        parent_id=hex_id(value.get("parent_id")), name=str(value.get("name", "")),
        started_at=microseconds(value.get("start_time")), ended_at=microseconds(value.get("end_time")),
        service=emit.envelope.service(value), raw=raw, is_error={"ERROR": True, "OK": False, "UNSET": False}.get(status),
        message=written(value.get("status_message")) or None)


FORMAT = Format(name="phoenix_spans", history="spans", claims=claims, read=read, sample=sample("phoenix_spans.jsonl"), rank=25)
