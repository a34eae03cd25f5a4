"""Logfire: pydantic-ai's formats, its own integrations, tables, and everything else that is logged there."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from extractors.formats import named
from tests.extractors.formats.platforms import events, head, read_platform_log, reading_of, reasons, sample_values, story


def row(number: int, name: str, attributes: Any, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"kind": "span", "span_name": name, "message": name, "level": 9, "trace_id": "t", "span_id": f"s{number}",
            "parent_span_id": parent, "start_timestamp": f"2026-03-02T10:00:0{number}Z", "end_timestamp":
            f"2026-03-02T10:00:0{number}.500000Z", "is_exception": False, "attributes": attributes, "otel_scope_name": "x",
            **fields}


def test_events_of_pydantic_ais_first_format() -> None:
    prompt = [{"event.name": "gen_ai.system.message", "content": "s", "role": "system", "gen_ai.message.index": 0},
             {"event.name": "gen_ai.user.message", "content": "q", "role": "user"}]
    choice = {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": {"a": 1}}}]}}
    later = [*prompt, {"event.name": "gen_ai.assistant.message", **choice["message"]},
             {"event.name": "gen_ai.tool.message", "id": "c", "name": "look_up", "content": "found", "role": "tool"},
             {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": "a"}}]
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    emit = read_platform_log("logfire", row(1, "chat m", {**model, "events": orjson.dumps([*prompt, choice]).decode()}),
                row(2, "running tool", {"gen_ai.tool.name": "look_up", "gen_ai.tool.call.id": "c", "tool_arguments": '{"a":1}',
                                        "tool_response": "found"}), row(3, "chat m", {**model, "events": later}))
    assert story(emit) == [("system", "s"), ("user", "q"), ("look_up", '{"a":1}'), ("-", "found", False), ("assistant", "a")]


def test_an_agents_run_tells_what_its_models_did_not() -> None:
    everything = [{"role": "user", "parts": [{"type": "text", "content": "q"}]},
                  {"role": "assistant", "parts": [{"type": "thinking", "content": "hm"}, {"type": "text", "content": "a"}]}]
    emit = read_platform_log("logfire", row(0, "agent run", {"pydantic_ai.all_messages": everything, "gen_ai.agent.name": "x"}),
                row(1, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 4}, "s0"))
    assert story(emit) == [("user", "q"), ("assistant", "hm"), ("assistant", "a")]
    assert [each["kind"] for each in emit.events[:3]] == ["message", "reasoning", "message"]


def test_a_streamed_answer_is_logged_beside_its_span() -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    emit = read_platform_log("logfire", row(1, "Chat Completion", {"request_data": request}),
                row(2, "streaming response", {"request_data": request, "response_data": {
                    "combined_chunk_content": "a", "chunk_count": 2}}))
    assert story(emit) == [("user", "q"), ("assistant", "a")] and len(events(emit, "log")) == 1


def test_other_spans_keep_their_line_and_rows_still_running_are_left() -> None:
    emit = read_platform_log(
        "logfire",
        row(1, "GET {route}", {"route": "/x", "http.status_code": 500}, message="GET /x", level=17),
        row(2, "chat m", {}, kind="pending_span"),
        {"span_name": "x"},
    )
    [line] = events(emit, "log")
    assert (line["tool"], line["content"], line["is_error"]) == ("GET {route}", "GET /x", True)
    assert orjson.loads(line["arguments"])["route"] == "/x"
    assert reasons(emit) == ["pending_span", "no_span"]


def test_tables_tell_the_same(data: Path, tmp_path: Path) -> None:
    source = data / "format_samples" / "04_platforms" / "logfire_records.jsonl"
    rows = [orjson.loads(line) for line in source.read_bytes().splitlines()]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows({key: orjson.dumps(value).decode() if isinstance(value, (dict, list)) else value
                      for key, value in each.items()} for each in rows)
    (tmp_path / "records.csv").write_text(text.getvalue())
    one, other = (reading_of(path) for path in (tmp_path / "records.csv", source))
    columns = ["session_id", "position", "happened_at", "kind", "content", "arguments", "is_error", "usage", "value"]
    assert one.file.format == "logfire"
    told_by = [each.events.filter(pl.col("position").is_not_null() | (pl.col("kind") == "feedback")).select(columns)
               for each in (one, other)]
    assert told_by[0].equals(told_by[1]) and told_by[0].height == 21


def test_columns_of_the_query_api() -> None:
    values = sample_values(named("logfire"))
    columns = {"columns": [{"name": name, "datatype": "x", "nullable": True, "values": [each[name] for each in values]}
                           for name in values[0]]}
    assert named("logfire").claims(head(columns))
    assert story(read_platform_log("logfire", columns)) == story(read_platform_log("logfire", *values)) != []
