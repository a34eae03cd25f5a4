"""Messages as frameworks write them down, to the parts of events (the same fields that `extractors.formats.chat.parts` gives).

In: one message, a list of them, a request or an answer around them, as a value or as JSON text (of JSON text …).
Sees: OpenAI chat, LangChain (`lc: 1` constructors, `{type: human|ai|tool …}`, with and without `data`), Anthropic blocks, parts
of OpenTelemetry and pydantic-ai (`response` or `result`, `reasoning` or `thinking`), Gemini contents (camel and snake case),
items of OpenAI Responses.
Does not see: what an image or a sound says (named in `lossy`); a message of no known shape is kept as its JSON text, and the
part says so in `lossy`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from extractors.formats import anthropic_blocks, chat, gemini_parts, otlp_parts, responses_items
from extractors.formats.format import Row

UNKNOWN = "message of no known shape"
"""Note on a message that is kept as its JSON text."""
ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "model": "assistant", "bot": "assistant",
         "chatbot": "assistant"}
"""Roles of other vendors, as ours."""
_CLASSES = {"HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool",
            "FunctionMessage": "function"}
_KNOWN = ("system", "developer", "user", "assistant", "tool", "function")
_LANGCHAIN = ("human", "ai", "system", "tool", "function", "chat", "developer", "AIMessageChunk")
_MOST_WRAPPINGS = 3


def loaded(value: Any) -> Any:
    """What JSON text says, also where JSON text holds JSON text; any other value as it is."""
    for _ in range(_MOST_WRAPPINGS):
        if not isinstance(value, str) or (value[:1] not in ('{', '[', '"') and value[:1].strip()):
            return value
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def written(value: Any) -> str | None:
    """Text as it is, anything else as JSON text, None as None."""
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def message(role: str | None, content: str | None, lossy: Iterable[str] = ()) -> Row:
    """The fields of a message."""
    return {"kind": "message", "role": role, "content": content, "lossy": list(lossy)}


def told(value: Any, role: str) -> list[Row]:
    """Parts of a message or a list of messages; `role` is whose they are where they do not say."""
    if value is None:
        return []
    if isinstance(value, str):
        return [message(role, value)]
    if isinstance(value, list):
        if value and all(isinstance(each, list) for each in value):     # a batch; each conversation has its own answer
            return told(value[0], role)
        if _are_blocks(value):
            return _blocks({"role": role}, value)
        return paired([part for each in value for part in told(each, role)])
    return _told(value, role) if isinstance(value, dict) else [_strange(value, role)]


def paired(parts: list[Row]) -> list[Row]:
    """The parts, with results that name no call given the id of the oldest call that is not answered."""
    if all(part["kind"] != "result" or part.get("call_id") for part in parts):
        return parts
    answered = {part.get("call_id") for part in parts if part["kind"] == "result"}
    waiting = [part for part in parts if part["kind"] == "call" and part.get("call_id") not in answered]
    for part in parts:
        if part["kind"] == "result" and not part.get("call_id"):
            call = next((each for each in waiting if part.get("tool") in (None, each.get("tool"))), None)
            if call is not None:
                waiting.remove(call)
                part["call_id"] = call.get("call_id")
    return parts


def _told(value: Row, role: str) -> list[Row]:
    """Parts of one message, by its shape."""
    kind = value.get("type")
    if value.get("lc") == 1 and isinstance(value.get("kwargs"), dict):
        path = value.get("id")
        name = str(path[-1]) if isinstance(path, list) and path else ""
        return _langchain(value["kwargs"], _CLASSES.get(name.removesuffix("Chunk"), value["kwargs"].get("type", role)))
    if isinstance(kind, str) and kind in _LANGCHAIN and isinstance(value.get("data"), dict):
        return _langchain(value["data"], kind)
    if isinstance(kind, str) and kind in _LANGCHAIN and "content" in value and "role" not in value:
        return _langchain(value, kind)
    if isinstance(value.get("parts"), list):
        return _parts(value, _role(value.get("role"), role))
    if isinstance(kind, str) and (kind in ("message", "reasoning") or kind.endswith(("_call", "_call_output"))):
        return responses_items.parts({"role": role, **value} if kind == "message" else value)
    if "role" in value:
        return _chat(value)
    return _blocks({"role": role}, [value]) if kind in _BLOCKS else [_strange(value, role)]


def _strange(value: Any, role: str) -> Row:
    return message(role, written(value), [UNKNOWN])


def _role(value: Any, role: str) -> str:
    return ROLES.get(value, value) if isinstance(value, str) else role


def _chat(value: Row) -> list[Row]:
    """A message with a role: OpenAI's way, or with blocks in it."""
    value = {**value, "role": _role(value.get("role"), "user")}
    if "content" not in value and isinstance(value.get("text"), str):
        value["content"] = value["text"]
    extra = value.get("additional_kwargs")
    if isinstance(extra, dict) and extra.get("tool_calls") and not value.get("tool_calls"):
        value["tool_calls"] = extra["tool_calls"]
    if value["role"] not in _KNOWN and isinstance(extra, dict):     # LangChain.js names a tool's message after the tool
        value.update(role="tool", name=value["role"])
    content = value.get("content")
    if isinstance(content, list) and any(isinstance(each, dict) and each.get("type") in _OWN_BLOCKS for each in content):
        calls = [part for part in chat.parts({**value, "content": None}) if part["kind"] == "call"]
        return _blocks(value, content, calls)
    found = list(chat.parts(value))
    if isinstance(content, str) and content == "" and not found:
        found = [message(value["role"], "")]
    if value["role"] == "tool" and found[0].get("tool") is None:
        found[0]["tool"] = value.get("tool_name")
    return found


def _langchain(value: Row, kind: Any) -> list[Row]:
    """The fields of a LangChain message."""
    role = _role(kind, "user")
    shown = {**value, "role": value.get("role", "user") if role == "chat" else role}
    calls = [*(value.get("tool_calls") or ()), *(value.get("invalid_tool_calls") or ())]
    content = value.get("content")
    if calls and isinstance(content, list):     # the same calls stand among the blocks
        content = [each for each in content
                   if not (isinstance(each, dict) and each.get("type") in ("tool_use", "function_call"))]
    shown.update(content=content or "" if calls and not content else content, tool_calls=calls or None)
    found = _chat(shown)
    if role == "tool" and value.get("status") in ("error", "success"):
        for part in found:
            if part["kind"] == "result":
                part["is_error"] = value["status"] == "error"
    return found


_OWN_BLOCKS = ("tool_use", "server_tool_use", "mcp_tool_use", "tool_result", "mcp_tool_result", "web_search_tool_result",
               "thinking", "redacted_thinking", "tool-call", "tool-result")
_TEXTS = ("input_text", "output_text")
_BLOCKS = (*_OWN_BLOCKS, *_TEXTS, "text", "image", "image_url", "document", "refusal", "input_image", "file")


def _are_blocks(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(each, dict) and "role" not in each and each.get("type") in _BLOCKS for each in value)


def _blocks(owner: Row, blocks: list[Any], calls: Iterable[Row] = ()) -> list[Row]:
    """Parts of a message of blocks; `calls` that its blocks do not hold come after them."""
    found = [part for part in anthropic_blocks.parts({"role": owner["role"], "content": [_block(each) for each in blocks]})
             if part["kind"] != "message" or part["content"] is not None or part["lossy"]]
    known = {part.get("call_id") for part in found if part["kind"] == "call"}
    return [*found, *(call for call in calls if call.get("call_id") is None or call["call_id"] not in known)]


def _block(block: Any) -> Any:
    """A block of the AI SDK or of OpenAI as one of Anthropic's."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in _TEXTS:
        return {"type": "text", "text": block.get("text")}
    if kind == "tool-call":
        return {"type": "tool_use", "id": block.get("toolCallId"), "name": block.get("toolName"),
                "input": block.get("input", block.get("args"))}
    if kind == "tool-result":
        output = block.get("output", block.get("result"))
        given = output if isinstance(output, dict) and isinstance(output.get("type"), str) and "value" in output else {
            "type": "", "value": output}
        return {"type": "tool_result", "tool_use_id": block.get("toolCallId"), "content": written(given["value"]),
                "is_error": given["type"].startswith("error") or block.get("isError") is True}
    return block


def _parts(value: Row, role: str) -> list[Row]:
    """Parts of a message in the way of OpenTelemetry, or of Gemini (whose parts have no type)."""
    parts = value["parts"]
    if any(isinstance(each, dict) and "type" in each for each in parts):
        return otlp_parts.message_parts({**value, "role": role})
    return gemini_parts.together([gemini_parts.part_of(each, role) for each in parts])
