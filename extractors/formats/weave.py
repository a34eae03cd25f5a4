"""W&B Weave: calls of ops, and feedback on them.

Sees: ops that ask a model (by their name, their `kind`, or their payload) and tools, threads, exceptions, token counts,
declared tools, reactions, notes and annotations inside a call or as records of their own. A deleted call is a log event.
Does not see: what lies behind `weave:///` references (named in `lossy`), and feedback on a call inside a trace that lies in
another file (on the trace's first call it is seen).
"""

from __future__ import annotations

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.model_payloads import loaded
from extractors.formats.platform_spans import Kind, PlatformDialect, PlatformSpan, alias, link, span_of, tell_all
from extractors.formats.sampling import of_completion, sampling, tokens
from extractors.formats.values import object_of, objects_in, written

_MODEL_OPS = ("chat.completions.create", "chat.completions.parse", "responses.create", "messages.create", "generate_content",
              "completions.create", "litellm.completion", "litellm.acompletion")
_KINDS: dict[object, Kind] = {"llm": "model", "tool": "tool"}
_CALL_KEYS = frozenset({"op_name", "started_at", "inputs"})
_DIALECT = PlatformDialect(
    trace_id=("trace_id", "id"), span_id=("id",), parent_id=("parent_id",), started_at=("started_at",), ended_at=("ended_at",))


def claims(head: Head) -> bool:
    """Return whether the first object is a call of an op, or feedback on one."""
    return head.first.keys() >= _CALL_KEYS or {"weave_ref", "feedback_type"} <= head.first.keys()


def read(records: LogRecords, emit: Emit) -> None:
    """All calls of the file first, since files are not ordered; then each conversation in the order of time."""
    spans: list[PlatformSpan] = []
    given: list[tuple[LogRecord, str, Row]] = []
    for record in records:
        value = record.value if isinstance(record.value, dict) else {}
        with emit.guarded(record):
            if value.keys() >= _CALL_KEYS and value.get("id"):
                spans.append(_span(record, value, emit))
                inside = object_of(object_of(value.get("summary")).get("weave")).get("feedback")
                given += [(record, str(value["id"]), each) for each in objects_in(inside)]
            elif "weave_ref" in value and "feedback_type" in value:
                given.append((record, str(value["weave_ref"]).rpartition("/")[2], value))
            else:
                emit.reject(record, "no_call", "the record is neither a call with an op nor feedback on one; leave it out")
    tell_all(spans, emit)
    stated = {span.trace_id: span.session_id for span in spans if span.session_id}
    of_call = {span.span_id: stated.get(span.trace_id, alias(span.trace_id)) for span in spans}
    links: set[tuple[str, str]] = set()
    for span in spans:
        if span.parent_id is None and span.span_id != span.trace_id:    # its feedback may lie in another file
            link(emit, span.record, of_call[span.span_id], span.span_id, links)
    feedback_ids: set[str] = set()
    for number, (record, call_id, value) in enumerate(given):
        own = str(value.get("id") or f"{call_id}/{number}")
        if own in feedback_ids:
            emit.reject(record, "duplicate_feedback", "the feedback came before, with its call; no action needed")
            continue
        feedback_ids.add(own)
        with emit.guarded(record):
            kind, answer = str(value.get("feedback_type")), loaded(value.get("payload"))
            if isinstance(answer, dict):
                answer = next((answer[key] for key in ("emoji", "note", "value", "output") if key in answer), answer)
            name = kind.removeprefix("wandb.").removeprefix("annotation.").removeprefix("runnable.").removesuffix(".1")
            emit.event(record, "feedback", place=f"feedback/{own}", session_id=of_call.get(call_id, alias(call_id)), name=name,
                       happened_at=microseconds(value.get("created_at")), value=written(answer), call_id=call_id,
                       tool=written(value.get("creator")))


def _span(record: LogRecord, call: Row, emit: Emit) -> PlatformSpan:
    inputs, attributes, summary = (loaded(call.get(key)) for key in ("inputs", "attributes", "summary"))
    inputs = {key: value for key, value in inputs.items() if key != "self"} if isinstance(inputs, dict) else inputs
    name = str(call["op_name"]).rpartition("/")[2].partition(":")[0]
    output, exception, request = call.get("output"), call.get("exception") or None, object_of(inputs)
    asks = (isinstance(request.get("messages"), list) or "contents" in request) and "model" in request
    kind = _KINDS.get(object_of(attributes).get("kind"), "model" if name.endswith(_MODEL_OPS) or asks else "other")
    problem = written(exception)
    ended_at = microseconds(call.get("ended_at"))

    def of_model() -> Row:   # the counts are those of all models that the call asked
        models = (place.get("model") for place in (output, inputs) if isinstance(place, dict))
        usage: Row = {}
        for counts in object_of(object_of(summary).get("usage")).values():
            for key, count in (tokens(counts) or {}).items():
                usage[key] = usage.get(key, 0) + count
        return {"model": next((each for each in models if isinstance(each, str)), None), "usage": {
            **usage, **of_completion(loaded(output)), **sampling(inputs, object_of(inputs).get("config"))} or None}

    return span_of(
        record, call, _DIALECT, of_model, kind=kind, name=name,
        session_id=emit.envelope.mapped("session_id", call) or written(call.get("thread_id")) or None,
        identity=emit.envelope.identity(attributes), service=emit.envelope.service(attributes), input=inputs, output=output,
        is_error=True if exception else False if ended_at is not None and "exception" in call else None, label=kind,
        problem=problem.rstrip().rpartition("\n")[2] or problem if problem else None,   # what a traceback says in the end
        attributes={"op_name": call["op_name"], "attributes": attributes, "display_name": call.get("display_name"),
                    "deleted_at": call.get("deleted_at"), "exception": exception})


FORMAT = Format(name="weave", history="traces", claims=claims, read=read, sample=sample("weave.jsonl"), rank=25)
