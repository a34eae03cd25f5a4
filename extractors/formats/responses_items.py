"""Items of OpenAI's Responses API (and of Codex) to the parts of events.

Sees: messages, function and custom calls and their outputs, calls that the server ran itself (call and answer in one item),
reasoning as far as it is readable. Does not see: encrypted reasoning, images; they are named in `lossy`. Items of other types
become log parts, whole.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.chat import arguments_of, text
from extractors.formats.format import Row

_OUTPUTS = ("output", "outputs", "results", "result", "error")
_FACTS = frozenset({"id", "type", "status", "call_id", "name", "arguments", "input", "server_label", "namespace", "caller",
                    "created_by", *_OUTPUTS})


def parts(item: Any) -> list[Row]:
    """Event fields of one item, in order; at least one part."""
    if isinstance(item, str):
        return [{"kind": "message", "role": "user", "content": item, "lossy": []}]
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(kind, (str, type(None))):
        return [_log(item, "item")]
    if kind == "message" or (kind is None and "role" in item):
        content, lossy = text(item.get("content"))
        notes = ["finish_reason length"] if item.get("status") == "incomplete" else []
        return [{"kind": "message", "role": item.get("role"), "content": content, "lossy": [*lossy, *notes]}]
    if kind == "reasoning":
        return [_reasoning(item)]
    if kind is not None and kind.endswith("_output"):
        return [_output(item)]
    if kind is not None and kind.endswith("_call"):
        return _call(item, kind)
    return [_log(item, f"item {kind}")]


def output_text(value: Any) -> tuple[str | None, list[str]]:
    """Output of a tool as logged: text, text parts joined, any other value as JSON text."""
    if isinstance(value, list) and not all(isinstance(each, dict) and "type" in each for each in value):
        return orjson.dumps(value).decode(), []
    return text(value)


def _call(item: Row, kind: str) -> list[Row]:
    """A call, and its answer where the server ran it."""
    notes: list[str] = []
    if "arguments" in item:
        arguments, notes = arguments_of(item["arguments"])
    elif kind == "custom_tool_call":
        arguments, notes = arguments_of({"input": item.get("input")})[0], ["custom_tool"]
    else:
        rest = {key: value for key, value in item.items() if key not in _FACTS}
        inner = rest.get("action")
        arguments = orjson.dumps(inner if isinstance(inner, dict) and len(rest) == 1 else rest).decode()
    if item.get("status") == "incomplete":
        notes = [*notes, "finish_reason length"]
    call_id, tool = _name(item.get("call_id") or item.get("id")), _name(item.get("name")) or kind.removesuffix("_call")
    found: list[Row] = [{"kind": "call", "role": "assistant", "requestor": "assistant", "call_id": call_id, "tool": tool,
                         "arguments": arguments, "lossy": notes}]
    answer = next((item[key] for key in _OUTPUTS if item.get(key) is not None), None)
    if answer is not None:
        content, lossy = output_text(answer)
        found.append({"kind": "result", "call_id": call_id, "tool": tool, "content": content,
                      "is_error": True if item.get("error") is not None else None, "lossy": lossy})
    return found


def _output(item: Row) -> Row:
    content, lossy = output_text(next((item[key] for key in _OUTPUTS if item.get(key) is not None), None))
    return {"kind": "result", "call_id": _name(item.get("call_id")), "content": content, "is_error": None, "lossy": lossy}


def _reasoning(item: Row) -> Row:
    said = [*_texts(item.get("summary")), *_texts(item.get("content"))]
    lossy = ["encrypted_content"] if item.get("encrypted_content") else []
    return {"kind": "reasoning", "role": "assistant", "content": "\n\n".join(said) if said else None, "lossy": lossy}


def _texts(found: Any) -> list[str]:
    if isinstance(found, str):
        return [found]
    return [each["text"] for each in found if isinstance(each, dict) and isinstance(each.get("text"), str)] if isinstance(
        found, list) else []


def _name(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _log(item: Any, name: str) -> Row:
    return {"kind": "log", "tool": name, "content": orjson.dumps(item).decode(), "lossy": []}
