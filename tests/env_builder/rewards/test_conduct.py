"""What good sessions of a family keep and bad ones break, and words that claim what was not done."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from env_builder.rewards.conduct import FEWEST, ConductRule, claims, promises, rules
from env_builder.rewards.persons import PersonCheck, holds
from env_builder.rewards.witness import Row, Witness
from env_builder.world.calls import LoggedCall

WRITES = frozenset({"open", "pay"})
ASK, LOOK, OPEN, PAY = "say", "look", "open", "pay"
DONE = "Your door has been opened. Anything else?"


def witness(name: str, *steps: str | tuple[str, dict[str, Any]]) -> Witness:
    """Return a session of words (any text with a blank) and calls by their tools."""
    rows: list[Row] = []
    calls = []
    for position, step in enumerate(steps):
        tool, arguments = step if isinstance(step, tuple) else (step, {})
        event_id = f"{name}{position}"
        if " " in tool:
            rows.append(("message", "assistant", tool, event_id, position))
        else:
            rows.append(("call", "assistant", "ok", event_id, position))
            calls.append(LoggedCall(name, position, tool, arguments, "{}", "ok", None, False, None, None, event_id))
    return Witness(name, rows, calls, None, 0.9, frozenset({"look"}))


def told(found: list[ConductRule]) -> set[str]:
    return {rule.description for rule in found}


GOOD = [witness(f"g{n}", LOOK, OPEN, DONE) for n in range(FEWEST)]


def test_a_rule_holds_on_every_good_session_and_a_bad_one_breaks_it() -> None:
    found = rules(GOOD, [witness("b", OPEN, LOOK, PAY)])
    assert {"look comes before open.", "pay is not called.", "After look comes open."} <= told(found)
    first = next(rule for rule in found if rule.description == "look comes before open.")
    assert (first.kind, first.parameters) == (
        "order", {"template": "precedence", "first": [{"tool": "look"}], "second": [{"tool": "open"}]})
    assert [one.session_id for one in first.broken_by] == ["b"] and len(first.supporting) == FEWEST
    assert first.bears(GOOD[0]) == ["g00", "g01"]
    assert rules(GOOD, [witness("b", LOOK, OPEN, DONE)]) == [], "what bad sessions keep too is habit"
    assert rules(GOOD[1:], [witness("b", OPEN)]) == [], "too few to say"
    odd = witness("odd", OPEN, LOOK)
    assert "look comes before open." not in told(rules([*GOOD, odd], [witness("b", OPEN)])), "a good one does otherwise"


def test_few_values_of_an_argument_are_a_rule() -> None:
    good = [witness(f"g{n:02}", ("open", {"by": "key" if n % 2 else "code", "door": str(n)})) for n in range(24)]
    found = rules(good, [witness("b", ("open", {"by": "axe", "door": "3"}))])
    assert [rule.parameters for rule in found] == [
        {"calls": [{"tool": "open", "where": {"by": {"none_of": ["code", "key"]}}}], "at_most": 0}]


def test_who_claims_what_was_not_done_breaks_a_promise() -> None:
    bad = witness("b", "Hello there.", LOOK, "It has been opened.")
    idle = [witness(f"i{n}", "Hello there.", LOOK, "It is closed, has been for long?") for n in range(60)]
    done = [witness(f"d{n}", LOOK, OPEN, f"{what} has been {how}.") for n, (what, how) in enumerate(
        (("All", "done"), ("It", "opened"), ("Everything", "settled"), ("That", "fixed"), ("Yours", "paid")))]
    promised = promises([*done, *idle], [bad])
    assert promised is not None and promised.parameters["claims"] == ["has been"]
    assert [one.session_id for one in promised.broken_by] == ["b"]
    assert claims([witness(f"i{n}", "It has been open.", LOOK) for n in range(9)]) == [], "nobody ever did anything"


@given(st.lists(st.lists(st.sampled_from([LOOK, OPEN, PAY, "Well then.", DONE]), max_size=6), min_size=FEWEST, max_size=9),
       st.lists(st.lists(st.sampled_from([LOOK, OPEN, PAY, "Well then.", DONE]), max_size=6), min_size=1, max_size=4),
       st.randoms())
def test_the_grader_judges_every_rule_as_mining_did_in_any_order(
    good: list[list[str]], bad: list[list[str]], chance: random.Random
) -> None:
    sides = [[witness(f"{side}{n}", *steps) for n, steps in enumerate(own)] for side, own in (("g", good), ("b", bad))]
    found = rules(*sides)
    for rule in found:
        check = PersonCheck(kind=rule.kind, description=rule.description, parameters=rule.parameters)
        assert all(holds(check, one, WRITES) for one in sides[0])
        assert not any(holds(check, one, WRITES) for one in rule.broken_by)
    for side in sides:
        chance.shuffle(side)
    again = rules(*sides)
    assert [(rule.parameters, len(rule.broken_by)) for rule in again] == [
        (rule.parameters, len(rule.broken_by)) for rule in found]


def test_an_argument_that_is_sometimes_a_list_breaks_no_rule_of_few_values() -> None:
    good = [witness(f"g{n:02}", ("open", {"by": "key" if n % 2 else "code"})) for n in range(24)]
    odd = [witness("odd", ("open", {"by": ["key", "code"]}))]
    assert [rule.description for rule in rules(good, odd)] == ["by of open is one of 2 values that successful sessions give."]
