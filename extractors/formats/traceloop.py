"""Spans of Traceloop / OpenLLMetry before 0.5: messages flat in `gen_ai.prompt.N.*` and `gen_ai.completion.N.*`, tools and
workflows in `traceloop.entity.*`.

Does not see: later versions, which write the attributes of the GenAI conventions.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.chat import parts as chat_parts
from extractors.formats.format import Row
from extractors.formats.history import Histories
from extractors.formats.otlp_dialect import Told, execution, generation
from extractors.formats.otlp_flat import listed, nested, typed_parts
from extractors.formats.otlp_genai import model_of, usage_of
from extractors.formats.otlp_span import Span, loaded

SESSION = tuple(f"traceloop.association.properties.{name}"
                for name in ("session_id", "sessionId", "conversation_id", "thread_id", "chat_id"))
"""Attributes that name the session."""
IDENTITY = ("traceloop.association.properties.user_id", "traceloop.association.properties.userId")
"""Attributes that name the user."""


def speaks(span: Span) -> bool:
    """Whether the span is of this dialect."""
    return "gen_ai.prompt.0.role" in span.raw or "gen_ai.completion.0.content" in span.raw or (
        "traceloop.span.kind" in span.raw and "gen_ai.operation.name" not in span.raw)


def traceloop(span: Span, histories: Histories) -> Told | None:
    """What the span tells."""
    if span.attribute("traceloop.span.kind") == "tool":
        return Told(execution(span, span.text("traceloop.entity.name") or span.name, None, _arguments(span),
                              span.text("traceloop.entity.output")))
    prompt, completion = _messages(span, "gen_ai.prompt."), _messages(span, "gen_ai.completion.")
    if not prompt and not completion:
        return None
    key = span.first(SESSION) or span.trace_id
    asked = histories.of(key, prompt, _parts)
    return Told(generation(span, asked or [], [_answer(each) for each in completion], model_of(span), usage_of(span)),
                tools=_tools(span))


def _messages(span: Span, prefix: str) -> list[Any]:
    return listed(nested(span.begins(prefix)))


def _parts(message: Any) -> list[Row]:
    if isinstance(message, dict):
        message = {**message, "content": typed_parts(message.get("content")), "tool_calls": listed(message.get("tool_calls"))}
    return list(chat_parts(message))


def _answer(message: Any) -> list[Row]:
    """Parts of an answer; the last call of one that was cut off may be incomplete."""
    found = _parts({"role": "assistant", **message} if isinstance(message, dict) else message)
    if isinstance(message, dict) and message.get("finish_reason") == "length":
        for row in found:
            row["lossy"].append("finish_reason length")
    return found


def _arguments(span: Span) -> Any:
    """What the function was called with: its keyword arguments, or all it got where it has others."""
    value = span.attribute("traceloop.entity.input")
    found = loaded(value)
    if isinstance(found, dict) and isinstance(found.get("kwargs"), dict) and not found.get("args"):
        return found["kwargs"]
    if isinstance(found, dict) and isinstance(found.get("inputs"), dict):   # LangChain
        return found["inputs"]
    return value


def _tools(span: Span) -> Any:
    """Declared functions: their parameters are JSON text."""
    functions = _messages(span, "llm.request.functions.")
    found = [{**each, "parameters": loaded(each.get("parameters"))} for each in functions if isinstance(each, dict)]
    return orjson.dumps(found).decode() if found else None
