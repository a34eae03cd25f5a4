"""Chat messages as OpenAI and its dialects write them, to the parts of events; and the fields of a part of each kind.

Sees: roles, text or lists of parts, `tool_calls` (function as an object or as a name; `arguments` or `args` as text or as an
object; custom tools), the legacy `function_call`, tool messages with id, name and error flag, reasoning as text.
Does not see: what an image or a sound says; such parts are named in `lossy` by type and hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from extractors.formats.format import Emit, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.sampling import laid
from extractors.formats.values import dumped, parsed_json

SPOKEN = ("message", "call", "result")
"""Kinds of parts that take a position in a conversation."""
_TIME = ("at", "timestamp", "time", "created_at", "ts")
_TIMED = frozenset(_TIME)
_REASONING = ("reasoning_content", "reasoning", "thinking")
_UNREAD = (*_REASONING, "audio", "refusal", "weight")
_UNREAD_KEYS = frozenset(_UNREAD)
_RESULT_ROLES = ("tool", "function")


def message_part(role: Any, content: str | None, lossy: Iterable[str] = ()) -> Row:
    """Fields of a message."""
    return {"kind": "message", "role": role, "content": content, "lossy": [*lossy]}


def thought_part(role: Any, content: str | None, lossy: Iterable[str] = ()) -> Row:
    """Fields of reasoning."""
    return {"kind": "reasoning", "role": role, "content": content, "lossy": [*lossy]}


def call_part(role: Any, call_id: Any, tool: Any, arguments: Any, lossy: Iterable[str] = ()) -> Row:
    """Fields of a call; `arguments`: JSON text or a value, as logged."""
    written, problems = arguments_of(arguments)
    return {"kind": "call", "role": role, "requestor": role, "call_id": call_id, "tool": tool, "arguments": written,
            "lossy": [*problems, *lossy]}


def strange_call(role: Any, call: Any) -> Row:
    """Fields of a call that is no object."""
    return {"kind": "call", "role": role, "requestor": role, "tool": None, "arguments": dumped(call),
            "lossy": ["call is no object"]}


def result_part(call_id: Any, tool: Any, content: str | None, is_error: bool | None, lossy: Iterable[str] = ()) -> Row:
    """Fields of a tool's result."""
    return {"kind": "result", "call_id": call_id, "tool": tool, "content": content, "is_error": is_error, "lossy": [*lossy]}


def log_part(name: str, value: Any) -> Row:
    """Fields of a part of unknown kind, kept whole."""
    return {"kind": "log", "tool": name, "content": dumped(value), "lossy": []}


def hashed(kind: Any, value: Any) -> str:
    """Note on a part that is no text: its type and hash."""
    return f"part {kind} sha256:{hashlib.sha256(orjson.dumps(value)).hexdigest()}"


def joined_texts(parts: Iterable[Row], kinds: tuple[str, ...] = ("message",)) -> list[Row]:
    """Join texts of these kinds that stand side by side."""
    rows: list[Row] = []
    for part in parts:
        if rows and part["kind"] in kinds and rows[-1]["kind"] == part["kind"]:
            texts = [each for each in (rows[-1]["content"], part["content"]) if each is not None]
            rows[-1]["content"] = "".join(texts) if texts else None
            rows[-1]["lossy"] += part["lossy"]
        else:
            rows.append(part)
    return rows


def emit_parts(emit: Emit, record: LogRecord, parts: Iterable[Row], position: int, place: str | None, fixed: Row,
               notes: Iterable[str] = (), usage: Row | None = None) -> int:
    """Emit parts that follow each other; returns the position after them.

    `place`: what their places in the record begin with (None: they are numbers). `usage`: of the answer that the parts are.
    """
    rows, notes = list(parts), [*notes]
    for i, (part, own) in enumerate(zip(rows, laid(usage, [part["kind"] for part in rows]), strict=True)):
        emit.event(record, place=i if place is None else f"{place}{i}", position=position, **{
            **fixed, **({"usage": own} if own else {}), **part, "lossy": [*part["lossy"], *notes]})
        position += part["kind"] in SPOKEN
    return position


def parts(message: Any) -> Iterator[Row]:
    """Event fields of one message, in order: its reasoning, the message itself, its calls; or the result that it is."""
    if not isinstance(message, dict):
        yield message_part(None, None, ["message is no object"])
        return
    shared: Row = {}
    if not _TIMED.isdisjoint(message):
        instant = next((t for t in map(message.get, _TIME) if t is not None), None)
        shared = {"happened_at": microseconds(instant)} if instant is not None else {}
    if _are_calls(message.get("content")):   # some write calls where the content stands, whatever the role
        message = {**message, "role": "assistant", "content": None,
                   "tool_calls": [*message["content"], *(message.get("tool_calls") or ())]}
    if message.get("role") in _RESULT_ROLES:
        yield {**_result(message), **shared}
        return
    content, lossy = text(message.get("content"))
    calls = [*_listed(message.get("tool_calls")), *filter(None, (message.get("function_call"),))]
    if content is None and isinstance(message.get("refusal"), str):
        content = message["refusal"]
    role = message.get("role")
    if not _UNREAD_KEYS.isdisjoint(message):
        thought = next((key for key in _REASONING if isinstance(message.get(key), str) and message[key]), None)
        if thought is not None:
            yield {**thought_part(role, message[thought]), **shared}
        lossy += [key for key in _UNREAD if message.get(key) and key != thought]
    if content or not calls:
        yield {**message_part(role, content, lossy), **shared}
    for call in calls:
        yield {**_call(call, role), **shared}


def text(content: Any) -> tuple[str | None, list[str]]:
    """Text of a message's content, its text parts joined, and what could not be carried over."""
    if content is None or isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        return dumped(content), []
    texts: list[str] = []
    lost: list[str] = []
    for part in content:
        part_text = part if isinstance(part, str) else _part_text(part)
        if part_text is None:
            lost.append(hashed(part.get("type") if isinstance(part, dict) else type(part).__name__, part))
        else:
            texts.append(part_text)
    return ("".join(texts) if texts or not lost else None), lost


def arguments_of(value: Any) -> tuple[str, list[str]]:
    """Arguments as JSON text, as logged, and a note where that text is no JSON object."""
    if value is None or value == "":
        return "{}", []
    if not isinstance(value, str):
        return dumped(value), [] if isinstance(value, dict) else ["args_parse_error"]
    return value, [] if isinstance(parsed_json(value), dict) else ["args_parse_error"]


def _are_calls(content: Any) -> bool:
    """Return whether a content is a list of calls as `tool_calls` holds them."""
    return isinstance(content, list) and bool(content) and all(
        isinstance(each, dict) and each.get("type", "function") == "function" and isinstance(each.get("function"), dict)
        and isinstance(each["function"].get("name"), str) and "arguments" in each["function"] for each in content)


def _part_text(part: Any) -> str | None:
    if not isinstance(part, dict) or part.get("type", "text") not in ("text", "input_text", "output_text", "refusal"):
        return None
    value = part.get("text", part.get("content", part.get("refusal")))
    if isinstance(value, dict):
        value = value.get("value")
    return value if isinstance(value, str) else None


def _listed(calls: Any) -> list[Any]:
    """Return the calls of a message: a list or its JSON text; anything else but nothing is one call."""
    calls = parsed_json(calls, calls) if isinstance(calls, str) else calls
    return calls if isinstance(calls, list) else [calls] if calls else []


def _call(call: Any, role: str | None) -> Row:
    if not isinstance(call, dict):
        return strange_call(role, call)
    function, custom = call.get("function"), call.get("custom")
    inner = function if isinstance(function, dict) else call
    if isinstance(custom, dict):
        inner = {"name": custom.get("name"), "arguments": {"input": custom.get("input")}}
    arguments = next((inner[key] for key in ("arguments", "args", "input") if key in inner), None)
    part = call_part(role, call.get("id") or call.get("toolCallId") or None,
                     function if isinstance(function, str) else inner.get("name", inner.get("toolName")), arguments,
                     ["custom_tool"] if isinstance(custom, dict) else [])
    return {**part, "requestor": call.get("requestor") or role}


def _result(message: Row) -> Row:
    content, lossy = text(message.get("content"))
    is_error, called, name = None, message.get("tool_call"), message.get("name")
    for key in ("error", "is_error", "isError"):
        if key in message:
            is_error = bool(message[key])
            lossy += [f"{key}_text"] if isinstance(message[key], str) and message[key] else []
    if name is None and isinstance(called, dict):
        name = called["function"] if isinstance(called.get("function"), str) else called.get("name")
    part = result_part(message.get("tool_call_id") or message.get("id") or None, name, content, is_error, lossy)
    return {**part, "requestor": message.get("requestor")}
