"""Langfuse: every way out of it tells the same, and its traps."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.formats import named, recognise
from extractors.sessions import assemble
from tests.extractors.formats.platforms import events, head, read_platform_log, reading_of, reasons, story

CUT = "<truncated due to size exceeding limit>"
PROMPT = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"a":1}'}}]}


def observation(number: int, kind: str, given: Any = "", answer: Any = "", **fields: Any) -> dict[str, Any]:
    return {"id": f"o{number}", "trace_id": "t", "type": kind, "parent_observation_id": "", "name": "step",
            "start_time": f"2026-03-02 10:00:0{number}.000000", "end_time": f"2026-03-02 10:00:0{number}.500000",
            "level": "DEFAULT", "input": given if isinstance(given, str) else orjson.dumps(given).decode(),
            "output": answer if isinstance(answer, str) else orjson.dumps(answer).decode(), "session_id": "s", **fields}


def test_rows_exported_again_count_as_updated_last() -> None:
    early = observation(1, "GENERATION", PROMPT, "", updated_at="2026-03-02 10:00:01.000000")
    late = {**early, "output": "done", "updated_at": "2026-03-02 10:00:09.000000"}
    for rows in ((early, late), (late, early)):
        emit = read_platform_log("langfuse", *rows)
        assert story(emit) == [("system", "s"), ("user", "q"), ("assistant", "done")]
        assert reasons(emit) == ["replaced_span"]


def test_old_sdks_log_tools_as_spans() -> None:
    emit = read_platform_log("langfuse", observation(1, "GENERATION", PROMPT, CALL),
                observation(2, "SPAN", {"a": 1}, "found", name="look_up", level="ERROR", status_message="late"),
                observation(3, "SPAN", "x", "y", name="rank"))
    assert story(emit)[-2:] == [("look_up", '{"a":1}'), ("-", "found", True)]
    [failed, other] = events(emit, "log")
    assert '"error":"late"' in failed["arguments"] and failed["is_error"] is True
    assert orjson.loads(other["content"]) == {"input": "x", "output": "y"}, "a span that nobody called keeps its content"


def test_a_cut_off_input_is_no_message_and_an_answer_that_is_absent_is_not_empty() -> None:
    torn = orjson.dumps(PROMPT).decode()[:-20]
    emit = read_platform_log("langfuse", observation(1, "GENERATION", torn, "done"))
    assert story(emit) == [("assistant", "done")] and reasons(emit) == ["torn_content"]
    assert events(emit, "log")[0]["content"] == torn and events(emit, "log")[0]["lossy"] == ["truncated"]
    for answer, text, note in (("", None, "content not captured"), ({"role": "assistant", "content": ""}, "", None),
                               (CUT, CUT, "truncated"),
                               ("[REDACTED]", "[REDACTED]", "masked")):
        emit = read_platform_log("langfuse", observation(1, "GENERATION", PROMPT, answer))
        assert story(emit)[-1] == ("assistant", text)
        assert emit.events[2]["lossy"] == ([note] if note else [])


@pytest.mark.parametrize(("stated", "expected"), [
    ({"input": 10, "output": 5, "total": 15, "input_cached_tokens": 4},
     {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 4}),
    ({"input": 6, "output": 5, "total": 15, "input_cached_tokens": 4},
     {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 4}),
    ({"input": 3, "output": 7, "total": 12, "output_reasoning": 2},
     {"input_tokens": 3, "output_tokens": 9, "reasoning_tokens": 2}),
    ({}, None), ({"input": "many"}, None)])
def test_cached_and_reasoning_tokens_are_inside_the_counts(stated: Any, expected: Any) -> None:
    emit = read_platform_log("langfuse", observation(1, "GENERATION", PROMPT, "done", usage_details=stated))
    usage = next(row.get("usage") for row in emit.events if row["content"] == "done")
    assert (orjson.loads(usage) if usage else None) == expected


def test_wrappers_of_one_answer_count_once_and_fill_each_other() -> None:
    emit = read_platform_log("langfuse",
                observation(1, "GENERATION", "", CALL, id="outer", usage_details={"input": 5, "output": 1, "total": 6}),
                observation(2, "GENERATION", PROMPT, "", parent_observation_id="outer",
                            usage_details={"input": 5, "output": 1, "total": 6}))
    assert story(emit) == [("system", "s"), ("user", "q"), ("look_up", '{"a":1}')]
    assert sum(orjson.loads(row["usage"])["input_tokens"] for row in emit.events if row.get("usage")) == 5


def test_a_trace_of_which_only_the_root_was_captured() -> None:
    trace = {"id": "t", "timestamp": "2026-03-02T10:00:00Z", "name": "turn", "sessionId": "s", "userId": "u", "input": '"q"',
             "output": "done", "scores": [{"id": "x", "name": "good", "value": 0, "stringValue": "no", "dataType": "BOOLEAN",
                                           "timestamp": "2026-03-02T10:05:00Z", "source": "API"}],
             "observations": [{"id": "o", "traceId": "t", "type": "SPAN", "name": "a", "startTime": "2026-03-02T10:00:00Z"}]}
    emit = read_platform_log("langfuse", trace)
    assert story(emit) == [("user", "q"), ("assistant", "done")]
    [opinion] = events(emit, "feedback")
    assert (opinion["session_id"], opinion["value"], opinion["call_id"], opinion["tool"]) == ("s", "no", "t", "API")


def test_a_trace_that_is_rejected_tells_no_part_of_itself() -> None:
    emit = read_platform_log("langfuse", {"id": "t", "timestamp": "2026-03-02T10:00:00Z", "name": "turn", "sessionId": "s",
                                          "input": '"q"', "output": "done", "observations": [], "scores": -1.5})
    assert (emit.events, [reason for _, reason, _ in emit.rejects]) == ([], ["malformed_record"])


def test_csv_and_jsonl_tell_the_same(data: Path) -> None:
    folder = data / "format_samples" / "03_langfuse"
    columns = ["kind", "session_id", "position", "happened_at", "role", "content", "call_id", "tool", "is_error", "usage"]
    one, other = (reading_of(folder / f"blob_observations_v2.{end}").events.filter(pl.col("position").is_not_null())
                  .select(columns).sort("position") for end in ("csv", "jsonl"))
    assert one.equals(other) and one.height == 19


def test_parquet_tells_the_same(data: Path, tmp_path: Path) -> None:
    source = data / "format_samples" / "03_langfuse" / "blob_observations_v2.csv"
    rows = list(csv.DictReader(io.StringIO(source.read_text("utf-8"))))
    pl.DataFrame(rows).write_parquet(tmp_path / "observations.parquet")
    one, other = reading_of(tmp_path / "observations.parquet"), reading_of(source)
    assert one.file.format == "langfuse"
    assert one.events["content"].to_list() == other.events["content"].to_list()


def test_scores_of_the_api_come_by_the_page() -> None:
    page = {"data": [{"id": "1", "name": "tone", "value": 0, "stringValue": "rude", "dataType": "CATEGORICAL", "traceId": "t",
                      "observationId": "o", "timestamp": "2026-03-02T10:00:00Z", "source": "ANNOTATION"},
                     {"id": "2", "name": "stars", "value": 4, "dataType": "NUMERIC", "sessionId": "s"},
                     {"id": "3", "name": "run", "value": 1, "dataType": "NUMERIC", "datasetRunId": "d"}], "meta": {"page": 1}}
    log_format = recognise(head(page))
    assert log_format is named("langfuse_scores")
    rows = read_platform_log("langfuse_scores", page).events
    assert [(row["session_id"], row["value"], row["call_id"]) for row in rows] == [("trace:t", "rude", "o"), ("s", "4", None)]


def test_turns_in_files_of_their_own_are_one_session_also_where_no_history_is_repeated(tmp_path: Path) -> None:
    readings = []
    for turn, text in ((1, "one"), (5, "two")):
        path = tmp_path / f"{turn}.jsonl"
        path.write_bytes(orjson.dumps(observation(turn, "GENERATION", [{"role": "user", "content": text}], f"Answer {text}",
                                                  trace_id=f"t{turn}")) + b"\n")
        readings.append(reading_of(path))
    made = assemble(pl.concat([each.events for each in readings]), readings[0].declarations)
    assert made.turns["content"].to_list() == ["one", "Answer one", "two", "Answer two"]
    assert made.sessions["session_id"].to_list() == ["s"]


@pytest.mark.parametrize(("names", "service"), [
    (("desk", "desk"), "desk"), (("desk", "title"), None), (("agent.6f8d2449", "agent.6f8d2449"), None)])
def test_the_name_that_all_traces_have_names_the_service(names: tuple[str, str], service: str | None) -> None:
    rows = [observation(number, "GENERATION", PROMPT, "done", trace_id=f"t{number}", trace_name=name)
            for number, name in enumerate(names)]
    emit = read_platform_log("langfuse", *rows)
    assert {row["service"] for row in emit.events if row["kind"] == "message"} == {service}


def test_a_service_in_a_traces_metadata_is_that_of_its_observations() -> None:
    trace = {"id": "t", "timestamp": "2026-03-02T10:00:00Z", "name": "turn", "sessionId": "s", "userId": "u",
             "bookmarked": False, "metadata": '{"service": "desk"}',
             "observations": [observation(1, "GENERATION", PROMPT, "done", trace_id="t")]}
    emit = read_platform_log("langfuse", trace)
    assert {row["service"] for row in emit.events if row["kind"] == "message"} == {"desk"}
