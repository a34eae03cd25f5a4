"""An agent as somebody writes it, with the standard library: it asks a model, calls tools, and prints the answer.

    loop.py PROTOCOL      chat, responses or messages
    loop.py NUMBER        the protocol of that number, from 3 on as a stream
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TASK = json.loads(open(os.environ["TRACEROOM_TASK_FILE"], encoding="utf-8").read())  # noqa: SIM115, PTH123


def post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        if not body.get("stream"):
            return json.load(reply)
        events = [line.removeprefix("data: ") for line in reply.read().decode().split("\n") if line.startswith("data: ")]
        return [json.loads(event) for event in events if event != "[DONE]"]


def call(call_id: str, name: str, arguments: Any) -> str:
    answer = post(f"{os.environ['TRACEROOM_EPISODE_URL']}/tools/call",
                  {"tool": name, "arguments": arguments, "call_id": call_id})
    return str(answer["content"])


def called(calls: list[tuple[str, str, Any]]) -> list[tuple[str, str]]:
    """Make calls side by side, the last one first."""
    with ThreadPoolExecutor(8) as threads:
        answers = [(call_id, threads.submit(call, call_id, name, arguments)) for call_id, name, arguments in reversed(calls)]
        return [(call_id, answer.result()) for call_id, answer in reversed(answers)]


def chat(stream: bool) -> str:
    tools = [{"type": "function", "function": {"name": tool["name"], "description": tool["description"],
                                               "parameters": tool["inputSchema"]}} for tool in TASK["tools"]]
    messages = list(TASK["messages"])
    while True:
        document = post(f"{os.environ['OPENAI_BASE_URL']}/chat/completions",
                        {"model": "any", "messages": messages, "tools": tools, "stream": stream})
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for chunk in document if stream else []:
            for choice in chunk["choices"]:
                for name, value in choice["delta"].items():
                    if name == "content":
                        message["content"] = ((message["content"] or "") + value) or None
                    elif name == "tool_calls":
                        message.setdefault(name, []).extend(
                            {key: each[key] for key in each if key != "index"} for each in value)
        if not stream:
            message = document["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        for call_id, content in called([(each["id"], each["function"]["name"], json.loads(each["function"]["arguments"]))
                                        for each in message["tool_calls"]]):
            messages.append({"role": "tool", "tool_call_id": call_id, "content": content})


def responses(stream: bool) -> str:
    tools = [{"type": "function", "name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}
             for tool in TASK["tools"]]
    items: list[Any] = [{"role": each["role"], "content": each["content"]} for each in TASK["messages"]]
    before = None
    while True:
        document = post(f"{os.environ['OPENAI_BASE_URL']}/responses", {
            "model": "any", "input": items, "tools": tools, "stream": stream, "previous_response_id": before})
        if stream:
            assert [event["sequence_number"] for event in document] == list(range(len(document)))
            document = document[-1]["response"]
        before = document["id"]
        calls = [item for item in document["output"] if item["type"] == "function_call"]
        if not calls:
            return str(document["output"][0]["content"][0]["text"])
        items = [{"type": "function_call_output", "call_id": call_id, "output": content} for call_id, content in called(
            [(item["call_id"], item["name"], json.loads(item["arguments"])) for item in calls])]


def messages(stream: bool) -> str:
    tools = [{"name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"]}
             for tool in TASK["tools"]]
    conversation: list[Any] = [each for each in TASK["messages"] if each["role"] != "system"]
    while True:
        document = post(f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages", {
            "model": "any", "max_tokens": 100, "system": TASK["system"], "messages": conversation, "tools": tools,
            "stream": stream})
        if stream:
            blocks = [event["content_block"] for event in document if event["type"] == "content_block_start"]
            for event in document:
                if event["type"] == "content_block_delta":
                    delta, block = event["delta"], blocks[event["index"]]
                    block |= {"text": delta["text"]} if "text" in delta else {"input": json.loads(delta["partial_json"])}
            document = {"content": blocks}
        conversation.append({"role": "assistant", "content": document["content"]})
        calls = [block for block in document["content"] if block["type"] == "tool_use"]
        if not calls:
            return str(document["content"][0]["text"])
        conversation.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": content}]}
            for call_id, content in called([(block["id"], block["name"], block["input"]) for block in calls])]})


if __name__ == "__main__":
    protocols = {"chat": chat, "responses": responses, "messages": messages}
    number = int(sys.argv[1]) if sys.argv[1].isdigit() else list(protocols).index(sys.argv[1])
    print(list(protocols.values())[number % 3](number >= 3))
