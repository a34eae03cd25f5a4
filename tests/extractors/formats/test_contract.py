"""What every registered format keeps to, ours and anybody's: add a sample below and it is held to the same."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, get_args

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors import content
from extractors.formats import Emit, Format, LogRecord, registered
from extractors.formats.envelope import Envelope
from extractors.inventory import SourceFile
from extractors.reading import Reading, event_frame, read
from warehouse.records import Event, EventKind, frame_schema

LOGS = Path(__file__).parents[2] / "logs"
SAMPLES = {
    "debezium": LOGS / "retail_desk/cdc/2026-03-02.jsonl",
    "feedback": LOGS / "airline/feedback/sessions.csv",
    "openai_completions": LOGS / "retail_desk/logs/2026-03-02.jsonl",
    "openai_sessions": LOGS / "airline/logs/sessions.jsonl",
    "otlp": LOGS / "retail_desk/otlp/2026-03-02.jsonl",
    "request_log": LOGS / "shop_app/logs/2026-03-03.ndjson",
    "tool_list": LOGS / "desks/tools/airline.json",
}
OURS = [each for each in registered() if each.read.__module__.startswith("extractors.")]
KEYS = ["messages", "request", "response", "choices", "message", "role", "content", "tool_calls", "function", "name",
        "arguments", "session_id", "value", "kind", "op", "source", "before", "after", "payload", "req", "res", "url",
        "method", "headers",
        "tools", "resourceSpans", "scopeSpans", "spans", "attributes", "key", "parts", "user", "body", "time", "id"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["assistant", "tool", "c", "gen_ai.input.messages", "2026-03-02", "", "/a?b=1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5), max_leaves=25)


def sample(path: Path) -> SourceFile:
    return SourceFile(path, path.name)


def same(one: Reading, other: Reading) -> bool:
    return one.events.drop("file_id").equals(other.events.drop("file_id")) and one.records.drop("file_id").equals(
        other.records.drop("file_id"))


@pytest.mark.parametrize("log_format", OURS, ids=lambda each: each.name)
def test_sample_is_claimed_by_its_format_alone(log_format: Format) -> None:
    head = content.head_of(SAMPLES[log_format.name].read_bytes())
    assert [each.name for each in registered() if each.claims(head)] == [log_format.name]


@pytest.mark.parametrize("log_format", OURS, ids=lambda each: each.name)
def test_sample_reads_whole_and_typed(log_format: Format) -> None:
    reading = read(sample(SAMPLES[log_format.name]))
    assert reading.file.format == log_format.name
    assert reading.file.n_records == reading.records.height > 0
    assert dict(reading.events.schema) == frame_schema(Event)
    assert reading.events["event_id"].is_unique().all() and reading.records["record_id"].is_unique().all()
    assert set(reading.events["kind"]) <= set(get_args(EventKind))
    assert set(reading.events["record_id"]) <= set(reading.records["record_id"])
    assert reading.events.height + reading.declarations.height > 0
    assert reading.verdicts.filter(~pl.col("kept")).is_empty(), "a real sample loses nothing"


@pytest.mark.parametrize("log_format", OURS, ids=lambda each: each.name)
def test_same_bytes_anywhere_give_the_same_tables(log_format: Format, tmp_path: Path) -> None:
    original = SAMPLES[log_format.name]
    copy, packed = tmp_path / "elsewhere.data", tmp_path / "packed.gz"
    copy.write_bytes(original.read_bytes())
    packed.write_bytes(gzip.compress(original.read_bytes()))
    first = read(sample(original))
    assert same(first, read(sample(copy))) and same(first, read(sample(packed)))
    assert first.file.file_id == read(sample(copy)).file.file_id


@pytest.mark.parametrize("log_format", [each for each in OURS if each.name not in ("tool_list",)], ids=lambda each: each.name)
def test_a_torn_last_line_costs_that_line_alone(log_format: Format, tmp_path: Path) -> None:
    whole = SAMPLES[log_format.name].read_bytes()
    torn = tmp_path / "torn"
    torn.write_bytes(whole + (b"one-field-only\n" if log_format.name == "feedback" else whole.splitlines()[0][:-9] + b"\n"))
    before, after = read(sample(SAMPLES[log_format.name])), read(sample(torn))
    left = after.verdicts.filter(~pl.col("kept"))
    assert after.events.height == before.events.height
    assert left["reason"].to_list() == ["unreadable_record"] and left["line"].to_list() == [whole.count(b"\n") + 1]
    assert "torn, line " in left["detail"].item()


@pytest.mark.parametrize("log_format", OURS, ids=lambda each: each.name)
@given(values=st.lists(VALUES, min_size=1, max_size=4))
def test_any_json_becomes_events_or_a_reject(log_format: Format, values: list[Any]) -> None:
    emit = Emit("file", "main", log_format.name, Envelope())
    records = [LogRecord(f"{number:064d}", number, value) for number, value in enumerate(values)]
    log_format.read(iter(records), emit)
    told = {row["record_id"] for row in emit.events} | {record.record_id for record, _, _ in emit.rejects}
    assert event_frame(emit.events)["event_id"].is_unique().all()
    if not emit.declarations:
        assert told == {record.record_id for record in records}, "nothing vanishes"


@pytest.mark.parametrize("name", ["openai_completions", "openai_sessions", "otlp", "request_log", "debezium"])
@given(data=st.data())
def test_a_damaged_real_record_breaks_nothing(name: str, data: st.DataObject) -> None:
    """One value somewhere inside a real record replaced by something else."""
    line = data.draw(st.sampled_from(SAMPLES[name].read_bytes().splitlines()[:6]))
    value = orjson.loads(line)
    place: Any = value
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(min(len(place), 4)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(VALUES)
    log_format = next(each for each in OURS if each.name == name)
    emit = Emit("file", "main", name, Envelope())
    log_format.read(iter([LogRecord("0" * 64, 1, value)]), emit)
    assert event_frame(emit.events).height == len(emit.events)
    assert emit.events or emit.rejects
