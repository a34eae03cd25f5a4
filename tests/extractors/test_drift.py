"""Drift of schemas: what was renamed in real logs is named, and logs that did not change raise no alarm."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.drift import drift, shape
from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import assemble
from tests.extractors.conftest import ReadSet
from warehouse.records import Decision, Event, frame, frame_schema

DAY = "2026-03-09"
Change = Callable[[bytes], bytes]


def drifted(*paths: Path) -> pl.DataFrame:
    readings = [read(each) for each in discover(paths)[0]]
    events = pl.concat([each.events for each in readings])
    return drift(events, assemble(events).turns)


def changed(logs: Path, folder: Path, change: Change) -> Path:
    """Every third line of the logs, with `change` done to each file since the day."""
    folder.mkdir()
    for path in sorted(logs.glob("*.jsonl")):
        held = b"".join(path.read_bytes().splitlines(keepends=True)[::3])
        (folder / path.name).write_bytes(change(held) if path.stem >= DAY else held)
    return folder


@cache
def argument_of_a_tool(logs: Path) -> tuple[str, str]:
    """Return a tool, and an argument of its own, that many calls have: read off the logs, so that no name stands here."""
    found: Counter[tuple[str, str]] = Counter()
    for path in sorted(logs.glob("*.jsonl"))[:2]:
        turns = assemble(read(discover([path])[0][0]).events).turns.filter(pl.col("kind") == "call")
        for tool, arguments in turns.select("tool", "arguments").iter_rows():
            found.update((tool, name) for name in orjson.loads(arguments or "{}"))
    by_name = Counter(name for _, name in found)
    return next(pair for pair, _ in found.most_common() if by_name[pair[1]] == 1)


def renamed_in_calls(tool: str, old: str, new: str) -> Change:
    """Arguments of a tool, in the answers and in the histories that repeat them."""
    def rename(part: Any) -> None:
        if isinstance(part, list):
            for each in part:
                rename(each)
        elif isinstance(part, dict):
            if part.get("name") == tool and isinstance(part.get("arguments"), str):
                arguments = orjson.loads(part["arguments"])
                part["arguments"] = orjson.dumps(
                    {new if name == old else name: held for name, held in arguments.items()}).decode()
            for each in part.values():
                rename(each)

    def change(held: bytes) -> bytes:
        records = [orjson.loads(line) for line in held.splitlines()]
        rename(records)
        return b"\n".join(map(orjson.dumps, records)) + b"\n"
    return change


@pytest.mark.parametrize("name", ["airline", "desks", "human_desk", "office", "retail_desk", "shop_app"])
def test_no_alarm_where_nothing_changed(name: str, read_set: ReadSet) -> None:
    events, _ = read_set(name)
    found = drift(events, assemble(events).turns)
    assert dict(found.schema) == frame_schema(Decision)
    assert found["detail"].to_list() == []


def test_a_renamed_argument_is_named_with_its_day(data: Path, tmp_path: Path) -> None:
    logs = data / "retail_desk/logs"
    tool, old = argument_of_a_tool(logs)
    found = drifted(changed(logs, tmp_path / "logs", renamed_in_calls(tool, old, f"{old}_text")))
    [row] = found.to_dicts()
    assert (row["stage"], row["reason"], row["kept"]) == ("drift", "renamed", True)
    assert row["subject"].endswith(f"/arguments of {tool}/{old}")
    assert f"{old} is called {old}_text since {DAY}" in row["detail"]


def test_a_renamed_tool_is_named_with_its_day(data: Path, tmp_path: Path) -> None:
    logs = data / "retail_desk/logs"
    tool, _ = argument_of_a_tool(logs)
    found = drifted(changed(logs, tmp_path / "logs", lambda held: held.replace(f'"{tool}"'.encode(), f'"{tool}_v2"'.encode())))
    assert f"{tool} is called {tool}_v2 since {DAY}" in " ".join(found["detail"])
    assert set(found["reason"]) == {"renamed"}


def test_a_field_of_the_envelope_that_is_written_otherwise_vanishes(data: Path, tmp_path: Path) -> None:
    """The session's id under a name that nobody knows: the column that it filled is empty from then on."""
    logs = data / "retail_desk/logs"
    found = drifted(changed(logs, tmp_path / "logs", lambda held: re.sub(rb'"session_id"', b'"visit_of"', held)))
    rows = found.filter(pl.col("subject").str.contains("columns of ")).to_dicts()
    assert {row["reason"] for row in rows if row["subject"].endswith("/session_id")} == {"vanished"}
    assert all(f"session_id is not seen since {DAY}" in row["detail"] for row in rows if row["subject"].endswith("/session_id"))


def test_an_argument_that_becomes_a_number_is_named(data: Path, tmp_path: Path) -> None:
    logs = data / "retail_desk/logs"
    tool, name = argument_of_a_tool(logs)
    held = re.compile(rb'(\\"' + name.encode() + rb'\\": )\\"[^"\\]*\\"')
    found = drifted(changed(logs, tmp_path / "logs", lambda content: held.sub(rb"\g<1>17", content)))
    rows = {row["subject"]: row for row in found.to_dicts()}
    [row] = [row for subject, row in rows.items() if f"type of {name} in arguments of {tool}" in subject]
    assert row["reason"] == "changed_type" and f"string became number since {DAY}" in row["detail"]


def instructed(texts: list[str]) -> pl.DataFrame:
    """Return the drift of twelve sessions a day, of which each begins with the instructions of its day."""
    rows = [{"event_id": f"{day}-{n}-{kind}", "source": "main", "format": "x", "session_id": f"s{day}-{n}", "kind": "message",
             "happened_at": datetime(2026, 3, 1 + day, 9, n, tzinfo=UTC), "position": place, "role": kind, "content": content}
            for day, text in enumerate(texts) for n in range(12)
            for place, (kind, content) in enumerate([("system", text), ("user", f"Hello, I am {n}.")])]
    events = frame(Event, [dict.fromkeys(frame_schema(Event)) | row for row in rows])
    return drift(events, assemble(events).turns)


def test_a_sentence_of_the_instructions_that_came_or_went_is_named_with_its_day() -> None:
    texts = [f"You serve a hall. Today is 2026-03-{day:02}.\n- Refund within {30 if day < 7 else 60} days."
             for day in range(1, 9)]
    found = {row["reason"]: row for row in instructed(texts).to_dicts()}
    assert set(found) == {"vanished", "appeared"}
    assert '"- Refund within 30 days." is not seen since 2026-03-07' in found["vanished"]["detail"]
    assert '"- Refund within 60 days." is seen since 2026-03-07' in found["appeared"]["detail"]
    assert "instructions of their own session" in found["appeared"]["detail"]


def test_names_and_dates_in_instructions_are_no_change() -> None:
    assert instructed([f"You serve a hall.\nToday is day {day}, and {7 * day} rooms are free." for day in range(8)]).is_empty()


@pytest.mark.parametrize(("one", "other"), [
    ("#W123", "#W9"), ("ann@x.org", "bo@yy.com"), ({"b": 1, "a": 2}, {"a": 0, "b": None})])
def test_like_values_have_one_shape(one: Any, other: Any) -> None:
    assert shape(one) == shape(other) != shape("2026-03-02T10:00")
    assert shape(1) == shape(2.5) == "number" and shape(True) == "boolean"
