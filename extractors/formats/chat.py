"""Chat messages in the OpenAI way and its dialects, to the parts of events.

Sees: roles, text or lists of parts, `tool_calls` (function as an object or as a name; `arguments` or `args` as text or as an
object; custom tools), the legacy `function_call`, tool messages with id, name and error flag, reasoning as text.
Does not see: what an image or a sound says; such parts are named in `lossy` by type and hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import orjson

from extractors.formats.format import Row
from extractors.formats.instants import microseconds

_TIME = ("at", "timestamp", "time", "created_at", "ts")
_TIMED = frozenset(_TIME)
_REASONING = ("reasoning_content", "reasoning", "thinking")
_LEFT = (*_REASONING, "audio", "refusal", "weight")
_LEAVES = frozenset(_LEFT)
_RESULT_ROLES = ("tool", "function")


def parts(message: Any) -> Iterator[Row]:
    """Event fields of one message, in order: its reasoning, the message itself, its calls; or the result that it is."""
    if not isinstance(message, dict):
        yield {"kind": "message", "role": None, "content": None, "lossy": ["message is no object"]}
        return
    shared: Row = {}
    if not _TIMED.isdisjoint(message):
        instant = next((t for t in map(message.get, _TIME) if t is not None), None)
        shared = {"happened_at": microseconds(instant)} if instant is not None else {}
    if message.get("role") in _RESULT_ROLES:
        yield {**_result(message), **shared}
        return
    content, lossy = text(message.get("content"))
    calls = [*(message.get("tool_calls") or ()), *filter(None, (message.get("function_call"),))]
    if content is None and isinstance(message.get("refusal"), str):
        content = message["refusal"]
    role = message.get("role")
    if not _LEAVES.isdisjoint(message):
        thought = next((key for key in _REASONING if isinstance(message.get(key), str) and message[key]), None)
        if thought is not None:
            yield {"kind": "reasoning", "role": role, "content": message[thought], "lossy": [], **shared}
        lossy += [key for key in _LEFT if message.get(key) and key != thought]
    if content or not calls:
        yield {"kind": "message", "role": role, "content": content, "lossy": lossy, **shared}
    for call in calls:
        yield {**_call(call, role), **shared}


def text(content: Any) -> tuple[str | None, list[str]]:
    """Text of a message's content, its text parts joined, and what could not be carried over."""
    if content is None or isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        return orjson.dumps(content).decode(), []
    found: list[str] = []
    lost: list[str] = []
    for part in content:
        said = part if isinstance(part, str) else _part_text(part)
        if said is None:
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            lost.append(f"part {kind} sha256:{hashlib.sha256(orjson.dumps(part)).hexdigest()}")
        else:
            found.append(said)
    return ("".join(found) if found or not lost else None), lost


def arguments_of(value: Any) -> tuple[str, list[str]]:
    """Arguments as JSON text, as logged, and a note where that text is no JSON object."""
    if value is None or value == "":
        return "{}", []
    if not isinstance(value, str):
        return orjson.dumps(value).decode(), [] if isinstance(value, dict) else ["args_parse_error"]
    try:
        return value, [] if isinstance(orjson.loads(value), dict) else ["args_parse_error"]
    except orjson.JSONDecodeError:
        return value, ["args_parse_error"]


def _part_text(part: Any) -> str | None:
    if not isinstance(part, dict) or part.get("type", "text") not in ("text", "input_text", "output_text", "refusal"):
        return None
    value = part.get("text", part.get("content", part.get("refusal")))
    if isinstance(value, dict):
        value = value.get("value")
    return value if isinstance(value, str) else None


def _call(call: Any, role: str | None) -> Row:
    if not isinstance(call, dict):
        return {"kind": "call", "tool": None, "arguments": orjson.dumps(call).decode(), "lossy": ["call is no object"],
                "role": role, "requestor": role}
    lossy: list[str] = []
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    if isinstance(call.get("custom"), dict):
        inner = {"name": call["custom"].get("name"), "arguments": {"input": call["custom"].get("input")}}
        lossy.append("custom_tool")
    name = function if isinstance(function, str) else inner.get("name")
    found, problems = arguments_of(next((inner[k] for k in ("arguments", "args", "input") if k in inner), None))
    return {"kind": "call", "role": role, "call_id": call.get("id") or None, "tool": name, "arguments": found,
            "requestor": call.get("requestor") or role, "lossy": lossy + problems}


def _result(message: Row) -> Row:
    content, lossy = text(message.get("content"))
    is_error, called = None, message.get("tool_call")
    for key in ("error", "is_error", "isError"):
        if key in message:
            is_error = bool(message[key])
            lossy += [f"{key}_text"] if isinstance(message[key], str) and message[key] else []
    name = message.get("name")
    if name is None and isinstance(called, dict):
        name = called["function"] if isinstance(called.get("function"), str) else called.get("name")
    return {"kind": "result", "call_id": message.get("tool_call_id") or message.get("id") or None, "tool": name,
            "content": content, "is_error": is_error, "requestor": message.get("requestor"), "lossy": lossy}
