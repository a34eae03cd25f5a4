"""Langfuse: observations of the blob export (JSON lines, CSV, Parquet; with their trace inline or not), traces and
observations of its APIs and of the UI's download, one a record or many in one document.

Sees: GENERATION and TOOL observations (old SDKs log tools as SPAN), sessions and users of a trace inline or beside it, level
ERROR, model, token counts, declared tools, scores inside a trace; rows exported again after an update. A trace without its
observations gives the link to its session. In tables of the UI (CSV), columns that are called after scores are feedback.
Does not see: media, prices, prompt versions; what a download leaves out for its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.envelope import known_service
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.langfuse_scores import score
from extractors.formats.model_payloads import loaded
from extractors.formats.platform_spans import PlatformDialect, PlatformSpan, alias, into_trace, link, read_spans, span_of, texts
from extractors.formats.sampling import of_completion, sampling
from extractors.formats.values import object_of, opened, written

_TYPES = ("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
_KEPT = ("metadata", "tags", "release", "version", "environment", "prompt_name", "promptName")
_CONTENT = ("input.", "output.", "llm.input_messages", "llm.output_messages", "llm.prompts", "gen_ai.input", "gen_ai.output",
            "gen_ai.prompt", "gen_ai.completion", "langfuse.observation.input", "langfuse.observation.output")
_LISTS = ("input", "output", "metadata", "tags", "traceTags", "toolCalls", "toolCallNames")
_CALL_IDS = ("tool_call_id", "toolCallId", "gen_ai.tool.call.id")
_DIALECT = PlatformDialect(
    trace_id=("trace_id", "traceId"), span_id=("id",), parent_id=("parent_observation_id", "parentObservationId"),
    started_at=("start_time", "startTime"), ended_at=("end_time", "endTime"), updated_at=("updated_at", "updatedAt"),
    kind=("type",), kinds={"GENERATION": "model", "TOOL": "tool"}, identity=("user_id", "userId"), input=("input",),
    output=("output",))


def claims(head: Head) -> bool:
    """Observations, traces, or documents that hold them, in Langfuse's names."""
    first = head.first
    inner: list[Any] = next((first[key] for key in ("data", "observations") if isinstance(first.get(key), list)), [])
    if any(map(is_table_of_traces, (first, *inner[:1]))):   # `langfuse_traces` reads it
        return False
    return any(_is_observation(each) or _is_trace(each) for each in (first, first.get("trace"), *inner[:1]))


def _is_observation(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in _TYPES and (
        {"id", "trace_id", "start_time"} <= value.keys() or {"id", "traceId", "startTime"} <= value.keys())


def _is_trace(value: Any) -> bool:
    return isinstance(value, dict) and {"id", "timestamp", "name"} <= value.keys() and not _is_observation(value) and (
        {"session_id", "project_id", "user_id"} <= value.keys() or {"sessionId", "userId"} <= value.keys()) and (
        "bookmarked" in value or "observations" in value or "htmlPath" in value)


def read(records: LogRecords, emit: Emit) -> None:
    """All observations of the file first, since files are not ordered; then each conversation in the order of time."""
    links: set[tuple[str, str]] = set()
    read_spans(records, emit, lambda record: _spans(record, record.value, emit, links), "no_observation",
               "the record holds neither a trace nor observations; leave it out", links)


def _spans(record: LogRecord, value: Any, emit: Emit, links: set[tuple[str, str]]) -> Iterator[PlatformSpan]:
    """Yield the spans of a record: an observation, a trace with observations or without, a page of either."""
    if not isinstance(value, dict):
        return
    if isinstance(value.get("data"), list):
        for each in value["data"]:
            yield from _spans(record, each, emit, links)
    elif isinstance(value.get("trace"), dict):
        inner = value["trace"].get("observations")
        yield from _trace(record, value["trace"], (inner, value.get("observations")), emit)
    elif isinstance(value.get("observations"), list) and "type" not in value:
        yield from _trace(record, value, (value["observations"],), emit)
    elif (_get(value, "trace_id")) and value.get("id"):
        yield _span(record, value, emit)
    elif value.get("id") and "timestamp" in value:
        span = trace_span(record, value, str(value["id"]), emit)   # its observations are in other files
        session_id = _text(_get(value, "session_id"))
        if session_id is not None:
            link(emit, record, session_id, span.trace_id, links)
        emit.event(record, "log", place=f"{span.trace_id}/log", session_id=session_id or alias(span.trace_id),
                   happened_at=span.started_at, tool="TRACE", name=span.identity, service=span.service, is_error=span.is_error,
                   arguments=texts({"name": span.name, **span.attributes}),
                   content=written({"input": span.input, "output": span.output}))


def is_table_of_traces(value: Any) -> bool:
    """Return whether a value is a trace as the UI's table holds it: without a project and without observations."""
    return isinstance(value, dict) and {"id", "timestamp", "bookmarked", "input", "output"} <= value.keys() and {
        "type", "project_id", "projectId", "observations", "htmlPath"}.isdisjoint(value)


def _column_scores(value: Row) -> list[Row]:
    """Return the scores of a row of the UI: a column each, called as the score is, which holds a list of its values."""
    if {"bookmarked", "traceTags"}.isdisjoint(value) or not {"project_id", "projectId"}.isdisjoint(value):
        return []
    named = ((name, opened(text)) for name, text in value.items() if isinstance(text, str) and name not in _LISTS)
    return [{"name": name, "value": each} for name, values in named if isinstance(values, list) for each in values
            if isinstance(each, (str, int, float))]


def trace_span(record: LogRecord, trace: Row, trace_id: str, emit: Emit) -> PlatformSpan:
    """Return the span that stands for a trace."""
    return _span(record, {**trace, "trace_id": trace_id, "type": "TRACE", "start_time": trace.get("timestamp")}, emit)


def _trace(record: LogRecord, trace: Row, lists: tuple[Any, ...], emit: Emit) -> Iterator[PlatformSpan]:
    """Yield the span of a trace, and those of its observations: a download lists them twice, once without input and output."""
    by_id: dict[Any, Row] = {}
    for each in (each for values in lists if isinstance(values, list) for each in values if isinstance(each, dict)):
        stated = {key: value for key, value in each.items() if value is not None}
        by_id[each.get("id")] = {**by_id.get(each.get("id"), {}), **stated}
    trace_id = str(trace.get("id") or record.record_id[:16])
    shared = {key: trace[key] for key in ("sessionId", "session_id", "userId", "user_id") if trace.get(key)}
    around = trace_span(record, trace, trace_id, emit)
    members = [_span(record, {**shared, "traceId": trace_id, **each}, emit) for each in by_id.values()]
    around.ended_at = max((each.ended_at for each in members if each.ended_at is not None), default=None)
    yield from into_trace(around, members)
    for each in trace.get("scores") or ():
        if isinstance(each, dict):
            score(record, {**each, "traceId": each.get("traceId") or trace_id}, emit, around.session_id or alias(trace_id))


def _span(record: LogRecord, value: Row, emit: Emit) -> PlatformSpan:
    """One observation; the blob export writes nothing as `""`."""
    level, ended_at = value.get("level"), microseconds(_get(value, "end_time"))
    metadata = loaded(value.get("metadata"))
    facts = object_of(metadata)
    attributes = facts["attributes"] if isinstance(facts.get("attributes"), dict) else facts
    if attributes is not facts and (value.get("input") is not None or value.get("output") is not None):
        metadata = {**facts, "attributes": {key: each for key, each in attributes.items() if not key.startswith(_CONTENT)}}
    model = _text(_get(value, "provided_model_name")) or _text(value.get("model"))
    name = _text(attributes.get("gen_ai.tool.name", attributes.get("tool.name"))) or _text(value.get("name"))
    if name and value.get("type") == "TOOL":   # some integrations put words before it
        name = name.removeprefix("execute_tool ")
    declared = loaded(_get(value, "tool_definitions"))   # an object of JSON texts by name, or a list
    declared = list(declared.values()) if isinstance(declared, dict) else declared if isinstance(declared, list) else []
    return span_of(
        record, value, _DIALECT, lambda: {"model": model, "usage": _drawn(value)}, name=name,
        session_id=(emit.envelope.mapped("session_id", value) or _text(_get(value, "session_id"))
                    or emit.envelope.session_id(facts)),
        service=emit.envelope.service(value) or emit.envelope.service(facts) or known_service(
            object_of(facts.get("resourceAttributes")).get("service.name")),
        tools=[loaded(each) for each in declared],
        rated={"scores": _column_scores(value) or (loaded(value.get("scores")) if value.get("type") != "TRACE" else None),
               "metadata": metadata},
        trace_name=_text(value.get("name") if value.get("type") == "TRACE" else _get(value, "trace_name")),
        call_id=next((str(attributes[key]) for key in _CALL_IDS if attributes.get(key)), None),
        is_error=None if level is None else True if level == "ERROR" else False if ended_at is not None else None,
        problem=(_text(_get(value, "status_message")) or "error") if level == "ERROR" else None,
        attributes={**{key: loaded(value[key]) for key in _KEPT if value.get(key)}, "metadata": metadata})


def _drawn(value: Row) -> Row | None:
    counts = _usage(loaded(_get(value, "usage_details")) or value.get("usage"))
    return {**counts, **of_completion(loaded(value.get("output"))), **sampling(loaded(_get(value, "model_parameters")))} or None


def _usage(stated: Any) -> Row:
    """Token counts; Langfuse counts cached and reasoning tokens apart from the others, unless the total says otherwise."""
    counts = {key: int(value) for key, value in object_of(stated).items()
              if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0}
    if not counts.get("input") and not counts.get("output"):
        return {}
    usage, is_additive = {}, counts.get("input", 0) + counts.get("output", 0) < counts.get("total", 0)
    for ours, name in (("input_tokens", "input"), ("output_tokens", "output")):
        more = sum(count for key, count in counts.items() if key.startswith((f"{name}_", f"{name}."))) if is_additive else 0
        if name in counts or more:
            usage[ours] = counts.get(name, 0) + more
    for ours, mark in (("cached_tokens", "cache"), ("reasoning_tokens", "reasoning")):
        part = sum(count for key, count in counts.items() if mark in key and "creation" not in key)
        if part:
            usage[ours] = part
    return usage


def _get(value: Row, name: str) -> Any:
    """Return a field under its name in the export, else in the API."""
    if name in value:
        return value[name]
    head, *rest = name.split("_")
    return value.get(head + "".join(part.title() for part in rest))


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "") and isinstance(value, (str, int)) else None


FORMAT = Format(name="langfuse", history="traces", claims=claims, read=read, sample=sample("langfuse.jsonl"), rank=25)
