"""Anthropic's Messages API, one exchange a record: `{"request": {"messages": […]}, "response": {"type": "message"}}`.

The response may be the stream that it came as: its events as a list, or as text. A prefill, and a turn that a pause divided, go
on in the answer. Sees times that the wrapper states; the API states none.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.completion_shapes import sides
from extractors.formats.exchange import Exchanges, exchange_of, finish
from extractors.formats.format import Emit, Format, Head, LogRecords, Row, sample
from extractors.formats.provider_parts import anthropic_parts
from extractors.formats.sampling import sampling, tokens
from extractors.formats.streams import anthropic_message, is_anthropic, stream_events


def claims(head: Head) -> bool:
    """One of the first records asks with messages and is answered as this API does."""
    return head.is_json and any(
        isinstance(request.get("messages"), list) and _message(response) is not None
        for request, response in map(sides, head.objects))


def read(records: LogRecords, emit: Emit) -> None:
    """Read the new parts of each exchange."""
    exchanges = Exchanges(emit, anthropic_parts)
    for record in records:
        request, response = sides(record.value)
        messages = request.get("messages")
        if not isinstance(messages, list) or not messages:
            emit.reject(record, "no_messages", "the record holds no request with messages; leave it out or repair it")
            continue
        with emit.guarded(record):
            stated = _message(response)
            message, system = stated or {}, request.get("system")
            exchanges.take(exchange_of(
                record, emit, None, messages,
                [] if stated is None else [[{"role": "assistant", "content": message.get("content")}]],
                system={"role": "system", "content": system} if system else None,
                model=message.get("model") or request.get("model"), notes=finish(message.get("stop_reason")),
                usage={**(tokens(message.get("usage")) or {}), **sampling(request)}), request.get("tools"), response)


def _message(response: Any) -> Row | None:
    """Return the message that a response is, or that its stream makes."""
    if isinstance(response, dict):
        return response if response.get("type") == "message" and "content" in response else None
    events = stream_events(response)
    return anthropic_message(events) if is_anthropic(events) else None


FORMAT = Format(name="anthropic_messages", claims=claims, read=read, sample=sample("anthropic_messages.jsonl"), rank=25)
