"""LangSmith: runs (JSON lines or a list as the SDK reads them, rows of the bulk export in Parquet or CSV), and the batches that
the SDK sends (`{"post": […], "patch": […]}`): what is posted when a run begins and patched when it ends is one run.

Sees: llm and tool runs, threads under the metadata's names for them (on any run of a trace), errors, token counts, declared
tools, payloads of the OpenAI wrapper, of LangChain and of LangGraph, Python's notation in a tool's input. `session_id` of a run
is its project: it is no session.
Does not see: payloads that lie elsewhere (`inputs_s3_urls`): the address stands in their place, and `lossy` says so; the post
of a patch in another file (it is a log event).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.model_payloads import loaded
from extractors.formats.platform_spans import PlatformDialect, PlatformSpan, read_spans, span_of
from extractors.formats.sampling import drawn, of_completion, sampling, tokens
from extractors.formats.values import first_of, object_of, objects_in, text_of

_THREADS = ("session_id", "thread_id", "conversation_id")
_USERS = ("user_id", "userId", "ls_user_id")
_KEPT = ("tags", "reference_example_id", "feedback_stats", "total_cost")
_BATCH = ("post", "patch")
_RUN_KEYS = ("id", "run_type", "start_time")
_MODELS = ("model_name", "model", "ls_model_name")
_DIALECT = PlatformDialect(
    trace_id=("trace_id", "id"), span_id=("id",), parent_id=("parent_run_id",), started_at=("start_time",),
    ended_at=("end_time",), kind=("run_type",), kinds={"llm": "model", "tool": "tool"}, name=("name",))


def claims(head: Head) -> bool:
    """Return whether the first object is a run, or holds a list of runs."""
    inner = head.first.get("runs")
    first = inner[0] if isinstance(inner, list) and inner else head.first
    if any(_is_batch(each) for each in head.objects):
        return True
    return _is_run(first) and not {"dotted_order", "trace_id", "parent_run_id"}.isdisjoint(first)


def _is_run(value: Any) -> bool:
    return isinstance(value, dict) and all(key in value for key in _RUN_KEYS)


def _is_batch(value: Any) -> bool:
    """Return whether an object is a batch of runs: lists of such as are posted and patched."""
    lists = [value[name] for name in _BATCH if isinstance(value.get(name), list)] if isinstance(value, dict) else []
    pieces = [each for pieces in lists for each in pieces]
    return bool(pieces) and all(isinstance(each, dict) and "id" in each and not {
        "dotted_order", "trace_id"}.isdisjoint(each) for each in pieces)


def read(records: LogRecords, emit: Emit) -> None:
    """All runs of the file first, since files are not ordered; then each conversation in the order of time."""
    every = list(records)
    joined = _joined([record for record in every if _is_batch(record.value)])
    rest = []
    for record in every:
        if not _is_batch(record.value) or record.record_id in joined:
            rest.append(record)
        else:
            emit.reject(record, "joined_run",
                        "later records go on with the batch's runs and tell all of them; no action needed")
    read_spans(rest, emit, lambda record: [
        _span(record, run, emit) for run in joined.get(record.record_id) or _runs(record.value)], "no_run",
        "the record is no run with an id, a run_type and a start_time; leave it out")


def _joined(batches: list[LogRecord]) -> dict[str, list[Row]]:
    """Return the runs of batches, each put together of all its pieces, under the id of the record with its last piece."""
    runs: dict[str, Row] = {}
    last: dict[str, str] = {}
    for record in batches:
        for piece in (piece for name in _BATCH for piece in objects_in(record.value.get(name))):
            run, name = runs.setdefault(str(piece["id"]), {}), str(piece["id"])
            stated = {key: each for key, each in piece.items() if each not in (None, {}, [])}
            extra = {**object_of(run.get("extra")), **object_of(stated.get("extra"))}
            run.update(stated, **({"extra": extra} if extra else {}))
            last[name] = record.record_id
    by_record: dict[str, list[Row]] = {}
    for name, run in runs.items():
        by_record.setdefault(last[name], []).append(
            {"run_type": "patch", "start_time": run.get("end_time"), **run})   # its post is in another file
    return by_record


def _runs(value: Any) -> Iterator[Row]:
    """Yield a run, those under it (`child_runs`), or a list of them (`runs`)."""
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
    metadata, parameters, error = _object(extra.get("metadata")), extra.get("invocation_params"), run.get("error") or None
    kept = {key: run[key] for key in (*_KEPT, "inputs_s3_urls", "outputs_s3_urls") if run.get(key)}

    places = (outputs.get("output"), object_of(outputs.get("output")).get("kwargs"), extra, inputs)
    call_id = next((each for place in places if (each := object_of(place).get("tool_call_id"))), None)   # that it answers

    def of_model() -> Row:
        models = (outputs.get("llm_output"), outputs, metadata, inputs, parameters)
        return {"usage": _drawn(run, inputs, outputs, parameters, metadata), "model": next(
            (place[name] for place in models if isinstance(place, dict) for name in _MODELS
             if isinstance(place.get(name), str) and place[name]), None)}

    return span_of(
        record, run, _DIALECT, of_model,
        session_id=emit.envelope.mapped("session_id", run) or text_of(first_of(metadata, _THREADS)),
        identity=text_of(first_of(metadata, _USERS)), service=emit.envelope.service(metadata),
        input=_captured(inputs, run.get("inputs_s3_urls")), output=_captured(outputs, run.get("outputs_s3_urls")),
        tools=inputs["tools"] if isinstance(inputs.get("tools"), list) else object_of(parameters).get("tools"),
        call_id=text_of(call_id) if run.get("run_type") == "tool" else None,
        is_error=True if error else False if run.get("status") == "success" else None, problem=text_of(error),
        rated={"feedback_stats": _object(run.get("feedback_stats")), "metadata": metadata},
        attributes={**kept, "status": run.get("status"), "metadata": metadata, "events": run.get("events")})


def _object(value: Any) -> Row:
    inner = loaded(value)
    return inner if isinstance(inner, dict) else {} if inner is None else {"input": inner}


def _captured(payload: Row, urls: Any) -> Row | str | None:
    """Return a payload; where it has no keys, its address, None where it was hidden."""
    addresses = loaded(urls)
    places = [addresses, *addresses.values()] if isinstance(addresses, dict) else []
    texts = [place[key] for key in ("s3_url", "presigned_url", "ROOT") for place in places
             if isinstance(place, dict) and isinstance(place.get(key), str)]
    return payload or next(iter(texts), None)


def _drawn(run: Row, inputs: Row, outputs: Row, parameters: Any, metadata: Row) -> Row | None:
    generation: Any = outputs.get("generations")
    while isinstance(generation, list) and generation:   # LangChain's first tells log-probabilities, beside or in its message
        generation = generation[0]
    about = object_of(generation)
    message = _object(_object(about.get("message")).get("kwargs"))
    stated = (about.get("generation_info"), message.get("response_metadata"), outputs.get("response_metadata"))
    logprobs = next((each for place in stated if (each := object_of(place).get("logprobs"))), None)
    places = (outputs.get("usage_metadata"), outputs.get("usage"), object_of(outputs.get("llm_output")).get("token_usage"), run)
    usage = next((counts for place in places if (counts := tokens(place)) is not None), None)
    return {**(usage if usage and any(usage.values()) else {}),
            **(of_completion(outputs) or drawn(None, None, logprobs)),
            **sampling(parameters, metadata, inputs)} or None


FORMAT = Format(name="langsmith", history="traces", claims=claims, read=read, sample=sample("langsmith.jsonl"), rank=25)
