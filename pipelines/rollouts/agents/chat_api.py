"""Chat completions, as an agent's client speaks them: requests in, answers out, whole or as a stream of chunks.

A stream is the finished answer in chunks: it begins when the model has ended, since its text may be for the user.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipelines.rollouts.agents.talks import ModelRequest

OWN_FIELDS = frozenset({"messages", "tools", "model", "stream", "stream_options", "n", "functions", "function_call", "store"})
"""Fields that are not passed on."""
Row = dict[str, Any]


def read(body: Row) -> ModelRequest:
    """Return what a request asks. Raises ValueError."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(each, dict) and "role" in each for each in messages):
        raise ValueError("messages is no list of messages")
    messages = [{**each, "role": "system"} if each["role"] == "developer" else each for each in messages]
    tools = [tool for tool in body.get("tools") or () if tool.get("type") == "function"]
    return ModelRequest(messages, tools, {name: value for name, value in body.items() if name not in OWN_FIELDS})


def answer(completion: Row, body: Row) -> Row:
    """Return the answer to a request."""
    return completion


def stream(completion: Row, body: Row) -> Iterator[tuple[str | None, Any]]:
    """Yield the answer's events: (name or None, data)."""
    shared = {"id": completion["id"], "object": "chat.completion.chunk", "created": completion.get("created") or 0,
              "model": completion["model"]}
    (choice,) = completion["choices"]
    message = choice["message"]
    deltas: list[Row] = [{"role": "assistant", "content": ""}]
    deltas += [{name: message[name]} for name in ("reasoning_content", "content") if message.get(name)]
    deltas += [{"tool_calls": [{"index": place, **call}]} for place, call in enumerate(message.get("tool_calls") or ())]
    for delta in deltas:
        yield None, {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    if choice.get("logprobs"):
        last["logprobs"] = choice["logprobs"]
    yield None, {**shared, "choices": [last]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield None, {**shared, "choices": [], "usage": completion["usage"]}
    yield None, "[DONE]"


def error(message: str, status: int) -> Row:
    """Return the body of an error."""
    kind = "invalid_request_error" if status < 500 else "api_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}
