"""Langfuse: observations of the blob export (JSON lines, CSV, Parquet; with their trace inline or not), traces and
observations of its APIs and of the UI's download, one a record or many in one document.

Sees: GENERATION and TOOL observations (old SDKs log tools as SPAN), sessions and users of a trace inline or beside it, level
ERROR, model, token counts, declared tools, scores inside a trace; rows exported again after an update. A trace without its
observations gives the link to its session.
Does not see: media, prices, prompt versions; what a download leaves out for its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats.envelope import known_service
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.langfuse_scores import score
from extractors.formats.message_parts import loaded, written
from extractors.formats.platform_spans import PlatformSpan, alias, link, texts
from extractors.formats.platform_story import tell_all
from extractors.formats.samples import sample
from extractors.formats.sampling import of_completion, sampling

_MODELS = ("GENERATION",)
_TYPES = ("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
_KEPT = ("metadata", "tags", "release", "version", "environment", "prompt_name", "promptName")
_CONTENT = ("input.", "output.", "llm.input_messages", "llm.output_messages", "llm.prompts", "gen_ai.input", "gen_ai.output",
            "gen_ai.prompt", "gen_ai.completion", "langfuse.observation.input", "langfuse.observation.output")
_CALL_IDS = ("tool_call_id", "toolCallId", "gen_ai.tool.call.id")


def claims(head: Head) -> bool:
    """Observations, traces, or documents that hold them, in Langfuse's names."""
    first = head.first
    inner: list[Any] = next((first[key] for key in ("data", "observations") if isinstance(first.get(key), list)), [])
    return any(_is_observation(each) or _is_trace(each) for each in (first, first.get("trace"), *inner[:1]))


def _is_observation(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in _TYPES and (
        {"id", "trace_id", "start_time"} <= value.keys() or {"id", "traceId", "startTime"} <= value.keys())


def _is_trace(value: Any) -> bool:
    return isinstance(value, dict) and {"id", "timestamp", "name"} <= value.keys() and not _is_observation(value) and (
        {"session_id", "project_id", "user_id"} <= value.keys() or {"sessionId", "userId"} <= value.keys()) and (
        "bookmarked" in value or "observations" in value or "htmlPath" in value)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All observations of the file first, since files are not ordered; then each conversation in the order of time."""
    spans: list[PlatformSpan] = []
    links: set[tuple[str, str]] = set()
    for record in records:
        n_before = len(spans), len(emit.events)
        with emit.guarded(record):
            spans += list(_spans(record, record.value, emit, links))
            if (len(spans), len(emit.events)) == n_before:
                emit.reject(record, "no_observation", "the record holds neither a trace nor observations; leave it out")
    tell_all(spans, emit, links)


def _spans(record: LogRecord, value: Any, emit: Emit, links: set[tuple[str, str]]) -> Iterator[PlatformSpan]:
    """The spans of a record: an observation, a trace with observations or without, a page of either."""
    if not isinstance(value, dict):
        return
    if isinstance(value.get("data"), list):
        for each in value["data"]:
            yield from _spans(record, each, emit, links)
    elif isinstance(value.get("trace"), dict):
        inner = value["trace"].get("observations")
        yield from _trace(record, value["trace"], _merged(inner, value.get("observations")), emit)
    elif isinstance(value.get("observations"), list) and "type" not in value:
        yield from _trace(record, value, _merged(value["observations"]), emit)
    elif (_get(value, "trace_id")) and value.get("id"):
        yield _span(record, value, emit)
    elif value.get("id") and "timestamp" in value:
        _trace_alone(record, value, emit, links)


def _merged(*lists: Any) -> list[Row]:
    """Observations by id: a download lists them twice, once without input and output."""
    found: dict[Any, Row] = {}
    for each in (each for values in lists if isinstance(values, list) for each in values if isinstance(each, dict)):
        told = {key: value for key, value in each.items() if value is not None}
        found[each.get("id")] = {**found.get(each.get("id"), {}), **told}
    return list(found.values())


def _trace(record: LogRecord, trace: Row, observations: list[Row], emit: Emit) -> Iterator[PlatformSpan]:
    """A trace is the span around its observations."""
    trace_id = str(trace.get("id") or record.record_id[:16])
    shared = {key: trace[key] for key in ("sessionId", "session_id", "userId", "user_id") if trace.get(key)}
    around = _span(record, {**trace, "trace_id": trace_id, "type": "TRACE", "start_time": trace.get("timestamp")}, emit)
    members = [_span(record, {**shared, "traceId": trace_id, **each}, emit) for each in observations]
    around.ended_at = max((each.ended_at for each in members if each.ended_at is not None), default=None)
    known = {each.span_id for each in members}
    for each in members:
        each.parent_id = each.parent_id if each.parent_id in known else around.span_id
    yield around
    yield from members
    for each in trace.get("scores") or ():
        if isinstance(each, dict):
            score(record, {**each, "traceId": each.get("traceId") or trace_id}, emit, around.session_id or alias(trace_id))


def _trace_alone(record: LogRecord, trace: Row, emit: Emit, links: set[tuple[str, str]]) -> None:
    """A trace whose observations are in other files: its session, and what it says beside them."""
    trace_id, session_id = str(trace["id"]), _text(_get(trace, "session_id"))
    if session_id is not None:
        link(emit, record, session_id, trace_id, links)
    span = _span(record, {**trace, "trace_id": trace_id, "type": "TRACE", "start_time": trace.get("timestamp")}, emit)
    emit.event(record, "log", place=f"{trace_id}/log", session_id=session_id or alias(trace_id), happened_at=span.started_at,
               tool="TRACE", name=span.identity, service=span.service, is_error=span.is_error,
               arguments=texts({"name": span.name, **span.attributes}),
               content=written({"input": span.asked, "output": span.answered}))


def _span(record: LogRecord, value: Row, emit: Emit) -> PlatformSpan:
    """One observation; the blob export writes nothing as `""`."""
    kind, level = value.get("type"), value.get("level")
    metadata = loaded(value.get("metadata"))
    facts: Row = metadata if isinstance(metadata, dict) else {}
    attributes = facts["attributes"] if isinstance(facts.get("attributes"), dict) else facts
    model = _text(_get(value, "provided_model_name")) or _text(value.get("model"))
    ended_at = microseconds(_get(value, "end_time"))
    return PlatformSpan(
        record=record, trace_id=str(_get(value, "trace_id") or ""), span_id=str(value.get("id") or record.record_id[:16]),
        kind="model" if kind in _MODELS else "tool" if kind == "TOOL" else "other", name=_tool_name(value, attributes),
        parent_id=_text(_get(value, "parent_observation_id")),
        session_id=(emit.envelope.mapped("session_id", value) or _text(_get(value, "session_id"))
                    or emit.envelope.session_id(facts)),
        identity=_text(_get(value, "user_id")), service=_service(value, facts, emit),
        started_at=microseconds(_get(value, "start_time")), ended_at=ended_at, asked=_payload(value.get("input")),
        answered=_payload(value.get("output")), tools=_tools(_get(value, "tool_definitions")),
        call_id=next((str(attributes[key]) for key in _CALL_IDS if attributes.get(key)), None), model=model,
        usage=_drawn(value) if kind in _MODELS else None,
        is_error=None if level is None else True if level == "ERROR" else False if ended_at is not None else None,
        problem=(_text(_get(value, "status_message")) or "error") if level == "ERROR" else None,
        updated_at=microseconds(_get(value, "updated_at")), label=str(kind) if kind else None,
        attributes={**{key: loaded(value[key]) for key in _KEPT if value.get(key)}, "metadata": _beside(value, metadata)})


def _beside(value: Row, metadata: Any) -> Any:
    """Metadata without the attributes that input and output were made of."""
    inner = metadata.get("attributes") if isinstance(metadata, dict) else None
    if not isinstance(inner, dict) or (value.get("input") is None and value.get("output") is None):
        return metadata
    return {**metadata, "attributes": {key: each for key, each in inner.items() if not key.startswith(_CONTENT)}}


def _tool_name(value: Row, attributes: Row) -> str | None:
    """Name of the tool: some integrations put words before it."""
    stated = attributes.get("gen_ai.tool.name", attributes.get("tool.name"))
    name = _text(stated) or _text(value.get("name"))
    return name.removeprefix("execute_tool ") if name and value.get("type") == "TOOL" else name


def _service(value: Row, metadata: Row, emit: Emit) -> str | None:
    resource = metadata.get("resourceAttributes")
    stated = resource.get("service.name") if isinstance(resource, dict) else None
    return emit.envelope.service(value) or known_service(stated)


def _payload(value: Any) -> Any:
    return None if value == "" else value


def _tools(value: Any) -> list[Any]:
    """Declared tools: an object of JSON texts by name, or a list."""
    inner = loaded(value)
    found = list(inner.values()) if isinstance(inner, dict) else inner if isinstance(inner, list) else []
    return [loaded(each) for each in found]


def _drawn(value: Row) -> Row | None:
    """Token counts, and how the answer was drawn."""
    counts = _usage(loaded(_get(value, "usage_details")) or value.get("usage"))
    return {**(counts or {}), **of_completion(loaded(value.get("output"))),
            **sampling(loaded(_get(value, "model_parameters")))} or None


def _usage(stated: Any) -> Row | None:
    """Token counts; Langfuse counts cached and reasoning tokens beside input and output, unless the total says otherwise."""
    if not isinstance(stated, dict):
        return None
    counts = {key: int(value) for key, value in stated.items()
              if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0}
    if not counts.get("input") and not counts.get("output"):
        return None
    found, beside = {}, counts.get("input", 0) + counts.get("output", 0) < counts.get("total", 0)
    for ours, name in (("input_tokens", "input"), ("output_tokens", "output")):
        more = sum(count for key, count in counts.items() if key.startswith((f"{name}_", f"{name}."))) if beside else 0
        if name in counts or more:
            found[ours] = counts.get(name, 0) + more
    for ours, mark in (("cached_tokens", "cache"), ("reasoning_tokens", "reasoning")):
        part = sum(count for key, count in counts.items() if mark in key and "creation" not in key)
        if part:
            found[ours] = part
    return found


def _get(value: Row, name: str) -> Any:
    """A field under its name in the export, else in the API."""
    if name in value:
        return value[name]
    head, *rest = name.split("_")
    return value.get(head + "".join(part.title() for part in rest))


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "") and isinstance(value, (str, int)) else None


FORMAT = Format(name="langfuse", history="once", claims=claims, read=read, sample=sample("langfuse.jsonl"), rank=25)
