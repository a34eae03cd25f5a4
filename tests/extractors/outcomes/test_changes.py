"""What the rows say of a session: the rows changed as asked, hold something else, or did not change."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from extractors.outcomes import judge
from extractors.outcomes.evidence import gather
from extractors.outcomes.matching import changed, undone
from extractors.tasks import goals_of
from tests.extractors.outcomes.test_outcomes import EFFECTS, frames, session
from warehouse.records import Feedback, RowChange, empty, frame

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
COLOURS = ("blue", "red", "green")
NOTHING, OTHERWISE, LATE = 4, 7, 9
"""Sessions of which no row changed, another colour was written, and the row changed hours later."""


def logged() -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Sessions that all say they painted, and what the rows say: one a minute apart, answers that tell nothing."""
    told, changes = [], []
    for n in range(20):
        wall, colour, at = f"wall4{n:03}", COLOURS[n % 3], START + timedelta(minutes=10 * n)
        paint = ("paint", {"at": wall, "c": colour}, "taken")
        told.append(session(f"p{n}", ("user", f"please paint {wall} in {colour}"), paint, ("assistant", "it is painted")))
        if n != NOTHING:
            row = {"id": wall, "paint": {"colour": "white" if n == OTHERWISE else colour}, "dry": False}
            later = timedelta(hours=5) if n == LATE else timedelta(seconds=1)
            changes.append({"change_id": f"c{n}", "source": "main", "happened_at": at + later, "table_name": "walls",
                            "operation": "update", "key": None, "before": json.dumps({"id": wall}), "after": json.dumps(row)})
    sessions, turns = frames(*told)
    began = {f"p{n}": START + timedelta(minutes=10 * n) for n in range(20)}
    turns = turns.with_columns(pl.col("session_id").replace_strict(began).cast(pl.Datetime("us", "UTC")).alias("happened_at"))
    return sessions, turns, frame(RowChange, changes)


@pytest.fixture(scope="module")
def votes() -> dict[str, Any]:
    sessions, turns, changes = logged()
    goals = goals_of(sessions, turns, EFFECTS)
    found = changed(gather(sessions, turns, empty(Feedback), EFFECTS, {}, goals, changes))
    again = changed(gather(sessions, turns.reverse(), empty(Feedback), EFFECTS, {}, goals.reverse(), changes.reverse()))
    assert found.equals(again), "the order of rows says nothing"
    return {row["session_id"]: row for row in found.to_dicts()}


def test_rows_tell_what_was_done_as_asked_and_what_was_not(votes: dict[str, Any]) -> None:
    assert {name: row["vote"] for name, row in votes.items()} == {
        f"p{n}": -1.0 if n in (NOTHING, OTHERWISE, LATE) else 1.0 for n in range(20)}
    assert votes["p0"]["evidence"] == ["c0"] and votes[f"p{NOTHING}"]["evidence"] == []
    assert "no row changed" in votes[f"p{NOTHING}"]["description"] and "another c" in votes[f"p{OTHERWISE}"]["description"]


def test_rows_part_sessions_that_look_alike_in_the_log() -> None:
    sessions, turns, changes = logged()
    goals = goals_of(sessions, turns, EFFECTS)
    without = dict(judge(sessions, turns, empty(Feedback), EFFECTS, goals=goals).outcomes.select(
        "session_id", "probability").iter_rows())
    assert without[f"p{NOTHING}"] == without[f"p{OTHERWISE}"] == without["p1"] and without[f"p{LATE}"] == without["p0"]
    judged = judge(sessions, turns, empty(Feedback), EFFECTS, goals=goals, row_changes=changes).outcomes
    chance = dict(judged.select("session_id", "probability").iter_rows())
    assert max(chance[f"p{n}"] for n in (NOTHING, OTHERWISE, LATE)) < min(chance[f"p{n}"] for n in (0, 1, 2, 3, 5, 6, 8))


def test_a_change_that_is_taken_back_is_undone_and_another_one_is_not() -> None:
    sessions, turns, _ = logged()
    goals = goals_of(sessions, turns, EFFECTS)
    old, new, other = ({"id": "wall4000", "paint": {"colour": colour}, "at": f"2026-03-01T09:0{i}:00Z"}
                       for i, colour in enumerate(("grey", "blue", "green")))
    first = {"change_id": "x0", "source": "main", "happened_at": START, "table_name": "walls", "operation": "update",
             "key": None, "before": json.dumps(old), "after": json.dumps(new)}
    elsewhere = {"id": "door1", "of": "wall4000", "paint": {"colour": "blue"}}
    cases = ((new, old, 2, True), (new, old, 9, False), (new, other, 2, False), (elsewhere, old, 2, False))
    for before, after, n_days, back in cases:
        later = {**first, "change_id": "x1", "happened_at": START + timedelta(days=n_days), "before": json.dumps(before),
                 "after": json.dumps(after)}
        seen = gather(sessions, turns, empty(Feedback), EFFECTS, {}, goals, frame(RowChange, [first, later]))
        assert undone(seen)["evidence"].to_list() == ([["x0", "x1"]] if back else [])


def test_rows_of_other_tables_say_nothing() -> None:
    sessions, turns, changes = logged()
    others = changes.with_columns(pl.lit('{"id": "door1"}').alias("before"), pl.lit('{"id": "door1"}').alias("after"))
    goals = goals_of(sessions, turns, EFFECTS)
    assert changed(gather(sessions, turns, empty(Feedback), EFFECTS, {}, goals, others)).is_empty()
