"""Formats that read many records at once tell exactly what they tell of each alone."""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.corpora import LINES
from extractors.content import parsed
from extractors.formats import Block, Emit, LogRecord, named
from extractors.formats.access_log import plain_requests
from extractors.formats.envelope import Envelope
from extractors.formats.openai_completions import Repeats

OF = {"completions": "openai_completions", "access_log": "access_log", "debezium": "debezium", "otlp": "otlp"}


def both(name: str, contents: list[bytes], text: bool = False) -> tuple[Emit, Emit]:
    """Return what a format tells of records one by one, and of all at once."""
    log_format = named(name)
    ids = [f"{number:032x}" for number in range(len(contents))]

    def record(index: int) -> LogRecord | None:
        value, problem, _ = (contents[index].decode("utf-8", "replace"), None, None) if text else parsed(contents[index])
        return None if problem else LogRecord(ids[index], index + 1, value)

    alone, together = (Emit("file", "main", name, Envelope()) for _ in range(2))
    log_format.read((rows for index in range(len(contents)) if (rows := record(index)) is not None), alone)
    assert log_format.read_block is not None
    log_format.read_block(Block(ids, list(range(1, len(contents) + 1)), contents, record), together)
    return alone, together


def same(alone: Emit, together: Emit) -> bool:
    order = ["record_id", "event_id"]
    event_rows = [(record.record_id, reason) for record, reason, _ in alone.rejects]
    return alone.frame().sort(order).equals(together.frame().sort(order)) and sorted(event_rows) == sorted(
        (record.record_id, reason) for record, reason, _ in together.rejects)


@pytest.mark.parametrize("name", OF)
def test_generated_logs_read_alike(name: str) -> None:
    lines = [line.rstrip(b"\n") for line in islice(LINES[name](random.Random(3)), 400)]
    alone, together = both(OF[name], lines, name == "access_log")
    assert alone.frame().height > 400 or name in ("access_log", "debezium")
    assert same(alone, together)


WORDS = st.sampled_from(["a", "]", "},{", '"messages":[', "\\", "é", "user", '","role":"user"', "[1,2]", " ", "\n"])
MESSAGES = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]), "content": st.lists(
    WORDS, max_size=4).map("".join) | st.lists(st.just({"type": "text", "text": "x]"}), max_size=2) | st.none()})
WRITERS = st.sampled_from([orjson.dumps, lambda value: json.dumps(value).encode(),
                           lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()])


@given(data=st.data())
def test_histories_that_repeat_are_told_as_if_each_were_whole(data: st.DataObject) -> None:
    """Conversations that go on, start over, fork, and are written in other ways, in any mixture."""
    histories: list[list[Any]] = [[], [], []]
    lines = []
    write = data.draw(WRITERS)
    for _ in range(data.draw(st.integers(1, 12))):
        which = data.draw(st.integers(0, 2))
        history = histories[which]
        if data.draw(st.integers(0, 9)) == 0:
            history.clear()
        history += data.draw(st.lists(MESSAGES, min_size=1, max_size=2))
        answer = data.draw(MESSAGES) | {"role": "assistant"}
        record = {"session_id": f"s{which}"} if data.draw(st.booleans()) else {}
        record |= {"request": {"messages": history, "tools": [{"name": "t", "parameters": {}}]},
                   "response": {"choices": [{"message": answer}]}}
        if data.draw(st.booleans()):
            record = dict(reversed(record.items()))
        lines.append(write(record))
        if data.draw(st.integers(0, 4)):
            history.append(answer)
    assert same(*both("openai_completions", lines))


def test_only_what_is_new_of_a_history_is_parsed() -> None:
    repeats: Repeats[str] = Repeats("messages", ("session",))
    first = b'{"session":"s","messages":[{"role":"user","content":"]},["}],"x":1}'
    assert repeats.shortened(first) is None
    repeats.tell(first, "known")
    longer = b'{"session":"s","messages":[{"role":"user","content":"]},["},{"role":"a"}],"x":2}'
    assert repeats.shortened(longer) == ({"session": "s", "messages": [{"role": "a"}], "x": 2}, "known")
    assert repeats.shortened(longer.replace(b"]},[", b"]},(")) is None, "another beginning"
    assert repeats.shortened(longer.replace(b'"s"', b'"t"')) is None, "another conversation"
    assert repeats.shortened(first) is None, "the same again holds nothing new"
    assert repeats.shortened(b"{") is None


def test_a_list_that_did_not_grow_is_not_taken_for_another_one_that_did() -> None:
    repeats: Repeats[str] = Repeats("messages", ("session",))
    first = b'{"session":"s","messages":[{"role":"user"}],"tags":[1]}'
    repeats.shortened(first)
    repeats.tell(first, "known")
    assert repeats.shortened(first.replace(b"[1]", b"[1,2]")) is None


ACCESS = st.tuples(
    st.sampled_from(["h", "::1", "-", 'a"b']), st.sampled_from(["-", "u", "é"]),
    st.sampled_from(["02/Mar/2026:10:15:47 +0100", "32/Mar/2026:10:15:47 +0100", "02/Mar/1960:10:15:47 +0000", "x"]),
    st.sampled_from(["GET /a?b=1&b=2 HTTP/1.1", "get /é%20 HTTP/2", "GET http://x/y HTTP/1.1", "\\x16\\x03", "-", "GET /a\tb",
                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ / HTTP/1.1"]),
    st.sampled_from(["200", "99", "-"]), st.sampled_from(["-", "0", "0012", "9" * 17]),
    st.sampled_from(["", ' "-" "-"', ' "" "a\\"b"', ' "http://r" "agent é"', ' "r" "a" rt=1.5', ' "r"']))


@given(rows=st.lists(ACCESS, min_size=1, max_size=6), torn=st.booleans())
def test_lines_of_an_access_log_read_alike(rows: list[tuple[str, ...]], torn: bool) -> None:
    lines = [f'{host} - {user} [{at}] "{request}" {status} {size}{rest}'.encode()
             for host, user, at, request, status, size, rest in rows]
    lines += [b"\xff" + lines[0][:9]] if torn else []
    assert same(*both("access_log", lines, text=True))


def test_most_lines_of_an_access_log_go_to_columns(data: Path) -> None:
    lines = [line for line in next((data / "access_log").rglob("*.log*")).read_bytes().splitlines() if line][:2000]
    assert plain_requests(lines).height > 0.9 * len(lines)


@given(data=st.data())
def test_plain_changes_read_alike(data: st.DataObject) -> None:
    rows = st.none() | st.dictionaries(st.sampled_from(["id", "name", "key"]), st.integers(0, 9) | st.sampled_from(
        ["x", "é", "__debezium_unavailable_value", '"}']), max_size=3)
    lines = []
    for _ in range(data.draw(st.integers(1, 5))):
        source = {
            "table": "t", "ts_us": data.draw(st.sampled_from([1772446548702000, 1, None])), "txId": 3,
            "lsn": data.draw(st.sampled_from([5, 2**63, None]))}
        operation = data.draw(st.sampled_from(["c", "u", "d", "r", "t"]))
        change = {"op": operation, "before": data.draw(rows), "after": data.draw(rows),
                  "source": {key: value for key, value in source.items() if value is not None}, "ts_ms": 1772446548702}
        if data.draw(st.booleans()):
            change = {"schema": None, "payload": change}
        lines.append(orjson.dumps(change))
    lines += [lines[0].replace(b'"id"', b'"\xff"')] if data.draw(st.booleans()) else []
    assert same(*both("debezium", lines))


def test_an_event_that_is_its_record_has_its_id() -> None:
    alone, together = both("debezium", [line.rstrip() for line in islice(LINES["debezium"](random.Random(1)), 9)])
    frame = together.frame()
    assert frame["event_id"].equals(frame["record_id"].alias("event_id")) and frame["kind"].unique().to_list() == ["row_change"]
    assert alone.frame().select(pl.col("happened_at").is_not_null().all()).item()
