"""Dialects of spans: which attributes hold the kind, the model, messages, tools, counts and ids, and one reader for all.

In: a span of OpenTelemetry, or of an export of Phoenix. Out: `SpanReading`. A dialect is a table (`SpanDialect`) and, since
each lays out messages in its own way, a function for them: GenAI conventions (contents in attributes from 1.37 on, in span
events of 1.26 to 1.36; MCP), OpenInference, Traceloop before 0.5, Vercel AI SDK 3 to 6 (later versions write the GenAI
conventions). Does not see: contents in log records (`extractors.formats.otlp` reads those), prices, what retrievers and guards
did beyond the attributes of their spans, what a picture or a file says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from extractors.formats import otlp_parts
from extractors.formats.chat import call_part, message_part, result_part, strange_call, text, thought_part
from extractors.formats.chat import parts as chat_parts
from extractors.formats.conversation import NOT_CAPTURED, Execution, Generation
from extractors.formats.format import Row
from extractors.formats.history import Histories, PromptHistory
from extractors.formats.otlp_span import TraceSpan, expanded, listed, nested, raw_attributes, typed_parts
from extractors.formats.sampling import parameters_of, sampling
from extractors.formats.values import dumped, loaded, object_of, written

KIND = "openinference.span.kind"
_OPERATION = "gen_ai.operation.name"
_MODEL_OPERATIONS = ("chat", "generate_content", "text_completion")
_INPUT, _OUTPUT, _SYSTEM = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"


class Messages(NamedTuple):
    """What a model's span says of the conversation."""

    prompt: list[Row] | PromptHistory | None
    answers: list[list[Row]]
    tools: Any = None
    """Tools that the request declares, as logged."""
    torn: tuple[tuple[str, str], ...] = ()
    """Attributes that were cut off, with what is left of them."""
    sums_up: bool = False
    """Whether it covers several answers that have spans of their own; it counts only where they are not logged."""
    facts: frozenset[str] = frozenset({"model", "counts"})
    """Which facts of the span belong to the answer."""


@dataclass(slots=True)
class SpanReading:
    """What one span says of a conversation."""

    spoken: Generation | Execution
    sums_up: bool = False
    tools: Any = None
    torn: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class SpanDialect:
    """Attributes of a dialect; of several names for one fact the first that is there and not empty counts."""

    applies: Callable[[TraceSpan], bool]
    messages: Callable[[TraceSpan, Histories, str], Messages | None]
    """Reads a model's span, given the key of its conversation; None: it says nothing of a conversation."""
    tool_kinds: frozenset[tuple[str, str]]
    """Attribute and value that mark a run of a tool."""
    tool: tuple[str, ...]
    arguments: tuple[str, ...]
    result: tuple[str, ...]
    session: tuple[str, ...]
    model: tuple[str, ...]
    counts: Mapping[str, tuple[str, ...]]
    """Attributes of each token count."""
    contents: tuple[str, ...]
    """Attributes that hold contents, or what their names begin with."""
    call_id: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    span_names_tool: bool = False
    """Whether the span's name is the tool's where no attribute names it."""
    unwrap: Callable[[Any], Any] = lambda value: value
    """Takes arguments out of what wraps them."""


def read_span(span: TraceSpan, histories: Histories, dialect: SpanDialect | None = None) -> SpanReading | None:
    """Return what a span says; None where it says nothing of a conversation."""
    dialect = dialect or next(each for each in _BY_PRECEDENCE if each.applies(span))
    place = (span.record, span.span_id, span.started_at, span.ended_at, span.service, None)
    if any(name in span.raw and str(span.attribute(name)) == value for name, value in dialect.tool_kinds):
        name = span.text(*dialect.tool) or (span.name if dialect.span_names_tool else None)
        result = span.text(*dialect.result)
        notes = [f"status message: {span.message}"] if result is None and span.message else []
        return SpanReading(Execution(
            *place, tool=name, call_id=span.text(*dialect.call_id), arguments=dialect.unwrap(span.first(dialect.arguments)),
            result=result, is_error=span.failed, notes=notes))
    messages = dialect.messages(span, histories, span.text(*dialect.session) or span.trace_id)
    if messages is None:
        return None
    counts = {name: count for name, names in dialect.counts.items() if "counts" in messages.facts
              and (count := _count(span.first(names))) is not None}
    # without content where only its counts are stated
    answers = [not_captured(span.name)] if counts and not any(messages.answers) else messages.answers
    stated = {key: span.value_of(value) for key, value in parameters_of(span.raw).items()}
    chosen = sampling(stated, span.structured("llm.invocation_parameters"))
    model = span.text(*dialect.model) if "model" in messages.facts else None
    generation = Generation(*place, prompt=messages.prompt or [], answers=answers, model=model,
                            usage={**counts, **chosen} or None)
    return SpanReading(generation, messages.sums_up, messages.tools, messages.torn)


def not_captured(name: str) -> list[Row]:
    """Return the answer of which there is no content: no part of the conversation, but its time and its tokens stay."""
    return [{"kind": "log", "role": "assistant", "content": None, "tool": name, "lossy": [NOT_CAPTURED]}]


def _count(value: Any) -> int | None:
    """Return a number of tokens; a table may hold it as text, or with a decimal point."""
    if isinstance(value, str) and value[:1].isdecimal():
        try:
            value = float(value)
        except ValueError:
            return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 1e15 else None


def _cut(parts: list[Row], reason: Any) -> list[Row]:
    """Say of the parts of an answer that was cut off that it was; the last call may be incomplete."""
    for part in parts if reason == "length" else ():
        part["lossy"].append(otlp_parts.CUT_OFF)
    return parts


def _genai_messages(span: TraceSpan, histories: Histories, key: str) -> Messages | None:
    raw, operation = span.raw, span.attribute(_OPERATION)
    names = {event.get("name") for event in span.events if isinstance(event, dict)} if span.events else set()
    for event in span.events if not names.isdisjoint(otlp_parts.DETAILS) else ():
        raw.update(raw_attributes(event) if event.get("name") in otlp_parts.DETAILS else {})
    if _INPUT in raw or _OUTPUT in raw:
        messages = _attribute_messages(span, histories, key)
    elif not names.isdisjoint(("gen_ai.content.prompt", "gen_ai.content.completion")):
        messages = _prompt_events(span, histories, key)
    elif otlp_parts.CHOICE in names or not names.isdisjoint(otlp_parts.MESSAGES):
        messages = _message_events(span, histories, key)
    elif operation in _MODEL_OPERATIONS or (operation is None and "gen_ai.request.model" in raw):
        return Messages([], [not_captured(span.name)] if not span.failed else [])
    elif "pydantic_ai.all_messages" in raw:
        history = histories.of(("all", key), span.attribute("pydantic_ai.all_messages"), otlp_parts.message_parts)
        return Messages(history, [], sums_up=True, facts=frozenset({"model"}))
    else:
        return None
    return messages._replace(sums_up=operation is not None and operation not in _MODEL_OPERATIONS,
                             tools=raw.get("gen_ai.tool.definitions"))


def _attribute_messages(span: TraceSpan, histories: Histories, key: str) -> Messages:
    """Read the messages in the attributes of 1.37 and later."""

    def parts_of(message: Any) -> list[Row]:   # of JSON text the message, else the message as logged
        structured = isinstance(message, dict) and ("kvlistValue" in message or "kvlist_value" in message)
        return otlp_parts.message_parts(span.value_of(message) if structured else message)

    def instructed() -> list[Row]:
        value = span.structured(_SYSTEM)
        if isinstance(value, list):
            return otlp_parts.message_parts({"role": "system", "parts": value})
        return otlp_parts.message_parts({"role": "system", "content": value}) if value else []

    torn, answers, raw = [], [], span.raw
    prompt: PromptHistory | None = None
    if _INPUT in raw or _SYSTEM in raw:
        prompt = histories.of(key, _value(raw.get(_INPUT)), parts_of, span.attribute(_SYSTEM), instructed)
        if prompt is None:
            torn.append((_INPUT, str(span.attribute(_INPUT))))
    if _OUTPUT in raw:
        output = span.structured(_OUTPUT)
        if output is None and span.attribute(_OUTPUT) is not None:
            torn.append((_OUTPUT, str(span.attribute(_OUTPUT))))
        stated = span.attribute("gen_ai.response.finish_reasons")   # later versions state them beside the messages
        reasons = stated if isinstance(stated, list) else []
        for i, message in enumerate(_objects(output)):
            stated_reason = {"finish_reason": reasons[i]} if i < len(reasons) and isinstance(message, dict) else {}
            answers.append(otlp_parts.message_parts({**stated_reason, **message} if stated_reason else message))
    return Messages(prompt, answers, torn=tuple(torn))


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


def _objects(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


def _message_events(span: TraceSpan, histories: Histories, key: str) -> Messages:
    """Read the messages of span events, one each, as some instrumentations write those of 1.28 to 1.36."""

    def body_of(raw: Row) -> Any:   # JSON text in one attribute, or the attributes
        attributes = {name: span.value_of(value) for name, value in raw.items()}
        content = attributes.get("gen_ai.event.content", attributes.get("event_body"))
        return content if content is not None else attributes

    events = [(event.get("name"), raw_attributes(event)) for event in span.events if isinstance(event, dict)]
    history = histories.of(key, [(name, raw) for name, raw in events if name in otlp_parts.MESSAGES],
                           lambda each: otlp_parts.input_message_parts(each[0], body_of(each[1])))
    return Messages(history, [otlp_parts.choice_parts(body_of(raw))[1] for name, raw in events if name == otlp_parts.CHOICE])


def _prompt_events(span: TraceSpan, histories: Histories, key: str) -> Messages:
    """Read the messages of span events of 1.26 and 1.27: lists of chat messages as JSON text."""
    prompt: PromptHistory | None = None
    answers, torn = [], []
    for event in span.events:
        raw = raw_attributes(event) if isinstance(event, dict) else {}
        if "gen_ai.prompt" in raw:
            history = histories.of(key, _value(raw["gen_ai.prompt"]), lambda message: list(chat_parts(message)))
            prompt = history or prompt
            if history is None:
                torn.append(("gen_ai.prompt", str(_value(raw["gen_ai.prompt"]))))
        if "gen_ai.completion" in raw:
            value = loaded(span.value_of(raw["gen_ai.completion"]))
            if value is None:
                torn.append(("gen_ai.completion", str(_value(raw["gen_ai.completion"]))))
            answers += [list(chat_parts(message)) for message in _objects(value)]
    return Messages(prompt, answers, torn=tuple(torn))


def _openinference_messages(span: TraceSpan, histories: Histories, key: str) -> Messages | None:
    kind = str(span.attribute(KIND)).upper()
    if kind in ("AGENT", "CHAIN") and "input.value" in span.raw and "output.value" in span.raw:
        return Messages([message_part("user", span.text("input.value"))],
                        [[message_part("assistant", span.text("output.value"))]], sums_up=True, facts=frozenset())
    if kind != "LLM":
        return None
    asked_with, answered = _list(span, "llm.input_messages"), _list(span, "llm.output_messages")
    if not asked_with and (prompt := span.first(("input.value",))) is not None:
        asked_with = _prompt_messages(span, prompt)
    if not answered:
        texts = [_inner(each, "completion").get("text") for each in _list(span, "llm.choices")]
        answer = [each for each in texts if each is not None] or [each for each in [span.text("output.value")] if each]
        answered = [{"message": {"role": "assistant", "content": each}} for each in answer]
    history = histories.of(key, asked_with, _openinference_parts)
    answers = [_cut(_openinference_parts(each), span.attribute("llm.finish_reason")) for each in answered]
    for rows in answers:
        if rows and rows[0].get("role") is None:
            rows[0]["role"] = "assistant"
    schemas = [loaded(_inner(each, "tool").get("json_schema")) for each in _list(span, "llm.tools")]   # each as JSON text
    return Messages(history, answers, _declared(schemas))


def _declared(tools: list[Any]) -> str | None:
    """Write declared tools as JSON text; what is no object is none."""
    return dumped([each for each in tools if isinstance(each, dict)]) if tools else None


def _prompt_messages(span: TraceSpan, prompt: Any) -> list[Any]:
    """Messages of a request that was logged as a whole, prompts of a completion, or the text that was asked."""
    prompts = [_inner(each, "prompt").get("text") for each in _list(span, "llm.prompts")]
    if any(each is not None for each in prompts):
        return [{"message": {"role": "user", "content": each}} for each in prompts]
    messages = object_of(loaded(prompt)).get("messages")
    if isinstance(messages, list) and messages and all(isinstance(each, dict) and "role" in each for each in messages):
        return [{"message": each} for each in messages]
    return [{"message": {"role": "user", "content": written(prompt)}}]


def _list(span: TraceSpan, name: str) -> list[Any]:
    """Return a list that lies flat in the attributes, or stands in one of them, as a list or as JSON text."""
    if name in span.raw:
        value = span.structured(name)
        return expanded(value) if isinstance(value, list) else []
    flat = span.begins(name + ".")
    return listed(nested(flat)) if flat else []


def _inner(value: Any, key: str) -> Row:
    return object_of(object_of(value).get(key))


def _openinference_parts(value: Any) -> list[Row]:
    """Parts of one message: thoughts, then as a chat message."""
    message = _inner(value, "message") or object_of(value)
    called = [_called(each) for each in listed(message.get("tool_calls"))]
    content = message.get("content")
    thoughts: list[Row] = []
    if "contents" in message:
        blocks = [_inner(each, "message_content") or each for each in listed(message["contents"])]
        thoughts = [thought_part(message.get("role"), written(each.get("text")))
                    for each in blocks if object_of(each).get("type") == "reasoning"]
        ids = {each.get("id") for each in called}
        called += [call for each in listed(message["contents"]) if (call := _called(each))["function"]["name"] is not None
                   and (call["id"] not in ids or not called)]
        shown = [each for each in blocks if object_of(each).get("type") not in ("reasoning", "tool_use")]
        content = (shown or content) if content is None else content
    chat: Row = {"role": message.get("role"), "content": content, "tool_calls": called,
                 "tool_call_id": message.get("tool_call_id"), "name": message.get("name")}
    if message.get("function_call_name"):
        chat["function_call"] = {"name": message["function_call_name"],
                                 "arguments": message.get("function_call_arguments_json")}
    return [*thoughts, *chat_parts(chat)]


def _called(value: Any) -> Row:
    call = _inner(value, "tool_call") or object_of(value)
    function = _inner(call, "function")
    return {"id": call.get("id"), "function": {"name": function.get("name"), "arguments": function.get("arguments")}}


def _traceloop_messages(span: TraceSpan, histories: Histories, key: str) -> Messages | None:
    prompt, completion, functions = (listed(nested(span.begins(prefix))) for prefix in (
        "gen_ai.prompt.", "gen_ai.completion.", "llm.request.functions."))
    if not prompt and not completion:
        return None
    tools = [{**each, "parameters": loaded(each.get("parameters"))} for each in functions if isinstance(each, dict)]
    answers = [_cut(_traceloop_parts({"role": "assistant", **each} if isinstance(each, dict) else each),
                    object_of(each).get("finish_reason")) for each in completion]
    return Messages(histories.of(key, prompt, _traceloop_parts), answers, _declared(tools))


def _traceloop_parts(message: Any) -> list[Row]:
    if isinstance(message, dict):
        message = {**message, "content": typed_parts(message.get("content")), "tool_calls": listed(message.get("tool_calls"))}
    return list(chat_parts(message))


def _traceloop_arguments(value: Any) -> Any:
    """Return what the function was called with: its keyword arguments, or all it got where it has others."""
    parsed = object_of(loaded(value))
    if isinstance(parsed.get("kwargs"), dict) and not parsed.get("args"):
        return parsed["kwargs"]
    return parsed["inputs"] if isinstance(parsed.get("inputs"), dict) else value   # LangChain


def _vercel_messages(span: TraceSpan, histories: Histories, key: str) -> Messages | None:
    if str(span.attribute("ai.operationId")).endswith((".doGenerate", ".doStream")):
        messages = span.attribute("ai.prompt.messages")
        history = histories.of(key, messages if messages is not None else [], _vercel_parts)
        tools = [loaded(each) for each in listed(span.attribute("ai.prompt.tools"))]
        return Messages(history, [_vercel_answer(span)], _declared(tools),
                        (("ai.prompt.messages", str(messages)),) if history is None else ())
    prompt = loaded(span.attribute("ai.prompt"))
    if not isinstance(prompt, dict):
        return None
    instructions = [{"role": "system", "content": prompt["system"]}] if prompt.get("system") else []
    spoken = prompt.get("messages") or ([{"role": "user", "content": prompt["prompt"]}] if prompt.get("prompt") else [])
    return Messages(histories.of(("root", key), [*instructions, *listed(spoken)], _vercel_parts), [_vercel_answer(span)],
                    sums_up=True)


def _vercel_answer(span: TraceSpan) -> list[Row]:
    """Read the answer: what was thought and said, then the calls."""
    spoken, thought = span.text("ai.response.text", "ai.response.object"), span.text("ai.response.reasoning")
    calls = loaded(span.first(("ai.response.toolCalls", "ai.result.toolCalls")))
    rows = [*([message_part("assistant", spoken)] if spoken is not None else []), *map(_vercel_call, listed(calls))]
    return [*([thought_part("assistant", thought)] if thought is not None else []),
            *_cut(rows, span.attribute("ai.response.finishReason"))]


def _vercel_parts(message: Any) -> list[Row]:
    """Parts of one message of the prompt: thoughts, text, then calls and results in order."""
    if not isinstance(message, dict):
        return [message_part(None, written(message), ["message is no object"])]
    role, content = message.get("role"), message.get("content")
    if not isinstance(content, list):
        return [message_part(role, written(content))]
    rows: list[Row] = []
    spoken: list[Any] = []
    thoughts: list[Row] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool-call":
            rows.append(_vercel_call(part))
        elif kind == "tool-result":
            value, is_error = part.get("output", part.get("result")), part.get("isError")
            if isinstance(value, dict) and set(value) <= {"type", "value", "providerOptions"} and isinstance(
                    value.get("type"), str):
                is_error = True if value["type"].startswith("error") else is_error
                value = value.get("value")
            rows.append(result_part(written(part.get("toolCallId")), written(part.get("toolName")), written(value),
                                    is_error if isinstance(is_error, bool) else None))
        elif kind == "reasoning":
            thoughts.append(thought_part(role, written(part.get("text"))))
        else:
            spoken.append(part)
    if spoken or not rows:
        words, lossy = text(spoken)
        if words or lossy or not rows:
            rows.insert(0, message_part(role, words, lossy))
    return [*thoughts, *rows]


def _vercel_call(call: Any) -> Row:
    if not isinstance(call, dict):
        return strange_call("assistant", call)
    return call_part("assistant", written(call.get("toolCallId")), written(call.get("toolName")),
                     next((call[key] for key in ("input", "args") if key in call), None))


def judgements(span: TraceSpan) -> Iterator[tuple[str, Row]]:
    """Judgements that the span carries: on what (empty: the span, or the one that it links to; `trace` or `session`), and their
    facts (name, score, label, explanation, annotator_kind, identifier, metadata).
    """
    for prefix in ("", "trace.", "session."):
        for name in ("annotations", "evaluations"):
            for each in _list(span, f"{prefix}{name}"):
                facts = each.get(name.removesuffix("s")) if isinstance(each, dict) else None
                if isinstance(facts, dict):
                    yield prefix.removesuffix("."), facts


def judgement(facts: Row) -> Row:
    """Fields of the feedback that an annotation is: its score where it has one, else its label; the rest beside it."""
    score, label = facts.get("score"), facts.get("label")
    value = written(score if score is not None else label)
    shown = ("name", "explanation", "label" if score is None else "score")
    others = {key: each for key, each in facts.items() if key not in shown and each not in (None, "", {})}
    return {"name": written(facts.get("name")), "value": value, "content": written(facts.get("explanation")) or None,
            "arguments": dumped(others) if others else None}


_GENAI_COUNTS = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    "cached_tokens": ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
    "reasoning_tokens": ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.details.reasoning_tokens")}
_GENAI_MODEL = ("gen_ai.response.model", "gen_ai.request.model")
_TRACELOOP = "traceloop.association.properties."
_VERCEL = "ai.telemetry.metadata."

GENAI = SpanDialect(
    applies=lambda span: True, messages=_genai_messages,
    tool_kinds=frozenset({(_OPERATION, "execute_tool"), ("mcp.method.name", "tools/call")}),
    tool=("gen_ai.tool.name",), call_id=("gen_ai.tool.call.id",), arguments=("gen_ai.tool.call.arguments",),
    result=("gen_ai.tool.call.result",), session=("gen_ai.conversation.id", "session.id"),
    identity=("user.id", "enduser.id"), model=_GENAI_MODEL, counts=_GENAI_COUNTS,
    contents=(_INPUT, _OUTPUT, _SYSTEM, "gen_ai.tool.definitions", "pydantic_ai.all_messages", "gen_ai.prompt",
              "gen_ai.completion"))
OPENINFERENCE = SpanDialect(
    applies=lambda span: KIND in span.raw, messages=_openinference_messages,
    tool_kinds=frozenset((KIND, word) for word in ("TOOL", "Tool", "tool")), span_names_tool=True,
    tool=("tool.name", "tool_call.function.name"), call_id=("tool.id", "tool_call.id"),
    arguments=("input.value", "tool.parameters", "tool_call.function.arguments"), result=("output.value",),
    session=("session.id",), model=("llm.response.model_name", "llm.model_name", "llm.request.model_name"),
    counts={"input_tokens": ("llm.token_count.prompt",), "output_tokens": ("llm.token_count.completion",),
            "cached_tokens": ("llm.token_count.prompt_details.cache_read",),
            "reasoning_tokens": ("llm.token_count.completion_details.reasoning",)},
    contents=("input.value", "output.value", "llm.input_messages", "llm.output_messages", "llm.tools",
              "llm.invocation_parameters", "annotations.", "trace.annotations.", "session.annotations."))
TRACELOOP = SpanDialect(
    applies=lambda span: "gen_ai.prompt.0.role" in span.raw or "gen_ai.completion.0.content" in span.raw or (
        "traceloop.span.kind" in span.raw and _OPERATION not in span.raw),
    messages=_traceloop_messages, tool_kinds=frozenset({("traceloop.span.kind", "tool")}), span_names_tool=True,
    tool=("traceloop.entity.name",), arguments=("traceloop.entity.input",), result=("traceloop.entity.output",),
    unwrap=_traceloop_arguments, model=_GENAI_MODEL, counts=_GENAI_COUNTS,
    session=tuple(_TRACELOOP + name for name in ("session_id", "sessionId", "conversation_id", "thread_id", "chat_id")),
    identity=(_TRACELOOP + "user_id", _TRACELOOP + "userId"),
    contents=("gen_ai.prompt.", "gen_ai.completion.", "traceloop.entity.input", "traceloop.entity.output"))
VERCEL = SpanDialect(
    applies=lambda span: "ai.operationId" in span.raw, messages=_vercel_messages,
    tool_kinds=frozenset({("ai.operationId", "ai.toolCall")}), tool=("ai.toolCall.name",), call_id=("ai.toolCall.id",),
    arguments=("ai.toolCall.args",), result=("ai.toolCall.result",),
    session=tuple(_VERCEL + name for name in ("sessionId", "session_id", "conversationId", "conversation_id", "threadId",
                                              "thread_id", "chatId", "chat_id")),
    identity=(_VERCEL + "userId", _VERCEL + "user_id"),
    model=("ai.response.model", "gen_ai.response.model", "ai.model.id", "gen_ai.request.model"),
    counts={"input_tokens": ("ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens"),
            "output_tokens": ("ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.usage.output_tokens"),
            "cached_tokens": ("ai.usage.cachedInputTokens",), "reasoning_tokens": ("ai.usage.reasoningTokens",)},
    contents=("ai.prompt", "ai.response.text"))

_BY_PRECEDENCE = (OPENINFERENCE, VERCEL, TRACELOOP, GENAI)
_ALL = (GENAI, OPENINFERENCE, TRACELOOP, VERCEL)
SESSION = tuple(dict.fromkeys(name for dialect in _ALL for name in dialect.session))
IDENTITY = tuple(name for dialect in _ALL for name in dialect.identity)
CONTENTS = tuple(name for dialect in _ALL for name in dialect.contents)
"""Attributes of all dialects that name the session, name the user, hold contents."""
