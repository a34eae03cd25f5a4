"""Mapped envelopes: paths, words, lists, calls and results, and what holds for all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from extractors.configuration import Source, load
from extractors.formats import Emit, LogRecord, named
from extractors.formats.envelope import Envelope
from extractors.formats.mapped import RecordScope
from extractors.formats.mapped_words import failed, kind_of, role_of, went_well
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import assemble
from warehouse.errors import InputError


def mapped(folder: Path, rows: list[Any], **fields: Any) -> Reading:
    path = folder / "log"
    path.write_text("\n".join(map(json.dumps, rows)))
    return read(SourceFile(path, path.name, Source(fields=fields, format="mapped")))


def event_rows(log_reading: Reading, *columns: str) -> list[tuple[Any, ...]]:
    return log_reading.events.select(columns).rows()


@pytest.mark.parametrize(("path", "expected"), [
    ("a", {"b": [10, {"c": 3}]}), ("a.b.0", 10), ("a.b.1.c", 3), ("x.y", "dotted"), ("text.inner", True), ("=a", "a"),
    ("no|a.b.0", 10), ("empty|a.b.0", 10), ("a.b.7", None), ("^.outer", "around"), ("a.no", None), ("no|empty", ""),
    ("z.y.w", 5)])
def test_paths(path: str, expected: Any) -> None:
    value = {"a": {"b": [10, {"c": 3}]}, "x.y": "dotted", "text": '{"inner": true}', "empty": "", "z": {"y.w": 5}}
    assert RecordScope((value, {"outer": "around"}), "").get(path) == expected


def test_lists_on_the_way_to_a_list_are_walked() -> None:
    value = {"threads": [{"m": [1, 2]}, {"m": '[3]'}, {"m": None}, 7]}
    scopes = list(RecordScope((value,), "").each("threads.m"))
    assert [(scope.values[0], scope.place) for scope in scopes] == [(1, "/0/0"), (2, "/0/1"), (3, "/1/0")]
    assert scopes[2].values[1] == {"m": "[3]"}
    assert [scope.values[0] for scope in RecordScope(([4, 5],), "").each(".")] == [4, 5]


def test_words_of_the_configuration_come_first(tmp_path: Path) -> None:
    rows = [{"s": 1, "who": "agent", "t": "hello"}, {"s": 1, "who": "Zed", "t": "bye"}, {"s": 1, "who": "nobody", "t": "?"}]
    log_reading = mapped(tmp_path, rows, session_id="s", role="who", content="t", roles={"agent": "user", "Zed": "assistant"})
    assert event_rows(log_reading, "role", "session_id", "position") == [
        ("user", "1", 0),
        ("assistant", "1", 1),
        ("nobody", "1", 2),
    ]


@pytest.mark.parametrize(("word", "role", "kind"), [
    ("End-User", "user", None), ("bot_said", "assistant", "message"), ("AIMessage", "assistant", "message"),
    ("tool.call", None, "call"), ("Function Result", "tool", "result"), ("zebra", None, None), (7, None, None),
    ("user_message", "user", "message")])
def test_words_of_logs(word: Any, role: str | None, kind: str | None) -> None:
    assert (role_of(word, {}), kind_of(word, {})) == (role, kind)


@pytest.mark.parametrize(("value", "is_error", "well"), [
    (True, True, True), (None, False, False), ("", False, False), ("ok", False, True), ("Timeout", True, False),
    ("200", False, False), (503, True, True), ("false", False, False), ("yes", True, True),
    ({"code": 1}, True, True), (0, False, False)])
def test_what_a_field_says_of_errors(value: Any, is_error: bool, well: bool) -> None:
    assert failed(value) is is_error and went_well(value) is well


def test_a_call_and_its_result_in_one_record_or_in_two(tmp_path: Path) -> None:
    fields = {"tool": "fn", "arguments": "in", "result": "out", "error": "err", "call_id": "id", "time": "at",
              "latency_s": "took"}
    [call, result] = mapped(tmp_path, [{"fn": "f", "in": "{\"a\":1}", "out": None, "err": {"why": "x"}, "at": 1772446500,
                                        "took": 2.5, "id": 9}], **fields).events.to_dicts()
    assert (call["arguments"], call["call_id"], call["latency_ms"]) == ('{"a":1}', "9", 2500.0)
    assert (result["content"], result["is_error"]) == ('{"why":"x"}', True)
    assert (result["happened_at"] - call["happened_at"]).total_seconds() == 2.5
    two = mapped(tmp_path, [{"k": "call", "fn": "f", "in": {"a": 1}}, {"k": "result", "fn": "f", "out": [{"b": 2}]}],
                 kind="k", **fields)
    assert event_rows(two, "kind", "content", "is_error") == [("call", None, None), ("result", '[{"b":2}]', None)]
    bad = mapped(tmp_path, [{"fn": "f", "in": "not JSON"}], **fields)
    assert event_rows(bad, "arguments")[0] == ("not JSON",) and "args_parse_error" in bad.events["lossy"][0]


def test_order_is_stated_or_of_time_or_of_the_file(tmp_path: Path) -> None:
    rows = [{"t": "c", "at": "2026-03-02T10:00:02Z", "n": 1}, {"t": "a", "at": "2026-03-02T10:00:00Z", "n": 3},
            {"t": "b", "at": "2026-03-02T10:00:00Z", "n": 2}]

    def order(**fields: str) -> list[str]:
        log_reading = mapped(tmp_path, rows, content="t", role="=user", **fields).events.sort("position")
        return log_reading["content"].to_list()
    assert order() == ["c", "a", "b"] and order(time="at") == ["a", "b", "c"]
    assert order(time="at", position="n") == ["c", "b", "a"]


def test_a_session_goes_on_in_the_next_file(tmp_path: Path) -> None:
    for day, text in enumerate(["one thing", "another thing"]):
        rows = [{"s": "x", "t": f"{text} {i}", "r": "user", "at": f"2026-03-0{day + 1}T10:00:0{i}Z"} for i in range(3)]
        (tmp_path / f"{day}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = Source(fields={"session_id": "s", "content": "t", "role": "r", "time": "at"})
    read_rows = [read(SourceFile(path, path.name, source)).events for path in sorted(tmp_path.glob("*.jsonl"))]
    made = assemble(pl.concat(read_rows))
    assert made.sessions["session_id"].to_list() == ["x"] and made.turns["content"].to_list() == [
        f"{text} {i}" for text in ("one thing", "another thing") for i in range(3)]


def test_records_that_hold_nothing_of_it_stay(tmp_path: Path) -> None:
    log_reading = mapped(tmp_path, [{"t": "hi"}, {"other": 1}, 7, [], {"messages": []}], content="t", messages="list")
    assert event_rows(log_reading, "kind", "content") == [
        ("message", "hi"), ("log", '{"other":1}'), ("log", "7"), ("log", "[]"), ("log", '{"messages":[]}')]


def test_lines_of_text_are_left_where_fields_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text('{"t": "cut off\nno json\n')
    log_reading = read(SourceFile(path, path.name, Source(fields={"content": "t"}, format="mapped")))
    assert log_reading.events.is_empty() and log_reading.quarantine["content"].to_list() == [b'{"t": "cut off', b"no json"]
    assert log_reading.decisions.filter(~pl.col("kept"))["reason"].to_list() == ["no_fields"] * 2


def test_feedback_business_requests_and_thoughts(tmp_path: Path) -> None:
    log_reading = mapped(tmp_path, [{"q": "stars", "v": 4, "why": "nice"}], name="q", value="v", comment="why")
    assert event_rows(log_reading, "kind", "name", "value", "content") == [("feedback", "stars", "4", "nice")]
    log_reading = mapped(tmp_path, [{"what": "paid", "sum": 3}], kind="=business", tool="what")
    assert event_rows(log_reading, "kind", "tool", "arguments") == [("business", "paid", '{"what":"paid","sum":3}')]
    log_reading = mapped(
        tmp_path,
        [{"m": "post", "u": "https://x.example/a/b?c=1&c=2", "done": "2026-03-02T10:00:01Z", "ms": "250"}],
        method="m",
        path="u",
        ended="done",
        latency_ms="ms",
    )
    assert event_rows(log_reading, "kind", "tool", "arguments") == [
        ("request", "POST /a/b", '{"query":{"c":["1","2"]},"body":null}')
    ]
    assert str(log_reading.events["happened_at"][0]) == "2026-03-02 10:00:00.750000+00:00", "the start, from the end"
    log_reading = mapped(tmp_path, [{"t": "so", "r": "bot", "think": "hm"}], content="t", role="r", reasoning="think")
    assert event_rows(log_reading, "kind", "content", "position") == [("reasoning", "hm", None), ("message", "so", 0)]


def test_standard_calls_inside_messages_need_no_fields_of_their_own(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    log_reading = mapped(
        tmp_path, [{"m": [{"r": "assistant", "t": None, "tools": [call]}]}], messages="m", role="r", content="t", calls="tools"
    )
    assert event_rows(log_reading, "kind", "tool", "call_id", "role") == [("call", "f", "c", "assistant")]
    assert log_reading.events["session_id"][0].startswith("~"), "a list without a session is a conversation of its own"


def test_our_own_names_need_no_mapping(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(named("mapped").sample())
    log_reading = read(SourceFile(path, path.name))
    assert log_reading.file.format == "mapped"
    assert event_rows(log_reading, "kind", "position", "is_error") == [
        ("message", 0, None), ("call", 1, None), ("result", 2, False), ("message", 3, None), ("feedback", None, None)]


@pytest.mark.parametrize(("fields", "says"), [
    ({"rol": "x"}, "no field 'rol'"), ({"roles": {"a": "boss"}}, "'boss' in 'roles'"),
    ({"kinds": {"a": "x"}}, "'x' in 'kinds'"), ({"says": {"boss": "x"}}, "'boss' in 'says'"),
    ({"role.x": "y"}, "no field 'role.x'"), ({"roles": "user"}, "no field 'roles'")])
def test_a_mapping_that_cannot_be_is_refused(fields: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=says):
        Source(fields=fields)
    (tmp_path / "c.toml").write_text("[[sources]]\n[sources.fields]\nrol = 'x'\n")
    with pytest.raises(InputError, match="no field 'rol'"):
        load(tmp_path / "c.toml")


def test_fields_of_a_mapping_choose_the_format() -> None:
    assert Source(fields={"content": "t"}).format == "mapped"
    assert Source(fields={"session_id": "t"}).format is None
    assert Source(fields={"content": "t"}, format="json_log").format == "json_log"


KEYS = ["r", "c", "m", "f", "a", "o", "e", "s", "k", "v", "at"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["user", "tool", "call", "result", "", "{\"r\": 1}", "[", "GET", "2026-03-02"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6), max_leaves=20)
FIELDS = st.dictionaries(
    st.sampled_from(["messages", "calls", "role", "content", "kind", "tool", "arguments", "result", "error", "session_id",
                     "time", "position", "method", "path", "status", "name", "value", "latency_ms", "ended", "input_tokens",
                     "query"]),
    st.sampled_from([*KEYS, "r.c", "c.0", "^.s", "=call", "=user", ".", "!e", "a|o"]), max_size=8)


@given(values=st.lists(VALUES, min_size=1, max_size=4), fields=FIELDS)
def test_any_json_under_any_mapping_becomes_events_or_a_reject(values: list[Any], fields: dict[str, str]) -> None:
    emit = Emit("file", "main", "mapped", Envelope(fields))
    records = [LogRecord(f"{number:064d}", number, value) for number, value in enumerate(values)]
    named("mapped").read(iter(records), emit)
    spoken_of = {row["record_id"] for row in emit.events} | {record.record_id for record, _, _ in emit.rejects}
    assert spoken_of == {record.record_id for record in records}
    assert len({row["event_id"] for row in emit.events}) == len(emit.events)


@pytest.mark.parametrize("answer", ["returned", "text"])
def test_a_record_that_the_tool_speaks_tells_its_call_too(answer: str, tmp_path: Path) -> None:
    fields = {"session_id": "s", "role": "who", "content": "text", "tool": "fn", "arguments": "given", "result": "returned"}
    asked = {"s": "a", "who": "user", "text": "go"}
    spoken = {"s": "a", "who": "tool", "fn": "look", "given": {"at": 1}, answer: "found"}
    rows = event_rows(mapped(tmp_path, [asked, spoken, spoken], **fields), "kind", "tool", "content")
    assert rows == [("message", None, "go"), *[("call", "look", None), ("result", "look", "found")] * 2]
    called = {"s": "a", "who": "assistant", "fn": "look", "given": {"at": 1}}
    rows = event_rows(mapped(tmp_path, [asked, called, called, spoken, spoken], **fields), "kind", "tool", "content")
    assert [row[0] for row in rows] == ["message", "call", "call", "result", "result"], "another record made the call"
