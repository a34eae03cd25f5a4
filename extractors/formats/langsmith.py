"""LangSmith: runs (JSON lines or a list as the SDK reads them, rows of the bulk export in Parquet or CSV).

Sees: llm and tool runs, threads under the metadata's names for them (on any run of a trace), errors, token counts, declared
tools, payloads of the OpenAI wrapper, of LangChain and of LangGraph, Python's notation in a tool's input. `session_id` of a run
is its project: it is no session.
Does not see: payloads that lie elsewhere (`inputs_s3_urls`): the address stands in their place, and `lossy` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.message_parts import loaded
from extractors.formats.platform_spans import PlatformSpan
from extractors.formats.platform_story import tell_all
from extractors.formats.samples import sample
from extractors.formats.sampling import drawn, of_completion, sampling
from extractors.formats.usage import tokens

_THREADS = ("session_id", "thread_id", "conversation_id")
_USERS = ("user_id", "userId", "ls_user_id")
_KEPT = ("tags", "reference_example_id", "feedback_stats", "total_cost")
_RUN_KEYS = ("id", "run_type", "start_time")


def claims(head: Head) -> bool:
    """The first object is a run, or holds a list of runs."""
    inner = head.first.get("runs")
    first = inner[0] if isinstance(inner, list) and inner else head.first
    return _is_run(first) and not {"dotted_order", "trace_id", "parent_run_id"}.isdisjoint(first)


def _is_run(value: Any) -> bool:
    return isinstance(value, dict) and all(key in value for key in _RUN_KEYS)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All runs of the file first, since files are not ordered; then each conversation in the order of time."""
    spans: list[PlatformSpan] = []
    for record in records:
        n_before = len(spans)
        with emit.guarded(record):
            spans += [_span(record, run, emit) for run in _runs(record.value)]
            if len(spans) == n_before:
                emit.reject(record, "no_run", "the record is no run with an id, a run_type and a start_time; leave it out")
    tell_all(spans, emit)


def _runs(value: Any) -> Iterator[Row]:
    """A run, those under it (`child_runs`), or a list of them (`runs`)."""
    if not isinstance(value, dict):
        return
    if isinstance(value.get("runs"), list):
        for each in value["runs"]:
            yield from _runs(each)
    elif _is_run(value):
        yield value
        for each in value.get("child_runs") or ():
            yield from _runs(each)


def _span(record: LogRecord, run: Row, emit: Emit) -> PlatformSpan:
    extra, inputs, outputs = (_object(run.get(key)) for key in ("extra", "inputs", "outputs"))
    metadata = _object(extra.get("metadata"))
    kind, error = run.get("run_type"), run.get("error") or None
    is_model = kind == "llm"
    where = {key: run[key] for key in ("inputs_s3_urls", "outputs_s3_urls") if run.get(key)}
    return PlatformSpan(
        record=record, trace_id=str(run.get("trace_id") or run["id"]), span_id=str(run["id"]),
        kind="model" if is_model else "tool" if kind == "tool" else "other", name=_text(run.get("name")),
        parent_id=_text(run.get("parent_run_id")),
        session_id=emit.envelope.mapped("session_id", run) or _first(metadata, _THREADS),
        identity=_first(metadata, _USERS), service=emit.envelope.service(metadata),
        started_at=microseconds(run.get("start_time")), ended_at=microseconds(run.get("end_time")),
        asked=_captured(inputs, run.get("inputs_s3_urls")), answered=_captured(outputs, run.get("outputs_s3_urls")),
        tools=_declared(inputs, extra),
        call_id=_call_id(run, inputs, outputs), model=_model(inputs, outputs, extra, metadata) if is_model else None,
        usage=_drawn(run, inputs, outputs, extra, metadata) if is_model else None,
        is_error=True if error else False if run.get("status") == "success" else None, problem=_text(error),
        label=_text(kind), attributes={**{key: run[key] for key in _KEPT if run.get(key)}, **where, "status": run.get("status"),
                                       "metadata": metadata, "events": run.get("events")})


def _object(value: Any) -> Row:
    inner = loaded(value)
    return inner if isinstance(inner, dict) else {} if inner is None else {"input": inner}


def _captured(payload: Row, urls: Any) -> Row | str | None:
    """A payload; where it has no keys, its address, None where it was hidden."""
    held = loaded(urls)
    places = [held, *held.values()] if isinstance(held, dict) else []
    found = [place[key] for key in ("s3_url", "presigned_url", "ROOT") for place in places
             if isinstance(place, dict) and isinstance(place.get(key), str)]
    return payload or next(iter(found), None)


def _declared(inputs: Row, extra: Row) -> Any:
    if isinstance(inputs.get("tools"), list):
        return inputs["tools"]
    parameters = extra.get("invocation_params")
    return parameters.get("tools") if isinstance(parameters, dict) else None


def _call_id(run: Row, inputs: Row, outputs: Row) -> str | None:
    """Id of the call that a tool's run answers, where the run says it."""
    if run.get("run_type") != "tool":
        return None
    output = outputs.get("output")
    places = (output, output.get("kwargs") if isinstance(output, dict) else None, _object(run.get("extra")), inputs)
    found = next((place["tool_call_id"] for place in places if isinstance(place, dict) and place.get("tool_call_id")), None)
    return _text(found)


def _model(inputs: Row, outputs: Row, extra: Row, metadata: Row) -> str | None:
    parameters = extra.get("invocation_params")
    places = (outputs.get("llm_output"), outputs, metadata, inputs, parameters)
    names = ("model_name", "model", "ls_model_name")
    return next((place[name] for place in places if isinstance(place, dict) for name in names
                 if isinstance(place.get(name), str) and place[name]), None)


def _usage(run: Row, outputs: Row) -> Row | None:
    inner = outputs.get("llm_output")
    counted = inner.get("token_usage") if isinstance(inner, dict) else None
    places = (outputs.get("usage_metadata"), outputs.get("usage"), counted, run)
    found = next((counts for place in places if (counts := tokens(place)) is not None), None)
    return found if found and any(found.values()) else None


def _drawn(run: Row, inputs: Row, outputs: Row, extra: Row, metadata: Row) -> Row | None:
    """Token counts, and how the answer was drawn."""
    return {**(_usage(run, outputs) or {}), **(of_completion(outputs) or drawn(None, None, _logprobs(outputs))),
            **sampling(extra.get("invocation_params"), metadata, inputs)} or None


def _logprobs(outputs: Row) -> Any:
    """LangChain's first generation tells them beside it, or in its message."""
    found: Any = outputs.get("generations")
    while isinstance(found, list) and found:
        found = found[0]
    about = found if isinstance(found, dict) else {}
    said = _object(_object(about.get("message")).get("kwargs"))
    places = (about.get("generation_info"), said.get("response_metadata"), outputs.get("response_metadata"))
    return next((place["logprobs"] for place in places if isinstance(place, dict) and place.get("logprobs")), None)


def _first(metadata: Row, names: tuple[str, ...]) -> str | None:
    return next((str(metadata[name]) for name in names if metadata.get(name) not in (None, "")), None)


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "") else None


FORMAT = Format(name="langsmith", history="once", claims=claims, read=read, sample=sample("langsmith.jsonl"), rank=25)
