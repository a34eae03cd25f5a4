"""Awkward files: what each must give stands in format_samples/10_edge/expected.json."""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl

from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import Sessions, assemble


def edge(data: Path, name: str) -> tuple[Reading, Sessions]:
    reading = read(SourceFile(data / "format_samples/10_edge" / name, name))
    return reading, assemble(reading.events, reading.declarations)


def calls(made: Sessions) -> pl.DataFrame:
    return made.turns.filter(pl.col("kind") == "call")


def test_arguments_that_are_no_json_stay_as_logged(data: Path) -> None:
    reading, made = edge(data, "openai_bad_arguments.jsonl")
    [call] = calls(made).to_dicts()
    assert call["arguments"] is None and call["arguments_raw"] == '{"order_id": "LN-1"' and call["content"] is None
    notes = orjson.loads(reading.events.filter(pl.col("kind") == "call")["lossy"].item())
    assert notes == ["args_parse_error", "finish_reason length"]
    assert made.verdicts.filter(pl.col("subject") == call["turn_id"])["reason"].to_list() == ["unanswered_call"]


def test_results_nobody_asked_for_are_kept_and_flagged(data: Path) -> None:
    reading, made = edge(data, "openai_orphan_and_duplicate_results.jsonl")
    assert calls(made)["content"].to_list() == ['{"ok":1}']
    assert reading.events.filter(pl.col("kind") == "result").height == 3
    left = made.verdicts.filter(~pl.col("kept"))
    assert sorted(left["reason"]) == ["duplicate_result", "orphan_result"]
    assert set(left["subject"]) <= set(reading.events["event_id"])


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
    left = reading.verdicts.filter(~pl.col("kept"))
    assert {"duplicate_span", "other_span"} <= set(left["reason"])
    assert left.filter(pl.col("line") == 3)["reason"].to_list() == ["no_new_span"]


def test_row_changes_with_snapshot_tombstone_and_unchanged_column(data: Path) -> None:
    reading, made = edge(data, "debezium_snapshot_tombstone_toast.jsonl")
    assert made.row_changes.select("operation", "before", "after").rows() == [
        ("snapshot", None, '{"id":1,"body":"x","amount":"AfQ="}'),
        ("update", None, '{"id":1,"amount":"AfQ="}'), ("delete", '{"id":1}', None)]
    assert reading.events["lossy"].to_list() == [None, '["unchanged body"]', None]
    left = reading.verdicts.filter(~pl.col("kept")).sort("line")
    assert left["reason"].to_list() == ["tombstone", "unsupported_operation"]


def test_the_same_session_in_three_traces_and_a_completion_log(data: Path) -> None:
    names = ["05_providers/openai_chat_log.jsonl", "01_otlp/otlp_traces_semconv_1_41.jsonl",
             "01_otlp/otlp_traces_semconv_latest_structured.json", "01_otlp/otlp_traces_TRAP_protojson_base64_ids.jsonl"]
    told = []
    for name in names:
        reading = read(SourceFile(data / "format_samples" / name, name))
        turns = assemble(reading.events, reading.declarations).turns
        told.append(turns.select("session_id", "position", "kind", "role", "tool", "arguments", "call_id").rows())
        assert reading.declarations.height == 4
    assert told[0] == told[1] == told[2] == told[3] and len(told[0]) == 14
