"""Braintrust: spans with their scores, as rows, tables and pages; what a scorer does is no part of the conversation."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from extractors import formats
from tests.extractors.formats.platforms import events, head, read_platform_log, reading_of, reasons, sample_values, story

FORMAT = formats.named("braintrust")
ASKED = [{"role": "user", "content": "Where is order 17?"}]
ANSWER = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "It was shipped."}}]


def span(number: int, kind: str, given: Any, answer: Any, parent: int | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": f"r{number}", "_xact_id": str(100 + number), "_pagination_key": f"p{number}", "project_id": "p",
            "log_id": "g", "created": "2026-03-02T10:15:00Z", "span_id": f"s{number}", "root_span_id": "s1",
            "span_parents": None if parent is None else [f"s{parent}"], "is_root": parent is None,
            "span_attributes": {"name": kind, "type": kind}, "input": given, "output": answer, "error": None, "scores": None,
            "metadata": None, "tags": None, "metrics": {"start": 1772446500.0 + number, "end": 1772446500.5 + number}, **fields}


def scores(emit: Any) -> list[tuple[Any, ...]]:
    return [(row["session_id"], row["name"], row["value"]) for row in events(emit, "feedback")]


def test_scores_of_people_code_and_models_are_feedback_on_the_session() -> None:
    emit = read_platform_log("braintrust", *sample_values(FORMAT))
    assert scores(emit) == [("sess_7f3a2c", "user_rating", "1"), ("sess_7f3a2c", "Politeness", "0.9")]
    assert not reasons(emit), "a score of null is none"


def test_what_a_scorer_asks_is_no_part_of_the_conversation() -> None:
    scorer = {"name": "judge", "type": "score", "purpose": "scorer"}
    judging = {"name": "Chat Completion", "type": "llm", "purpose": "scorer"}
    emit = read_platform_log(
        "braintrust", span(1, "llm", ASKED, ANSWER), span(2, "score", {"output": "x"}, 1, 1, span_attributes=scorer,
                                                          scores={"Kind": 1}),
        span(3, "llm", [{"role": "user", "content": "Is it kind?"}], ANSWER, 2, span_attributes=judging, scores={"Kind": 1}))
    assert story(emit) == [("user", "Where is order 17?"), ("assistant", "It was shipped.")]
    assert scores(emit) == [("trace:s1", "Kind", "1")]
    assert len(events(emit, "log")) == 2, "both spans of the scorer are kept as log events"


def test_a_row_that_came_again_counts_by_its_transaction() -> None:
    early = span(1, "llm", ASKED, None, _xact_id="1000196022104685824")
    late = span(1, "llm", ASKED, ANSWER, _xact_id="1000196022104685900", scores={"thumbs": 1}, comments=[
        {"id": "c1", "created": "2026-03-02T11:00:00Z", "comment": {"text": "well done"}}])
    for rows in ((early, late), (late, early)):
        emit = read_platform_log("braintrust", *rows)
        assert story(emit) == [("user", "Where is order 17?"), ("assistant", "It was shipped.")]
        assert reasons(emit) == ["replaced_span"]
        assert sorted(scores(emit)) == [("trace:s1", "comment", "well done"), ("trace:s1", "thumbs", "1")]


def test_errors_tokens_and_tools_are_read() -> None:
    metadata = {"model": "demo-model-1", "temperature": 0.2, "session_id": "s", "user_id": "u1", "tools": [
        {"type": "function", "function": {"name": "find_order", "parameters": {"type": "object"}}}]}
    called = [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "find_order", "arguments": "{\"order\":17}"}}]}}]
    metrics = {"start": 1772446502.0, "end": 1772446503.0, "prompt_tokens": 12, "completion_tokens": 3,
               "prompt_cached_tokens": 4, "completion_reasoning_tokens": 2}
    emit = read_platform_log(
        "braintrust", span(2, "llm", ASKED, called, 1, metadata=metadata, metrics=metrics),
        span(3, "tool", {"order": 17}, None, 1, error="Traceback\n  line 3\nTimeoutError: no answer",
             span_attributes={"name": "find_order", "type": "tool"}))
    assert story(emit, "s")[1:] == [("find_order", '{"order":17}'), ("-", "TimeoutError: no answer", True)]
    call = events(emit, "call")[0]
    assert call["model"] == "demo-model-1" and json.loads(call["usage"]) == {
        "input_tokens": 12, "output_tokens": 3, "cached_tokens": 4, "reasoning_tokens": 2, "sampling": {"temperature": 0.2}}
    assert [each["tool"] for each in emit.declarations] == ["find_order"]


def test_pages_and_tables_hold_the_same(tmp_path: Path) -> None:
    rows = sample_values(FORMAT)
    whole = story(read_platform_log("braintrust", *rows))
    for name in ("events", "data"):
        page = {name: rows, "cursor": None}
        assert FORMAT.claims(head(page)) and story(read_platform_log("braintrust", page)) == whole
    path = tmp_path / "spans.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({key: json.dumps(each) if isinstance(each, (dict, list)) else each for key, each in row.items()}
                         for row in rows)
    reading = reading_of(path)
    assert reading.file.format == "braintrust"
    spoken = reading.events.filter(reading.events["kind"].is_in(["message", "call", "result"])).sort("position")
    words = [each[1] for each in whole if len(each) == 3 or each[0] in ("system", "user", "assistant")]
    assert spoken["content"].drop_nulls().to_list() == words
    assert not FORMAT.claims(head({"span_id": "1", "root_span_id": "2", "name": "another platform's span"}))
