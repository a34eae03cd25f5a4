"""W&B Weave: calls of ops, and feedback on them.

Sees: ops that ask a model (by their name, their `kind`, or their payload) and tools, threads, exceptions, token counts,
declared tools, reactions, notes and annotations inside a call or as records of their own. A deleted call is a log event.
Does not see: what lies behind `weave:///` references (named in `lossy`), and feedback on a call inside a trace that lies in
another file (on the trace's first call it is seen).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.message_parts import loaded, written
from extractors.formats.platform_spans import PlatformSpan, alias, link
from extractors.formats.platform_story import tell_all
from extractors.formats.samples import sample
from extractors.formats.sampling import of_completion, sampling
from extractors.formats.usage import tokens

_MODEL_OPS = ("chat.completions.create", "chat.completions.parse", "responses.create", "messages.create", "generate_content",
              "completions.create", "litellm.completion", "litellm.acompletion")
_KINDS = {"llm": "model", "tool": "tool"}
_NOT_ARGUMENTS = ("self",)
_CALL_KEYS = frozenset({"op_name", "started_at", "inputs"})


def claims(head: Head) -> bool:
    """The first object is a call of an op, or feedback on one."""
    return head.first.keys() >= _CALL_KEYS or {"weave_ref", "feedback_type"} <= head.first.keys()


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All calls of the file first, since files are not ordered; then each conversation in the order of time."""
    spans: list[PlatformSpan] = []
    given: list[tuple[LogRecord, str, Row]] = []
    for record in records:
        value = record.value if isinstance(record.value, dict) else {}
        with emit.guarded(record):
            if value.keys() >= _CALL_KEYS and value.get("id"):
                spans.append(_span(record, value, emit))
                given += [(record, str(value["id"]), each) for each in _inside(value)]
            elif "weave_ref" in value and "feedback_type" in value:
                given.append((record, str(value["weave_ref"]).rpartition("/")[2], value))
            else:
                emit.reject(record, "no_call", "the record is neither a call with an op nor feedback on one; leave it out")
    tell_all(spans, emit)
    _feedback(given, spans, emit)


def _inside(call: Row) -> list[Row]:
    """Feedback that a call's summary holds."""
    summary = call.get("summary")
    inner = summary.get("weave") if isinstance(summary, dict) else None
    found = inner.get("feedback") if isinstance(inner, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _span(record: LogRecord, call: Row, emit: Emit) -> PlatformSpan:
    inputs, attributes, summary = (loaded(call.get(key)) for key in ("inputs", "attributes", "summary"))
    inputs = {key: value for key, value in inputs.items() if key not in _NOT_ARGUMENTS} if isinstance(inputs, dict) else inputs
    name = str(call["op_name"]).rpartition("/")[2].partition(":")[0]
    kind = _kind(name, inputs, attributes)
    exception = call.get("exception") or None
    ended_at = microseconds(call.get("ended_at"))
    return PlatformSpan(
        record=record, trace_id=str(call.get("trace_id") or call["id"]), span_id=str(call["id"]), kind=kind, name=name,
        parent_id=written(call.get("parent_id")) or None,
        session_id=emit.envelope.mapped("session_id", call) or written(call.get("thread_id")) or None,
        identity=emit.envelope.identity(attributes), service=emit.envelope.service(attributes),
        started_at=microseconds(call.get("started_at")), ended_at=ended_at, asked=inputs, answered=call.get("output"),
        model=_model(inputs, call.get("output")) if kind == "model" else None,
        usage=({**(_usage(summary) or {}), **of_completion(loaded(call.get("output"))),
                **sampling(inputs, inputs.get("config") if isinstance(inputs, dict) else None)} or None)
        if kind == "model" else None,
        is_error=True if exception else False if ended_at is not None and "exception" in call else None,
        problem=_last_line(exception), label=kind,
        attributes={"op_name": call["op_name"], "attributes": attributes, "display_name": call.get("display_name"),
                    "deleted_at": call.get("deleted_at"), "exception": exception})


def _kind(name: str, inputs: Any, attributes: Any) -> Any:
    stated = attributes.get("kind") if isinstance(attributes, dict) else None
    if stated in _KINDS:
        return _KINDS[stated]
    asks = isinstance(inputs, dict) and (isinstance(inputs.get("messages"), list) or "contents" in inputs) and "model" in inputs
    return "model" if name.endswith(_MODEL_OPS) or asks else "other"


def _last_line(exception: Any) -> str | None:
    """What a traceback says in the end."""
    text = written(exception)
    return text.rstrip().rpartition("\n")[2] or text if text else None


def _model(inputs: Any, output: Any) -> str | None:
    named = (place.get("model") for place in (output, inputs) if isinstance(place, dict))
    return next((name for name in named if isinstance(name, str)), None)


def _usage(summary: Any) -> Row | None:
    """Token counts of all models that the call asked."""
    by_model = summary.get("usage") if isinstance(summary, dict) else None
    found: Row = {}
    for counts in by_model.values() if isinstance(by_model, dict) else ():
        for key, count in (tokens(counts) or {}).items():
            found[key] = found.get(key, 0) + count
    return found or None


def _feedback(given: list[tuple[LogRecord, str, Row]], spans: list[PlatformSpan], emit: Emit) -> None:
    """Reactions, notes and annotations, on the session of the call's trace."""
    stated = {span.trace_id: span.session_id for span in spans if span.session_id}
    of_call = {span.span_id: stated.get(span.trace_id, alias(span.trace_id)) for span in spans}
    links: set[tuple[str, str]] = set()
    for span in spans:
        if span.parent_id is None and span.span_id != span.trace_id:    # its feedback may lie in another file
            link(emit, span.record, of_call[span.span_id], span.span_id, links)
    seen: set[str] = set()
    for number, (record, call_id, value) in enumerate(given):
        own = str(value.get("id") or f"{call_id}/{number}")
        if own in seen:
            emit.reject(record, "duplicate_feedback", "the feedback came before, with its call; nothing to mend")
            continue
        seen.add(own)
        with emit.guarded(record):
            name, answer = _answer(value)
            emit.event(record, "feedback", place=f"feedback/{own}", session_id=of_call.get(call_id, alias(call_id)), name=name,
                       happened_at=microseconds(value.get("created_at")), value=answer, call_id=call_id,
                       tool=written(value.get("creator")))


def _answer(value: Row) -> tuple[str, str | None]:
    """What was asked and answered; a type is `wandb.reaction.1`, `wandb.annotation.<name>` …"""
    kind, payload = str(value.get("feedback_type")), loaded(value.get("payload"))
    name = kind.removeprefix("wandb.").removeprefix("annotation.").removeprefix("runnable.").removesuffix(".1")
    held = next((payload[key] for key in ("emoji", "note", "value", "output") if key in payload), payload) if isinstance(
        payload, dict) else payload
    return name, written(held)


FORMAT = Format(name="weave", history="once", claims=claims, read=read, sample=sample("weave.jsonl"), rank=25)
