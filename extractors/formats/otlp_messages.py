"""Messages that an instrumentation logs one by one (conventions 1.28 to 1.36), as records or as events of the span, to parts.

In: the event's name and its body. Out: parts of a message, or a candidate answer with its place.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.chat import parts as chat_parts
from extractors.formats.format import Row
from extractors.formats.otlp_flat import typed_parts
from extractors.formats.otlp_span import loaded, plain, written

MESSAGES = {"gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
            "gen_ai.tool.message": "tool"}
"""Names of what a model is asked with, and whose words they are."""
CHOICE = "gen_ai.choice"
"""Name of what it answers."""
DETAILS = ("gen_ai.client.inference.operation.details", "gen_ai.client.operation.details")
"""Names of both in one, from 1.37 on."""


def message_told(name: str, body: Any) -> list[Row]:
    """Parts of a message: whose it is stands in the event's name, or in its body where it is another's."""
    found = _body(body)
    return list(chat_parts({**found, "role": found.get("role") or MESSAGES[name]}))


def choice_told(body: Any) -> tuple[int | None, list[Row]]:
    """Place among the candidates, where it is stated, and the parts of an answer."""
    choice = _body(body)
    message = loaded(choice.get("message"))
    if message is None:
        message = choice.get("message", choice)
    if not isinstance(message, dict):
        message = {"content": written(message)}
    parts = list(chat_parts({**_opened(message), "role": message.get("role") or "assistant"}))
    for part in parts if choice.get("finish_reason") == "length" else ():
        part["lossy"].append("finish_reason length")
    index = choice.get("index")
    return (index if isinstance(index, int) and 0 <= index < 100 else None), parts


def of_event(attributes: Row) -> Any:
    """The body that a span's event bears: as JSON text in one attribute, or as its attributes."""
    content = attributes.get("gen_ai.event.content", attributes.get("event_body"))
    return content if content is not None else attributes


def _body(logged: Any) -> Row:
    """A body as logged, or as JSON text, as an object; a text alone is a content."""
    value = loaded(logged)
    found = logged if value is None else value
    return _opened(found) if isinstance(found, dict) else {"content": written(found)}


def _opened(message: Row) -> Row:
    """The message with its calls and its typed parts where they are JSON text."""
    calls = message.get("tool_calls")
    if isinstance(calls, str):
        found = loaded(calls)
        message = {**message, "tool_calls": found if isinstance(found, list) else None}
    return {**message, "content": typed_parts(message.get("content"))}


def body_of(log: Row) -> Any:
    """The body of a log record as a plain value."""
    body = log.get("body")
    return plain(body) if isinstance(body, dict) else body
