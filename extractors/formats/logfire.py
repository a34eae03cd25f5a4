"""Pydantic Logfire records (JSON lines, CSV, the query API's rows or columns): spans of pydantic-ai and of Logfire's own
integrations with model clients, feedback, and whatever else was logged.

Sees: models and tools in the GenAI conventions and in pydantic-ai's older ones (`events`, `tool_arguments`, `tool_response`),
`request_data` and `response_data`, streamed answers logged beside their span, all messages on an agent's run where its models'
spans lack them, exceptions, conversation ids. Rows of spans that were still running are left out: the final row tells them.
Does not see: SQL exports that renamed columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.message_parts import loaded, written
from extractors.formats.platform_spans import PlatformSpan, alias
from extractors.formats.platform_story import tell_all
from extractors.formats.samples import sample
from extractors.formats.sampling import of_completion, parameters_of, sampling
from extractors.formats.usage import tokens

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


def claims(head: Head) -> bool:
    """The first record has Logfire's columns, as a row or by column."""
    first = next(_rows(head.first), {})
    return first.keys() >= _KEYS and not {"otel_scope_name", "is_exception", "parent_span_id"}.isdisjoint(first)


def _rows(value: Any) -> Iterator[Row]:
    """The records: one, or those of an answer of the query API."""
    if not isinstance(value, dict):
        return
    if isinstance(value.get("rows"), list):
        yield from (each for each in value["rows"] if isinstance(each, dict))
    elif isinstance(value.get("columns"), list):
        held = {each["name"]: each["values"] for each in value["columns"]
                if isinstance(each, dict) and isinstance(each.get("values"), list) and isinstance(each.get("name"), str)}
        for values in zip(*held.values(), strict=False):
            yield dict(zip(held, values, strict=True))
    else:
        yield value


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All spans of the file first, since files are not ordered; then each conversation in the order of time."""
    spans: list[PlatformSpan] = []
    given: list[tuple[LogRecord, Row, Row]] = []
    for record in records:
        n_before = len(spans) + len(given)
        with emit.guarded(record):
            for row in _rows(record.value):
                attributes = loaded(row.get("attributes"))
                attributes = attributes if isinstance(attributes, dict) else {}
                if not row.keys() >= _KEYS:
                    continue
                if row.get("kind") == "pending_span":
                    emit.reject(record, "pending_span", "the span was still running; its final row tells it")
                elif f"{_FEEDBACK}name" in attributes:
                    given.append((record, row, attributes))
                else:
                    spans.append(_span(record, row, attributes, emit))
            if len(spans) + len(given) == n_before and row_is_missing(record, emit):
                emit.reject(record, "no_span", "the record has no span with name, trace and start; select these columns")
    _join_streams(spans)
    tell_all(spans, emit)
    _feedback(given, spans, emit)


def row_is_missing(record: LogRecord, emit: Emit) -> bool:
    """Whether nothing was said of the record yet."""
    return not any(rejected is record for rejected, _, _ in emit.rejects[-1:])


def _span(record: LogRecord, row: Row, attributes: Row, emit: Emit) -> PlatformSpan:
    kind, operation = _kind(attributes, row), attributes.get("gen_ai.operation.name")
    asked, answered = _payloads(attributes, kind)
    failed = _is_true(row.get("is_exception")) or row.get("otel_status_code") == "ERROR" or _level(row) >= _ERROR_LEVEL
    ended_at = microseconds(row.get("end_timestamp"))
    name = attributes.get("gen_ai.tool.name") if kind == "tool" else row.get("span_name")
    return PlatformSpan(
        record=record, trace_id=str(row["trace_id"]), span_id=str(row["span_id"]), kind=kind, name=written(name),
        parent_id=written(row.get("parent_span_id")) or None,
        session_id=emit.envelope.mapped("session_id", row) or _first(attributes, _SESSION), identity=_first(attributes, _USER),
        service=emit.envelope.service(row), started_at=microseconds(row.get("start_timestamp")), ended_at=ended_at,
        asked=asked, answered=answered, tools=loaded(attributes.get("gen_ai.tool.definitions")),
        call_id=written(attributes.get("gen_ai.tool.call.id")) or None,
        model=_first(attributes, ("gen_ai.response.model", "gen_ai.request.model")) if kind == "model" else None,
        usage=_drawn(attributes) if kind == "model" else None, is_error=failed if failed or ended_at is not None else None,
        problem=(written(row.get("exception_message")) or "error") if failed else None, label=written(row.get("span_name")),
        said=written(row.get("message")) if kind == "other" and not operation else None,
        attributes={key: value for key, value in attributes.items() if key not in _CONTENT} | {
            key: row[key] for key in ("exception_type", "tags") if row.get(key)})


def _kind(attributes: Row, row: Row) -> Any:
    operation = attributes.get("gen_ai.operation.name")
    if operation in _ASKS or (operation is None and isinstance(loaded(attributes.get("request_data")), dict)):
        return "model"
    if operation is None and "gen_ai.tool.name" in attributes:
        return "tool"
    told = not {"events", "gen_ai.input.messages"}.isdisjoint(attributes)
    if operation is None and "gen_ai.request.model" in attributes and told:
        return "model"
    return "tool" if operation == "execute_tool" else "other"


def _payloads(attributes: Row, kind: str) -> tuple[Any, Any]:
    """What went in and what came out."""
    if kind == "tool":
        return (_either(attributes, "gen_ai.tool.call.arguments", "tool_arguments"),
                _either(attributes, "gen_ai.tool.call.result", "tool_response"))
    if kind == "model" and "request_data" in attributes:
        return loaded(attributes["request_data"]), _response(loaded(attributes.get("response_data")))
    if "gen_ai.input.messages" in attributes or "gen_ai.output.messages" in attributes:
        asked, answered = attributes.get("gen_ai.input.messages"), attributes.get("gen_ai.output.messages")
        system = loaded(attributes.get("gen_ai.system_instructions"))
        if system and isinstance(messages := loaded(asked), list):
            asked = [{"role": "system", "parts": system}, *messages]
        return asked, answered
    if isinstance(events := loaded(attributes.get("events", attributes.get("all_messages_events"))), list):
        return _of_events(events, kind)
    messages = loaded(attributes.get("pydantic_ai.all_messages"))
    return None, {"messages": messages} if isinstance(messages, list) else attributes.get("final_result")


def _of_events(events: list[Any], kind: str) -> tuple[Any, Any]:
    """Messages of the event list of pydantic-ai's first format; the choice is the answer."""
    held = [each for each in events if isinstance(each, dict)]
    asked = [_of_event(each) for each in held if each.get("event.name") != "gen_ai.choice"]
    choice = next((each for each in held if each.get("event.name") == "gen_ai.choice"), None)
    answered = choice.get("message", choice) if choice is not None else None
    if kind == "model":
        return asked, answered
    return None, {"messages": [*asked, *([answered] if answered is not None else [])]}


def _of_event(event: Row) -> Row:
    name = str(event.get("event.name", "")).split(".")
    role = event.get("role") or (name[1] if len(name) == 3 else "user")
    message = {key: value for key, value in event.items() if not key.startswith(("event.", "gen_ai."))}
    return {**message, "role": role, **({"tool_call_id": event["id"]} if role == "tool" and "id" in event else {})}


def _response(response: Any) -> Any:
    """An answer as Logfire's integrations log it; of a stream only its text."""
    if isinstance(response, dict) and "combined_chunk_content" in response and not response.get("message"):
        return {"role": "assistant", "content": response["combined_chunk_content"]}
    return response.get("message", response) if isinstance(response, dict) else response


def _join_streams(spans: list[PlatformSpan]) -> None:
    """A streamed answer is logged beside its span, which ended before there was one: the log tells the answer."""
    answered = {(span.trace_id, written(span.asked)) for span in spans if span.kind == "model" and span.answered is not None}
    for span in spans:
        if span.kind == "model" and span.answered is None and not span.problem and span.asked is not None and (
                span.trace_id, written(span.asked)) in answered:
            span.kind = "other"


def _usage(attributes: Row) -> Row | None:
    stated = {key.removeprefix("gen_ai.usage."): value for key, value in attributes.items() if key.startswith("gen_ai.usage.")}
    found = tokens({"input_tokens": stated.get("input_tokens"), "output_tokens": stated.get("output_tokens"),
                    "cached_tokens": stated.get("cache_read.input_tokens", stated.get("details.cache_read_tokens")),
                    "reasoning_tokens": stated.get("details.reasoning_tokens")})
    response = loaded(attributes.get("response_data"))
    return found or (tokens(response.get("usage")) if isinstance(response, dict) else None)


def _drawn(attributes: Row) -> Row | None:
    """Token counts, and how the answer was drawn."""
    return {**(_usage(attributes) or {}), **of_completion(loaded(attributes.get("response_data"))),
            **sampling(dict(parameters_of(attributes)), loaded(attributes.get("request_data")))} or None


def _feedback(given: list[tuple[LogRecord, Row, Row]], spans: list[PlatformSpan], emit: Emit) -> None:
    """Feedback, on the session of its trace."""
    stated = {span.trace_id: span.session_id for span in spans if span.session_id}
    for record, row, attributes in given:
        answer = _either(attributes, *(f"{_FEEDBACK}{kind}" for kind in ("score", "label", "assertion", "value")))
        trace_id = str(row["trace_id"])
        emit.event(record, "feedback", place=f"{row['span_id']}/feedback", session_id=stated.get(trace_id, alias(trace_id)),
                   name=written(attributes[f"{_FEEDBACK}name"]), value=written(answer), service=emit.envelope.service(row),
                   happened_at=microseconds(row.get("start_timestamp")), content=written(attributes.get(f"{_FEEDBACK}comment")),
                   call_id=written(row.get("parent_span_id")) or trace_id)


def _either(attributes: Row, *names: str) -> Any:
    return next((attributes[name] for name in names if name in attributes), None)


def _first(attributes: Row, names: tuple[str, ...]) -> str | None:
    return next((str(attributes[name]) for name in names if attributes.get(name) not in (None, "")), None)


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _level(row: Row) -> int:
    level = row.get("level")
    return int(level) if isinstance(level, int) or (isinstance(level, str) and level.isdecimal()) else 0


FORMAT = Format(name="logfire", history="once", claims=claims, read=read, sample=sample("logfire.jsonl"), rank=25)
