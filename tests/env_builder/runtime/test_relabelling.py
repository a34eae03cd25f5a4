"""Ids re-bound and lists shuffled: another room to who knows it by heart, the same to who looks, and to the grader."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.perturbations import learn_unordered_lists as learn
from env_builder.runtime import Environment
from env_builder.runtime.records import Result
from env_builder.runtime.relabelling import Relabelling, Renaming, form_of, forms, lists_in
from env_builder.world.calls import LoggedCall

KEYS = ["mia_li_3668", "FDZ0T5", "#W1234567", "HAT001", "HAT002", "HAT137", "gift_card_4529075", "2499294441", "aB3xY9zQ",
        "MFRB94", "550e8400-e29b-41d4-a716-446655440000", "box-7", "PUNERT"]
FORMS = forms(KEYS, ["ann.lee7911@example.com", "10117", 12345678], [])
OTHERS = ["CORP\\HAT137", "ann.lee7911", "HAT999", "x", "12,345", "2024-05-15", "\\n", '"', "W1234567."]
VALUES = st.recursive(
    st.one_of(st.integers(), st.text(), st.sampled_from([*KEYS, *OTHERS]), st.booleans(), st.none()),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one))


@given(st.integers(0, 9), st.lists(st.sampled_from([*KEYS, *OTHERS])))
def test_every_id_has_another_name_and_only_one(seed: int, words: list[str]) -> None:
    renaming, text = Renaming(FORMS, seed), " ".join(words)
    shown = renaming.shown(text)
    assert renaming.meant(shown) == text and len(shown) == len(text)
    assert "aB3xY9zQ" in words or renaming.meant(shown.lower()) == text.lower(), "whatever the case"
    renamed = [renaming.shown(word) for word in dict.fromkeys(words)]
    assert len(set(renamed)) == len(renamed)
    for word, other in zip(dict.fromkeys(words), renamed, strict=True):
        assert form_of(word) == form_of(other) or "HAT" not in word


@given(st.integers(0, 5), st.text(), VALUES)
def test_whatever_is_written_comes_back(seed: int, text: str, value: Any) -> None:
    renaming = Renaming(FORMS, seed)
    assert renaming.meant(renaming.shown(text)) == text and renaming.meant(renaming.shown(value)) == value
    for marks in (None, (",", ":")):
        seen = json.loads(renaming.shown(json.dumps(value, separators=marks)))
        assert seen == renaming.shown(value), "a text of JSON stays one, and its parts have the names that they have alone"
        assert renaming.meant(seen) == value


def test_what_is_no_id_stays() -> None:
    renaming = Renaming(FORMS, 1)
    for text in ("on 2024-05-15 at 10:30", "12,345,678.90", "2499294441.50", "10117", "PUNERT", "box-7", "3pm", "v2"):
        assert renaming.shown(text) == text
    moved = {key for key in KEYS if renaming.shown(key) != key}
    assert moved == set(KEYS) - {"PUNERT", "box-7"} and renaming.shown("gift_card_4529075").startswith("gift_card_")
    assert renaming.shown("HAT001").startswith("HAT") and Renaming(FORMS, 2).shown("FDZ0T5") != renaming.shown("FDZ0T5")
    choice = {"inputSchema": {"properties": {"a": {"enum": ["W7654321"]}}}}
    assert form_of("W1234567") in FORMS - forms(KEYS, [], [choice]), "a choice is shown as it is"


ANSWER = '{"rows": [{"n": "b", "at": [1, 2]}, {"n": "a", "at": [3, 4]}, {"n": "c", "at": [5, 6]}], "log": [1, 2, 3]}'


def test_lists_come_in_an_order_of_the_seed_and_the_question() -> None:
    orders = set()
    for seed in range(20):
        relabelling = Relabelling(seed, Renaming(frozenset(), seed), {"look": [["rows"]]})
        shown = relabelling.shown("look", {"q": 1}, Result(ANSWER, False, "recorded")).content
        assert shown == relabelling.shown("look", {"q": 1}, Result(ANSWER, False, "recorded")).content
        parsed = json.loads(shown)
        assert Counter(map(str, parsed["rows"])) == Counter(map(str, json.loads(ANSWER)["rows"])) and parsed["log"] == [1, 2, 3]
        orders.add(shown)
        assert relabelling.shown("other", {}, Result(ANSWER, False, "recorded")).content == ANSWER
        assert relabelling.shown("look", {}, Result(ANSWER, True, "recorded")).content == ANSWER
    assert len(orders) > 3
    strange = Result(ANSWER + " ", False, "induced")
    relabelling = Relabelling(1, Renaming(frozenset(), 1), {"look": [["rows"]]})
    assert relabelling.shown("look", {}, strange) == strange, "bytes of no known style stay"


def test_ids_among_commas_are_ids() -> None:
    renaming = Renaming(forms(["123456", "234567", "345678"], [], []), 3)
    one, other = renaming.shown("123456"), renaming.shown("234567")
    assert one != "123456" and renaming.shown("orders 123456,234567") == f"orders {one},{other}"
    assert renaming.shown('{"ids":[123456,234567]}') == f'{{"ids":[{one},{other}]}}'
    assert renaming.shown("123456.5 and 12,345,678") == "123456.5 and 12,345,678"


def call(answer: Any, **arguments: Any) -> LoggedCall:
    content = json.dumps(answer)
    return LoggedCall("s", 0, "look", arguments, json.dumps(arguments), content, answer, False, None, None, "e")


def test_an_order_that_no_field_tells_says_nothing() -> None:
    rows = [[{"k": k, "n": n} for k, n in zip(names, sizes, strict=True)] for names, sizes in (
        ("bca", (1, 2, 3)), ("ab", (5, 9)), ("cb", (2, 4)))]
    assert learn(call({"rows": one}, q=n) for n, one in enumerate(rows)) == {}, "they come by size"
    mixed = [*rows, [{"k": "a", "n": 3}, {"k": "b", "n": 1}]]
    assert learn(call({"rows": one}, q=n) for n, one in enumerate(mixed)) == {"look": [["rows"]]}
    assert learn(call({"rows": one}, q=n, rows=["x", "y"]) for n, one in enumerate(mixed)) == {}, "it is handed back in order"
    assert learn([call({"at": [3, 1]}, q=1), call({"at": [1, 3]}, q=1)]) == {}
    assert learn([call({"of": ["b", "a"]}, q=1), call({"of": ["a", "b"]}, q=1)]) == {"look": [["of"]]}, "seen to vary"
    assert learn([call({"of": ["b", "a"]}, q=1), call({"of": ["a", "b"]}, q=2)]) == {}, "too few to say"
    odd = [{"n": 10 ** 400}, {"n": float("nan")}]
    assert learn([call({"rows": odd}, q=1), call({"rows": odd[:1] * 2}, q=2)]) == {}, "what no JSON has says nothing"
    assert [place for place, _ in lists_in({"x1": {"items": [[1, 2], [3]]}})] == [("*", "items"), ("*", "items", "*")]


@pytest.fixture(scope="module")
def solved(sample_environment: Path) -> Iterator[tuple[Environment, dict[str, list[dict[str, Any]]]]]:
    rewards = sample_environment.parent.parent / "rewards" / sample_environment.name
    rows = map(json.loads, (rewards / "solutions.jsonl").read_text("utf-8").splitlines())
    yield Environment.load(sample_environment), {row["task_id"]: row["steps"] for row in rows}


def play(env: Environment, steps: list[dict[str, Any]]) -> float | None:
    for step in steps:
        if "say" in step:
            env.say(step["say"])
        else:
            env.call(step["tool"], step["arguments"])
    env.finish()
    return env.grade().reward


def test_known_solutions_pass_carried_over_and_not_by_heart(
    solved: tuple[Environment, dict[str, list[dict[str, Any]]]]
) -> None:
    env, solutions = solved
    changed = 0
    for task in env.tasks:
        on = ("rebound", "shuffled")
        first = env.reset(task.task_id, seed=4, perturbations=on)
        carried = env.carried(solutions[task.task_id])
        assert play(env, carried) == 1.0 and env.grade_journal(task.task_id, env.journal, 4, on).reward == 1.0
        assert [row["arguments"] for row in env.journal if row["kind"] == "call"] == [
            step["arguments"] for step in solutions[task.task_id] if "tool" in step], "the journal is in the room's own names"
        assert env.reset(task.task_id, seed=4, perturbations=on).messages == first.messages
        acts = [n for n, step in enumerate(solutions[task.task_id]) if step.get("tool") in env.writes]
        hung = any(carried[n] != solutions[task.task_id][n] for n in acts)
        env.reset(task.task_id, seed=4, perturbations=on)
        by_heart = play(env, solutions[task.task_id])
        changed += hung
        assert not hung or by_heart != 1.0, "what is known by heart is worth nothing"
        assert env.reset(task.task_id).messages == [dict(message) for message in task.opening]
    assert changed
