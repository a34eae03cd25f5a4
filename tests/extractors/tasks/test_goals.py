"""Goals: a second one begins where the user brings it, and what was done unasked makes none."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from extractors.tasks import find, goals_of
from extractors.tasks.requests import reject_goalless
from tests.extractors.tasks.test_tasks import chances, frames

NONE = pl.DataFrame({"service": ["shop"], "tool": ["nothing"], "effect": ["read"]})
WORDS = {
    "fly": ["where is my plane to the islands", "is the flight late, and from which gate", "which seat do I have on the plane"],
    "cook": ["a recipe with lentils for six guests", "how long does the soup have to boil", "which herbs suit the lentil soup"],
    "hint": ["my bicycle has a broken chain", "the wheel of the bicycle is bent too", "when is the chain of my bike repaired"]}


def talk(*goals: str, calls: bool = True, unasked: str = "") -> list[tuple[Any, ...]]:
    """Return a session that brings one goal after another; `unasked` is called at the end without a word of the user on it."""
    steps: list[tuple[Any, ...]] = [("user", "good morning"), ("assistant", "hello, what can I do?")]
    for goal in goals:
        for place, words in enumerate(WORDS[goal]):
            steps += [("user", words), *([(goal, {"n": place}, "found")] if calls and place == 1 else []),
                      ("assistant", f"let me look at that {goal} thing")]
    steps.append(("user", "thank you, goodbye"))
    return [*steps, (unasked, {"n": 1}, "found")] if unasked else steps


def begins(found: pl.DataFrame, name: str) -> list[int]:
    return found.filter(pl.col("session_id") == name).sort("place")["begins"].to_list()


def corpus(calls: bool, n: int = 4) -> list[tuple[str, list[tuple[Any, ...]]]]:
    return [(f"{goal}{i:02}", talk(goal, calls=calls)) for goal in WORDS for i in range(n)]


def test_a_second_goal_begins_with_the_message_that_brings_it() -> None:
    two = talk("fly", "hint")
    sessions, turns = frames(*corpus(True), ("two", two), ("back", talk("cook", "fly", "cook")))
    goals = find(sessions, turns, chances(sessions), NONE, {}).goals
    brought = next(place for place, step in enumerate(two) if step == ("user", WORDS["hint"][0]))
    assert begins(goals, "two") == [0, brought]
    assert len(begins(goals, "back")) == 3
    kind = {row["session_id"]: row["kind"] for row in goals.filter(pl.col("place") == 0).to_dicts()}
    assert kind["two"] == kind["fly00"] != kind["back"] == kind["cook00"]
    second = goals.filter((pl.col("session_id") == "two") & (pl.col("place") == 1)).row(0, named=True)
    assert second["kind"] == kind["hint00"] and second["goal"].startswith(WORDS["hint"][0])
    whole = goals.sort("session_id", "place").group_by("session_id").agg(pl.col("begins"), pl.col("ends"))
    for row in whole.to_dicts():
        assert row["begins"][0] == 0 and row["begins"][1:] == row["ends"][:-1], "goals follow each other without a hole"


def test_a_session_of_an_answer_alone_has_no_goal_and_a_decision_that_says_so() -> None:
    sessions, turns = frames(*corpus(True, 1), ("alone", [("assistant", "Your order is on its way.")]))
    goals = goals_of(sessions, turns, NONE)
    decisions = reject_goalless(sessions, goals)
    assert decisions.select("stage", "subject", "kept", "reason").rows() == [("goals", "alone", False, "no_request")]
    assert set(goals["session_id"]) | {"alone"} == set(sessions["session_id"])


def test_a_call_that_nobody_asked_for_makes_no_goal() -> None:
    planted = [(f"unasked{i}", talk("cook", unasked="hint")) for i in range(2)]
    sessions, turns = frames(*corpus(True), *planted)
    found = find(sessions, turns, chances(sessions), NONE, {})
    family = dict(found.goals.select("session_id", "family").iter_rows())
    assert family["unasked0"] == family["unasked1"] == family["cook00"]
    assert found.goals.group_by("session_id").len()["len"].max() == 1


def test_without_any_call_words_alone_tell_the_kinds_and_their_number() -> None:
    sessions, turns = frames(*corpus(False, 12), ("two", talk("fly", "hint", calls=False)))
    goals = find(sessions, turns, chances(sessions), NONE, {}).goals
    of_session = {row["session_id"]: row["kind"] for row in goals.filter(pl.col("place") == 0).to_dicts()}
    assert len({of_session[f"{goal}{i:02}"] for goal in WORDS for i in range(12)}) == 3
    assert all(of_session[f"{goal}{i:02}"] == of_session[f"{goal}00"] for goal in WORDS for i in range(12))
    assert len(begins(goals, "two")) == 2


def test_goals_do_not_depend_on_the_order_of_rows() -> None:
    sessions, turns = frames(*corpus(True), ("two", talk("fly", "hint")))
    told = find(sessions, turns, chances(sessions), NONE, {}).goals
    again = find(sessions.reverse(), turns.reverse(), chances(sessions), NONE, {}).goals
    assert told.equals(again)


def test_a_goals_slots_are_what_the_user_said_and_the_kinds_tool_was_given() -> None:
    def order(i: int) -> tuple[str, list[tuple[Any, ...]]]:
        given = {"thing": f"lamp{4000 + i}", "colour": "red", "note": f"never said {i}"}
        return f"o{i}", [("user", f"paint lamp{4000 + i} red please"), ("paint", given, "ok"), ("assistant", "done")]

    sessions, turns = frames(*[order(i) for i in range(5)])
    effects = pl.DataFrame({"service": ["shop"] * 2, "tool": ["paint", "look"], "effect": ["write", "read"]})
    goals = find(sessions, turns, chances(sessions), effects, {}).goals
    assert [json.loads(slots) for slots in goals["slots"]] == [{"thing": f"lamp{4000 + i}", "colour": "red"} for i in range(5)]
