"""OTLP/JSON: traces and log records with the contents of conversations, in every dialect of them.

Sees batches in camel or snake case, ids as hex or base64, and per span its dialect: GenAI conventions (span events of 1.26,
attributes of 1.37 and later, MCP), OpenInference, Traceloop, Vercel AI SDK; per log record: messages of 1.28 to 1.36, details
of an inference, evaluations. One file may mix all of these. Messages give the content, tool spans the times and the error.
Does not see: protobuf, metrics; spans and records of anything else are kept as log events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.otlp_logs import Logs
from extractors.formats.otlp_span import attributes, otlp_span
from extractors.formats.samples import sample
from extractors.formats.span_gathering import Gathering

_BATCHES = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs")
_SPANS, _LOGS = ("spans",), ("logRecords", "log_records")
_BARE = ("start_time_unix_nano", "startTimeUnixNano")


def claims(head: Head) -> bool:
    """One of the first objects is a batch of spans or log records."""
    return head.layout in ("lines", "document") and any(_is_batch(each) for each in head.objects)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All spans of the file first, since files are not ordered; then each conversation in the order of time."""
    gathering = Gathering(emit)
    logs = Logs(emit, gathering)
    for record in records:
        light = gathering.record(record)
        with emit.guarded(light):
            for kind, each, service in _members(record.value, emit):
                with emit.guarded(light):
                    if kind == "log":
                        logs.add(light, each, service)
                    else:
                        gathering.add(otlp_span(light, each, service))
    logs.end()
    gathering.tell()


def _is_batch(value: Row) -> bool:
    if any(isinstance(value.get(key), list) for key in _BATCHES[:-1]):
        return True
    batches, data = value.get("batches"), value.get("data")
    if isinstance(batches, list) and batches and isinstance(batches[0], dict):
        return any(key in batches[0] for key in _SCOPES)
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and any(key in data[0] for key in _BARE)


def _members(value: Any, emit: Emit) -> Iterator[tuple[str, Row, str | None]]:
    """Spans and log records of a batch, each with its service."""
    if not isinstance(value, dict):
        return
    for resource in (each for key in _BATCHES for each in value.get(key) or ()):
        service = emit.envelope.service(attributes(resource.get("resource") or {}))
        for scope in (each for key in _SCOPES for each in resource.get(key) or ()):
            for key in _SPANS:
                yield from (("span", each, service) for each in scope.get(key) or ())
            for key in _LOGS:
                yield from (("log", each, service) for each in scope.get(key) or ())
    data = value.get("data")
    if isinstance(data, list):
        yield from (("span", each, None) for each in data)


FORMAT = Format(name="otlp", claims=claims, read=read, sample=sample("otlp.jsonl"), rank=20)
