"""Kinds of work: pieces in which the same is done, named by what is done, with the values in which they differ."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.work.finding import describe_items
from extractors.work.kinds import assign_kinds
from extractors.work.shapes import plain_value
from extractors.work.slots import find_slots
from tests.extractors.work.mill import ROLES, usual_mill


def test_two_kinds_are_told_apart_and_named_by_what_is_done() -> None:
    events, items = usual_mill().work()
    kinds = [item.kind for item in assign_kinds(items, events, ROLES)]
    assert len(set(kinds)) == 2
    assert len(set(kinds[::2])) == len(set(kinds[1::2])) == 1
    assert "repair" in kinds[1] or "millstone" in kinds[1]


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000))
def test_the_order_of_the_pieces_changes_no_kind(seed: int) -> None:
    events, items = usual_mill(6).work()
    shuffled = list(items)
    random.Random(seed).shuffle(shuffled)
    first, second = ({item.item_id: item.kind for item in assign_kinds(each, events, ROLES)} for each in (items, shuffled))
    pairs = [(one, other) for one in first for other in first]
    assert [first[one] == first[other] for one, other in pairs] == [second[one] == second[other] for one, other in pairs]


def test_few_pieces_have_no_kind() -> None:
    events, items = usual_mill(1).work()
    assert [item.kind for item in assign_kinds(items, events, ROLES)] == ["", ""]


def test_a_slot_is_a_value_of_the_request_that_the_result_has_too() -> None:
    work = describe_items(*reversed(usual_mill().work()), ROLES)
    kind = work.items[0].kind
    slots = find_slots(work.items, work.events, work.shapes)
    assert {"sacks", "colour"} <= {slot.name for slot in slots[kind]}
    assert work.values["2"]["sacks"] == "12" and work.values["2"]["colour"] == "brown"
    assert "state" not in work.values["2"]


def test_one_value_is_written_alike_in_all_apps() -> None:
    assert plain_value("12.50") == plain_value(12.5) == "12.5"
    assert plain_value("2026-03-02T09:30:00.000Z") == plain_value(1772443800) == "2026-03-02T09:30"
    assert plain_value(" Ada Byron ") == "ada byron" and plain_value(None) == ""


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()))
def test_a_plain_value_stays_as_it_is(value: object) -> None:
    plain = plain_value(value)
    assert plain_value(plain) == plain or plain_value(plain).casefold() == plain.casefold()
