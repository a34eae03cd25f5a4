"""The events of a streamed answer to the answer: OpenAI chat chunks, OpenAI Responses events, Anthropic events.

In: server-sent events as text, or their data as a list. Out: one answer each, shaped as the API gives it when it does not
stream. Sees fragments by index, ids and names that a server repeats, and servers that leave the index out. Does not see pings;
a stream that ends before its end gives what came.
"""

from __future__ import annotations

import re
from typing import Any

from extractors.formats.format import Row
from extractors.formats.values import dumped, objects_in, parsed_json

_LINE_END = re.compile(r"\r\n|\n|\r")
_OVER = ("response.completed", "response.incomplete", "response.failed")


def stream_events(response: Any) -> list[Row]:
    """Return data of the events: of text as `text/event-stream` writes them, of a list its objects."""
    if isinstance(response, list):
        return objects_in(response)
    events: list[Row] = []
    data: list[str] = []
    for line in [*_LINE_END.split(response), ""] if isinstance(response, str) else ():
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            events.append(_event("\n".join(data)))
            data = []
    return [each for each in events if each]


def _event(data: str) -> Row:
    value = parsed_json(data)
    if isinstance(value, dict):
        return value
    return {} if data.strip() == "[DONE]" else {"type": "unreadable", "data": data}


def is_anthropic(events: list[Row]) -> bool:
    """Whether they are the events of Anthropic's messages."""
    return any(each.get("type") == "message_start" and isinstance(each.get("message"), dict) for each in events)


def is_chat(events: list[Row]) -> bool:
    """Whether they are chunks of OpenAI chat completions."""
    return any(each.get("object") == "chat.completion.chunk" for each in events)


def is_responses(events: list[Row]) -> bool:
    """Whether they are events of OpenAI Responses."""
    return any(str(each.get("type")).startswith("response.") for each in events)


def answers(events: list[Row]) -> list[list[Row]]:
    """Return the events of each answer, where one stream (or file) holds several."""
    streams: list[list[Row]] = []
    last: Any = None
    for event in events:
        begins = event.get("type") in ("message_start", "response.created")
        if event.get("object") == "chat.completion.chunk":
            begins, last = event.get("id") != last, event.get("id")
        if begins or not streams:
            streams.append([])
        streams[-1].append(event)
    return streams


def anthropic_message(events: list[Row]) -> Row:
    """Return the message that the events make."""
    message: Row = {"content": []}
    blocks: dict[int, Row] = {}
    inputs: dict[int, str] = {}
    for event in events:
        kind, index = event.get("type"), event.get("index")
        if kind == "message_start":
            message = {**event["message"]}
        elif kind == "content_block_start" and isinstance(index, int) and isinstance(event.get("content_block"), dict):
            blocks[index] = {**event["content_block"]}
        elif kind == "content_block_delta" and isinstance(index, int) and isinstance(event.get("delta"), dict):
            block, delta = blocks.setdefault(index, {"type": "text", "text": ""}), event["delta"]
            if isinstance(delta.get("partial_json"), str):
                inputs[index] = inputs.get(index, "") + delta["partial_json"]
            for name in ("text", "thinking", "signature"):
                if isinstance(delta.get(name), str):
                    block[name] = (block.get(name) or "") + delta[name]
            if "citation" in delta:
                block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        elif kind == "message_delta":
            delta = event.get("delta")
            message.update(delta if isinstance(delta, dict) else {})
            message["usage"] = {**(message.get("usage") or {}), **(event.get("usage") or {})}
    for index, text in inputs.items():
        blocks[index]["input"] = parsed_json(text, text) if text.strip() else {}   # a torn text stays as it is
    message["content"] = [block for _, block in sorted(blocks.items())]
    if not any(event.get("type") == "message_stop" for event in events):
        message["stop_reason"] = message.get("stop_reason") or "stream ended early"
    return message


def chat_completion(events: list[Row]) -> Row:
    """Return the completion that the chunks make."""
    made: Row = {"choices": []}
    choices: dict[int, Row] = {}
    for event in events:
        for name in ("id", "created", "model", "usage", "prompt_token_ids"):
            if event.get(name) is not None:
                made[name] = event[name]
        for choice in event.get("choices") or ():
            index = choice.get("index") or 0
            choice_row = choices.setdefault(index, {"index": index, "message": {"role": "assistant", "content": None}})
            choice_row["finish_reason"] = choice.get("finish_reason") or choice_row.get("finish_reason")
            _grow(choice_row["message"], choice.get("delta") or {})
            stated = choice.get("logprobs")
            fragments = {"logprobs": stated.get("content") if isinstance(stated, dict) else None,
                         "token_ids": choice.get("token_ids")}
            for part, tokens in fragments.items():
                if isinstance(tokens, list) and tokens:
                    choice_row[part] = [*choice_row.get(part, ()), *tokens]
    made["choices"] = [{**each, "finish_reason": each["finish_reason"] or "stream ended early"}
                       for _, each in sorted(choices.items())]
    return made


def _grow(message: Row, delta: Row) -> None:
    for name in ("content", "refusal", "reasoning_content", "reasoning"):
        if isinstance(delta.get(name), str) and delta[name]:
            message[name] = (message.get(name) or "") + delta[name]
    if isinstance(delta.get("function_call"), dict):
        _call(message.setdefault("function_call", {"name": None, "arguments": ""}), delta["function_call"])
    for fragment in delta.get("tool_calls") or ():
        calls = message.setdefault("tool_calls", [])
        index, call_id = fragment.get("index"), fragment.get("id")
        call = next((each for each in calls if each["index"] == index), None) if index is not None else (
            calls[-1] if calls and call_id in (None, "", calls[-1]["id"]) else None)
        if call is None:
            call = {"index": len(calls) if index is None else index, "id": None, "type": "function",
                    "function": {"name": None, "arguments": ""}}
            calls.append(call)
        call["id"] = call["id"] or call_id
        if isinstance(fragment.get("function"), dict):
            _call(call["function"], fragment["function"])


def _call(function: Row, fragment: Row) -> None:
    function["name"] = function["name"] or fragment.get("name")
    arguments = fragment.get("arguments")
    if isinstance(arguments, dict):
        arguments = dumped(arguments)
    function["arguments"] += arguments or ""


def response_object(events: list[Row]) -> Row:
    """Return the response as its last event holds it; where that is missing, what was done until then."""
    over = next((each["response"] for each in reversed(events)
                 if each.get("type") in _OVER and isinstance(each.get("response"), dict)), None)
    if over is not None:
        return dict(over)
    begun: Row = next((each["response"] for each in events if isinstance(each.get("response"), dict)), {})
    done = [each["item"] for each in events
            if each.get("type") == "response.output_item.done" and isinstance(each.get("item"), dict)]
    return {"object": "response", **begun, "output": done, "status": "stream ended early"}
