"""OpenAI's responses, to and from chat completions: requests in, answers out, whole or as a stream of events.

Sees: messages, function calls and their outputs, earlier responses of the same episode by their ids. Does not see: items of
reasoning, and tools that OpenAI's servers run, which no other model's endpoint takes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.rollouts.agents.talks import ModelRequest

SAME_FIELDS = {"max_output_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p",
               "parallel_tool_calls": "parallel_tool_calls", "seed": "seed"}
"""Fields that chat completions have too, and their names there."""
Row = dict[str, Any]


class ResponsesMemory:
    """The responses of an episode, which later requests may name."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._conversations: dict[str, list[Row]] = {}

    def read(self, body: Row) -> ModelRequest:
        """Return what a request asks. Raises ValueError."""
        messages = [*self._earlier(body.get("previous_response_id")), *_read_items(body.get("input"))]
        instructions = body.get("instructions")
        tools = [{"type": "function", "function": {
            name: tool[name] for name in ("name", "description", "parameters", "strict") if tool.get(name) is not None}}
            for tool in body.get("tools") or () if tool.get("type") == "function"]
        fields = {name: body[own] for own, name in SAME_FIELDS.items() if body.get(own) is not None}
        if not tools:
            fields.pop("parallel_tool_calls", None)
        choice = body.get("tool_choice")
        if tools and isinstance(choice, str):
            fields["tool_choice"] = choice
        elif tools and isinstance(choice, dict) and choice.get("type") == "function":
            fields["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
        fields |= _format(body)
        if instructions:
            messages = [{"role": "system", "content": instructions}, *messages]
        return ModelRequest(messages, tools, fields)

    def answer(self, completion: Row, body: Row) -> Row:
        """Return the answer to a request, and remember it."""
        (choice,) = completion["choices"]
        message, usage, number = choice["message"], completion["usage"], next(self._numbers)
        response_id = f"resp_{number}"
        output: list[Row] = []
        calls = message.get("tool_calls") or ()
        if message.get("content") or not calls:
            output.append({"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant", "content": [
                {"type": "output_text", "text": message.get("content") or "", "annotations": [], "logprobs": []}]})
        output += [{"type": "function_call", "id": f"fc_{number}_{place}", "call_id": call["id"], "status": "completed",
                    "name": call["function"]["name"], "arguments": call["function"]["arguments"]}
                   for place, call in enumerate(calls)]
        earlier = [*self._earlier(body.get("previous_response_id")), *_read_items(body.get("input"))]
        self._conversations[response_id] = [*earlier, *_read_items(output)]
        is_cut = choice["finish_reason"] == "length"
        return {
            "id": response_id, "object": "response", "created_at": completion.get("created") or 0, "error": None,
            "status": "incomplete" if is_cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None, "model": completion["model"],
            "output": output, "instructions": body.get("instructions"), "metadata": body.get("metadata") or {},
            "previous_response_id": body.get("previous_response_id"), "parallel_tool_calls": True,
            "temperature": body.get("temperature"), "top_p": body.get("top_p"), "tools": body.get("tools") or [],
            "tool_choice": body.get("tool_choice") or "auto", "text": body.get("text") or {"format": {"type": "text"}},
            "reasoning": body.get("reasoning") or {"effort": None, "summary": None}, "truncation": "disabled", "usage": {
                "input_tokens": usage.get("prompt_tokens") or 0, "output_tokens": usage.get("completion_tokens") or 0,
                "input_tokens_details": {"cached_tokens": _detail(usage, "prompt_tokens_details", "cached_tokens"),
                                         "cache_write_tokens": 0},
                "output_tokens_details": {
                    "reasoning_tokens": _detail(usage, "completion_tokens_details", "reasoning_tokens")},
                "total_tokens": (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0)}}

    def stream(self, completion: Row, body: Row) -> Iterator[tuple[str | None, Any]]:
        """Yield the answer's events: (name, data)."""
        whole = self.answer(completion, body)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        events: list[Row] = [{"type": "response.created", "response": begun},
                             {"type": "response.in_progress", "response": begun}]
        for place, item in enumerate(whole["output"]):
            events += _item_events(place, item)
        events.append({"type": f"response.{whole['status']}", "response": whole})
        for number, event in enumerate(events):
            yield event["type"], {**event, "sequence_number": number}

    def _earlier(self, response_id: Any) -> Sequence[Row]:
        if response_id is None:
            return ()
        if response_id not in self._conversations:
            raise ValueError(f"there is no response {response_id!r} in this episode")
        return self._conversations[response_id]


def _item_events(place: int, item: Row) -> list[Row]:
    if item["type"] == "message":
        (part,) = item["content"]
        where = {"item_id": item["id"], "output_index": place, "content_index": 0}
        text = part["text"]
        inner = [{"type": "response.content_part.added", **where, "part": {**part, "text": ""}},
                 {"type": "response.output_text.delta", **where, "delta": text, "logprobs": []},
                 {"type": "response.output_text.done", **where, "text": text, "logprobs": []},
                 {"type": "response.content_part.done", **where, "part": part}]
        begun = {**item, "status": "in_progress", "content": []}
    else:
        where, text = {"item_id": item["id"], "output_index": place}, item["arguments"]
        inner = [{"type": "response.function_call_arguments.delta", **where, "delta": text},
                 {"type": "response.function_call_arguments.done", **where, "name": item["name"], "arguments": text}]
        begun = {**item, "status": "in_progress", "arguments": ""}
    return [{"type": "response.output_item.added", "output_index": place, "item": begun}, *inner,
            {"type": "response.output_item.done", "output_index": place, "item": item}]


def _read_items(items: Any) -> list[Row]:
    """Return items as chat messages; the calls of one answer are one message, with the text before them."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    messages: list[Row] = []
    for item in items or ():
        kind = item.get("type", "message")
        if kind == "function_call":
            call = {"id": item["call_id"], "type": "function", "function": {
                "name": item["name"], "arguments": item["arguments"]}}
            if not (messages and messages[-1]["role"] == "assistant"):
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            output = item["output"]
            text = output if isinstance(output, str) else "".join(str(part.get("text", "")) for part in output)
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": text})
        elif kind == "message":
            role = "system" if item["role"] == "developer" else item["role"]
            messages.append({"role": role, "content": _content(item.get("content"))})
    return messages


def _content(content: Any) -> Any:
    if isinstance(content, str) or content is None:
        return content or ""
    if all("text" in part for part in content):
        return "".join(part["text"] for part in content)
    return [{"type": "text", "text": part["text"]} if "text" in part else
            {"type": "image_url", "image_url": {"url": part.get("image_url") or ""}} for part in content]


def _format(body: Row) -> Row:
    fields: Row = {}
    form = (body.get("text") or {}).get("format") or {}
    if form.get("type") == "json_schema":
        fields["response_format"] = {"type": "json_schema", "json_schema": {
            name: form[name] for name in ("name", "description", "schema", "strict") if form.get(name) is not None}}
    elif form.get("type") == "json_object":
        fields["response_format"] = {"type": "json_object"}
    effort = (body.get("reasoning") or {}).get("effort")
    return {**fields, "reasoning_effort": effort} if effort else fields


def _detail(usage: Row, group: str, name: str) -> int:
    return (usage.get(group) or {}).get(name) or 0


def error(message: str, status: int) -> Row:
    """Return the body of an error."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def as_json(data: Any) -> str:
    """Return an event's data as text."""
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
