"""Anthropic's messages, to and from chat completions: requests in, answers out, whole or as a stream of events.

Sees: text, images, calls and their answers. Does not see: thinking blocks and tools that Anthropic's servers run, which no
other model's endpoint takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.rollouts.agents.talks import ModelRequest, json_object

SAME_FIELDS = {"max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop_sequences": "stop"}
"""Fields that chat completions have too, and their names there."""
CHOICES = {"auto": "auto", "any": "required", "none": "none"}
Row = dict[str, Any]


def read(body: Row) -> ModelRequest:
    """Return what a request asks. Raises ValueError."""
    if not isinstance(body.get("messages"), list):
        raise ValueError("messages is no list of messages")
    system = _text(body.get("system"))
    messages: list[Row] = [{"role": "system", "content": system}] if system else []
    for message in body["messages"]:
        messages += _read_message(message["role"], message["content"])
    tools = [{"type": "function", "function": {
        "name": tool["name"], "description": tool.get("description", ""), "parameters": tool["input_schema"]}}
        for tool in body.get("tools") or () if "input_schema" in tool]
    fields = {name: body[own] for own, name in SAME_FIELDS.items() if body.get(own) is not None}
    choice = body.get("tool_choice") or {}
    if tools and choice.get("type") == "tool":
        fields["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
    elif tools and choice.get("type") in CHOICES:
        fields["tool_choice"] = CHOICES[choice["type"]]
    return ModelRequest(messages, tools, fields)


def answer(completion: Row, body: Row) -> Row:
    """Return the answer to a request."""
    (choice,) = completion["choices"]
    message, usage = choice["message"], completion["usage"]
    calls = message.get("tool_calls") or ()
    text = message.get("content") or ""
    content: list[Row] = [{"type": "text", "text": text}] if text or not calls else []
    content += [{"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
                 "input": json_object(call["function"]["arguments"])} for call in calls]
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return {
        "id": f"msg_{completion['id']}", "type": "message", "role": "assistant",
        "model": body.get("model") or completion["model"], "content": content, "stop_sequence": None,
        "stop_reason": "tool_use" if calls else "max_tokens" if choice["finish_reason"] == "length" else "end_turn",
        "usage": {"input_tokens": (usage.get("prompt_tokens") or 0) - cached, "cache_creation_input_tokens": 0,
                  "cache_read_input_tokens": cached, "output_tokens": usage.get("completion_tokens") or 0}}


def stream(completion: Row, body: Row) -> Iterator[tuple[str | None, Any]]:
    """Yield the answer's events: (name, data)."""
    whole = answer(completion, body)

    def event(name: str, **data: Any) -> tuple[str, Row]:
        return name, {"type": name, **data}

    yield event("message_start", message={**whole, "content": [], "stop_reason": None})
    for place, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        begin = {**block, "text": ""} if is_text else {**block, "input": {}}
        delta = {"type": "text_delta", "text": block["text"]} if is_text else {
            "type": "input_json_delta", "partial_json": json.dumps(block["input"], ensure_ascii=False)}
        yield event("content_block_start", index=place, content_block=begin)
        yield event("content_block_delta", index=place, delta=delta)
        yield event("content_block_stop", index=place)
    yield event("message_delta", delta={"stop_reason": whole["stop_reason"], "stop_sequence": None}, usage=whole["usage"])
    yield event("message_stop")


def count(body: Row) -> Row:
    """Return an estimate of a request's tokens: four characters each."""
    return {"input_tokens": len(json.dumps(body, ensure_ascii=False)) // 4 + 1}


def error(message: str, status: int) -> Row:
    """Return the body of an error."""
    kind = "invalid_request_error" if status < 500 else "api_error"
    return {"type": "error", "error": {"type": kind, "message": message}}


def _read_message(role: str, content: Any) -> Iterator[Row]:
    """Yield chat messages of a message: the answers of tools come first, as they must follow their calls."""
    blocks: Sequence[Row] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if role == "assistant":
        calls = [{"id": block["id"], "type": "function", "function": {
            "name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)}}
            for block in blocks if block["type"] == "tool_use"]
        yield {"role": role, "content": _text(blocks) or None, **({"tool_calls": calls} if calls else {})}
        return
    for block in blocks:
        if block["type"] == "tool_result":
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _text(block.get("content"))}
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if all(part["type"] == "text" for part in parts):
        if parts:
            yield {"role": role, "content": "\n".join(part["text"] for part in parts)}
    else:
        yield {"role": role, "content": parts}


def _part(block: Row) -> Row | None:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    source = block.get("source") or {}
    if block["type"] == "image" and source.get("type") == "base64":
        return {"type": "image_url", "image_url": {"url": f"data:{source['media_type']};base64,{source['data']}"}}
    if block["type"] == "image" and source.get("type") == "url":
        return {"type": "image_url", "image_url": {"url": source["url"]}}
    return None


def _text(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(block["text"] for block in content if block.get("type") == "text")
