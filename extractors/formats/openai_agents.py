"""Traces of the OpenAI Agents SDK: traces and spans, a record each, or batches of them (`{"data": […]}`).

Sees: generation and function spans, the group of a trace as its session, errors, token counts. Agents, hand-offs, guardrails
and the rest are log events.
Does not see: what a `response` span was asked and answered where it holds the response's id alone (its time and token counts
are kept), declared tools (the SDK logs their names).
"""

from __future__ import annotations

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.platform_spans import PlatformDialect, PlatformSpan, alias, link, span_of, tell_all, texts
from extractors.formats.sampling import of_completion, of_items, sampling, tokens
from extractors.formats.values import object_of, objects_of, written

_PAYLOADS = ("input", "output", "usage", "type", "response")
_DIALECT = PlatformDialect(
    trace_id=("trace_id",), span_id=("id",), parent_id=("parent_id",), started_at=("started_at",), ended_at=("ended_at",),
    kind=("span_data.type",), kinds={"generation": "model", "response": "model", "function": "tool"}, name=("span_data.name",),
    call_id=("span_data.call_id",))


def claims(head: Head) -> bool:
    """Return whether the first object is a trace or a span of it."""
    return any(each.get("object") in ("trace", "trace.span") for each in objects_of(head.first))


def read(records: LogRecords, emit: Emit) -> None:
    """All traces and spans of the file first; then each conversation in the order of time."""
    spans: list[tuple[LogRecord, Row]] = []
    traces: dict[str, tuple[LogRecord, Row]] = {}
    for record in records:
        n_before = len(spans) + len(traces)
        for item in objects_of(record.value):
            if item.get("object") == "trace" and item.get("id"):
                if str(item["id"]) in traces:
                    emit.reject(record, "duplicate_trace", "the trace came before; no action needed")
                else:
                    traces[str(item["id"])] = (record, item)
            elif item.get("object") == "trace.span" and item.get("id"):
                spans.append((record, item))
        if len(spans) + len(traces) == n_before and not any(rejected is record for rejected, _, _ in emit.rejects[-1:]):
            emit.reject(record, "no_span", "the record is neither a trace nor a span of one; leave it out")
    platform_spans: list[PlatformSpan] = []
    for record, item in spans:
        with emit.guarded(record):
            platform_spans.append(_span(record, item, traces.get(str(item.get("trace_id")), (None, {}))[1], emit))
    links: set[tuple[str, str]] = set()
    tell_all(platform_spans, emit, links)
    for trace_id, (record, item) in traces.items():
        with emit.guarded(record):
            session_id = _session(item, emit)
            if session_id is not None:
                link(emit, record, session_id, trace_id, links)
            emit.event(record, "log", place=f"{trace_id}/log", session_id=session_id or alias(trace_id), tool="trace",
                       arguments=texts({"name": item.get("workflow_name"), "metadata": item.get("metadata")}))


def _session(trace: Row, emit: Emit) -> str | None:
    stated = emit.envelope.mapped("session_id", trace) or trace.get("group_id")
    return str(stated) if stated not in (None, "") else emit.envelope.session_id(trace)


def _span(record: LogRecord, span: Row, trace: Row, emit: Emit) -> PlatformSpan:
    data, error = object_of(span.get("span_data")), span.get("error")
    response = object_of(data.get("response"))
    ended_at = microseconds(span.get("ended_at"))
    model, output = written(data.get("model") or response.get("model")), data.get("output")
    message = object_of(object_of(error).get("data")).get("error")   # in the tool's words where they are there
    problem = written(message or (error.get("message") if isinstance(error, dict) else error)) or "error"
    return span_of(
        record, span, _DIALECT, lambda: {"model": model, "usage": {
            **(tokens(data.get("usage") or response.get("usage")) or {}), **of_completion(response),
            **of_items(response.get("output")), **sampling(data.get("model_config"), response)} or None},
        model=model, session_id=_session(trace, emit), identity=emit.envelope.identity(trace),
        service=emit.envelope.service(trace), input=data.get("input"),
        output=output if output is not None else response or None, tools=response.get("tools"),
        is_error=True if error else False if ended_at is not None else None, problem=problem if error else None,
        attributes={key: value for key, value in data.items() if key not in _PAYLOADS})


FORMAT = Format(name="openai_agents", history="traces", claims=claims, read=read, sample=sample("openai_agents.jsonl"), rank=25)
