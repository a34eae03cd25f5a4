"""Traces of the OpenAI Agents SDK: traces and spans, a record each, or batches of them (`{"data": […]}`).

Sees: generation and function spans, the group of a trace as its session, errors, token counts. Agents, hand-offs, guardrails
and the rest are log events.
Does not see: what a `response` span was asked and answered where it holds the response's id alone (its time and token counts
are kept), declared tools (the SDK logs their names).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.message_parts import written
from extractors.formats.platform_spans import PlatformSpan, alias, link, texts
from extractors.formats.platform_story import tell_all
from extractors.formats.samples import sample
from extractors.formats.sampling import of_completion, of_items, sampling
from extractors.formats.usage import tokens

_KINDS = {"generation": "model", "response": "model", "function": "tool"}
_PAYLOADS = ("input", "output", "usage", "type", "response")


def claims(head: Head) -> bool:
    """The first object is a trace or a span of it."""
    return any(each.get("object") in ("trace", "trace.span") for each in (*_items(head.first),))


def _items(value: Any) -> Iterator[Row]:
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        yield from (each for each in value["data"] if isinstance(each, dict))
    elif isinstance(value, dict):
        yield value


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All traces and spans of the file first; then each conversation in the order of time."""
    spans: list[tuple[LogRecord, Row]] = []
    traces: dict[str, tuple[LogRecord, Row]] = {}
    for record in records:
        n_before = len(spans) + len(traces)
        for item in _items(record.value):
            if item.get("object") == "trace" and item.get("id"):
                if str(item["id"]) in traces:
                    emit.reject(record, "duplicate_trace", "the trace came before; nothing to mend")
                else:
                    traces[str(item["id"])] = (record, item)
            elif item.get("object") == "trace.span" and item.get("id"):
                spans.append((record, item))
        if len(spans) + len(traces) == n_before and not any(rejected is record for rejected, _, _ in emit.rejects[-1:]):
            emit.reject(record, "no_span", "the record is neither a trace nor a span of one; leave it out")
    told: list[PlatformSpan] = []
    for record, item in spans:
        with emit.guarded(record):
            told.append(_span(record, item, traces.get(str(item.get("trace_id")), (None, {}))[1], emit))
    links: set[tuple[str, str]] = set()
    tell_all(told, emit, links)
    for trace_id, (record, item) in traces.items():
        with emit.guarded(record):
            _trace(record, trace_id, item, emit, links)


def _trace(record: LogRecord, trace_id: str, trace: Row, emit: Emit, links: set[tuple[str, str]]) -> None:
    session_id = _session(trace, emit)
    if session_id is not None:
        link(emit, record, session_id, trace_id, links)
    emit.event(record, "log", place=f"{trace_id}/log", session_id=session_id or alias(trace_id), tool="trace",
               arguments=texts({"name": trace.get("workflow_name"), "metadata": trace.get("metadata")}))


def _session(trace: Row, emit: Emit) -> str | None:
    stated = emit.envelope.mapped("session_id", trace) or trace.get("group_id")
    return str(stated) if stated not in (None, "") else emit.envelope.session_id(trace)


def _span(record: LogRecord, span: Row, trace: Row, emit: Emit) -> PlatformSpan:
    data = span["span_data"] if isinstance(span.get("span_data"), dict) else {}
    kind, error = data.get("type"), span.get("error")
    response = data["response"] if isinstance(data.get("response"), dict) else {}
    ended_at = microseconds(span.get("ended_at"))
    told: Any = _KINDS.get(kind, "other") if isinstance(kind, str) else "other"
    return PlatformSpan(
        record=record, trace_id=str(span.get("trace_id") or ""), span_id=str(span["id"]), kind=told,
        parent_id=written(span.get("parent_id")) or None, name=written(data.get("name")), session_id=_session(trace, emit),
        identity=emit.envelope.identity(trace), service=emit.envelope.service(trace),
        started_at=microseconds(span.get("started_at")), ended_at=ended_at, asked=data.get("input"),
        answered=data.get("output") if data.get("output") is not None else response or None, tools=response.get("tools"),
        call_id=written(data.get("call_id")) or None, model=written(data.get("model") or response.get("model")),
        usage=_usage(data, response) if told == "model" else None,
        is_error=True if error else False if ended_at is not None else None, problem=_problem(error), label=written(kind),
        attributes={key: value for key, value in data.items() if key not in _PAYLOADS})


def _usage(data: Row, response: Row) -> Row | None:
    output = response.get("output")
    return {**(tokens(data.get("usage") or response.get("usage")) or {}), **of_completion(response),
            **of_items(output if isinstance(output, list) else []), **sampling(data.get("model_config"), response)} or None


def _problem(error: Any) -> str | None:
    """What went wrong, in the tool's words where they are there."""
    if not error:
        return None
    data = error.get("data") if isinstance(error, dict) else None
    said = data.get("error") if isinstance(data, dict) else None
    return written(said or (error.get("message") if isinstance(error, dict) else error)) or "error"


FORMAT = Format(name="openai_agents", history="once", claims=claims, read=read, sample=sample("openai_agents.jsonl"), rank=25)
