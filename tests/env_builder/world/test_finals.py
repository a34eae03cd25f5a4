"""States that nothing leaves, and what an act that nobody saw refused is taken to have done in them: nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from env_builder.behaviour.writes import done
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world.changes import MINIMUM, Feed, find_finals

EPOCH = datetime(2031, 5, 1, tzinfo=UTC)


def feed(histories: list[list[str]]) -> Feed:
    """Return a feed of things that took these states one after the other; a counter changes with each."""
    return Feed("slips", {
        f"S-{number}": [(EPOCH + timedelta(hours=n), json.dumps({"state": state, "n": n}), "")
                        for n, state in enumerate(states)]
        for number, states in enumerate(histories)}, EPOCH, True)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=2, max_size=12), st.integers(1, MINIMUM))
def test_a_state_is_final_where_enough_came_and_nothing_left(some: list[list[str]], times: int) -> None:
    histories = some * times
    came = {state: sum(len(each) > 1 and each[-1] == state for each in histories) for state in "abc"}
    left = {state for each in histories for state in each[:-1]}
    wanted = sorted(state for state in "abc" if came[state] >= MINIMUM and state not in left)
    assert find_finals([], {"slips": feed(histories)}).get("slips", {}).get("state", []) == wanted


RULE: dict[str, Any] = {
    "rule": "write", "class": "slips", "argument": "slip", "before": "", "after": "", "style": {}, "order": ["state", "log"],
    "fields": {"state": ["constant", "shut"], "log": ["append", ["before", "log"], ["constant", "shut"]]},
    "when": {"names": [["slip"]], "document": {"state": ["open"]}, "arguments": {}, "lengths": {}, "within": [], "alike": [],
             "differs": []}}


def room(rule: dict[str, Any], n_calls: int = 0) -> EpisodeState:
    """Three slips, a tool that shows them and one that shuts them, borne out by so many calls."""
    facts = [{"class": "slips", "key": f"S-{n}", "value": json.dumps({"state": state, "log": []}), "from": None, "to": None,
              "session": None} for n, state in enumerate(("open", "shut", "lost"))]
    programs: dict[str, dict[str, Any]] = {
        "show": {"tool": "show", "effect": "read", "class": "slips", "relation": {},
                 "rules": [{"rule": "document", "class": "slips", "argument": "slip", "before": "", "after": ""}]},
        "shut": {"tool": "shut", "effect": "write", "class": "slips", "relation": {}, "rules": [rule],
                 "support": {"for": n_calls, "against": 0}}}
    return EpisodeState(World(facts, []), programs, View(None, frozenset()))


def test_what_is_done_is_not_done_again() -> None:
    told = done(RULE, {"state": ["lost", "shut"]})
    assert told == {"state": "shut"}  # the tool does not make slips lost
    for rule, known in ((RULE, set()), ({**RULE, "done": told}, {"S-0", "S-1"})):
        for slip in ("S-1", "S-2"):
            played = room(rule)
            shown = played.call("show", {"slip": slip})
            assert played.call("shut", {"slip": slip}).tier == "unknown"
            after = played.call("show", {"slip": slip})
            assert (after.content == shown.content) == (slip in known)
            assert (after.tier == "unknown") == (slip not in known)
    twice = room({**RULE, "done": told})
    shut = twice.call("shut", {"slip": "S-0"}).content
    assert twice.call("shut", {"slip": "S-0"}).tier == "unknown"
    assert twice.call("show", {"slip": "S-0"}).content == shut
    assert not done(RULE, {"log": ["shut"], "state": ["open"]})


def test_a_write_that_comes_too_late_is_refused_in_whatever_words() -> None:
    for n_calls, is_known in ((4, False), (5, True)):
        played = room(RULE, n_calls)
        shut = played.call("shut", {"slip": "S-0"}).content
        assert played.call("shut", {"slip": "S-0"}).tier == "unknown"
        assert played.refused == ((("shut", '{"slip":"S-0"}'),) if is_known else ())
        assert (played.call("show", {"slip": "S-0"}).content == shut) == is_known
        assert len(played.write_calls) == (1 if is_known else 2)


def test_nobody_knows_whether_a_write_is_refused_in_a_state_that_no_write_makes() -> None:
    played = room(RULE, 100)
    before = played.snapshot()
    assert played.call("shut", {"slip": "S-2"}).tier == "unknown" and len(played.write_calls) == 1 and not played.refused
    played.restore(before)
    played.call("shut", {"slip": "S-1"})
    assert played.refused and not played.write_calls
    played.restore(before)
    assert not played.refused


def test_a_write_that_leaves_its_guard_as_it_is_can_be_made_again() -> None:
    again = {**RULE, "fields": RULE["fields"] | {"state": ["before", "state"]}}
    played = room(again, 100)
    played.call("shut", {"slip": "S-1"})
    assert not played.refused
