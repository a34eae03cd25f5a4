"""Anthropic's Messages API, one exchange a record: `{"request": {"messages": […]}, "response": {"type": "message"}}`.

The response may be the stream that it came as: its events as a list, or as text. A prefill, and a turn that a pause divided, go
on in the answer. Sees times that the wrapper states; the API states none. What an answer's blocks become: `anthropic_blocks`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from extractors.formats.anthropic_blocks import parts
from extractors.formats.exchange import Exchange, Exchanges, finish
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.samples import sample
from extractors.formats.sampling import sampling
from extractors.formats.sides import sides, times
from extractors.formats.streams import anthropic_message, is_anthropic, stream_events
from extractors.formats.usage import tokens


def claims(head: Head) -> bool:
    """One of the first records asks with messages and is answered as this API does."""
    return head.layout in ("lines", "document") and any(
        isinstance(request.get("messages"), list) and _message(response) is not None
        for request, response in map(sides, head.objects))


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """The new parts of each exchange."""
    exchanges = Exchanges(emit, parts)
    for record in records:
        request, response = sides(record.value)
        messages = request.get("messages")
        if not isinstance(messages, list) or not messages:
            emit.reject(record, "no_messages", "the record holds no request with messages; leave it out or repair it")
            continue
        with emit.guarded(record):
            exchange = _exchange(record, request, messages, _message(response), emit)
            exchanges.declare(request.get("tools"), exchange.service)
            known = exchanges.tell(exchange)
            if not exchange.answers:
                emit.event(record, "log", place="unanswered", session_id=known.session_id, happened_at=exchange.ended_at,
                           tool="no answer", content=orjson.dumps(response).decode())


def _exchange(record: LogRecord, request: Row, messages: list[Any], message: Row | None, emit: Emit) -> Exchange:
    value, envelope = record.value, emit.envelope
    started, ended, latency = times(value, None, emit)
    system, model = request.get("system"), (message or {}).get("model") or request.get("model")
    return Exchange(
        record, messages, [] if message is None else [[{"role": "assistant", "content": message.get("content")}]],
        session_id=envelope.session_id(value), system={"role": "system", "content": system} if system else None,
        started_at=started, ended_at=ended, latency_ms=latency, model=model if isinstance(model, str) else None,
        usage={**(tokens((message or {}).get("usage")) or {}), **sampling(request)},
        service=envelope.service(value), identity=envelope.identity(value),
        notes=finish((message or {}).get("stop_reason")))


def _message(response: Any) -> Row | None:
    """The message that a response is, or that its stream makes."""
    if isinstance(response, dict):
        return response if response.get("type") == "message" and "content" in response else None
    events = stream_events(response)
    return anthropic_message(events) if is_anthropic(events) else None


FORMAT = Format(name="anthropic_messages", claims=claims, read=read, sample=sample("anthropic_messages.jsonl"), rank=25)
