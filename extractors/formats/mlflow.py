"""MLflow traces, schema 3 and 2: a trace with its spans and assessments a record, or rows of `search_traces()`.

Sees: CHAT_MODEL, LLM and TOOL spans, session and user of the trace's metadata, token counts, declared tools, exceptions,
chunks of a stream whose answer was not put together, feedback among the assessments (an assessment that a later one overrides
is left out).
Does not see: expectations as feedback (they become log events), metadata beyond the 250 characters that schema 2 keeps.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.model_payloads import loaded
from extractors.formats.platform_spans import Kind, PlatformDialect, PlatformSpan, alias, into_trace, read_spans, span_of, texts
from extractors.formats.sampling import of_completion, parameters_of, sampling, tokens
from extractors.formats.values import object_of, objects_in, parsed_json, written

_CALL_IDS = ("tool_call_id", "gen_ai.tool.call.id", "mlflow.tool.call_id")
_CHUNK = "mlflow.chunk.item."
_DIALECT = PlatformDialect(
    trace_id=(), span_id=("span_id", "context.span_id", "name"), parent_id=("parent_span_id", "parent_id"),
    started_at=("start_time_unix_nano", "start_time"), ended_at=("end_time_unix_nano", "end_time"), name=("name",))
_KINDS: dict[str, Kind] = {"LLM": "model", "CHAT_MODEL": "model", "TOOL": "tool"}


def claims(head: Head) -> bool:
    """Return whether the first object is a trace with info and spans, as a whole or as a row."""
    info, spans = _parts(head.first) or ({}, [])
    first = spans[0] if spans and isinstance(spans[0], dict) else {}
    return not {"trace_id", "request_id"}.isdisjoint(info) and "attributes" in first and not {
        "start_time_unix_nano", "start_time"}.isdisjoint(first)


def _parts(value: Any) -> tuple[Row, list[Any]] | None:
    if not isinstance(value, dict):
        return None
    info, data = loaded(value.get("info")), loaded(value.get("data"))
    if isinstance(info, dict) and isinstance(data, dict) and isinstance(spans := loaded(data.get("spans")), list):
        return info, spans
    spans = loaded(value.get("spans"))
    is_trace = "trace_id" in value or "request_id" in value
    return (value, spans) if is_trace and "trace_metadata" in value and isinstance(spans, list) else None


def read(records: LogRecords, emit: Emit) -> None:
    """All traces of the file, then each conversation in the order of time."""
    read_spans(records, emit, lambda record: _trace(record, emit), "no_trace",
               "the record is no trace with info and spans; leave it out or export it again")


def _trace(record: LogRecord, emit: Emit) -> list[PlatformSpan]:
    parts = _parts(record.value)
    if parts is None:
        return []
    info, spans = parts
    trace_id = str(info.get("trace_id") or info.get("request_id") or record.record_id[:16])
    metadata: Row = next((each for key in ("trace_metadata", "request_metadata")
                          if isinstance(each := loaded(info.get(key)), dict)), {})
    tags = loaded(info.get("tags"))
    name = object_of(tags).get("mlflow.traceName")
    session_id = emit.envelope.mapped("session_id", info) or metadata.get("mlflow.trace.session")
    around = PlatformSpan(
        record=record, trace_id=trace_id, span_id=trace_id, kind="other", name=name if isinstance(name, str) else None,
        label="TRACE", session_id=str(session_id) if session_id else None, identity=metadata.get("mlflow.trace.user"),
        service=emit.envelope.service(tags), started_at=microseconds(info.get("request_time", info.get("timestamp_ms"))),
        input=None if spans else metadata.get("mlflow.traceInputs", info.get("request")),
        output=None if spans else metadata.get("mlflow.traceOutputs", info.get("response")),
        attributes={"tags": tags, "metadata": metadata, "state": info.get("state", info.get("status"))})
    listed = objects_in(loaded(info.get("assessments")))
    overridden = {each["overrides"] for each in listed if isinstance(each.get("overrides"), str)}
    for number, each in enumerate(listed):
        given = each.get("feedback")
        place = f"assessment/{each.get('assessment_id') or number}"
        name = written(each.get("assessment_name", each.get("name")))
        facts: Row = {"session_id": around.session_id or alias(around.trace_id), "name": name,
                      "happened_at": microseconds(each.get("create_time"))}
        if isinstance(given, dict) and name and each.get("valid") is not False and each.get("assessment_id") not in overridden:
            emit.event(record, "feedback", place=place, **facts, value=written(given.get("value")),
                       content=written(each.get("rationale")), call_id=written(each.get("span_id")) or around.trace_id,
                       tool=object_of(each.get("source")).get("source_type"))
        else:
            emit.event(record, "log", place=place, **facts, tool="assessment", arguments=texts(each))
    return into_trace(around, [_span(record, each, around) for each in spans if isinstance(each, dict)])


def _span(record: LogRecord, span: Row, trace: PlatformSpan) -> PlatformSpan:
    logged = object_of(span.get("attributes"))
    kind = _json(logged.get("mlflow.spanType", span.get("span_type")))
    input_text, output_text = logged.get("mlflow.spanInputs"), logged.get("mlflow.spanOutputs")
    request, response = _json(input_text), _json(output_text)
    events = [each for each in span.get("events") or () if isinstance(each, dict)]
    numbered = [(int(name), each.get("attributes")) for each in events if str(each.get("name")).startswith(_CHUNK)
                and (name := str(each["name"]).removeprefix(_CHUNK)).isdecimal()]   # chunks of a stream
    chunks = [chunk for _, chunk in sorted(numbered, key=lambda each: each[0]) if isinstance(chunk, dict)]
    streamed = [_json(value) for chunk in chunks for value in chunk.values()] or None
    failed, problem = _failure(span, events)
    call_id = next((_json(logged[key]) for key in _CALL_IDS if logged.get(key)), None)
    label = kind if isinstance(kind, str) else None

    def of_model() -> Row:
        places = (response, request, _json(logged.get("mlflow.llm.model")), _json(logged.get("mlflow.modelId")))
        models = (place.get("model") if isinstance(place, dict) else place for place in places)
        counts = tokens(_json(logged.get("mlflow.chat.tokenUsage"))) or tokens(object_of(response).get("usage")) or {}
        stated = {key: _json(value) for key, value in parameters_of(logged).items()}
        chosen = sampling(_json(logged.get("invocation_params")), stated, request)
        return {"model": next((name for name in models if isinstance(name, str)), None),
                "usage": {**counts, **of_completion(response), **chosen} or None}

    return span_of(
        record, span, _DIALECT, of_model, trace_id=trace.trace_id, kind=_KINDS.get(label or "", "other"), label=label,
        session_id=trace.session_id, identity=trace.identity, service=trace.service,
        input=None if request is None else input_text, output=streamed if response is None else output_text,
        tools=_json(logged.get("mlflow.chat.tools")), call_id=str(call_id) if call_id else None, is_error=failed,
        problem=problem)


def _json(text: Any) -> Any:
    return parsed_json(text, text) if isinstance(text, str) else text


def _failure(span: Row, events: list[Row]) -> tuple[bool | None, str | None]:
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else span.get("status_code")
    if code not in ("STATUS_CODE_ERROR", "ERROR", 2):
        return (False if code in ("STATUS_CODE_OK", "OK", 1) else None), None
    exception = next((each["attributes"].get("exception.message") for each in events
                 if each.get("name") == "exception" and isinstance(each.get("attributes"), dict)), None)
    stated = status.get("message") if isinstance(status, dict) else span.get("status_message")
    return True, written(exception or stated) or "error"


FORMAT = Format(name="mlflow", history="traces", claims=claims, read=read, sample=sample("mlflow.jsonl"), rank=25)
