"""Messages of the providers that have their own shapes to the parts of events: Anthropic, OpenAI Responses, Gemini.

Anthropic: text or lists of blocks, calls and results (of the client's tools, and of the server's, which stand in one message),
error flags (a result without one is none: the API's default), thinking; texts side by side are joined.
Responses (and Codex): messages, function and custom calls and their outputs, calls that the server ran itself (call and answer
in one item), reasoning as far as it is readable.
Gemini: texts and thoughts, calls and responses of functions, tools and executed code, in camelCase or snake_case.
Does not see: what an image or a file says (named in `lossy` by type and hash), encrypted reasoning (named there too). Blocks,
items and parts of unknown type become log parts, whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extractors.formats.chat import call_part, hashed, joined_texts, log_part, message_part, result_part, text, thought_part
from extractors.formats.format import Row
from extractors.formats.sampling import snake_case
from extractors.formats.values import dumped, object_of, objects_in, written

_BLOCK_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_BLOCK_FILES = ("image", "document", "search_result", "container_upload")
_OUTPUTS = ("output", "outputs", "results", "result", "error")
_ITEM_FACTS = frozenset({"id", "type", "status", "call_id", "name", "arguments", "input", "server_label", "namespace", "caller",
                         "created_by", *_OUTPUTS})
_GEMINI_CALLS = {"functionCall": "args", "toolCall": "args", "executableCode": None}
_GEMINI_RESULTS = {"functionResponse": "response", "toolResponse": "response", "codeExecutionResult": "output"}
_GEMINI_FILES = ("inlineData", "fileData")
_GEMINI_CODE = "code_execution"
_CAMEL = {snake_case(name): name for name in (*_GEMINI_CALLS, *_GEMINI_RESULTS, *_GEMINI_FILES)}


def anthropic_parts(message: Any) -> list[Row]:
    """Event fields of one of Anthropic's messages, in order; at least one part."""
    if not isinstance(message, dict):
        return [log_part("message", message)]
    role, content = message.get("role"), message.get("content")
    if not isinstance(content, list):
        return [message_part(role, written(content))]
    return joined_texts(_of_block(block, role) for block in content) or [message_part(role, None)]


def _of_block(block: Any, role: Any) -> Row:
    kind = block.get("type") if isinstance(block, dict) else None
    if isinstance(block, str) or (kind in (None, "text") and isinstance(block, dict) and isinstance(block.get("text"), str)):
        return message_part(role, block if isinstance(block, str) else block["text"])
    if kind in _BLOCK_CALLS:
        return call_part(role or "assistant", written(block.get("id")), written(block.get("name")), block.get("input"),
                         [] if kind == "tool_use" else ["server tool"])
    if isinstance(kind, str) and kind.endswith("tool_result"):
        lossy: list[str] = []
        content, failed = block.get("content"), bool(block.get("is_error"))
        if block["type"] != "tool_result":
            stated = object_of(content).get("type")
            failed = failed or (isinstance(stated, str) and stated.endswith("_error"))
        if isinstance(content, list) and all(isinstance(each, dict) and (each.get("type") in _BLOCK_FILES or (
                each.get("type") == "text" and isinstance(each.get("text"), str))) for each in content):
            texts = [each["text"] for each in content if each["type"] == "text"]
            lossy = [hashed(each["type"], each) for each in content if each["type"] != "text"]
            content = "".join(texts) if texts or not lossy else None
        content = "" if content is None and not lossy else written(content)
        return result_part(written(block.get("tool_use_id")), None, content, failed, lossy)
    if kind == "thinking":
        return thought_part(role, written(block.get("thinking")))
    if kind == "redacted_thinking":
        return thought_part(role, None, [hashed(kind, block)])
    if kind in _BLOCK_FILES:
        source = object_of(block.get("source"))
        document = source.get("data") if source.get("type") == "text" else None
        return message_part(role, document if isinstance(document, str) else None, [hashed(kind, block)])
    return log_part(f"block {kind}", block)


def responses_parts(item: Any) -> list[Row]:
    """Event fields of one item of OpenAI Responses, in order; at least one part."""
    if isinstance(item, str):
        return [message_part("user", item)]
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(kind, (str, type(None))):
        return [log_part("item", item)]
    notes = ["finish_reason length"] if item.get("status") == "incomplete" else []
    if kind == "message" or (kind is None and "role" in item):
        content, lossy = text(item.get("content"))
        return [message_part(item.get("role"), content, [*lossy, *notes])]
    if kind == "reasoning":
        texts = [*_texts(item.get("summary")), *_texts(item.get("content"))]
        return [thought_part("assistant", "\n\n".join(texts) if texts else None,
                             ["encrypted_content"] if item.get("encrypted_content") else [])]
    if kind is not None and kind.endswith(("_output", "_call")):
        answer = next((item[key] for key in _OUTPUTS if item.get(key) is not None), None)
        if isinstance(answer, list) and not all(isinstance(each, dict) and "type" in each for each in answer):
            content, lossy = dumped(answer), []
        else:
            content, lossy = text(answer)
        if kind.endswith("_output"):
            return [result_part(written(item.get("call_id")), None, content, None, lossy)]
        call = _of_call_item(item, kind, notes)
        return [call] if answer is None else [call, result_part(   # the server ran it itself
            call["call_id"], call["tool"], content, True if item.get("error") is not None else None, lossy)]
    return [log_part(f"item {kind}", item)]


def _of_call_item(item: Row, kind: str, notes: list[str]) -> Row:
    if "arguments" in item:
        arguments = item["arguments"]
    elif kind == "custom_tool_call":
        arguments, notes = {"input": item.get("input")}, ["custom_tool", *notes]
    else:
        rest = {key: value for key, value in item.items() if key not in _ITEM_FACTS}
        inner = rest.get("action")
        arguments = inner if isinstance(inner, dict) and len(rest) == 1 else rest
    tool = written(item.get("name")) or kind.removesuffix("_call")
    return call_part("assistant", written(item.get("call_id") or item.get("id")), tool, arguments, notes)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each["text"] for each in objects_in(value) if isinstance(each.get("text"), str)]


def gemini_parts(parts: Iterable[Any], role: Any) -> list[Row]:
    """Event fields of the parts of one of Gemini's contents; texts (and thoughts) side by side are joined."""
    return joined_texts((_of_gemini_part(part, role) for part in parts), ("message", "reasoning"))


def _of_gemini_part(part: Any, role: Any) -> Row:
    if isinstance(part, str):
        return message_part(role, part)
    if not isinstance(part, dict):
        return log_part("part", part)
    part = {_CAMEL.get(key, key): value for key, value in part.items() if value is not None}
    if isinstance(part.get("text"), str):
        return (thought_part if part.get("thought") is True else message_part)(role, part["text"])
    for name, key in _GEMINI_CALLS.items():
        if isinstance(call := part.get(name), dict):
            notes = ["arguments told in pieces"] if call.get("willContinue") or call.get("partialArgs") else []
            tool = _GEMINI_CODE if key is None else call.get("name") or call.get("toolType")
            return call_part(role, call.get("id"), tool, call if key is None else call.get(key), notes)
    for name, key in _GEMINI_RESULTS.items():
        if isinstance(result := part.get(name), dict):
            value, failed, is_code = result.get(key), False, key == "output"
            if is_code:
                failed = result.get("outcome") not in (None, "OUTCOME_OK", 1)
            elif isinstance(value, dict):   # a failure says `error` and is kept whole; success may be under `output`
                failed = value.get("error") is not None
                value = value["output"] if set(value) == {"output"} else value
            return result_part(result.get("id"), _GEMINI_CODE if is_code else result.get("name"), written(value), failed)
    file = next((name for name in _GEMINI_FILES if name in part), None)
    return log_part("part", part) if file is None else message_part(role, None, [hashed(file, part[file])])
