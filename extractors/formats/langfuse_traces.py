"""Langfuse's table of traces as it is downloaded in the UI (CSV, JSON): a row a trace, without its observations.

Sees what went in and came out of each trace, its session, user, time and metadata; columns that are called after scores, which
hold lists of values, as feedback. Where the logs hold the session's observations too, those are richer and are taken.
Does not see: tools and the model's single answers, which the table leaves out; token counts and prices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, sample
from extractors.formats.langfuse import is_table_of_traces, trace_span
from extractors.formats.platform_spans import PlatformSpan, read_spans


def claims(head: Head) -> bool:
    """Return whether the first row is a trace of the UI's table."""
    return (head.is_json or head.layout == "table") and is_table_of_traces(head.first)


def read(records: LogRecords, emit: Emit) -> None:
    """All traces of the file first, since rows are not ordered; then each conversation in the order of time."""
    read_spans(records, emit, lambda record: list(_span(record, record.value, emit)), "no_trace",
               "the record is no trace of Langfuse's table; leave it out", set())


def _span(record: LogRecord, value: Any, emit: Emit) -> Iterator[PlatformSpan]:
    if is_table_of_traces(value):
        yield trace_span(record, value, str(value["id"]), emit)


FORMAT = Format(name="langfuse_traces", history="traces", claims=claims, read=read,
                sample=sample("langfuse_traces.csv"), rank=24)
