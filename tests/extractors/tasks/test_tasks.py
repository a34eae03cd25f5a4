"""Tasks: every session in one task or one decision; the same asked, the same task; sides that share nothing that ties."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.tasks import find, leakage
from extractors.tasks.arguments import calls_of, values_of
from extractors.tasks.goals import read_openings
from extractors.tasks.requests import find_requests, same_request
from warehouse.records import SPLITS, Outcome, Session, Task, Turn, frame, frame_schema

EFFECTS = pl.DataFrame(
    {"service": ["shop"] * 3, "tool": ["look", "paint", "sell"], "effect": ["read", "write", "write"]}
)
START = datetime(2026, 1, 5, tzinfo=UTC)


def frames(*sessions: tuple[str, list[tuple[Any, ...]]], identities: dict[str, str] | None = None) -> Any:
    """Sessions and turns from (name, steps): messages ("user", text), calls (tool, arguments, answer)."""
    heads, turns = [], []
    for at, (name, steps) in enumerate(sessions):
        head: dict[str, Any] = dict.fromkeys(frame_schema(Session))
        head |= {"session_id": name, "source": "main", "service": "shop", "format": "made", "n_messages": 0, "n_calls": 0}
        head |= {"started_at": START + timedelta(hours=at), "identity": (identities or {}).get(name)}
        heads.append(head)
        for place, step in enumerate(steps):
            row: dict[str, Any] = dict.fromkeys(frame_schema(Turn))
            row |= {"turn_id": f"{name}-{place}", "session_id": name, "service": "shop", "position": place}
            if step[0] in ("user", "assistant"):
                row |= {"kind": "message", "role": step[0], "content": step[1]}
            else:
                row |= {"kind": "call", "tool": step[0], "arguments": json.dumps(step[1]), "content": step[2]}
            turns.append(row)
    return frame(Session, heads), frame(Turn, turns)


def chances(sessions: pl.DataFrame, **probability: float) -> pl.DataFrame:
    return frame(Outcome, [
        {"session_id": name, "probability": probability.get(name, 0.9), "signals": "[]"} for name in sessions["session_id"]
    ])  # fmt: skip


PAINT = [("user", "hi"), ("user", "please paint wall4711 blue"), ("paint", {"at": "wall4711", "c": "blue"}, "ok"),
         ("assistant", "done")]  # fmt: skip
SELL = [("user", "kindly sell lamp0815 today"), ("sell", {"what": "lamp0815"}, "sold"), ("assistant", "done")]


def test_sessions_that_ask_the_same_from_the_same_state_are_one_task_best_first() -> None:
    sessions, turns = frames(("a", PAINT), ("b", PAINT), ("c", SELL), ("d", PAINT))
    outcomes = chances(sessions, a=0.6, b=0.2, d=0.8)
    tasks = find(sessions, turns, outcomes, EFFECTS, {"shop": "reset"}).tasks
    groups = {tuple(row["session_ids"]): row for row in tasks.to_dicts()}
    assert set(groups) == {("a", "b", "d"), ("c",)}
    painting = groups["a", "b", "d"]
    assert painting["succeeded_session_ids"] == ["d", "a"]
    assert painting["starts_at"] is None
    assert painting["difficulty"] == pytest.approx(1 - 1.6 / 3)
    assert painting["goal"] == "hi\nplease paint wall4711 blue"


def test_one_template_filled_in_with_other_numbers_or_names_is_another_request() -> None:
    asks = [f"please {verb} for item{item} and be done by {hour} o'clock today" for verb in ("light the lamp", "sound the bell")
            for item in (4711, 4712) for hour in (7, 8, 9)]  # fmt: skip
    steps = [(f"s{n:02}", [("user", asks[n % len(asks)]), ("assistant", "done"), ("user", "thank you")]) for n in range(15)]
    sessions, _ = frames(*steps)
    requests = same_request(find_requests(*frames(*steps))[0])
    by_request = requests.group_by("request").agg(pl.col("session_id").sort())["session_id"].to_list()
    assert sessions.height == 15
    assert sorted(by_request) == sorted([[f"s{n:02}", f"s{n + 12:02}"] if n < 3 else [f"s{n:02}"] for n in range(12)])


def test_in_a_shared_world_every_session_is_a_task_that_starts_when_it_did() -> None:
    sessions, turns = frames(("a", PAINT), ("b", PAINT), ("c", SELL))
    tasks = find(sessions, turns, chances(sessions), EFFECTS, {"shop": "shared"}).tasks
    assert sorted(tasks["session_ids"].to_list()) == [["a"], ["b"], ["c"]]
    starts = {row["session_ids"][0]: row["starts_at"] for row in tasks.to_dicts()}
    assert starts == {name: START + timedelta(hours=at) for at, name in enumerate("abc")}
    of_paint = tasks.filter(pl.col("goal").str.contains("paint"))
    assert of_paint["split"].n_unique() == 1, "the same words stand on one side"


def test_a_task_without_a_good_session_stays_and_the_gate_decides() -> None:
    sessions, turns = frames(("a", PAINT))
    low = find(sessions, turns, chances(sessions, a=0.4), EFFECTS, {}).tasks
    assert low["succeeded_session_ids"].to_list() == [[]]
    high = find(sessions, turns, chances(sessions, a=0.4), EFFECTS, {}, gate=0.3).tasks
    assert high["succeeded_session_ids"].to_list() == [["a"]]


def test_what_cannot_be_a_task_has_a_decision() -> None:
    sessions, turns = frames(
        ("nothing", []), ("only_agent", [("assistant", "hello?")]), ("unheard", [("user", "is anybody there now?")]),
        ("talk", [("user", "how are you doing today?"), ("assistant", "fine")]), ("requests", [("look", {"n": 1}, "x")]),
    )  # fmt: skip
    found = find(sessions, turns, chances(sessions), EFFECTS, {})
    assert dict(found.decisions.select("subject", "reason").iter_rows()) == {
        "nothing": "no_request", "only_agent": "no_request", "unheard": "no_answer",
    }
    assert sorted(found.tasks["session_ids"].to_list()) == [["requests"], ["talk"]]


def test_where_nobody_speaks_a_tasks_goal_says_in_words_what_was_done() -> None:
    sessions, turns = frames(("requests", [("GET /api/lamps/{lamps_1}", {}, "x"), ("POST /api/lamps", {"n": 1}, "x")]),
                             ("talk", [("user", "GET me a lamp, please, today"), ("assistant", "fine")]))
    found = find(sessions, turns, chances(sessions), EFFECTS, {})
    assert sorted(found.tasks["goal"].to_list()) == ["GET me a lamp, please, today", "lamps: add (n: 1)"]


def test_families_come_from_what_was_asked_even_where_something_else_was_done() -> None:
    def wrote(*tools: str) -> list[tuple[Any, ...]]:
        return [(tool, {"n": 1}, "ok") for tool in tools]

    def paint(i: int, *tools: str) -> tuple[str, list[Any]]:
        return f"p{i}", [("user", f"could you paint wall{4000 + i} please"), *wrote(*tools), ("assistant", "ok")]

    def sell(i: int, *tools: str) -> tuple[str, list[Any]]:
        return f"s{i}", [("user", f"I want to sell lamp{4000 + i}"), *wrote(*tools), ("assistant", "ok")]

    both = ("both", [("user", "could you paint wall4999 please. Also, I want to sell lamp4998"), *wrote("paint", "sell"),
                     ("assistant", "ok")])  # fmt: skip
    sessions, turns = frames(
        *(paint(i, "paint") for i in range(9)), *(sell(i, "sell") for i in range(9)),
        paint(90, "paint", "sell"), paint(91), sell(92, "paint"), both,
    )  # fmt: skip
    asked, _ = find_requests(sessions, turns)
    read = read_openings(asked, calls_of(turns, EFFECTS))
    kinds = dict(read.group_by("session_id", maintain_order=True).agg("label").iter_rows())
    assert kinds["p90"] == kinds["p91"] == kinds["p0"] == ["paint"]
    assert kinds["s92"] == kinds["s0"] == ["sell"]
    assert kinds["both"] == ["paint", "sell"]


def test_slots_are_what_the_user_said_and_a_tool_took() -> None:
    def paint(name: str, wall: str, colour: str) -> tuple[str, list[Any]]:
        return name, [("user", f"please paint {wall} in {colour}"), ("look", {"at": wall}, "{}"),
                      ("paint", {"at": wall, "c": colour, "by": "robot-0001"}, "ok"), ("assistant", "ok")]  # fmt: skip

    sessions, turns = frames(paint("a", "wall4711", "blue"), paint("b", "wall4712", "red"), paint("c", "wall4713", "red"))
    tasks = find(sessions, turns, chances(sessions), EFFECTS, {}).tasks
    slots = {row["session_ids"][0]: json.loads(row["slots"]) for row in tasks.to_dicts()}
    assert slots["a"] == {"paint.at": "wall4711", "paint.c": "blue"}
    assert slots["c"] == {"paint.at": "wall4713", "paint.c": "red"}


def test_one_users_things_and_changed_things_stay_on_one_side_and_shared_ones_are_named() -> None:
    names = [f"s{i:02}" for i in range(40)]
    steps = {
        name: [("user", f"sell number{1000 + i} now please"), ("look", {"at": "catalogue-1"}, "x"),
               ("sell", {"what": f"number{1000 + i // 2}"}, "ok"), ("assistant", "ok")]
        for i, name in enumerate(names)
    }  # fmt: skip
    identities = {name: f"user{i // 4}" for i, name in enumerate(names)}
    sessions, turns = frames(*steps.items(), identities=identities)
    tasks = find(sessions, turns, chances(sessions), EFFECTS, {}).tasks
    split = {row["session_ids"][0]: row["split"] for row in tasks.to_dicts()}
    assert set(split.values()) == set(SPLITS)
    assert 0.1 <= sum(side == "held_out" for side in split.values()) / 40 <= 0.3
    for user in set(identities.values()):
        assert len({split[name] for name in names if identities[name] == user}) == 1
    report = leakage(tasks, sessions, turns, EFFECTS)["shop"]
    assert report["method"] == "component" and report["leaks"] == 0
    assert report["shared"]["at"] == {"n": 1, "examples": ["catalogue-1"]}
    assert sum(report["n_tasks"].values()) == 40


def test_what_is_tied_to_a_session_with_a_side_elsewhere_is_on_that_side() -> None:
    names = [f"s{i:02}" for i in range(20)]
    steps = {name: [("user", f"sell number{1000 + i} now please"), ("sell", {"what": f"number{1000 + i}"}, "ok"),
                    ("assistant", "ok")] for i, name in enumerate(names)}
    sessions, turns = frames(*steps.items(), identities={name: f"user{i // 2}" for i, name in enumerate(names)})
    before = find(sessions, turns, chances(sessions), EFFECTS, {}).tasks
    sides = {"s00": "held_out", "s01": "train", "s02": "validation", "s18": "train"}
    stated = sessions.with_columns(pl.Series("side", [sides.get(name) for name in sessions["session_id"]]))
    after = find(stated, turns, chances(sessions), EFFECTS, {}).tasks
    old, new = ({row["session_ids"][0]: row["split"] for row in tasks.to_dicts()} for tasks in (before, after))
    assert [old[name] for name in ("s00", "s02", "s18")] == ["train", "train", "held_out"]
    assert [new[name] for name in ("s00", "s01", "s02", "s03", "s18", "s19")] == [
        "held_out", "held_out", "validation", "validation", "train", "train"]
    assert {name for name, side in new.items() if side != "train"} == {"s00", "s01", "s02", "s03", "s16", "s17"}
    assert new["s16"] == new["s17"] == "held_out", "the shares are filled with what has no side elsewhere"
    assert leakage(after, stated, turns, EFFECTS)["shop"]["leaks"] == 0


def test_later_tasks_are_held_out_and_near_duplicates_stay_together() -> None:
    def paint(i: int, words: str = "please would you kindly paint the long northern") -> list[tuple[Any, ...]]:
        wall = f"wall{1000 + i}"
        return [("user", f"{words} {wall} in the colour of the sea for me"), ("paint", {"n": wall}, "ok"), ("assistant", "ok")]

    names = [f"s{i:02}" for i in range(30)]
    again = paint(29, "would you kindly paint the long northern")[::2]
    sessions, turns = frames(("early", again), *((name, paint(i)) for i, name in enumerate(names)))
    tasks = find(sessions, turns, chances(sessions), EFFECTS, {}).tasks
    split = {row["session_ids"][0]: row["split"] for row in tasks.to_dicts()}
    assert split["s29"] == split["early"] == "held_out"
    assert [split[name] for name in names] == sorted((split[name] for name in names), key=SPLITS.index)
    report = leakage(tasks, sessions, turns, EFFECTS)["shop"]
    assert report["n_near_duplicates"] == 2 and report["leaks"] == 0
    early = pl.col("session_ids").list.first() == "early"
    leaking = tasks.with_columns(pl.when(early).then(pl.lit("train")).otherwise("split").alias("split"))
    assert leakage(leaking, sessions, turns, EFFECTS)["shop"]["leaks"] == 1


def test_a_task_knows_its_ways_what_was_asked_for_and_what_had_to_be_told() -> None:
    def served(*calls: tuple[Any, ...], told: str = "wall4711 was painted on 2031-05-06") -> list[tuple[Any, ...]]:
        return [("user", "please paint wall4711 over"), ("look", {"at": "wall4711"}, '{"due": "2031-05-06"}'),
                ("assistant", "in which colour?"), ("user", "make it blue"), *calls, ("assistant", told)]

    paint, sell = ("paint", {"n": "wall4711", "c": "blue"}, "ok"), ("sell", {"n": "wall4711"}, "ok")
    sessions, turns = frames(("a", served(paint)), ("b", served(paint)), ("c", served(sell, paint, told="done")))
    likely = chances(sessions).with_columns(pl.when(pl.col("session_id") == "c").then(0.1).otherwise(0.9).alias("probability"))
    (task,) = find(sessions, turns, likely, EFFECTS, {"shop": "reset"}).tasks.to_dicts()
    assert json.loads(task["call_sequences"]) == [{"calls": ["look", "paint"], "n_succeeded": 2, "n_sessions": 2},
                                        {"calls": ["look", "sell", "paint"], "n_succeeded": 0, "n_sessions": 1}]
    assert json.loads(task["late_arguments"]) == ["paint.c"]
    assert json.loads(task["reported_facts"]) == [{"tool": "look", "path": "due", "value": "2031-05-06"}]
    assert 0.0 < task["rate_low"] < 1.9 / 3 < task["rate_high"] < 1.0


def test_where_everything_hangs_together_the_split_goes_by_family_and_says_so() -> None:
    def act(i: int, tool: str) -> list[tuple[Any, ...]]:
        words = {"paint": "could you paint it over again", "sell": "I would like to sell that"}[tool]
        return [("user", f"{words} {i}"), (tool, {"n": i}, "ok"), ("assistant", "ok")]

    steps = {f"s{i}": act(i, "paint" if i % 5 else "sell") for i in range(10)}
    sessions, turns = frames(*steps.items(), identities=dict.fromkeys(steps, "ann"))
    whole = leakage(find(sessions, turns, chances(sessions), EFFECTS, {}).tasks, sessions, turns, EFFECTS)["shop"]
    assert "user" in whole["shared"] or whole["method"] == "family"


SAMPLES = st.lists(
    st.tuples(
        st.sampled_from(["please paint wall4711", "please sell lamp0815 also paint", "hello", "", "what about wall4711?"]),
        st.lists(st.tuples(st.sampled_from(["look", "paint", "sell"]),
                           st.dictionaries(st.sampled_from("xy"), st.sampled_from(["wall4711", "lamp0815", 7, None, [1, "a"]])),
                           st.sampled_from(["ok", "Error", None])), max_size=3),
        st.booleans(), st.sampled_from([None, "ann", "bob"]),
    ), max_size=8,
)  # fmt: skip


@settings(deadline=None, max_examples=15)
@given(SAMPLES, st.randoms(use_true_random=False), st.sampled_from(["reset", "shared"]))
def test_no_session_vanishes_or_stands_on_two_sides(samples: list[Any], order: Any, start: str) -> None:
    made = {}
    for i, (words, calls, answered, _) in enumerate(samples):
        made[f"s{i}"] = [("user", words), *calls, *([("assistant", "ok")] if answered else [])]
    identities = {f"s{i}": who for i, (*_, who) in enumerate(samples) if who}
    sessions, turns = frames(*made.items(), identities=identities)
    found = find(sessions, turns, chances(sessions), EFFECTS, {"shop": start})
    assert found.tasks.schema == pl.Schema(frame_schema(Task))
    in_tasks = found.tasks["session_ids"].explode().drop_nulls().to_list() if found.tasks.height else []
    left = found.decisions["subject"].to_list()
    assert sorted(in_tasks + left) == sorted(made), "every session once: in a task or in a decision"
    assert found.tasks["task_id"].n_unique() == found.tasks.height
    places = list(range(turns.height))
    order.shuffle(places)
    again = find(sessions.reverse(), turns[places], chances(sessions).reverse(), EFFECTS.reverse(), {"shop": start})
    assert again.tasks.equals(found.tasks) and again.decisions.equals(found.decisions)
    assert leakage(found.tasks, sessions, turns, EFFECTS) == leakage(found.tasks, sessions.reverse(), turns[places], EFFECTS)


def test_scripted_requests_differ_by_a_name_and_agree_by_an_added_sentence() -> None:
    def asks(name: str, text: str) -> tuple[str, list[Any]]:
        return name, [("user", text), ("assistant", "ok")]

    for_ann, for_bob = "Hey this is Ann! Please do what is on my list", "Hey this is Bob! Please do what is on my list"
    sessions, turns = frames(
        *(asks(f"a{i}", for_ann) for i in range(3)), *(asks(f"b{i}", for_bob) for i in range(3)),
        asks("c", for_bob + ". Note: it is long"),
    )  # fmt: skip
    requests = dict(same_request(find_requests(sessions, turns)[0]).iter_rows())
    assert requests["a0"] == requests["a2"] != requests["b0"]
    assert requests["b0"] == requests["b2"] == requests["c"]


def test_values_are_the_scalars_of_any_depth() -> None:
    _, turns = frames(("a", [("paint", {"at": {"wall": ["w1", {"n": 2}]}, "dry": True, "c": None}, "ok")]))
    values = values_of(calls_of(turns, EFFECTS))
    assert values.select("path", "value").rows() == [("at.wall", "w1"), ("at.wall.n", "2")]


def test_a_goal_of_work_that_nobody_worded_states_the_values_that_it_changes() -> None:
    order = {"items": [{"itemId": "L-77", "count": 2}, {"itemId": "L-78", "count": 1}], "note": "", "payment": "card_9"}
    steps = [("look", {"lamp": "L-77"}, "x"), ("sell", order, "ok"), ("paint", {"lamp": "L-7"}, "no")]
    sessions, turns = frames(("alone", steps))
    turns = turns.with_columns(is_error=pl.col("tool") == "paint")
    found = find(sessions, turns, chances(sessions), EFFECTS, {})
    assert found.tasks["goal"].to_list() == [
        "sell (items: item id: L-77, count: 2 and item id: L-78, count: 1; payment: card_9)"], "what failed changed nothing"


def test_work_on_other_things_is_another_task_where_nobody_speaks() -> None:
    steps = {name: [("paint", {"lamp": lamp}, "ok")] for name, lamp in (("a", "L-1"), ("b", "L-2"), ("c", "L-1"))}
    sessions, turns = frames(*steps.items())
    found = find(sessions, turns, chances(sessions), EFFECTS, {"shop": "reset"})
    assert sorted(found.tasks["session_ids"].to_list()) == [["a", "c"], ["b"]]


def test_what_a_user_filed_is_the_goal_and_runs_that_nobody_filed_are_no_tasks() -> None:
    def case(n: int) -> list[tuple[Any, ...]]:
        return [("file", {"text": f"Please paint lamp L-{n} in red"}, f'{{"form": "F-{n}", "open": true}}'),
                ("paint", {"lamp": f"L-{n}", "why": "they said so in the form"}, "ok")]

    sessions, turns = frames(*((f"case{n}", case(500 + n)) for n in range(4)), ("own", [("sell", {"lamp": "L-1"}, "ok")]))
    turns = turns.with_columns(requestor=pl.when(pl.col("tool") == "file").then(pl.lit("user")))
    found = find(sessions, turns, chances(sessions), EFFECTS, {})
    assert found.decisions.select("subject", "reason").rows() == [("own", "nobody_asked")]
    words = "Please paint lamp L-{0} in red\nfile (text: Please paint lamp L-{0} in red; form: F-{0}; open: true)"
    assert sorted(found.tasks["goal"]) == [words.format(500 + n) for n in range(4)], "the agent's texts are no request"
