"""Lists joined with rows that other tools listed, and amounts computed from them."""

from __future__ import annotations

import json
from typing import Any

from env_builder.behaviour import lists
from env_builder.behaviour.examples import WriteExample, fits
from env_builder.behaviour.synthesis import explain
from env_builder.runtime.canonical import canonical
from env_builder.runtime.expressions import evaluate
from env_builder.runtime.tables import Table, agreed
from tests.env_builder.behaviour.test_synthesis import examples as rows_of

FARES = [{"ferry": f"F{n}", "day": day, "isle": f"Isle{n}", "fare": {"deck": 10 * n + d, "cabin": 30 * n + d}}
         for n in range(1, 6) for d, day in enumerate(("mon", "tue"))]
TABLE = Table(FARES)


def look(entity_class: str, key: str) -> Any:
    return agreed(TABLE.matching([((column,), value) for column, value in json.loads(key).items()]))


def rebooked(before: list[tuple[str, str]], given: list[tuple[str, str]], place: str, was: str, guests: int) -> WriteExample:
    """Return a tool that keeps the fare of a leg that stays, looks up the others, and charges every guest the difference."""
    def fare(ferry: str, day: str, seat: str) -> int:
        found = look("fares[]", canonical({"ferry": ferry, "day": day}))["fare"][seat]
        assert isinstance(found, int)
        return found

    old = [{"ferry": ferry, "day": day, "paid": fare(ferry, day, was) + 5} for ferry, day in before]
    new = []
    for ferry, day in given:
        kept = [leg for leg in old if (leg["ferry"], leg["day"]) == (ferry, day) and place == was]
        new.append({"ferry": ferry, "day": day, "paid": kept[0]["paid"] if kept else fare(ferry, day, place)})
    due = (sum(leg["paid"] for leg in new) - sum(leg["paid"] for leg in old)) * guests  # type: ignore[misc]
    document = {"legs": old, "place": was, "guests": [{"name": str(n)} for n in range(guests)], "paid": [{"by": "x", "sum": 1}]}
    after = {"legs": new, "paid": [*document["paid"], *([{"by": "card", "sum": due}] if due else [])]}
    legs = [{"ferry": ferry, "day": day} for ferry, day in given]
    return WriteExample(document, {"legs": legs, "place": place, "card": "card"}, after, look, (), {"fares[]": TABLE})


LOGGED = [
    rebooked([("F1", "mon")], [("F2", "mon")], "deck", "deck", 1),
    rebooked([("F1", "mon"), ("F2", "tue")], [("F1", "mon"), ("F3", "tue")], "deck", "deck", 2),
    rebooked([("F4", "tue")], [("F4", "tue")], "cabin", "deck", 3),
    rebooked([("F5", "tue")], [("F5", "tue")], "deck", "deck", 2),
    rebooked([("F5", "mon")], [("F5", "mon")], "deck", "cabin", 1),
    rebooked([("F2", "mon")], [("F4", "mon")], "cabin", "cabin", 3),
    rebooked([("F2", "mon"), ("F4", "mon")], [("F4", "mon")], "deck", "deck", 1),
    rebooked([("F3", "mon")], [("F1", "tue"), ("F2", "tue")], "cabin", "deck", 2),
]


def of(field: str) -> list[WriteExample]:
    return [one._replace(after=one.after[field]) for one in LOGGED]


def test_keeps_what_stays_and_looks_the_rest_up() -> None:
    found = lists.mapped(of("legs"), ["legs"])
    assert found is not None and fits(found, of("legs"))
    asked = rebooked([("F2", "mon"), ("F5", "mon")], [("F2", "mon"), ("F4", "mon")], "cabin", "cabin", 1)
    assert evaluate(found, asked.before, asked.arguments, look) == asked.after["legs"]


def test_charges_the_difference_of_sums_for_each_of_a_list_and_nothing_where_there_is_none() -> None:
    legs = lists.mapped(of("legs"), ["legs"])
    assert legs is not None
    found = lists.grown(of("paid"), ["paid"], {"legs": legs}, explain)
    assert found is not None and found[0] == "append_unless_zero"
    for asked in (rebooked([("F1", "tue")], [("F5", "mon")], "deck", "cabin", 4), LOGGED[3]):
        assert evaluate(found, asked.before, asked.arguments, look) == asked.after["paid"]


def test_is_silent_below_zero_where_no_example_was() -> None:
    charged = [
        WriteExample({"bags": n, "paid": []}, {"bags": n + m}, [{"sum": 50 * m}] if m else [])
        for n, m in ((0, 1), (1, 2), (2, 0), (1, 1), (0, 2), (3, 1), (2, 2), (0, 0))]
    found = lists.grown(charged, ["paid"], {}, explain)
    assert found is not None and found[0] == "agree"
    assert evaluate(found, {"bags": 1, "paid": []}, {"bags": 4}) == [{"sum": 150}]
    assert not fits(found, [WriteExample({"bags": 3, "paid": []}, {"bags": 1}, [])])


def test_where_no_example_tells_a_list_in_order_from_one_as_given_neither_is_taken() -> None:
    found = explain(rows_of(({}, {"all": ["a", "b"]}, ["a", "b"]), ({}, {"all": ["c"]}, ["c"])), ["all"])
    assert found == ["agree", ["argument", "all"], ["sorted", ["argument", "all"]]]
