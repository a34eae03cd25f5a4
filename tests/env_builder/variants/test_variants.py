"""New tasks out of a house with doors: good sessions open the door that is asked for, failed ones another or none."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from env_builder.runtime.canonical import canonical
from env_builder.runtime.world import World
from env_builder.variants import Variants, VariantTables, _tried, make
from env_builder.variants.failures import Unbound, taken_as_named
from warehouse.records import Behaviour, Fact, Family, Goal, Outcome, Recorded, Rubric, Session, Task, Turn, frame

ROOT = Path(__file__).resolve().parents[3]
BEGAN = datetime(2031, 4, 1, tzinfo=UTC)
CLOSED = '{{"door": "{0}", "keeper": "{1}", "state": "closed"}}'
OPENED = '{{"door": "{0}", "keeper": "{1}", "state": "open"}}'
KEEPERS = {f"D{n}": f"keeper{n}" for n in range(10, 40)}
GOOD = {f"g{n}": f"D{n}" for n in range(10, 22)}


def row(record: Any, **values: Any) -> dict[str, Any]:
    return dict.fromkeys(record.model_fields) | values


def turns(session_id: str, asked: str, opened: list[str]) -> list[dict[str, Any]]:
    own = {"session_id": session_id, "service": "house"}
    shown = CLOSED.format(asked, KEEPERS[asked])
    moves: list[dict[str, Any]] = [
        {"kind": "message", "role": "user", "content": f"Please open {asked} for {KEEPERS[asked]}."},
        {"kind": "call", "tool": "look", "arguments": canonical({"door": asked}), "content": shown},
        {"kind": "message", "role": "assistant", "content": f"Shall I open {asked}?"},
        {"kind": "message", "role": "user", "content": "Yes."}]
    moves += [{"kind": "call", "tool": "open", "arguments": canonical({"door": door}), "is_error": False,
               "content": OPENED.format(door, KEEPERS[door])} for door in opened]
    moves += [
        {"kind": "message", "role": "assistant", "content": "Done."}, {"kind": "message", "role": "user", "content": "Hm."}]
    return [row(Turn, turn_id=f"{session_id}.{place}", position=place, **own, **move) for place, move in enumerate(moves)]


def tables(failed: dict[str, tuple[str, list[str]]], held_out: str = "") -> VariantTables:
    """Good sessions that do as asked, and `failed`: session -> (door asked for, doors opened)."""
    sessions = {name: (door, [door]) for name, door in GOOD.items()} | failed
    starts = {name: BEGAN + timedelta(hours=place) for place, name in enumerate(sessions)}
    tasks = [
        row(
            Task,
            task_id=f"t-{name}",
            service="house",
            family="f",
            slots=canonical({"open.door": asked}),
            session_ids=[name],
            goal=f"Please open {asked}.",
            succeeded_session_ids=[name] if name in GOOD else [],
            starts_at=starts[name],
            call_sequences="[]",
            late_arguments="[]",
            split="held_out" if name == held_out else "train",
            reported_facts="[]",
            signature="[]",
        )
        for name, (asked, _) in sessions.items()
    ]
    outcomes = [row(Outcome, session_id=name, probability=0.99 if name in GOOD else 0.01, signals="[]") for name in sessions]
    facts = [
        row(
            Fact,
            fact_id=door,
            service="house",
            entity_class="door",
            key=door,
            value=CLOSED.format(door, keeper),
            derivation="seen",
            event_id="e",
        )
        for door, keeper in KEEPERS.items()
    ]
    recorded = [row(
        Recorded, recorded_id=f"{tool} {door}", service="house", tool=tool, arguments=canonical({"door": door}), is_error=False,
        content=text.format(door, keeper), after="[]", event_id="e", effects=canonical(
            [{"class": "door", "key": door, "value": text.format(door, keeper)}] if tool == "open" else []))
        for door, keeper in KEEPERS.items() for tool, text in (("look", CLOSED), ("open", OPENED))]
    behaviours = [row(
        Behaviour, service="house", tool=tool, effect=effect, n_support=9, n_against=0, program=canonical(
            {"tool": tool, "effect": effect, "rules": [{"rule": "recorded"}], "relation": {}}))
        for tool, effect in (("look", "read"), ("open", "write"))]
    return VariantTables(
        frame(Task, tasks), frame(Rubric, [row(Rubric, task_id=f"t-{name}", service="house") for name in GOOD]),
        frame(Goal, [row(
            Goal, goal_id=name, session_id=name, service="house", place=0, begins=0, ends=9, kind="k", asks="open", family="f",
            goal="g", slots=canonical({"door": asked})) for name, (asked, _) in sessions.items()]),
        frame(Family, [row(Family, family="f", service="house", asks='["open"]', goal="g", n_succeeded=5, signature="[]")]),
        frame(Session, [row(Session, session_id=name, service="house", started_at=starts[name]) for name in sessions]),
        frame(Turn, [one for name, (asked, opened) in sessions.items() for one in turns(name, asked, opened)]),
        frame(Outcome, outcomes), frame(Fact, facts), frame(Recorded, recorded), frame(Behaviour, behaviours))


def reasons(found: Variants) -> dict[str, str]:
    return dict(found.decisions.select("subject", "reason").iter_rows())


def test_a_session_that_went_wrong_is_solved_as_good_ones_were() -> None:
    found = make(tables({"b1": ("D35", ["D36"]), "b2": ("D37", [])}))
    assert reasons(found) == {"t-b1": "from_failure", "t-b2": "from_failure"}
    for task_id, session_id, door in (("t-b1", "b1", "D35"), ("t-b2", "b2", "D37")):
        made = found.variants.filter(pl.col("task_id") == task_id).row(0, named=True)
        steps = json.loads(made["solution"])
        assert [step for step in steps if step.get("tool") == "open"] == [{"tool": "open", "arguments": {"door": door}}]
        assert {"tool": "look", "arguments": {"door": door}} in steps, "it goes along with the session until that goes wrong"
        assert not any(step.get("say") == "Done." for step in steps) and "Hm." not in json.loads(made["script"])["turns"]
        assert made["session_ids"] == [session_id] and made["derived_from"].removeprefix("t-") in GOOD
        state = next(check for check in json.loads(made["checks"]) if check["kind"] == "state")
        assert list(state["parameters"]["accepted"][0]["documents"]) == [f"door/{door}"]
        assert set(state["provenance"]["supporting"]) <= set(GOOD), "who lent the way speaks for it"


@pytest.mark.parametrize(("harm", "reason"), [
    ([], "ends_as_it_failed"),
    ([pl.col("slots").str.replace("D35", "D99")], "does_not_play"),
    ([pl.col("slots").str.replace("door", "gate")], "no_way"),
    ([pl.when(pl.col("session_id") == "b1").then(pl.lit("look")).otherwise("asks").alias("asks")], "nothing_to_change"),
    ([pl.col("slots").str.replace("D1", "D2")], "way_not_proven"),
])
def test_what_does_not_bear_the_way_out_is_left_with_its_reason(harm: list[pl.Expr], reason: str) -> None:
    given = tables({"b1": ("D35", ["D35"])})
    found = make(given._replace(goals=given.goals.with_columns(*harm)))
    assert reasons(found) == {"t-b1": reason} and found.variants.is_empty()


def test_the_world_goes_when_all_was_tried() -> None:
    gc.collect()
    before = sum(isinstance(each, World) for each in gc.get_objects())
    given = tables({"b1": ("D35", ["D35"])})
    tried = _tried(given._replace(goals=given.goals.with_columns(pl.col("slots").str.replace("D35", "D99"))), "house", True, 3)
    gc.collect()
    assert any(isinstance(outcome, Unbound) and outcome.reason == "does_not_play" for _, _, outcome in tried)
    assert sum(isinstance(each, World) for each in gc.get_objects()) == before


@pytest.mark.parametrize(("role", "content", "reason"), [
    ("assistant", "I'm sorry, I can't do that.", "was_declined"),
    ("user", "Oh wait, I changed my mind, leave it as it is.", "taken_back"),
    ("user", "No, please.", "taken_back"),
    ("user", "And how many doors are open now?", "asks_more"),
])
def test_what_may_not_have_been_wanted_is_no_task(role: str, content: str, reason: str) -> None:
    given = tables({"b1": ("D35", ["D36"])})
    own = {"turn_id": "b1.more", "session_id": "b1", "service": "house", "position": 90, "kind": "message"}
    more = row(Turn, **own, role=role, content=content)
    found = make(given._replace(turns=pl.concat([given.turns, frame(Turn, [more])])))
    assert reasons(found) == {"t-b1": reason} and found.variants.is_empty()


def test_what_good_sessions_tell_of_an_act_is_told_of_this_one() -> None:
    given = tables({"b1": ("D35", ["D36"])})
    ends_well = (pl.col("content") == "Done.") & pl.col("session_id").is_in(list(GOOD))
    words = pl.format("Door {} is open, as you asked.", pl.col("session_id").replace(GOOD))
    telling = given.turns.with_columns(content=pl.when(ends_well).then(words).otherwise("content"))
    found = make(given._replace(turns=telling))
    assert reasons(found) == {"t-b1": "from_failure"}
    steps = json.loads(found.variants["solution"][0])
    assert steps[-1] == {"say": "Door D35 is open, as you asked."}


def test_a_way_about_other_things_is_a_task_of_its_own() -> None:
    found = make(tables({}), per_family=3)
    assert found.variants.height == 3 and set(found.variants["made_from"]) == {"rebinding"}
    for made in found.variants.to_dicts():
        call = next(step for step in json.loads(made["solution"]) if step.get("tool") == "open")
        door, donor = call["arguments"]["door"], GOOD[made["derived_from"].removeprefix("t-")]
        assert door != donor and made["session_ids"] == [] and made["goal"] == f"Please open {door}."
        assert json.loads(made["opening"])[0]["content"] == f"Please open {door} for {KEEPERS[door]}."
        assert json.loads(made["slots"]) == {"open.door": door} and donor not in made["solution"]
    assert make(tables({}), per_family=3).variants.equals(found.variants), "the same logs give the same tasks"


def test_no_task_is_about_things_of_another_side_of_the_split() -> None:
    given = tables({"b1": ("D35", ["D36"])}, held_out="b1")
    found = make(given, per_family=9).variants
    sides = {"held_out": {"D35", "D36"}, "train": set(GOOD.values())}
    for made in found.to_dicts():
        doors = {step["arguments"]["door"] for step in json.loads(made["solution"]) if "tool" in step}
        assert not doors & sides["train" if made["split"] == "held_out" else "held_out"]
    assert found.filter(pl.col("task_id") == "t-b1")["split"].to_list() == ["held_out"]


SHELF = canonical({"books": [{"name": name, "id": number} for name, number in
                             (("Blue Book", "1"), ("Blue Book", "2"), ("Red Book", "3"), ("Map", "4"))]})


@pytest.mark.parametrize(("words", "ids"), [
    ("Bring the Red Book.", "3"), ("Bring the red book and the map.", ["3", "4"]), ("Bring book 2.", ["2", "3"]),
    ("Bring the Blue Book and the Blue Book.", ["1", "2"])])
def test_rows_that_words_name_are_taken(words: str, ids: str | list[str]) -> None:
    taken_as_named({"bring.ids": ids}, words, [("look", SHELF)])


@pytest.mark.parametrize(("words", "ids"), [
    ("Bring the Blue Book.", ["1", "2"]), ("Bring the Blue Book and the Blue Book.", "1"),
    ("Bring the Red Book and the Map.", ["4"])])
def test_rows_that_words_name_in_another_number_make_no_task(words: str, ids: str | list[str]) -> None:
    with pytest.raises(Unbound, match="several_readings"):
        taken_as_named({"bring.ids": ids}, words, [("look", SHELF)])


def test_two_texts_of_one_length_name_a_row_the_same_in_every_process() -> None:
    code = """
import json
from env_builder.variants.failures import Unbound, taken_as_named
rows = json.dumps([{"from": "abc", "to": word, "id": f"L-{word}"} for word in ("def", "ghi", "jkl", "mno")])
try:
    taken_as_named({"bring.ids": ["L-def", "L-ghi"]}, "abc and def, mno and ghi and jkl", [("look", rows)])
    print("taken")
except Unbound as unbound:
    print(unbound.detail)
"""
    printed = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
                              env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in "1234"}
    assert len(printed) == 1, printed
