"""Refusals learnt by contrast, and values that arguments select in other documents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.behaviour import refusals
from env_builder.behaviour.examples import WriteExample, fits
from env_builder.behaviour.synthesis import explain
from env_builder.runtime.refusals import Untold, refusing
from env_builder.runtime.writing import applied
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

CATALOGUE = {f"K{n}": {"sizes": {f"s{n}{m}": {"cost": n + m / 100, "left": True} for m in range(5)}} for n in range(4)}


class Known:
    """A world of which the catalogue is known."""

    def __init__(self, absent: bool = False) -> None:
        self._absent = absent

    def look(self, entity_class: str, key: str) -> Any:
        return CATALOGUE.get(key) if entity_class == "kind" else None

    def absent(self, entity_class: str, key: str, since: str) -> bool:
        return self._absent


def step(number: int, content: str, before: dict[str, Any] | None, **arguments: Any) -> LoggedStep:
    asked = call("lend", arguments, content, f"s{number}")
    acted = not content.startswith("Error")
    text = None if before is None else json.dumps(before)
    return LoggedStep(asked, (), None, True, acted, text, ())


def lent(number: int) -> LoggedStep:
    return step(number, "{}", {"state": "free", "parts": [f"p-{number}"]}, book=f"B-{number}", parts=[f"p-{number}"], to=["x"])


LOGGED = [
    *(lent(number) for number in range(40)),
    *(step(100 + n, "Error: no such book", None, book=f"B{n}", parts=["p"], to=["x"]) for n in range(4)),
    *(step(200 + n, "Error: one each, please", {"state": "free", "parts": ["p"]}, book=f"B-{n}", parts=["p"], to=[])
      for n in range(4)),
    *(step(300 + n, "Error: it is out", {"state": "out", "parts": ["p"]}, book=f"B-{n}", parts=["p"], to=["x"])
      for n in range(4)),
]
KEYS = frozenset(f"B-{n}" for n in range(40))


def asked(before: dict[str, Any] | None, absent: bool = False, **arguments: Any) -> str | None:
    rule = refusals.refuse_rule(LOGGED, "book", "book", KEYS, refusals.Unknown("Error: no such book", "2031"))
    assert rule is not None
    return refusing(rule)(before, arguments, Known(absent))


@pytest.mark.parametrize(("before", "arguments", "wanted"), [
    (None, {"book": "B7", "parts": ["p"], "to": ["x"]}, "Error: no such book"),
    ({"state": "free", "parts": ["p"]}, {"book": "B-7", "parts": ["p"], "to": ["x", "y"]}, "Error: one each, please"),
    ({"state": "out", "parts": ["p"]}, {"book": "B-7", "parts": ["p"], "to": ["x"]}, "Error: it is out"),
    ({"state": "free", "parts": ["p"]}, {"book": "B-7", "parts": ["p"], "to": ["x"]}, None),
])
def test_refuses_in_the_words_of_the_log(before: dict[str, Any] | None, arguments: dict[str, Any], wanted: str | None) -> None:
    assert asked(before, **arguments) == wanted


def test_says_nothing_where_two_refusals_apply_and_nobody_saw_which_comes_first() -> None:
    with pytest.raises(Untold):
        asked({"state": "out", "parts": ["p"]}, book="B-7", parts=["p"], to=[])


def test_what_is_not_there_is_refused_before_anything_else() -> None:
    assert asked(None, absent=True, book="B-999", parts=["p"], to=["x"]) == "Error: no such book"
    assert asked(None, absent=True, book="B-999", parts=["p"], to=[]) == "Error: no such book"


@given(st.permutations(range(len(LOGGED))))
def test_what_is_learnt_does_not_depend_on_the_order_of_calls_but_for_the_first(order: list[int]) -> None:
    shuffled = [LOGGED[place] for place in order]
    one, other = (refusals.refuse_rule(steps, "book", "book", KEYS) for steps in (LOGGED, shuffled))
    assert one is not None and other is not None
    assert [message["content"] for message in one["messages"]] == [message["content"] for message in other["messages"]]


def swap(number: int) -> WriteExample:
    """Things on a list changed for others of their kind, position by position."""
    rows = [{"tag": f"s{n}{number % 3}", "kind": f"K{n}", "cost": CATALOGUE[f"K{n}"]["sizes"][f"s{n}{number % 3}"]["cost"]}
            for n in range(4)]
    picked = [(number + n) % 4 for n in range(1 + number % 2)]
    old, new = [rows[n]["tag"] for n in picked], [f"s{n}{3 + number % 2}" for n in picked]
    after = [dict(row) for row in rows]
    for n, tag in zip(picked, new, strict=True):
        after[n] |= {"tag": tag, "cost": CATALOGUE[f"K{n}"]["sizes"][tag]["cost"]}
    arguments = {"old": old, "new": new}
    return WriteExample({"rows": rows}, arguments, after, Known().look, ("kind",))


def test_finds_what_arguments_select_in_other_documents_position_by_position() -> None:
    examples = [swap(number) for number in range(12)]
    found = explain(examples, ["rows"])
    assert found is not None and found[0] == "replace" and fits(found, examples)
    costs = [one._replace(after=round(sum(
        new["cost"] - old["cost"] for old, new in zip(one.before["rows"], one.after, strict=True)), 2)) for one in examples]
    assert fits(explain(costs, ["cost"]) or [], costs)


def test_a_consequence_follows_each_element_and_leaves_what_is_not_there() -> None:
    one = {"class": "purse", "key": ["before", "owner"], "over": ["before", "paid"], "path": ["by", ["before", "card"], "rest"],
           "by": ["before", "sum"], "digits": 2, "style": {}}
    purse = {"by": {"c1": {"rest": 1.1}, "c2": {}}}
    paid = {"paid": [{"card": "c1", "sum": 2.2}, {"card": "c2", "sum": 5}, {"card": "c9", "sum": 5}, {"card": "c1", "sum": 1}]}
    assert applied(one, purse, paid, {}) == {"by": {"c1": {"rest": 4.3}, "c2": {}}}
    assert purse == {"by": {"c1": {"rest": 1.1}, "c2": {}}}
