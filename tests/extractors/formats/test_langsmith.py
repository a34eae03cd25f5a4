"""LangSmith: threads, payloads of wrappers and frameworks, what was hidden, feedback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl

from extractors.formats import named, recognise
from tests.extractors.formats.platforms import events, head, read_platform_log, reading_of, sample_values, story


def run(number: int, kind: str, inputs: Any, outputs: Any, parent: int | None = 0, **fields: Any) -> dict[str, Any]:
    return {"id": f"r{number}", "trace_id": "r0", "parent_run_id": None if parent is None else f"r{parent}", "run_type": kind,
            "name": kind, "dotted_order": str(number), "start_time": f"2026-03-02T10:00:0{number}.000000", "end_time":
            f"2026-03-02T10:00:0{number}.500000", "inputs": inputs, "outputs": outputs, "error": None, "status": "success",
            "session_id": "project", "extra": {}, **fields}


def langchain_message(kind: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind],
            "kwargs": {"content": text, **fields}}


def test_the_project_is_no_session_and_one_run_of_a_trace_states_the_thread() -> None:
    emit = read_platform_log("langsmith", run(1, "llm", {"messages": [{"role": "user", "content": "q"}]}, {"choices": [
        {"message": {"role": "assistant", "content": "a"}}]}),
        run(0, "chain", {"input": "q"}, {"output": "a"}, None, extra={"metadata": {"conversation_id": 7}}))
    assert {row["session_id"] for row in emit.events} == {"7"}
    assert [row["value"] for row in events(emit, "link")] == ["trace:r0"]
    assert [row["happened_at"] % 60_000_000 for row in emit.events[:2]] == [0, 1_500_000], "the user spoke when the turn began"
    nameless = read_platform_log("langsmith", run(0, "llm", {"messages": [{"role": "user", "content": "q"}]}, None, None))
    assert {row["session_id"] for row in nameless.events} == {"trace:r0"} and events(nameless, "link") == []


def test_langchain_messages_calls_and_error_status() -> None:
    call = langchain_message(
        "AIMessage", "", type="ai", tool_calls=[{"name": "look_up", "args": {"a": 1}, "id": "c", "type": "tool_call"}]
    )
    history = [[langchain_message("SystemMessage", "s"), langchain_message("HumanMessage", "q"), call,
                langchain_message("ToolMessage", "boom", tool_call_id="c", status="error")]]
    emit = read_platform_log(
        "langsmith",
        run(
            1,
            "llm",
            {"messages": history},
            {"generations": [[{"text": "a", "message": langchain_message("AIMessageChunk", [{"type": "text", "text": "a"}])}]]},
            None,
        ),
    )
    assert story(emit) == [("system", "s"), ("user", "q"), ("look_up", '{"a":1}'), ("-", "boom", True), ("assistant", "a")]


def test_a_tools_run_alone_tells_call_result_and_error() -> None:
    emit = read_platform_log(
        "langsmith",
        run(
            0,
            "chain",
            {"input": "q"},
            {"output": "a"},
            None,
            extra={"metadata": {"thread_id": "s"}},
            end_time="2026-03-02T10:00:09",
        ),
        run(
            1,
            "tool",
            {"input": "{'a': None, 'b': True}"},
            {"output": langchain_message("ToolMessage", "found", tool_call_id="c")},
            name="look_up",
        ),
        run(2, "tool", {"input": "{'a': 2}"}, None, name="look_up", error="Timeout('late')", status="error"),
    )
    assert story(emit) == [("user", "q"), ("look_up", '{"a":null,"b":true}'), ("-", "found", False), ("look_up", '{"a":2}'),
                           ("-", "Timeout('late')", True), ("assistant", "a")]
    assert [row["call_id"] for row in events(emit, "call")] == ["c", None]


def test_langgraph_state_and_hidden_payloads() -> None:
    state = {"messages": [{"type": "human", "content": "q"}, {"type": "ai", "content": "a", "id": "x"}]}
    emit = read_platform_log("langsmith", run(0, "chain", {"messages": state["messages"][:1]}, state, None))
    assert story(emit) == [("user", "q"), ("assistant", "a")]
    hidden = read_platform_log("langsmith", run(0, "llm", {}, {}, None, prompt_tokens=3, completion_tokens=4))
    assert story(hidden) == [("assistant", None)] and hidden.events[0]["lossy"] == ["content not captured"]
    assert orjson.loads(hidden.events[0]["usage"]) == {"input_tokens": 3, "output_tokens": 4}
    moved = read_platform_log("langsmith", run(0, "llm", None, None, None, inputs_s3_urls={"ROOT": {"s3_url": "s3://b/in"}},
                                  outputs_s3_urls={"ROOT": {"presigned_url": "https://b/out?X-Amz-Date=1"}}))
    assert story(moved) == [("user", "s3://b/in"), ("assistant", "https://b/out?X-Amz-Date=1")]
    assert [row["lossy"] for row in moved.events[:2]] == [["content elsewhere"]] * 2


def test_a_failed_answer_that_was_asked_again_is_kept_beside_the_conversation() -> None:
    prompt = {"messages": [{"role": "user", "content": "q"}]}
    emit = read_platform_log("langsmith", run(1, "llm", prompt, None, None, error="RateLimitError", status="error"),
                run(2, "llm", prompt, {"choices": [{"message": {"role": "assistant", "content": "a"}}]}, None))
    assert story(emit) == [("user", "q"), ("assistant", "a")]
    [failed] = events(emit, "log")
    assert failed["is_error"] is True and '"error":"RateLimitError"' in failed["arguments"]


def test_the_bulk_export_in_parquet_tells_the_same(data: Path, tmp_path: Path) -> None:
    source = data / "format_samples" / "04_platforms" / "langsmith_runs_wrap_openai.jsonl"
    rows = [orjson.loads(line) for line in source.read_bytes().splitlines()]
    texts = [{key: orjson.dumps(value).decode() if isinstance(value, (dict, list)) else value for key, value in row.items()}
             for row in rows]
    pl.DataFrame(texts, infer_schema_length=None).write_parquet(tmp_path / "runs.parquet")
    one, other = reading_of(tmp_path / "runs.parquet"), reading_of(source)
    columns = ["session_id", "position", "happened_at", "kind", "content", "arguments", "is_error", "usage"]
    assert one.file.format == "langsmith" and one.events.height == other.events.height > 19
    for reading in (one, other):
        assert reading.events.filter(pl.col("position").is_not_null()).height == 19
    assert one.events.filter(pl.col("position").is_not_null()).select(columns).equals(
        other.events.filter(pl.col("position").is_not_null()).select(columns))


def test_feedback_takes_the_first_answer_there_is() -> None:
    [base, *_] = sample_values(named("langsmith_feedback"))
    rows = [{**base, "score": None, "value": {"tone": "warm"}}, {**base, "score": False, "trace_id": None},
            {**base, "score": None, "value": None, "comment": None}]
    emit = read_platform_log("langsmith_feedback", *rows)
    assert [(row["value"], row["session_id"]) for row in emit.events] == [
        ('{"tone":"warm"}', f"trace:{base['trace_id']}"), ("false", f"trace:{base['run_id']}")]
    assert [reason for _, reason, _ in emit.rejects] == ["incomplete_feedback"]
    assert recognise(head(rows[0])) is named("langsmith_feedback")
