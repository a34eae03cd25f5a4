"""MLflow traces, schema 3 and 2: a trace with its spans and assessments a record, or rows of `search_traces()`.

Sees: CHAT_MODEL, LLM and TOOL spans, session and user of the trace's metadata, token counts, declared tools, exceptions,
chunks of a stream whose answer was not put together, feedback among the assessments (an assessment that a later one overrides
is left out).
Does not see: expectations as feedback (they become log events), metadata beyond the 250 characters that schema 2 keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.message_parts import loaded, written
from extractors.formats.platform_spans import PlatformSpan, alias, texts
from extractors.formats.platform_story import tell_all
from extractors.formats.samples import sample
from extractors.formats.sampling import of_completion, parameters_of, sampling
from extractors.formats.usage import tokens

_MODELS = ("LLM", "CHAT_MODEL")
_CALL_IDS = ("tool_call_id", "gen_ai.tool.call.id", "mlflow.tool.call_id")
_CHUNK = "mlflow.chunk.item."


def claims(head: Head) -> bool:
    """The first object is a trace with info and spans, as a whole or as a row."""
    found = _parts(head.first)
    return found is not None and not {"trace_id", "request_id"}.isdisjoint(found[0]) and any(
        _is_span(each) for each in found[1][:1])


def _is_span(value: Any) -> bool:
    return isinstance(value, dict) and "attributes" in value and not {"start_time_unix_nano", "start_time"}.isdisjoint(value)


def _parts(value: Any) -> tuple[Row, list[Any]] | None:
    """Info and spans of a trace."""
    if not isinstance(value, dict):
        return None
    info, data = loaded(value.get("info")), loaded(value.get("data"))
    if isinstance(info, dict) and isinstance(data, dict) and isinstance(spans := loaded(data.get("spans")), list):
        return info, spans
    spans = loaded(value.get("spans"))
    known = "trace_id" in value or "request_id" in value
    return (value, spans) if known and "trace_metadata" in value and isinstance(spans, list) else None


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All traces of the file, then each conversation in the order of time."""
    found: list[PlatformSpan] = []
    for record in records:
        parts = _parts(record.value)
        if parts is None:
            emit.reject(record, "no_trace", "the record is no trace with info and spans; leave it out or export it again")
            continue
        with emit.guarded(record):
            found += _trace(record, *parts, emit)
    tell_all(found, emit)


def _trace(record: LogRecord, info: Row, spans: list[Any], emit: Emit) -> list[PlatformSpan]:
    trace_id = str(info.get("trace_id") or info.get("request_id") or record.record_id[:16])
    metadata: Row = next((each for key in ("trace_metadata", "request_metadata")
                          if isinstance(each := loaded(info.get(key)), dict)), {})
    tags = loaded(info.get("tags"))
    session_id = emit.envelope.mapped("session_id", info) or metadata.get("mlflow.trace.session")
    around = PlatformSpan(
        record=record, trace_id=trace_id, span_id=trace_id, kind="other", name=_name(info, tags), label="TRACE",
        session_id=str(session_id) if session_id else None, identity=metadata.get("mlflow.trace.user"),
        service=emit.envelope.service(tags), started_at=microseconds(info.get("request_time", info.get("timestamp_ms"))),
        asked=None if spans else metadata.get("mlflow.traceInputs", info.get("request")),
        answered=None if spans else metadata.get("mlflow.traceOutputs", info.get("response")),
        attributes={"tags": tags, "metadata": metadata, "state": info.get("state", info.get("status"))})
    members = [_span(record, each, around) for each in spans if isinstance(each, dict)]
    known = {each.span_id for each in members}
    for each in members:
        each.parent_id = each.parent_id if each.parent_id in known else trace_id
    _assess(record, loaded(info.get("assessments")), around, emit)
    return [around, *members]


def _name(info: Row, tags: Any) -> str | None:
    name = tags.get("mlflow.traceName") if isinstance(tags, dict) else None
    return name if isinstance(name, str) else None


def _span(record: LogRecord, span: Row, trace: PlatformSpan) -> PlatformSpan:
    """One span; every attribute is JSON text."""
    context = span["context"] if isinstance(span.get("context"), dict) else {}
    logged = span["attributes"] if isinstance(span.get("attributes"), dict) else {}
    kind = _json(logged.get("mlflow.spanType", span.get("span_type")))
    asked, answered = logged.get("mlflow.spanInputs"), logged.get("mlflow.spanOutputs")
    events = [each for each in span.get("events") or () if isinstance(each, dict)]
    failed, problem = _failure(span, events)
    call_id = next((_json(logged[key]) for key in _CALL_IDS if logged.get(key)), None)
    request = _json(asked)
    is_model = kind in _MODELS
    return PlatformSpan(
        record=record, trace_id=trace.trace_id, span_id=str(span.get("span_id") or context.get("span_id") or span.get("name")),
        kind="model" if is_model else "tool" if kind == "TOOL" else "other", name=written(span.get("name")),
        parent_id=span.get("parent_span_id") or span.get("parent_id") or None, session_id=trace.session_id,
        identity=trace.identity, service=trace.service,
        started_at=microseconds(span.get("start_time_unix_nano", span.get("start_time"))),
        ended_at=microseconds(span.get("end_time_unix_nano", span.get("end_time"))), asked=_captured(asked),
        answered=_captured(answered) if _captured(answered) is not None else _streamed(events),
        tools=_json(logged.get("mlflow.chat.tools")), call_id=str(call_id) if call_id else None,
        model=_model(logged, request, _json(answered)) if is_model else None,
        usage=_drawn(logged, request, _json(answered)) if is_model else None, is_error=failed, problem=problem,
        label=kind if isinstance(kind, str) else None)


def _json(text: Any) -> Any:
    """What an attribute says: each is JSON text."""
    try:
        return orjson.loads(text) if isinstance(text, str) else text
    except orjson.JSONDecodeError:
        return text


def _captured(text: Any) -> Any:
    """A payload as logged, None where it says null."""
    return None if _json(text) is None else text


def _failure(span: Row, events: list[Row]) -> tuple[bool | None, str | None]:
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else span.get("status_code")
    if code not in ("STATUS_CODE_ERROR", "ERROR", 2):
        return (False if code in ("STATUS_CODE_OK", "OK", 1) else None), None
    said = next((each["attributes"].get("exception.message") for each in events
                 if each.get("name") == "exception" and isinstance(each.get("attributes"), dict)), None)
    stated = status.get("message") if isinstance(status, dict) else span.get("status_message")
    return True, written(said or stated) or "error"


def _streamed(events: list[Row]) -> list[Any] | None:
    """Chunks of a stream, in order."""
    chunks = [(int(str(each["name"])[len(_CHUNK):]), each.get("attributes")) for each in events
              if str(each.get("name")).startswith(_CHUNK) and str(each["name"])[len(_CHUNK):].isdecimal()]
    ordered = [held for _, held in sorted(chunks, key=lambda each: each[0]) if isinstance(held, dict)]
    found = [_json(value) for held in ordered for value in held.values()]
    return found or None


def _model(attributes: Row, request: Any, response: Any) -> str | None:
    places = (response, request, _json(attributes.get("mlflow.llm.model")), _json(attributes.get("mlflow.modelId")))
    named = (place.get("model") if isinstance(place, dict) else place for place in places)
    return next((name for name in named if isinstance(name, str)), None)


def _usage(attributes: Row, response: Any) -> Row | None:
    stated = tokens(_json(attributes.get("mlflow.chat.tokenUsage")))
    return stated or (tokens(response.get("usage")) if isinstance(response, dict) else None)


def _drawn(attributes: Row, request: Any, response: Any) -> Row | None:
    """Token counts, and how the answer was drawn."""
    stated = {key: _json(value) for key, value in parameters_of(attributes).items()}
    return {**(_usage(attributes, response) or {}), **of_completion(response),
            **sampling(_json(attributes.get("invocation_params")), stated, request)} or None


def _assess(record: LogRecord, assessments: Any, trace: PlatformSpan, emit: Emit) -> None:
    """Feedback and expectations on a trace or a span of it."""
    held = [each for each in assessments if isinstance(each, dict)] if isinstance(assessments, list) else []
    overridden = {each["overrides"] for each in held if isinstance(each.get("overrides"), str)}
    for number, each in enumerate(held):
        given, source = each.get("feedback"), each.get("source")
        place = f"assessment/{each.get('assessment_id') or number}"
        name = written(each.get("assessment_name", each.get("name")))
        facts: Row = {"session_id": trace.session_id or alias(trace.trace_id), "name": name,
                      "happened_at": microseconds(each.get("create_time"))}
        if isinstance(given, dict) and name and each.get("valid") is not False and each.get("assessment_id") not in overridden:
            emit.event(record, "feedback", place=place, **facts, value=written(given.get("value")),
                       content=written(each.get("rationale")), call_id=written(each.get("span_id")) or trace.trace_id,
                       tool=source.get("source_type") if isinstance(source, dict) else None)
        else:
            emit.event(record, "log", place=place, **facts, tool="assessment", arguments=texts(each))


FORMAT = Format(name="mlflow", history="once", claims=claims, read=read, sample=sample("mlflow.jsonl"), rank=25)
