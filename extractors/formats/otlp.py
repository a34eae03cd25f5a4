"""OTLP/JSON: traces and log records with the contents of conversations, in every dialect of them.

Sees batches in camel or snake case, ids as hex or base64, and per span its dialect: GenAI conventions (span events of 1.26,
attributes of 1.37 and later, MCP), OpenInference, Traceloop, Vercel AI SDK; per log record: messages of 1.28 to 1.36, details
of an inference, evaluations. One file may mix all of these. Messages give the content, tool spans the times and the error.
Does not see: protobuf, metrics; spans and records of anything else are kept as log events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats.format import Block, Emit, Format, Head, LogRecord, Row
from extractors.formats.otlp_logs import Logs
from extractors.formats.otlp_span import attributes, loaded, otlp_span, plain
from extractors.formats.samples import sample
from extractors.formats.shortened import Shortened
from extractors.formats.span_gathering import Gathering

_LOG_BATCHES = ("resourceLogs", "resource_logs")
_BATCHES = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs")
_SPANS, _LOGS = ("spans",), ("logRecords", "log_records")
_BARE = ("start_time_unix_nano", "startTimeUnixNano")


def claims(head: Head) -> bool:
    """One of the first objects is a batch of spans or log records."""
    return head.layout in ("lines", "document") and any(_is_batch(each) for each in head.objects)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All spans of the file first, since files are not ordered; then each conversation in the order of time."""
    _read(records, emit, None)


def read_block(block: Block, emit: Emit) -> None:
    """The same, of lines whose texts need not be parsed where they repeat what came before."""
    shortened = Shortened()
    _read(_shortened(block, shortened), emit, shortened)


def _shortened(block: Block, shortened: Shortened) -> Iterator[LogRecord]:
    for index, content in enumerate(block.contents):
        short = shortened.line(content)
        value = loaded(short) if short is not content else None
        if isinstance(value, dict) and not any(key in value for key in _LOG_BATCHES):
            yield LogRecord(block.record_ids[index], block.lines[index], value)
        elif (record := block.record(index)) is not None:
            yield record


def _read(records: Iterable[LogRecord], emit: Emit, shortened: Shortened | None) -> None:
    gathering = Gathering(emit, shortened=shortened)
    value_of = plain if shortened is None else shortened.value_of
    logs = Logs(emit, gathering)
    for record in records:
        light = gathering.record(record)
        with emit.guarded(light):
            for kind, each, service in _members(record.value, emit):
                with emit.guarded(light):
                    if kind == "log":
                        logs.add(light, each, service)
                    else:
                        gathering.add(otlp_span(light, each, service, value_of))
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


FORMAT = Format(name="otlp", history="once", claims=claims, read=read, sample=sample("otlp.jsonl"), rank=20,
                read_block=read_block)
