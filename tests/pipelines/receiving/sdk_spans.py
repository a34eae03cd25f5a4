"""Spans of a dump as objects of the OpenTelemetry SDK, and what a folder of logs tells of conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from extractors.formats.otlp_span import plain, raw_attributes
from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import AssembledSessions, assemble

_OF_TURNS = ("session_id", "position", "kind", "role", "content", "tool", "arguments", "call_id", "is_error", "happened_at",
             "answered_at", "latency_ms", "model", "service")


def sdk_spans(dump: Path) -> list[ReadableSpan]:
    """Return the spans of a dump, in its order."""
    return [
        _sdk_span(span, Resource(_attributes(resource.get("resource") or {})), scope.get("scope") or {})
        for line in dump.read_bytes().splitlines() for resource in orjson.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"] for span in scope["spans"]]


def _sdk_span(span: dict[str, Any], resource: Resource, scope: dict[str, Any]) -> ReadableSpan:
    status = span.get("status") or {}
    parent = span.get("parentSpanId")
    return ReadableSpan(
        span["name"], _context(span["traceId"], span["spanId"]), _context(span["traceId"], parent) if parent else None,
        resource, _attributes(span),
        [Event(each["name"], _attributes(each), int(each["timeUnixNano"])) for each in span.get("events", ())],
        [Link(_context(each["traceId"], each["spanId"]), _attributes(each)) for each in span.get("links", ())],
        SpanKind(span.get("kind", 1) - 1), status=Status(StatusCode(status.get("code", 0)), status.get("message")),
        start_time=int(span["startTimeUnixNano"]), end_time=int(span["endTimeUnixNano"]),
        instrumentation_scope=InstrumentationScope(scope.get("name", ""), scope.get("version")))


def _attributes(owner: dict[str, Any]) -> dict[str, Any]:
    return {key: plain(value) for key, value in raw_attributes(owner).items()}


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(1))


def written_dump(spans: list[ReadableSpan], path: Path) -> Path:
    """Write spans as a dump of the SDK's own messages: protobuf's JSON, one batch a line, with ids in base64."""
    path.write_text(json.dumps(MessageToDict(encode_spans(spans))) + "\n")
    return path


def assembled(*paths: Path) -> AssembledSessions:
    """Return the sessions of logs."""
    readings = [read(each) for each in discover(list(paths))[0]]
    return assemble(pl.concat([each.events for each in readings]), pl.concat([each.declarations for each in readings]))


def canonical_turns(*paths: Path) -> list[dict[str, Any]]:
    """Return what was said, called and answered, without ids of records."""
    return assembled(*paths).turns.select(_OF_TURNS).to_dicts()


def handed_over(inbox: Path) -> Iterator[dict[str, Any]]:
    """Yield each batch of an inbox; every line of every file must be whole."""
    for path in sorted(inbox.glob("*.jsonl")):
        content = path.read_bytes()
        assert content.endswith(b"\n")
        yield from map(orjson.loads, content.splitlines())


def span_ids(inbox: Path) -> list[str]:
    """Return the ids of all spans of an inbox."""
    return [span["spanId"] for batch in handed_over(inbox) for resource in batch["resourceSpans"]
            for scope in resource["scopeSpans"] for span in scope["spans"]]
