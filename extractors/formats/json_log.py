"""JSON lines of structured loggers: ECS, structlog, pino, Bunyan, winston, zap, zerolog, logrus, slog, Serilog, plain ones, and
what a container's runtime wraps around a line (`{"log", "stream", "time"}`).

A line that tells a request is a request, another a log line: its message gives the template, its other keys the arguments.
Does not see: requests of a log with `req` objects from its first line on (`request_log` reads them, in the same way).
"""

from __future__ import annotations

from extractors.formats.application import read_payloads
from extractors.formats.application_fields import stated_in
from extractors.formats.format import Format, Head, Row, sample
from extractors.formats.instants import microseconds

_OTHERS = frozenset((
    "messages", "resourceSpans", "resourceLogs", "resource_spans", "resource_logs", "jsonrpc", "span_id", "spanId", "sessionId",
    "parentUuid", "payload", "specversion", "messageId", "op", "change", "logName", "run_type", "span_kind", "otel_scope_name",
    "choices", "object", "action", "role", "req", "events", "trace_flags", "start_timestamp"))
"""Keys at the top that tell another notation of the same names."""


def claims(head: Head) -> bool:
    """Most of the first objects have a time, and a level with a message, or were wrapped by a container's runtime."""
    if not head.is_json or not head.objects:
        return False
    return sum(map(_is_log_line, head.objects)) * 2 > len(head.objects)


def _is_log_line(value: Row) -> bool:
    if not _OTHERS.isdisjoint(value):
        return False
    if isinstance(value.get("log"), str) and {"stream", "time"} <= value.keys():
        return True
    stated = stated_in(value)
    at = microseconds(stated.values.get("time"))
    return at is not None and isinstance(stated.values.get("level"), str | int) and "message" in stated.values


FORMAT = Format(name="json_log", claims=claims, read=read_payloads, sample=sample("json_log.ndjson"), rank=62)
