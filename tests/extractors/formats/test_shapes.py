"""Logs in the shapes that real clients and gateways write (`shapes`): each reads as one conversation, with nothing left out.

Each file holds the same two questions to a desk, or the first of them; `shapes/expected.json` says what must come of it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from benchmarks import first_hour_misread
from benchmarks.first_hour_misread import problems
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import AssembledSessions, assemble
from extractors.sniffing import sniff
from tests.extractors.formats.provider_reading import rejected_reasons

SHAPES = Path(__file__).parent / "shapes"
EXPECTED = orjson.loads((SHAPES / "expected.json").read_bytes())


def read_shape(path: Path) -> tuple[Reading, AssembledSessions]:
    reading = read(SourceFile(path, path.name))
    return reading, assemble(reading.events, reading.declarations)


def story(made: AssembledSessions) -> list[tuple[Any, ...]]:
    """Return who said what, and which tool answered what to which arguments, in order."""
    rows: list[tuple[Any, ...]] = []
    for row in made.turns.sort("session_id", "position").to_dicts():
        if row["kind"] == "call":
            rows.append((row["tool"], orjson.dumps(orjson.loads(row["arguments"])).decode(), row["content"]))
        elif row["kind"] == "message":
            rows.append((row["role"], row["content"]))
    return rows


@pytest.mark.parametrize("name", EXPECTED)
def test_a_shape_is_read_as_expected_and_what_is_not_read_is_listed(name: str) -> None:
    assert problems(SHAPES / name, EXPECTED[name]) == []


def test_what_is_missing_or_lost_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "gateway_choices.jsonl"
    expected = {**EXPECTED[name], "turns": EXPECTED[name]["turns"][1:]}
    assert [each.partition(":")[0] for each in problems(SHAPES / name, expected)] == ["turns", "with an unknown field"]
    monkeypatch.setattr(first_hour_misread, "sniff", lambda path: replace(sniff(path), uses=[
        each for each in sniff(path).uses if each.read_as]))   # a list without what is not read
    assert any("lost without a word: zz_unheard_of" in each for each in problems(SHAPES / name, EXPECTED[name]))


def test_times_and_traces_of_flat_records_are_read() -> None:
    reading, made = read_shape(SHAPES / "litellm_payloads.jsonl")
    answers = reading.events.filter(pl.col("usage").is_not_null()).sort("position")
    assert answers["latency_ms"].to_list() == [2250.0] * 4 and answers["happened_at"].is_not_null().all()
    assert orjson.loads(answers["usage"][0])["sampling"] == {"temperature": 0.2}
    assert made.sessions["session_id"].to_list() == ["trace:3f0c-0"]
    links = reading.events.filter(kind="link").select("session_id", "value").rows()
    assert links == [("trace:3f0c-0", "trace:3f0c-1")], "feedback on the later trace joins too"


def test_generations_of_one_trace_are_one_session_though_no_history_goes_on(tmp_path: Path) -> None:
    rows = [{"trace_id": "t1", "messages": [{"role": "user", "content": f"part {number}"}], "completion": f"answer {number}"}
            for number in range(3)]
    (tmp_path / "log").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    reading = read(SourceFile(tmp_path / "log", "log"))
    assert set(reading.events["session_id"]) == {"trace:t1"} and reading.events.height == 6


@pytest.mark.parametrize("answer", [
    "done", {"content": "done"}, {"role": "assistant", "content": "done"}, {"message": {"content": "done"}, "done": True},
    {"choices": [{"message": {"role": "assistant", "content": "done"}}]}, [{"message": {"content": "done"}}],
    [{"text": "done", "finish_reason": "stop"}], {"output_text": "done"}, {"completion": {"content": "done"}},
    [{"role": "assistant", "content": "done"}], [{"type": "text", "text": "done"}],
    '{"choices": [{"message": {"role": "assistant", "content": "done"}}]}',
    [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]} for text in ("do", "ne")]])
@pytest.mark.parametrize("name", ["response", "completion", "output", "choices"])
def test_an_answer_counts_under_any_name_in_any_shape(name: str, answer: Any, tmp_path: Path) -> None:
    record = {"messages": [{"role": "user", "content": "go"}], name: answer}
    (tmp_path / "log").write_bytes(orjson.dumps(record) + b"\n")
    reading, made = read_shape(tmp_path / "log")
    assert reading.file.format == "openai_completions" and rejected_reasons(reading) == []
    assert story(made) == [("user", "go"), ("assistant", "done")]


def test_an_answer_that_the_messages_end_with_counts_once(tmp_path: Path) -> None:
    record = {"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "done"}], "output": "done"}
    (tmp_path / "log").write_bytes(orjson.dumps(record) + b"\n")
    assert story(read_shape(tmp_path / "log")[1]) == [("user", "go"), ("assistant", "done")]


def test_an_answer_in_no_known_shape_is_named(tmp_path: Path) -> None:
    records = [{"messages": [{"role": "user", "content": "go"}], "response": answer} for answer in ("done", {"odd": [1]})]
    (tmp_path / "log").write_bytes(b"\n".join(map(orjson.dumps, records)))
    reading, _ = read_shape(tmp_path / "log")
    assert rejected_reasons(reading) == ["no_answer"]


@pytest.mark.parametrize(("call_ids", "result_ids", "n_paired"), [
    (["fc_1"], ["call_1"], 1), (["fc_1", "fc_2"], ["call_1", "call_2"], 2), (["fc_1", "fc_2"], ["call_1"], 0),
    (["call_1"], ["call_2"], 0), (["1"], ["2"], 0)])
def test_results_by_another_numbering_are_paired_only_where_it_is_certain(
        call_ids: list[str], result_ids: list[str], n_paired: int, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [
        {"id": each, "function": {"name": "look", "arguments": "{}"}} for each in call_ids]}, *(
        {"role": "tool", "tool_call_id": each, "content": "found"} for each in result_ids)]
    (tmp_path / "log").write_bytes(orjson.dumps({"messages": messages}) + b"\n")
    _, made = read_shape(tmp_path / "log")
    assert made.turns.filter(kind="call")["content"].count() == n_paired
    assert made.decisions.filter(reason="renumbered_result").height == n_paired
