"""Spans and log records as OTLP has them, made small, and what a format tells of records."""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats import Emit, Format, LogRecord
from extractors.formats.envelope import Envelope
from extractors.formats.otlp import FORMAT

TRACE = "0af7651916cd43dd8448eb211c80319c"
SECOND = 1_000_000_000
START = 1_772_446_500 * SECOND


def any_value(value: Any) -> dict[str, Any]:
    """Return a value as an AnyValue."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(each) for each in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": key_values(value)}}
    return {} if value is None else {"stringValue": value}


def key_values(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in values.items()]


def span(number: int, attributes: dict[str, Any], trace: str = TRACE, **fields: Any) -> dict[str, Any]:
    """Span `number` of a trace: it starts at that second and takes half of one."""
    return {"traceId": trace, "spanId": f"{number:016x}", "name": f"span {number}",
            "startTimeUnixNano": str(START + number * SECOND), "endTimeUnixNano": str(START + number * SECOND + SECOND // 2),
            "attributes": key_values(attributes), "status": {}, **fields}


def chat(number: int, prompt: list[Any], answered: list[Any], session: str | None = "s1", trace: str = TRACE,
         **more: Any) -> dict[str, Any]:
    """Return a model's span of the conventions from 1.37 on; messages as (role, text)."""
    return span(
        number,
        {
            "gen_ai.operation.name": "chat",
            **({"gen_ai.conversation.id": session} if session else {}),
            "gen_ai.input.messages": dumped([text_message(*each) if isinstance(each, tuple) else each for each in prompt]),
            "gen_ai.output.messages": dumped([text_message(*each) if isinstance(each, tuple) else each for each in answered]),
            **more,
        },
        trace,
    )


def text_message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def dumped(value: Any) -> str:
    return orjson.dumps(value).decode()


def batch(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {"attributes": key_values({"service.name": "desk"})},
                               "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def log(name: str | None, body: Any = None, attributes: dict[str, Any] | None = None, number: int = 1,
        **fields: Any) -> dict[str, Any]:
    """Return a log record in span `number`, logged at that second."""
    return {"timeUnixNano": str(START + number * SECOND), "eventName": name, "traceId": TRACE, "spanId": f"{number:016x}",
            "attributes": key_values(attributes or {}), "body": any_value(body), **fields}


def logs(*records: dict[str, Any]) -> dict[str, Any]:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": list(records)}]}]}


def read_batches(*values: Any, log_format: Format = FORMAT) -> Emit:
    """Return what the format says of records with these values."""
    emit = Emit("file", "main", log_format.name, Envelope())
    log_format.read(iter([LogRecord(f"{number:064d}", number, value) for number, value in enumerate(values, 1)]), emit)
    return emit


def rows(emit: Emit, *kinds: str) -> list[dict[str, Any]]:
    return [each for each in emit.events if each["kind"] in (kinds or ("message", "call", "result"))]


def words(emit: Emit) -> list[tuple[Any, ...]]:
    """Return what was said, called and answered, in order."""
    return [(each["kind"], each["tool"], each["arguments"]) if each["kind"] == "call" else
            (each["kind"], each.get("role"), each["content"]) for each in rows(emit)]
