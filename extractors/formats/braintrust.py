"""Braintrust: spans of a project's logs or of an experiment, as rows (JSON lines, lists, CSV, Parquet) or as pages of its API
(`events` of a fetch, `data` of a query in BTQL).

Sees: spans of type `llm` and `tool`, rows that came again (the highest `_xact_id` counts), sessions under the metadata's names
for them on any span of a trace, errors, token counts, declared tools and parameters in the metadata, scores (of people, code
and models), comments and tags. What a scorer does (`purpose`) is no part of the conversation: its score is feedback on it.
Does not see: attachments (their reference stands in the content), facets, the dataset behind an experiment's row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.model_payloads import loaded
from extractors.formats.platform_spans import PlatformDialect, PlatformSpan, alias, read_spans, span_of
from extractors.formats.sampling import of_completion, sampling, tokens
from extractors.formats.values import object_of, objects_in, written

_SPAN_KEYS = frozenset({"span_id", "root_span_id"})
_OWN_KEYS = frozenset({"span_attributes", "span_parents", "_xact_id", "_pagination_key"})
_PAGES = ("events", "data")
_KEPT = ("tags", "expected", "experiment_id", "dataset_record_id", "origin")
_COUNTS = {"prompt_cached_tokens": "cached_tokens", "completion_reasoning_tokens": "reasoning_tokens"}
_JUDGES = ("score", "facet", "classifier", "preprocessor")
"""Types of spans that judge others."""
_DIALECT = PlatformDialect(
    trace_id=("root_span_id",), span_id=("span_id",), parent_id=(), started_at=("metrics.start", "created"),
    ended_at=("metrics.end",), kind=("span_attributes.type",), kinds={"llm": "model", "tool": "tool"},
    name=("span_attributes.name",), input=("input",), output=("output",))


def claims(head: Head) -> bool:
    """Return whether the first object is a span, or a page of them."""
    inner = next((each for name in _PAGES for each in objects_in(head.first.get(name))), head.first)
    return _is_span(inner)


def _is_span(value: Row) -> bool:
    return value.keys() >= _SPAN_KEYS and len(_OWN_KEYS & value.keys()) > 1


def read(records: LogRecords, emit: Emit) -> None:
    """All spans of the file first, since files are not ordered; then each conversation in the order of time."""
    read_spans(records, emit, lambda record: [_span(record, row, emit) for row in _rows(record.value)], "no_span",
               "the record has no span_id and root_span_id; leave it out")


def _rows(value: Any) -> Iterator[Row]:
    """Yield a span, or those of a page; JSON text in fields (of tables) is read."""
    if not isinstance(value, dict):
        return
    if not value.keys() >= _SPAN_KEYS:
        for each in (each for name in _PAGES for each in objects_in(value.get(name))):
            yield from _rows(each)
    else:
        yield {name: loaded(each) for name, each in value.items()}


def _span(record: LogRecord, row: Row, emit: Emit) -> PlatformSpan:
    facts, attributes, metrics = (object_of(row.get(name)) for name in ("metadata", "span_attributes", "metrics"))
    kind, parents, error = attributes.get("type"), row.get("span_parents"), row.get("error")
    is_judge = kind in _JUDGES or attributes.get("purpose") == "scorer"
    problem = _problem(error) if error not in (None, "", {}) else None
    ended_at = microseconds(metrics.get("end"))

    def of_model() -> Row:
        counts = {**(tokens(metrics) or {}), **{ours: metrics[name] for name, ours in _COUNTS.items()
                                                if isinstance(metrics.get(name), (int, float))}}
        return {"model": written(facts.get("model")), "usage": {
            **counts, **of_completion({"choices": row.get("output")}), **sampling(facts)} or None}

    span = span_of(
        record, row, _DIALECT, of_model, **({"kind": "other"} if is_judge else {}),
        parent_id=str(parents[0]) if isinstance(parents, list) and parents else None,
        session_id=emit.envelope.mapped("session_id", row) or emit.envelope.session_id(facts),
        service=emit.envelope.service(facts), identity=emit.envelope.identity(facts), output=_output(row.get("output")),
        tools=facts["tools"] if isinstance(facts.get("tools"), list) else None, updated_at=_version(row),
        call_id=written(facts.get("tool_call_id", facts.get("toolCallId"))), problem=problem,
        is_error=True if problem is not None else False if ended_at is not None else None,
        rated={} if is_judge and _is_inside(row) else {"scores": _scores(row)},
        attributes={**{name: row[name] for name in _KEPT if row.get(name) not in (None, "", [], {})}, "metadata": facts})
    if is_judge:   # what it was given is the conversation, and what it says is no part of that
        span.attributes |= {"input": span.input, "output": span.output}
        span.input = span.output = None
    for number, each in enumerate(objects_in(row.get("comments"))):
        emit.event(record, "feedback", place=f"{span.span_id}/comment/{each.get('id') or number}", name="comment",
                   session_id=span.session_id or alias(span.trace_id), call_id=span.span_id,
                   happened_at=microseconds(each.get("created")), value=written(_text(each)), content=written(_text(each)))
    return span


def _is_inside(row: Row) -> bool:
    """Whether a span ran inside a scorer: the scorer's own span states its score."""
    return object_of(row.get("span_attributes")).get("type") not in _JUDGES


def _scores(row: Row) -> Row:
    scores = object_of(row.get("scores"))
    return {name: value for name, value in scores.items() if value is not None}


def _output(output: Any) -> Any:
    """Return an answer; a list of choices as the completion that they belong to."""
    is_choices = isinstance(output, list) and bool(output) and all(isinstance(each, dict) and (
        "message" in each and not {"index", "finish_reason"}.isdisjoint(each)) for each in output)
    return {"choices": output} if is_choices else output


def _version(row: Row) -> int | None:
    """Return the number of the transaction that wrote the row: the later, the higher."""
    text = str(row.get("_xact_id") or "")
    return int(text) if text.isdecimal() else microseconds(row.get("created"))


def _problem(error: Any) -> str:
    """Return what went wrong: what a traceback says in the end."""
    stated = error.get("message", error) if isinstance(error, dict) else error
    text = written(stated) or ""
    return text.rstrip().rpartition("\n")[2] or text


def _text(comment: Row) -> Any:
    inner = comment.get("comment")
    return inner.get("text", inner) if isinstance(inner, dict) else inner if inner is not None else comment.get("text")


FORMAT = Format(name="braintrust", history="traces", claims=claims, read=read, sample=sample("braintrust.jsonl"), rank=25)
