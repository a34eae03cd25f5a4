"""Expressions found from examples: the simplest that explains all of them, and none where none does."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from env_builder.behaviour import guards
from env_builder.behaviour.synthesis import WriteExample, affixed, explain, fits, same
from env_builder.runtime.expressions import OPERATORS, NoValue, evaluate
from env_builder.runtime.writing import allowed

NAMES = st.sampled_from(["ada", "bob", "cy", "dee"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=6)


def examples(*rows: tuple[Any, Any, Any]) -> list[WriteExample]:
    return [WriteExample(*row) for row in rows]


@pytest.mark.parametrize(("hint", "rows", "wanted"), [
    (["state"], [({"state": "a"}, {}, "a"), ({"state": "b"}, {}, "b")], ["before", "state"]),
    (["state"], [({"state": "a"}, {}, "shut"), ({"state": "b"}, {}, "shut")], ["constant", "shut"]),
    (["who"], [({}, {"who": "x"}, "x"), ({}, {"who": "y"}, "y")], ["argument", "who"]),
    (["all"], [({}, {"all": ["c", "a"]}, ["a", "c"]), ({}, {"all": ["b", "a"]}, ["a", "b"])], ["sorted", ["argument", "all"]]),
    ([], [({}, {"days": n}, f"held;{n}") for n in (2, 2, 3, 3, 7, 7)],
     ["text", ["constant", "held"], ["constant", ";"], ["argument", "days"]]),
    (["n"], [({"n": 3}, {}, -3), ({"n": 4}, {}, -4)], ["negative", ["before", "n"]]),
    (["at"], [({}, {"x": 1, "y": 2}, {"y": 2, "x": 1}), ({}, {"x": 5, "y": 6}, {"y": 6, "x": 5})],
     ["object", [["y", ["argument", "y"]], ["x", ["argument", "x"]]]]),
    (["log"], [({"log": [1]}, {"why": "p"}, [1, "p"]), ({"log": [1, 2]}, {"why": "q"}, [1, 2, "q"])],
     ["append", ["before", "log"], ["argument", "why"]]),
    (["paid"], [({"paid": [{"n": 1}]}, {}, [{"n": 1}, {"n": -1}]),
                ({"paid": [{"n": 2}, {"n": 5}]}, {}, [{"n": 2}, {"n": 5}, {"n": -2}, {"n": -5}])],
     ["concat", ["before", "paid"], ["each", ["before", "paid"], ["object", [["n", ["negative", ["before", "n"]]]]]]]),
])
def test_finds_the_simplest(hint: list[str], rows: list[tuple[Any, Any, Any]], wanted: list[Any]) -> None:
    assert explain(examples(*rows), hint) == wanted


def test_finds_nothing_where_examples_contradict_each_other() -> None:
    assert explain(examples(({"a": 1}, {}, "x"), ({"a": 1}, {}, "y")), ["a"]) is None


@pytest.mark.timeout(120)
def test_many_arguments_that_may_be_absent_do_not_multiply_the_ways_to_explain_a_value() -> None:
    choose = random.Random(1)
    rows = [({}, {name: choose.randrange(99) for name in "abcdefghi" if choose.random() < 0.5},
             [choose.randrange(99), choose.randrange(99)]) for _ in range(120)]
    assert explain(examples(*rows), []) is None
    by_default = [({}, {"a": n} if n % 2 else {}, n if n % 2 else 0) for n in range(1, 13)]
    assert explain(examples(*by_default), []) == ["given", "a", ["argument", "a"], ["constant", 0]]


def test_takes_no_whole_structure_for_a_constant() -> None:
    """Three sessions that all named the same guests say nothing of the fourth."""
    assert explain(examples(*[({}, {"n": n}, [{"guest": "ada"}]) for n in range(3)]), ["guests"]) is None


ROWS = st.tuples(st.dictionaries(NAMES, JSON, max_size=3), st.dictionaries(NAMES, JSON, max_size=3), JSON)


@given(st.lists(ROWS, min_size=1))
def test_what_is_found_fits_every_example(rows: list[tuple[Any, Any, Any]]) -> None:
    found = explain(examples(*rows), ["ada"])
    assert found is None or (fits(found, examples(*rows)) and found[0] in OPERATORS)


@example(["a, 'b", 'a, "b'])
@given(st.lists(st.text("ab12 ;:'{\".", max_size=6), min_size=1, max_size=4))
def test_texts_of_many_separators_are_explained_or_not(texts: list[str]) -> None:
    rows = examples(*(({}, {}, text) for text in texts))
    found = explain(rows, [])
    assert found is None or fits(found, rows)


def test_a_text_with_the_same_characters_around_an_argument_is_explained_from_three_values_on() -> None:
    texts = ["leave it at the gate", "ring twice", "mind the dog"]
    rows = examples(*[({"note": ""}, {"text": text}, f"desk: {text}!") for text in texts])
    found = explain(rows, ["note"])
    assert found == ["text", ["constant", "desk: "], ["argument", "text"], ["constant", "!"]]
    assert explain(rows[:2], ["note"]) != found and affixed(rows[:2], fewest=2) == found
    assert explain([*rows, *examples(({"note": ""}, {"text": "call"}, "desk; call!"))], ["note"]) != found
    for other in (None, 3, ["desk: call!"]):
        assert affixed(examples(({}, {"text": "call"}, other), *[({}, {"text": text}, f"{text}!") for text in texts])) is None


@given(JSON, JSON)
def test_same_means_the_same_bytes(one: Any, other: Any) -> None:
    assert same(one, other) == (json.dumps(one) == json.dumps(other)) or one != one or other != other


def test_a_path_that_leads_nowhere_is_missing_not_none() -> None:
    with pytest.raises(NoValue):
        evaluate(["before", "a", "b"], {"a": 3}, {})
    assert evaluate(["before", "a"], {"a": None}, {}) is None


def test_guards_hold_for_what_worked_and_not_for_what_failed() -> None:
    worked = examples(*[
        ({"state": "new", "paid": [{"by": f"card-{n}"}], "log": [0]},
         {"pick": [f"card-{n}"], "put": [f"c{n}"], "by": f"m{n}"}, {})
        for n in range(8)
    ])
    failed = [({"state": "new", "paid": [{"by": "m1"}], "log": [0]}, {"pick": ["m1"], "put": ["x"], "by": "m1"})]
    when = guards.learn(worked, failed)
    assert all(allowed(when)(one.before, one.arguments) for one in worked)
    assert not any(allowed(when)(before, given) for before, given in failed)
    before, given_ = worked[0].before, worked[0].arguments
    for broken in (
        ({**before, "state": "gone"}, given_), ({**before, "log": [0, 1]}, given_), (before, {**given_, "more": 1}),
        (before, {**given_, "pick": ["elsewhere"]}), (before, {**given_, "put": ["a", "b"]}),
    ):
        assert not allowed(when)(*broken), broken
