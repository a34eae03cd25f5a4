"""Awkward files: what each must give stands in format_samples/10_edge/expected.json."""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl

from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import AssembledSessions, assemble
from tests.extractors.formats.accounts import accounted_for


def edge(data: Path, name: str) -> tuple[Reading, AssembledSessions]:
    reading = read(SourceFile(data / "format_samples/10_edge" / name, name))
    return reading, assemble(reading.events, reading.declarations)


def calls(made: AssembledSessions) -> pl.DataFrame:
    return made.turns.filter(pl.col("kind") == "call")


def test_arguments_that_are_no_json_stay_as_logged(data: Path) -> None:
    reading, made = edge(data, "openai_bad_arguments.jsonl")
    [call] = calls(made).to_dicts()
    assert call["arguments"] is None and call["arguments_raw"] == '{"order_id": "LN-1"' and call["content"] is None
    notes = orjson.loads(reading.events.filter(pl.col("kind") == "call")["lossy"].item())
    assert notes == ["args_parse_error", "finish_reason length"]
    assert made.decisions.filter(pl.col("subject") == call["turn_id"])["reason"].to_list() == ["unanswered_call"]


def test_results_nobody_asked_for_are_kept_and_flagged(data: Path) -> None:
    reading, made = edge(data, "openai_orphan_and_duplicate_results.jsonl")
    assert calls(made)["content"].to_list() == ['{"ok":1}']
    assert reading.events.filter(pl.col("kind") == "result").height == 3
    rejected = made.decisions.filter(~pl.col("kept"))
    assert sorted(rejected["reason"]) == ["duplicate_result", "orphan_result"]
    assert set(rejected["subject"]) <= set(reading.events["event_id"])


def test_an_id_used_twice_answers_its_latest_call(data: Path) -> None:
    _, made = edge(data, "openai_reused_call_ids.jsonl")
    assert calls(made).select("tool", "content").rows() == [("a", "1"), ("b", "2")]


def test_the_legacy_functions_api(data: Path) -> None:
    reading, made = edge(data, "openai_legacy_functions.jsonl")
    assert calls(made).select("tool", "content", "call_id").rows() == [("get_order", '{"status":"ok"}', None)]
    assert reading.declarations["tool"].to_list() == ["get_order"] and made.tools["declared"].to_list() == [True]


def test_two_candidates_and_a_picture(data: Path) -> None:
    reading, made = edge(data, "openai_multimodal_and_n2.jsonl")
    assert made.turns["content"].to_list() == ["see photo", "A"]
    lossy = reading.events.select("content", "lossy").rows()
    assert ("B", '["candidate 1"]') in lossy
    assert any(content == "see photo" and "part image_url sha256:" in note for content, note in lossy)


def test_spans_sent_twice_and_spans_of_something_else(data: Path) -> None:
    reading, made = edge(data, "otlp_orphans_and_dups.jsonl")
    assert calls(made).select("tool", "arguments", "content").rows() == [("a", "{}", None)]
    [other] = reading.events.filter(pl.col("kind") == "log").to_dicts()
    assert (other["tool"], other["arguments"], other["latency_ms"]) == ("no end", '{"n":7,"empty":null}', None)
    assert set(reading.events["session_id"]) == {"trace:cfd97b81da970926d0c29e0e39ec7e2a"}, "hex digits in either case"
    rejected = reading.decisions.filter(~pl.col("kept"))
    assert rejected.select("line", "reason").sort("line", "reason").rows() == [
        (2, "duplicate_span"), (2, "no_new_span"), (3, "no_new_span")]


def test_row_changes_with_snapshot_tombstone_and_unchanged_column(data: Path) -> None:
    reading, made = edge(data, "debezium_snapshot_tombstone_toast.jsonl")
    assert made.row_changes.select("operation", "before", "after").rows() == [
        ("snapshot", None, '{"id":1,"body":"x","amount":"AfQ="}'),
        ("update", None, '{"id":1,"amount":"AfQ="}'), ("delete", '{"id":1}', None)]
    assert reading.events["lossy"].to_list() == [None, '["unchanged body"]', None]
    rejected = reading.decisions.filter(~pl.col("kept")).sort("line")
    assert rejected["reason"].to_list() == ["tombstone", "unsupported_operation"]


def test_a_truncated_table_is_no_change_of_a_row_and_stays_in_the_log(data: Path) -> None:
    reading, _ = edge(data, "debezium_snapshot_tombstone_toast.jsonl")
    [record] = reading.records.filter(line=5)["record_id"].to_list()
    assert record in accounted_for(reading)
    assert reading.records.height == 5 and reading.events.filter(kind="row_change").height == 3


def test_a_transcript_with_a_side_chain_a_compaction_and_a_branch(data: Path) -> None:
    reading, made = edge(data, "claude_code_sidechain_compact_branch.jsonl")
    main = made.turns.filter(session_id="s-1").sort("position")
    spoken = [(role, tool, content) for role, tool, content in main.select("role", "tool", "content").rows()
              if not (content or "").startswith(("This session is being continued", "Conversation compacted"))]
    assert [each[1:] for each in spoken] == [
        (None, "find the bug"), ("Task", "found it"), (None, "edited wording"), (None, "fixed")]
    assert [each[0] for each in spoken] == ["user", "assistant", "user", "assistant"]
    counts = [orjson.loads(text) for text in reading.events.filter(session_id="s-1")["usage"].drop_nulls()]
    assert sorted(each["output_tokens"] for each in counts) == [5, 25], "snapshots of one answer are counted once"


def test_a_sub_agent_has_a_session_of_its_own(data: Path) -> None:
    _, made = edge(data, "claude_code_sidechain_compact_branch.jsonl")
    [other] = made.sessions.filter(pl.col("session_id") != "s-1")["session_id"].to_list()
    assert "ag1" in other
    assert made.turns.filter(session_id=other).sort("position")["content"].to_list() == ["look", "found it"]


def test_an_abandoned_branch_is_no_turn_and_does_not_vanish(data: Path) -> None:
    reading, made = edge(data, "claude_code_sidechain_compact_branch.jsonl")
    [record] = reading.records.filter(line=9)["record_id"].to_list()
    assert "first wording" not in made.turns["content"].to_list()
    assert record in accounted_for(reading)


def test_a_torn_last_line_is_a_decision(data: Path) -> None:
    reading, _ = edge(data, "claude_code_sidechain_compact_branch.jsonl")
    rejected = reading.decisions.filter(reason="unreadable_record")
    assert rejected["line"].to_list() == [12] and not rejected["kept"].any()


def test_tool_calls_over_the_wire(data: Path) -> None:
    """A protocol error, a cancelled call and a batch; what the server asks in the other direction is no tool call."""
    reading, made = edge(data, "mcp_errors_cancel_batch.jsonl")
    rows = {(row["session_id"], row["tool"]): row for row in calls(made).to_dicts()}
    assert sorted(rows) == [("A", "nope"), ("B", "slow"), ("C", "a"), ("C", "b")]
    assert rows["A", "nope"]["is_error"] is True
    assert "-32602" in rows["A", "nope"]["content"] and "Unknown tool: nope" in rows["A", "nope"]["content"]
    assert rows["B", "slow"]["content"] is None and rows["B", "slow"]["is_error"] is None
    assert "part 1" in rows["C", "a"]["content"] and rows["C", "b"]["content"] == "B"
    assert rows["C", "b"]["arguments"] == "{}" and rows["C", "a"]["is_error"] is False
    assert set(reading.records["record_id"]) <= accounted_for(reading), "cancellation and elicitation do not vanish"


def test_lines_of_many_hands(data: Path) -> None:
    """Ten lines, of which three are the traceback of the one before them."""
    reading, _ = edge(data, "log_lines_mixed.log")
    rows = reading.events.sort("happened_at").to_dicts()
    assert len(rows) == 7, [each["content"] for each in rows]
    times = [each["happened_at"].strftime("%H:%M:%S.%f")[:12] for each in rows]
    assert times == ["09:15:00.500", "10:15:00.123", "10:15:01.250", "10:15:02.000", "10:15:03.000", "10:15:04.000",
                     "10:15:05.000"]
    assert "ValueError: boom" in rows[2]["content"] and "File \"x.py\"" in rows[2]["content"]
    assert [each["kind"] for each in rows] == ["log", "log", "log", "log", "request", "log", "log"]
    assert rows[4]["tool"] == 'GET /a"b' and orjson.loads(rows[4]["value"])["status"] == 200
    assert rows[4]["name"] in (None, "203.0.113.9"), "a dash says nothing"
    assert "nested ecs" in rows[3]["content"] and "no structured data" in rows[6]["content"]


def test_the_same_session_in_three_traces_and_a_completion_log(data: Path) -> None:
    names = ["05_providers/openai_chat_log.jsonl", "01_otlp/otlp_traces_semconv_1_41.jsonl",
             "01_otlp/otlp_traces_semconv_latest_structured.json", "01_otlp/otlp_traces_TRAP_protojson_base64_ids.jsonl"]
    event_rows = []
    for name in names:
        reading = read(SourceFile(data / "format_samples" / name, name))
        turns = assemble(reading.events, reading.declarations).turns
        event_rows.append(turns.select("session_id", "position", "kind", "role", "tool", "arguments", "call_id").rows())
        assert reading.declarations.height == 4
    assert event_rows[0] == event_rows[1] == event_rows[2] == event_rows[3] and len(event_rows[0]) == 14
