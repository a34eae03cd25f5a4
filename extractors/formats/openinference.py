"""Spans of OpenInference: messages flat in `llm.input_messages.N.*` (or, in Phoenix tables, as lists), tools, annotations.

In: a span whose attributes are OpenInference's, from OTLP or from an export of Phoenix. Out: what it tells, and the feedback in
its annotations. Does not see: prices; what retrievers, rerankers and guards did, beyond the attributes of their spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from extractors.formats.chat import parts as chat_parts
from extractors.formats.format import Row
from extractors.formats.history import Histories
from extractors.formats.otlp_dialect import Told, execution, generation
from extractors.formats.otlp_flat import expanded, listed, nested
from extractors.formats.otlp_span import Span, hex_id, loaded, written

KIND = "openinference.span.kind"
_COUNTS = {"input_tokens": "llm.token_count.prompt", "output_tokens": "llm.token_count.completion",
           "cached_tokens": "llm.token_count.prompt_details.cache_read",
           "reasoning_tokens": "llm.token_count.completion_details.reasoning"}
_INPUT, _OUTPUT = "llm.input_messages", "llm.output_messages"
_TARGETS = ("", "trace.", "session.")
_LISTS = ("annotations", "evaluations")
LARGE = ("input.value", "output.value", "llm.input_messages", "llm.output_messages", "llm.tools", "llm.invocation_parameters")
"""Attributes that hold contents, or keys that those begin with."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A judgement that a span carries."""

    target: str
    """On what: empty for the span (or the one that it links to), `trace` or `session`."""
    facts: Row
    """name, score, label, explanation, annotator_kind, identifier, metadata."""


def openinference(span: Span, histories: Histories) -> Told | None:
    """What the span tells."""
    kind = str(span.attribute(KIND)).upper()
    if kind == "TOOL":
        arguments = span.first(("input.value", "tool.parameters", "tool_call.function.arguments"))
        name = span.text("tool.name", "tool_call.function.name") or span.name
        return Told(execution(span, name, span.text("tool.id", "tool_call.id"), arguments, span.text("output.value")))
    if kind == "LLM":
        return _generated(span, histories)
    if kind in ("AGENT", "CHAIN") and "input.value" in span.raw and "output.value" in span.raw:
        asked, said = span.text("input.value"), span.text("output.value")
        return Told(generation(span, [_said("user", asked)], [[_said("assistant", said)]], None, {}), sums_up=True)
    return None


def judgements(span: Span) -> Iterator[Annotation]:
    """Judgements that the span carries."""
    for prefix in _TARGETS:
        for name in _LISTS:
            for each in _list(span, f"{prefix}{name}"):
                facts = each.get(name.removesuffix("s")) if isinstance(each, dict) else None
                if isinstance(facts, dict):
                    yield Annotation(prefix.removesuffix("."), facts)


def _generated(span: Span, histories: Histories) -> Told:
    given, made = _list(span, _INPUT), _list(span, _OUTPUT)
    if not given and (prompt := span.first(("input.value",))) is not None:
        given = _asked(span, prompt)
    if not made:
        texts = [_inner(each, "completion").get("text") for each in _list(span, "llm.choices")]
        answer = [each for each in texts if each is not None] or [each for each in [span.text("output.value")] if each]
        made = [{"message": {"role": "assistant", "content": each}} for each in answer]
    key = span.text("session.id") or span.trace_id
    asked = histories.of(key, given, _parts)
    answers = [_answer(each, span) for each in made]
    usage = {name: span.attribute(count) for name, count in _COUNTS.items()}
    model = span.text("llm.response.model_name", "llm.model_name", "llm.request.model_name")
    return Told(generation(span, asked or [], answers, model, usage), tools=_tools(span))


def _asked(span: Span, prompt: Any) -> list[Any]:
    """Messages of a request that was logged as a whole, prompts of a completion, or the text that was asked."""
    prompts = [_inner(each, "prompt").get("text") for each in _list(span, "llm.prompts")]
    if any(each is not None for each in prompts):
        return [{"message": {"role": "user", "content": each}} for each in prompts]
    request = loaded(prompt)
    messages = request.get("messages") if isinstance(request, dict) else None
    if isinstance(messages, list) and messages and all(isinstance(each, dict) and "role" in each for each in messages):
        return [{"message": each} for each in messages]
    return [{"message": {"role": "user", "content": written(prompt)}}]


def _list(span: Span, name: str) -> list[Any]:
    """A list that lies flat in the attributes, or stands in one of them, as a list or as JSON text."""
    if name in span.raw:
        value = span.structured(name)
        return expanded(value) if isinstance(value, list) else []
    flat = span.begins(name + ".")
    return listed(nested(flat)) if flat else []


def _inner(value: Any, key: str) -> Row:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _answer(value: Any, span: Span) -> list[Row]:
    found = _parts(value)
    if span.attribute("llm.finish_reason") == "length":
        for row in found:
            row["lossy"].append("finish_reason length")
    if found and found[0].get("role") is None:
        found[0]["role"] = "assistant"
    return found


def _parts(value: Any) -> list[Row]:
    """Parts of one message: thoughts, then as a chat message."""
    message = _inner(value, "message") or (value if isinstance(value, dict) else {})
    called = [_called(each) for each in listed(message.get("tool_calls"))]
    content = message.get("content")
    thoughts: list[Row] = []
    if "contents" in message:
        blocks = [_inner(each, "message_content") or each for each in listed(message["contents"])]
        thoughts = [{"kind": "reasoning", "role": message.get("role"), "content": written(each.get("text")), "lossy": []}
                    for each in blocks if isinstance(each, dict) and each.get("type") == "reasoning"]
        ids = {each.get("id") for each in called}
        called += [call for each in listed(message["contents"]) if (call := _called(each))["function"]["name"] is not None
                   and (call["id"] not in ids or not called)]
        shown = [each for each in blocks if not isinstance(each, dict) or each.get("type") not in ("reasoning", "tool_use")]
        content = (shown if shown else content) if content is None else content
    chat: Row = {"role": message.get("role"), "content": content, "tool_calls": called,
                 "tool_call_id": message.get("tool_call_id"), "name": message.get("name")}
    if message.get("function_call_name"):
        chat["function_call"] = {"name": message["function_call_name"],
                                 "arguments": message.get("function_call_arguments_json")}
    return [*thoughts, *chat_parts(chat)]


def _called(value: Any) -> Row:
    """A call in OpenAI's way."""
    call = _inner(value, "tool_call") or (value if isinstance(value, dict) else {})
    function = _inner(call, "function")
    return {"id": call.get("id"), "function": {"name": function.get("name"), "arguments": function.get("arguments")}}


def _said(role: str, content: str | None) -> Row:
    return {"kind": "message", "role": role, "content": content, "lossy": []}


def _tools(span: Span) -> str | None:
    """Declared tools: each a JSON Schema as JSON text."""
    found = [loaded(_inner(each, "tool").get("json_schema")) for each in _list(span, "llm.tools")]
    return orjson.dumps([each for each in found if isinstance(each, dict)]).decode() if found else None


def judgement(facts: Row) -> Row:
    """Fields of the feedback that an annotation is: its score where it has one, else its label; the rest beside it."""
    score, label = facts.get("score"), facts.get("label")
    value = written(score if score is not None else label)
    shown = ("name", "explanation", "label" if score is None else "score")
    beside = {key: each for key, each in facts.items() if key not in shown and each not in (None, "", {})}
    return {"name": written(facts.get("name")), "value": value, "content": written(facts.get("explanation")) or None,
            "arguments": orjson.dumps(beside).decode() if beside else None}


def target(span: Span) -> tuple[str, str | None]:
    """Trace and span that the annotations are on: the one that the span links to, else itself."""
    link = span.links[0] if len(span.links) == 1 and isinstance(span.links[0], dict) else None
    if link is None:
        return span.trace_id, span.span_id
    return (hex_id(link.get("traceId", link.get("trace_id"))) or span.trace_id,
            hex_id(link.get("spanId", link.get("span_id"))) or None)
