"""How long values keep, and the spans that come of it."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from env_builder.world.spans import DocumentRead, Drift, Event, Pair, Touch, carried, spans

BEGAN = datetime(2031, 5, 1, tzinfo=UTC)
PAIRS = st.lists(st.tuples(st.floats(1, 1e6), st.booleans()), max_size=60)
SURE = Drift([Pair("box", field, 1e8, "same", "same") for field in ("a", "b") for _ in range(20)])
NEVER = Drift([])


def look(hour: int, written: bool = False, **fields: Any) -> DocumentRead:
    return DocumentRead(BEGAN + timedelta(hours=hour), json.dumps(fields), written, f"e{hour}")


@given(PAIRS, st.floats(1, 1e6))
def test_one_more_change_never_makes_values_keep_longer(seen: list[tuple[float, bool]], gap: float) -> None:
    before, after = carried(sorted(seen)), carried(sorted([*seen, (gap, True)]))
    assert after <= before or len(seen) < 5


@given(PAIRS)
def test_nothing_is_carried_further_than_it_was_seen_to_keep(seen: list[tuple[float, bool]]) -> None:
    limit = carried(sorted(seen))
    assert limit == math.inf or limit <= max([gap for gap, _ in seen], default=0)
    if all(not changed for _, changed in seen):
        assert limit == (math.inf if len(seen) >= 5 else 0)


def test_equal_looks_prove_what_lay_between_and_unequal_ones_leave_it_open() -> None:
    events: list[Event] = [look(0, a=1, b=1), look(10, a=1, b=1), look(20, a=2, b=1)]
    found = spans("box", events, NEVER)
    assert found[0].text == json.dumps({"a": 1, "b": 1})
    assert (found[0].since, found[0].until, found[0].derivation) == (events[0].at, events[1].at, "seen")
    assert not any(one.since is not None and one.since <= BEGAN + timedelta(hours=15) < (one.until or BEGAN) for one in found)


def test_fields_are_put_together_from_looks_of_their_own() -> None:
    """What one field does says nothing of another: a write in between is followed in its field alone."""
    written = look(10, True, a=2, b=1)._replace(kept=frozenset("b"))
    found = spans("box", [look(0, a=1, b=1), written, look(20, a=2, b=1)], SURE)
    assert [(one.text, one.since, one.until) for one in found if one.since is not None][:2] == [
        (json.dumps({"a": 1, "b": 1}), BEGAN, written.at),
        (json.dumps({"a": 2, "b": 1}), written.at, BEGAN + timedelta(hours=20))]


def test_a_value_follows_an_act_that_is_known_to_change_it() -> None:
    touch = Touch(BEGAN + timedelta(hours=4), frozenset("a"), lambda part: {"a": part["a"] - 3})
    found = spans("box", [look(0, a=9), touch, look(8, a=6)], NEVER)
    assert [(json.loads(one.text)["a"], one.since, one.until) for one in found] == [
        (9, BEGAN, touch.at), (6, touch.at, BEGAN + timedelta(hours=8))]
    blind = touch._replace(change=lambda part: None)
    assert not any(one.since is not None and one.since < blind.at < (one.until or BEGAN)
                   for one in spans("box", [look(0, a=9), blind, look(8, a=6)], NEVER))


def test_a_null_is_carried_like_any_other_value() -> None:
    held = spans("box", [look(0, a=None, b=1), look(8, a=None, b=1)], SURE)
    assert (held[0].since, held[-1].until, {one.text for one in held}) == (None, None, {'{"a": null, "b": 1}'})
    cleared = Touch(BEGAN + timedelta(hours=4), frozenset("a"), lambda part: {"a": None})
    assert [one.text for one in spans("box", [look(0, a=2), cleared], SURE)][-1] == '{"a": null}'


def test_what_an_act_did_that_nobody_knows_is_open_until_the_next_look_unless_that_shows_the_same() -> None:
    touch = Touch(BEGAN + timedelta(hours=4), frozenset("a"), lambda part: None)
    same = spans("box", [look(0, a=9, b=1), touch, look(8, a=9, b=1)], SURE)
    assert [one.until for one in same if one.since == BEGAN] == [BEGAN + timedelta(hours=8)]
    open_end = spans("box", [look(0, a=9, b=1), touch], SURE)
    assert max(one.until or BEGAN for one in open_end) == touch.at and all(one.until for one in open_end)
