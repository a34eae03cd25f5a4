"""Spans of the GenAI conventions: contents in attributes (1.37 and later, as JSON text or structured) or in span events (1.26,
1.27); runs of tools, also as MCP conventions name them.

Does not see: contents in log records (`extractors.formats.otlp_logs`).
"""

from __future__ import annotations

from typing import Any

from extractors.formats.chat import parts as chat_parts
from extractors.formats.format import Row
from extractors.formats.history import Histories, History
from extractors.formats.otlp_dialect import Told, execution, generation, not_captured
from extractors.formats.otlp_messages import CHOICE, DETAILS, MESSAGES, choice_told, message_told, of_event
from extractors.formats.otlp_parts import message_parts
from extractors.formats.otlp_span import Span, loaded, raw_attributes

_MODEL_OPERATIONS = ("chat", "generate_content", "text_completion")
_INPUT, _OUTPUT, _SYSTEM = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"
_PROMPT, _COMPLETION = "gen_ai.content.prompt", "gen_ai.content.completion"
_COUNTS = {
    "gen_ai.usage.prompt_tokens": "input_tokens", "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.completion_tokens": "output_tokens", "gen_ai.usage.output_tokens": "output_tokens",
    "gen_ai.usage.cache_read_input_tokens": "cached_tokens", "gen_ai.usage.cache_read.input_tokens": "cached_tokens",
    "gen_ai.usage.details.reasoning_tokens": "reasoning_tokens", "gen_ai.usage.reasoning.output_tokens": "reasoning_tokens"}
"""Attributes that count tokens, and what of; of two for one the later name counts."""
LARGE = (_INPUT, _OUTPUT, _SYSTEM, "gen_ai.tool.definitions", "pydantic_ai.all_messages", "gen_ai.prompt", "gen_ai.completion")
"""Attributes that hold contents."""


def genai(span: Span, histories: Histories) -> Told | None:
    """What a span of the conventions tells."""
    raw = span.raw
    operation = span.attribute("gen_ai.operation.name")
    if operation == "execute_tool" or span.attribute("mcp.method.name") == "tools/call":
        return Told(_run(span))
    names = {event.get("name") for event in span.events if isinstance(event, dict)} if span.events else set()
    for event in span.events if not names.isdisjoint(DETAILS) else ():
        raw.update(raw_attributes(event) if event.get("name") in DETAILS else {})
    if _INPUT in raw or _OUTPUT in raw:
        told = _parts_told(span, histories)
    elif not names.isdisjoint((_PROMPT, _COMPLETION)):
        told = _prompts_told(span, histories)
    elif CHOICE in names or not names.isdisjoint(MESSAGES):
        told = _messages_told(span, histories)
    elif operation in _MODEL_OPERATIONS or (operation is None and "gen_ai.request.model" in raw):
        answers = [not_captured(span.name)] if not span.failed else []
        return Told(generation(span, [], answers, model_of(span), usage_of(span)))
    elif "pydantic_ai.all_messages" in raw:
        history = histories.of(("all", _key(span)), span.attribute("pydantic_ai.all_messages"), message_parts)
        return Told(generation(span, history or [], [], model_of(span), {}), sums_up=True)
    else:
        return None
    told.sums_up = operation is not None and operation not in _MODEL_OPERATIONS
    told.tools = raw.get("gen_ai.tool.definitions")
    return told


def _parts_told(span: Span, histories: Histories) -> Told:
    """Attributes of 1.37 and later."""
    torn = []
    asked, answers, raw = History([]), [], span.raw
    if _INPUT in raw or _SYSTEM in raw:
        instructions = span.attribute(_SYSTEM)
        found = histories.of(_key(span), _value(raw.get(_INPUT)), _converted(span), instructions,
                             lambda: _instructed(span.structured(_SYSTEM)))
        if found is None:
            torn.append((_INPUT, str(span.attribute(_INPUT))))
        else:
            asked = found
    if _OUTPUT in raw:
        output = span.structured(_OUTPUT)
        if output is None and span.attribute(_OUTPUT) is not None:
            torn.append((_OUTPUT, str(span.attribute(_OUTPUT))))
        reasons = span.attribute("gen_ai.response.finish_reasons")
        answers = [message_parts(_finished(message, i, reasons)) for i, message in enumerate(_listed(output))]
    return Told(generation(span, asked, answers, model_of(span), usage_of(span)), torn=torn)


def _value(raw: Any) -> Any:
    """JSON text, or the list of an AnyValue as logged: its elements are converted where they are new."""
    if isinstance(raw, dict):
        for kind in ("stringValue", "string_value"):
            if kind in raw:
                return raw[kind]
        for kind in ("arrayValue", "array_value"):
            if isinstance(raw.get(kind), dict):
                return raw[kind].get("values") or []
    return raw if raw is not None else []


def _converted(span: Span) -> Any:
    """Parts of one element: of JSON text the message, else the message as logged."""
    value_of = span.value_of

    def parts_of(message: Any) -> list[Row]:
        structured = isinstance(message, dict) and ("kvlistValue" in message or "kvlist_value" in message)
        return message_parts(value_of(message) if structured else message)

    return parts_of


def _instructed(value: Any) -> list[Row]:
    """Parts of the system instructions: a list of parts, or text."""
    if isinstance(value, list):
        return message_parts({"role": "system", "parts": value})
    return message_parts({"role": "system", "content": value}) if value else []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


def _finished(message: Any, i: int, reasons: Any) -> Any:
    """The message with its finish reason, which later versions state beside it."""
    if isinstance(message, dict) and "finish_reason" not in message and isinstance(reasons, list) and i < len(reasons):
        return {**message, "finish_reason": reasons[i]}
    return message


def _messages_told(span: Span, histories: Histories) -> Told:
    """Events of the span, one a message, as some instrumentations write those of 1.28 to 1.36."""
    asked: list[tuple[str, Row]] = []
    answers: list[list[Row]] = []
    for event in span.events:
        name, raw = (event.get("name"), raw_attributes(event)) if isinstance(event, dict) else (None, {})
        if name in MESSAGES:
            asked.append((name, raw))
        elif name == CHOICE:
            answers.append(choice_told(of_event({key: span.value_of(value) for key, value in raw.items()}))[1])
    history = histories.of(_key(span), asked, lambda each: message_told(
        each[0], of_event({key: span.value_of(value) for key, value in each[1].items()})))
    return Told(generation(span, history or [], answers, model_of(span), usage_of(span)))


def _prompts_told(span: Span, histories: Histories) -> Told:
    """Events of 1.26 and 1.27: lists of chat messages as JSON text."""
    asked, answers, torn = History([]), [], []
    for event in span.events:
        raw = raw_attributes(event) if isinstance(event, dict) else {}
        if "gen_ai.prompt" in raw:
            found = histories.of(_key(span), _value(raw["gen_ai.prompt"]), chat_told)
            asked = found or asked
            if found is None:
                torn.append(("gen_ai.prompt", str(_value(raw["gen_ai.prompt"]))))
        if "gen_ai.completion" in raw:
            value = loaded(span.value_of(raw["gen_ai.completion"]))
            if value is None:
                torn.append(("gen_ai.completion", str(_value(raw["gen_ai.completion"]))))
            answers += [chat_told(message) for message in _listed(value)]
    return Told(generation(span, asked, answers, model_of(span), usage_of(span)), torn=torn)


def chat_told(message: Any) -> list[Row]:
    """Parts of a chat message in OpenAI's way."""
    return list(chat_parts(message))


def _run(span: Span) -> Any:
    arguments, result = span.attribute("gen_ai.tool.call.arguments"), span.text("gen_ai.tool.call.result")
    return execution(span, span.text("gen_ai.tool.name"), span.text("gen_ai.tool.call.id"), arguments, result)


def model_of(span: Span) -> str | None:
    """Model that answered, else the one that was asked."""
    return span.text("gen_ai.response.model", "gen_ai.request.model")


def usage_of(span: Span) -> Row:
    """Token counts."""
    raw = span.raw
    return {name: span.attribute(key) for key, name in _COUNTS.items() if key in raw}


def _key(span: Span) -> Any:
    return span.text("gen_ai.conversation.id", "session.id") or span.trace_id
