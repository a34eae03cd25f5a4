"""Spans of the Vercel AI SDK 3 to 6: `ai.*` attributes of model calls (`….doGenerate`, `….doStream`) and of tool calls.

Does not see: version 7, which writes the attributes of the GenAI conventions; what a picture or a file says.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.chat import arguments_of, text
from extractors.formats.format import Row
from extractors.formats.history import Histories
from extractors.formats.otlp_dialect import Told, execution, generation
from extractors.formats.otlp_flat import listed
from extractors.formats.otlp_span import Span, loaded, written

_METADATA = "ai.telemetry.metadata."
SESSION = tuple(_METADATA + name for name in ("sessionId", "session_id", "conversationId", "conversation_id", "threadId",
                                              "thread_id", "chatId", "chat_id"))
"""Attributes that name the session, as people call it: the SDK leaves the name free."""
IDENTITY = (_METADATA + "userId", _METADATA + "user_id")
"""Attributes that name the user."""
_COUNTS = {"input_tokens": ("ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens"),
           "output_tokens": ("ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.usage.output_tokens"),
           "cached_tokens": ("ai.usage.cachedInputTokens",), "reasoning_tokens": ("ai.usage.reasoningTokens",)}


def vercel(span: Span, histories: Histories) -> Told | None:
    """What the span tells."""
    operation = str(span.attribute("ai.operationId"))
    if operation == "ai.toolCall":
        return Told(execution(span, span.text("ai.toolCall.name"), span.text("ai.toolCall.id"),
                              span.attribute("ai.toolCall.args"), span.text("ai.toolCall.result")))
    key = span.first(SESSION) or span.trace_id
    usage = {name: span.first(keys) for name, keys in _COUNTS.items()}
    model = span.text("ai.response.model", "gen_ai.response.model", "ai.model.id", "gen_ai.request.model")
    if operation.endswith((".doGenerate", ".doStream")):
        messages = span.attribute("ai.prompt.messages")
        asked = histories.of(key, messages if messages is not None else [], _parts)
        torn = [("ai.prompt.messages", str(messages))] if asked is None else []
        return Told(generation(span, asked or [], [_answer(span)], model, usage), tools=_tools(span), torn=torn)
    prompt = loaded(span.attribute("ai.prompt"))
    if not isinstance(prompt, dict):
        return None
    opening = [{"role": "system", "content": prompt["system"]}] if prompt.get("system") else []
    said = prompt.get("messages") or ([{"role": "user", "content": prompt["prompt"]}] if prompt.get("prompt") else [])
    asked = histories.of(("root", key), [*opening, *listed(said)], _parts)
    return Told(generation(span, asked or [], [_answer(span)], model, usage), sums_up=True)


def _answer(span: Span) -> list[Row]:
    """The answer: what was thought and said, then the calls."""
    lossy = ["finish_reason length"] if span.attribute("ai.response.finishReason") == "length" else []
    said = span.text("ai.response.text", "ai.response.object")
    calls = loaded(span.first(("ai.response.toolCalls", "ai.result.toolCalls")))
    found: list[Row] = []
    if (thought := span.text("ai.response.reasoning")) is not None:
        found.append({"kind": "reasoning", "role": "assistant", "content": thought, "lossy": []})
    if said is not None:
        found.append({"kind": "message", "role": "assistant", "content": said, "lossy": [*lossy]})
    for call in listed(calls):
        row = _call(call)
        row["lossy"] += lossy
        found.append(row)
    return found


def _parts(message: Any) -> list[Row]:
    """Parts of one message of the prompt: thoughts, text, then calls and results in order."""
    if not isinstance(message, dict):
        return [{"kind": "message", "role": None, "content": written(message), "lossy": ["message is no object"]}]
    role, content = message.get("role"), message.get("content")
    if not isinstance(content, list):
        return [{"kind": "message", "role": role, "content": written(content), "lossy": []}]
    found: list[Row] = []
    said: list[Any] = []
    thoughts: list[Row] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool-call":
            found.append(_call(part))
        elif kind == "tool-result":
            found.append(_result(part))
        elif kind == "reasoning":
            thoughts.append({"kind": "reasoning", "role": role, "content": written(part.get("text")), "lossy": []})
        else:
            said.append(part)
    if said or not found:
        words, lossy = text(said)
        if words or lossy or not found:
            found.insert(0, {"kind": "message", "role": role, "content": words, "lossy": lossy})
    return [*thoughts, *found]


def _call(call: Any) -> Row:
    if not isinstance(call, dict):
        return {"kind": "call", "role": "assistant", "requestor": "assistant", "tool": None,
                "arguments": orjson.dumps(call).decode(), "lossy": ["call is no object"]}
    arguments, lossy = arguments_of(next((call[key] for key in ("input", "args") if key in call), None))
    return {"kind": "call", "role": "assistant", "requestor": "assistant", "call_id": written(call.get("toolCallId")),
            "tool": written(call.get("toolName")), "arguments": arguments, "lossy": lossy}


def _result(part: Row) -> Row:
    value = part.get("output", part.get("result"))
    is_error = part.get("isError")
    if isinstance(value, dict) and set(value) <= {"type", "value", "providerOptions"} and isinstance(value.get("type"), str):
        is_error = True if value["type"].startswith("error") else is_error
        value = value.get("value")
    return {"kind": "result", "call_id": written(part.get("toolCallId")), "tool": written(part.get("toolName")),
            "content": written(value), "is_error": is_error if isinstance(is_error, bool) else None, "lossy": []}


def _tools(span: Span) -> str | None:
    """Declared tools: a list of JSON texts."""
    found = [loaded(each) for each in listed(span.attribute("ai.prompt.tools"))]
    return orjson.dumps([each for each in found if isinstance(each, dict)]).decode() if found else None
