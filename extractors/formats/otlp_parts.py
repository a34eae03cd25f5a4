"""Messages of the GenAI conventions to the parts of events: with roles and parts (1.37 and later), or logged one by one.

Sees text, calls, results and reasoning, also as pydantic-ai writes them (`result`, `thinking`), and calls that the provider ran
itself; of 1.28 to 1.36 the event's name and its body, in a record or in an event of the span. Does not see what a picture, a
sound or a file says: named in `lossy` by type and hash; a part of unknown type is kept as its JSON text.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.chat import call_part, hashed, message_part, result_part, thought_part
from extractors.formats.chat import parts as chat_parts
from extractors.formats.format import Row
from extractors.formats.otlp_span import plain, typed_parts
from extractors.formats.values import dumped, loaded, written

_CALLS = ("tool_call", "server_tool_call")
_RESULTS = ("tool_call_response", "server_tool_call_response")
_ANSWERS = ("response", "result", "server_tool_call_response")
_THOUGHTS = ("reasoning", "thinking")
_MEDIA = ("blob", "uri", "file", "image", "audio", "video", "document")
CUT_OFF = "finish_reason length"
"""Note on the parts of an answer that was cut off."""


def message_parts(message: Any) -> list[Row]:
    """Event fields of one message: its thoughts, its text joined, then its calls and results in order."""
    if not isinstance(message, dict):
        return [_unknown(message, None)]
    role, parts = message.get("role"), message.get("parts")
    texts: list[str] = []
    lost: list[str] = []
    thoughts: list[Row] = []
    others: list[Row] = []
    if not isinstance(parts, list):
        parts = [{"type": "text", "content": message["content"]}] if "content" in message else [parts] if parts else []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            texts.append(written(part.get("content")) or "")
        elif kind in _CALLS:
            given = part.get("arguments") if part.get("arguments") is not None else part.get("server_tool_call")
            others.append(call_part(role, written(part.get("id")) or None, written(part.get("name")), given))
        elif kind in _RESULTS:
            value, flag = next((part[key] for key in _ANSWERS if key in part), None), part.get("is_error")
            others.append(result_part(written(part.get("id")) or None, written(part.get("name")), written(value),
                                      flag if isinstance(flag, bool) else None))
        elif kind in _THOUGHTS:
            thoughts.append(thought_part(role, written(part.get("content"))))
        elif kind in _MEDIA:
            lost.append(hashed(kind, part))
        else:
            others.append(_unknown(part, role))
    if message.get("finish_reason") == "length":
        lost.append(CUT_OFF)
        for row in others[1:] if not texts else others:
            row["lossy"].append(CUT_OFF)
    if texts or (lost and not others):
        return [*thoughts, message_part(role, "".join(texts) if texts else None, lost), *others]
    for row in others[:1]:
        row["lossy"] += lost
    return [*thoughts, *others]


def _unknown(part: Any, role: str | None) -> Row:
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    return {"kind": "log", "role": role, "content": dumped(part), "lossy": [f"part {kind}"]}


MESSAGES = {"gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
            "gen_ai.tool.message": "tool"}
"""Names of what a model is asked with, and whose words they are."""
CHOICE = "gen_ai.choice"
"""Name of what it answers."""
DETAILS = ("gen_ai.client.inference.operation.details", "gen_ai.client.operation.details")
"""Names of both in one, from 1.37 on."""


def input_message_parts(name: str, body: Any) -> list[Row]:
    """Parts of a message: whose it is stands in the event's name, or in its body where it is another's."""
    message = _body(body)
    return list(chat_parts({**message, "role": message.get("role") or MESSAGES[name]}))


def choice_parts(body: Any) -> tuple[int | None, list[Row]]:
    """Place among the candidates, where it is stated, and the parts of an answer."""
    choice = _body(body)
    message = loaded(choice.get("message"))
    if message is None:
        message = choice.get("message", choice)
    if not isinstance(message, dict):
        message = {"content": written(message)}
    parts = list(chat_parts({**_opened(message), "role": message.get("role") or "assistant"}))
    for part in parts if choice.get("finish_reason") == "length" else ():
        part["lossy"].append(CUT_OFF)
    index = choice.get("index")
    return (index if isinstance(index, int) and 0 <= index < 100 else None), parts


def _body(logged: Any) -> Row:
    """Return a body as logged, or as JSON text, as an object; a text alone is a content."""
    value = loaded(logged)
    parsed = logged if value is None else value
    return _opened(parsed) if isinstance(parsed, dict) else {"content": written(parsed)}


def _opened(message: Row) -> Row:
    """Return the message with its calls and its typed parts where they are JSON text."""
    calls = message.get("tool_calls")
    if isinstance(calls, str):
        parsed = loaded(calls)
        message = {**message, "tool_calls": parsed if isinstance(parsed, list) else None}
    return {**message, "content": typed_parts(message.get("content"))}


def body_of(log: Row) -> Any:
    """Return the body of a log record as a plain value."""
    body = log.get("body")
    return plain(body) if isinstance(body, dict) else body
