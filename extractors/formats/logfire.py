"""Pydantic Logfire records (JSON lines, CSV, the query API's rows or columns): spans of pydantic-ai and of Logfire's own
integrations with model clients, feedback, and whatever else was logged.

Sees: models and tools in the GenAI conventions and in pydantic-ai's older ones (`events`, `tool_arguments`, `tool_response`),
`request_data` and `response_data`, streamed answers logged next to their span, all messages on an agent's run where its models'
spans lack them, exceptions, conversation ids. Rows of spans that were still running are left out: the final row tells them.
Does not see: SQL exports that renamed columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.model_payloads import loaded
from extractors.formats.platform_spans import PlatformDialect, PlatformSpan, alias, span_of, tell_all
from extractors.formats.sampling import of_completion, parameters_of, sampling, tokens
from extractors.formats.values import first_of, object_of, objects_in, text_of, written

_KEYS = frozenset({"span_name", "start_timestamp", "trace_id", "span_id"})
_ASKS = ("chat", "generate_content", "text_completion", "completion")
_SESSION = ("gen_ai.conversation.id", "session.id", "session_id", "conversation_id", "thread_id")
_USER = ("user.id", "enduser.id", "user_id")
_ERROR_LEVEL = 17
_FEEDBACK = "feedback."
_CONTENT = ("gen_ai.input.messages", "gen_ai.output.messages", "pydantic_ai.all_messages", "all_messages_events", "events",
            "request_data", "response_data", "gen_ai.tool.call.result", "tool_response", "gen_ai.system_instructions",
            "final_result", "logfire.json_schema", "model_request_parameters")
"""Attributes that the conversation holds; a log event keeps the others."""
_DIALECT = PlatformDialect(
    trace_id=("trace_id",), span_id=("span_id",), parent_id=("parent_span_id",), started_at=("start_timestamp",),
    ended_at=("end_timestamp",), name=("span_name",))


def claims(head: Head) -> bool:
    """Return whether the first record has Logfire's columns, as a row or by column."""
    first = next(_rows(head.first), {})
    return first.keys() >= _KEYS and not {"otel_scope_name", "is_exception", "parent_span_id"}.isdisjoint(first)


def _rows(value: Any) -> Iterator[Row]:
    """Yield the records: one, or those of an answer of the query API."""
    if not isinstance(value, dict):
        return
    if isinstance(value.get("rows"), list):
        yield from objects_in(value["rows"])
    elif isinstance(value.get("columns"), list):
        columns = {each["name"]: each["values"] for each in value["columns"]
                if isinstance(each, dict) and isinstance(each.get("values"), list) and isinstance(each.get("name"), str)}
        for values in zip(*columns.values(), strict=False):
            yield dict(zip(columns, values, strict=True))
    else:
        yield value


def read(records: LogRecords, emit: Emit) -> None:
    """All spans of the file first, since files are not ordered; then each conversation in the order of time."""
    spans: list[PlatformSpan] = []
    given: list[tuple[LogRecord, Row, Row]] = []
    for record in records:
        n_before = len(spans) + len(given)
        with emit.guarded(record):
            for row in (each for each in _rows(record.value) if each.keys() >= _KEYS):
                attributes = object_of(loaded(row.get("attributes")))
                if row.get("kind") == "pending_span":
                    emit.reject(record, "pending_span", "the span was still running; its final row tells it")
                elif f"{_FEEDBACK}name" in attributes:
                    given.append((record, row, attributes))
                else:
                    spans.append(_span(record, row, attributes, emit))
            if len(spans) + len(given) == n_before and not any(rejected is record for rejected, _, _ in emit.rejects[-1:]):
                emit.reject(record, "no_span", "the record has no span with name, trace and start; select these columns")
    # a streamed answer is logged next to its span, which ended before there was one: the log tells the answer
    models = [span for span in spans if span.kind == "model"]
    answered = {(span.trace_id, written(span.input)) for span in models if span.output is not None}
    for span in models:
        if span.output is None and not span.problem and span.input is not None and (
                span.trace_id, written(span.input)) in answered:
            span.kind = "other"
    tell_all(spans, emit)
    stated = {span.trace_id: span.session_id for span in spans if span.session_id}
    for record, row, attributes in given:
        answer = _either(attributes, *(f"{_FEEDBACK}{kind}" for kind in ("score", "label", "assertion", "value")))
        trace_id = str(row["trace_id"])
        emit.event(record, "feedback", place=f"{row['span_id']}/feedback", session_id=stated.get(trace_id, alias(trace_id)),
                   name=written(attributes[f"{_FEEDBACK}name"]), value=written(answer), service=emit.envelope.service(row),
                   happened_at=microseconds(row.get("start_timestamp")), content=written(attributes.get(f"{_FEEDBACK}comment")),
                   call_id=written(row.get("parent_span_id")) or trace_id)


def _span(record: LogRecord, row: Row, attributes: Row, emit: Emit) -> PlatformSpan:
    kind, operation = _kind(attributes), attributes.get("gen_ai.operation.name")
    input_value, answered = _payloads(attributes, kind)
    exception, level = row.get("is_exception"), str(row.get("level"))
    is_exception = exception is True or (isinstance(exception, str) and exception.lower() == "true")
    failed = is_exception or row.get("otel_status_code") == "ERROR" or (level.isdecimal() and int(level) >= _ERROR_LEVEL)
    ended_at = microseconds(row.get("end_timestamp"))
    name = {"name": written(attributes.get("gen_ai.tool.name"))} if kind == "tool" else {}
    model = first_of(attributes, ("gen_ai.response.model", "gen_ai.request.model"))
    return span_of(
        record, row, _DIALECT, lambda: {"model": text_of(model), "usage": _drawn(attributes)}, kind=kind,
        label=written(row.get("span_name")), **name,
        session_id=emit.envelope.mapped("session_id", row) or text_of(first_of(attributes, _SESSION)),
        identity=text_of(first_of(attributes, _USER)), service=emit.envelope.service(row), input=input_value, output=answered,
        tools=loaded(attributes.get("gen_ai.tool.definitions")), call_id=written(attributes.get("gen_ai.tool.call.id")) or None,
        is_error=failed if failed or ended_at is not None else None,
        problem=(written(row.get("exception_message")) or "error") if failed else None,
        message=written(row.get("message")) if kind == "other" and not operation else None,
        attributes={key: value for key, value in attributes.items() if key not in _CONTENT}
        | {key: row[key] for key in ("exception_type", "tags") if row.get(key)})


def _kind(attributes: Row) -> Any:
    operation = attributes.get("gen_ai.operation.name")
    if operation is not None:
        return "model" if operation in _ASKS else "tool" if operation == "execute_tool" else "other"
    if isinstance(loaded(attributes.get("request_data")), dict):
        return "model"
    if "gen_ai.tool.name" in attributes:
        return "tool"
    has_messages = not {"events", "gen_ai.input.messages"}.isdisjoint(attributes)
    return "model" if has_messages and "gen_ai.request.model" in attributes else "other"


def _payloads(attributes: Row, kind: str) -> tuple[Any, Any]:
    if kind == "tool":
        return (_either(attributes, "gen_ai.tool.call.arguments", "tool_arguments"),
                _either(attributes, "gen_ai.tool.call.result", "tool_response"))
    if kind == "model" and "request_data" in attributes:
        response = loaded(attributes.get("response_data"))
        if isinstance(response, dict) and "combined_chunk_content" in response and not response.get("message"):
            response = {"role": "assistant", "content": response["combined_chunk_content"]}   # of a stream only its text
        return loaded(attributes["request_data"]), response.get("message", response) if isinstance(response, dict) else response
    if "gen_ai.input.messages" in attributes or "gen_ai.output.messages" in attributes:
        input_value, answered = attributes.get("gen_ai.input.messages"), attributes.get("gen_ai.output.messages")
        system = loaded(attributes.get("gen_ai.system_instructions"))
        if system and isinstance(messages := loaded(input_value), list):
            input_value = [{"role": "system", "parts": system}, *messages]
        return input_value, answered
    if isinstance(events := loaded(attributes.get("events", attributes.get("all_messages_events"))), list):
        return _of_events(events, kind)
    messages = loaded(attributes.get("pydantic_ai.all_messages"))
    return None, {"messages": messages} if isinstance(messages, list) else attributes.get("final_result")


def _of_events(events: list[Any], kind: str) -> tuple[Any, Any]:
    """Messages of the event list of pydantic-ai's first format; the choice is the answer."""
    messages = objects_in(events)
    input_messages = []
    for event in (each for each in messages if each.get("event.name") != "gen_ai.choice"):
        name = str(event.get("event.name", "")).split(".")
        role = event.get("role") or (name[1] if len(name) == 3 else "user")
        message = {key: value for key, value in event.items() if not key.startswith(("event.", "gen_ai."))}
        answered_call = {"tool_call_id": event["id"]} if role == "tool" and "id" in event else {}
        input_messages.append({**message, "role": role, **answered_call})
    choice = next((each for each in messages if each.get("event.name") == "gen_ai.choice"), None)
    answered = choice.get("message", choice) if choice is not None else None
    if kind == "model":
        return input_messages, answered
    return None, {"messages": [*input_messages, *([answered] if answered is not None else [])]}


def _drawn(attributes: Row) -> Row | None:
    stated = {key.removeprefix("gen_ai.usage."): value for key, value in attributes.items() if key.startswith("gen_ai.usage.")}
    usage = tokens({"input_tokens": stated.get("input_tokens"), "output_tokens": stated.get("output_tokens"),
                    "cached_tokens": stated.get("cache_read.input_tokens", stated.get("details.cache_read_tokens")),
                    "reasoning_tokens": stated.get("details.reasoning_tokens")})
    response = loaded(attributes.get("response_data"))
    return {**(usage or tokens(object_of(response).get("usage")) or {}), **of_completion(response),
            **sampling(dict(parameters_of(attributes)), loaded(attributes.get("request_data")))} or None


def _either(attributes: Row, *names: str) -> Any:
    return next((attributes[name] for name in names if name in attributes), None)


FORMAT = Format(name="logfire", history="traces", claims=claims, read=read, sample=sample("logfire.jsonl"), rank=25)
