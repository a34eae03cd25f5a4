"""Write rules from few calls, and from those of many that are alike: moored boats that are repainted and renamed."""

from __future__ import annotations

import json
from typing import Any

from env_builder.behaviour.evidence import Induced
from env_builder.behaviour.writes import WriteContext, answered, write_rules
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

COLOURS = ["red", "blue", "green", "white", "black", "grey", "pink"]


def around(*closed: str) -> WriteContext:
    showing = {"rule": "write", "class": "boat", "argument": "boat", "before": "", "after": ""}
    return WriteContext(showing, ("boat",), closed=closed)


def painted(n: int, state: str = "afloat", fails: bool = False, **given: Any) -> LoggedStep:
    """Somebody has a boat painted, with or without coats of something."""
    before = {"boat": f"B{n}", "state": state, "paint": {"hull": COLOURS[n], "deck": "oak"}, "coats": []}
    arguments = {"boat": f"B{n}", "hull": COLOURS[(n + 1) % 7], "deck": "oak"} | given
    paint = {"hull": arguments["hull"], "deck": arguments["deck"]}
    after = before | {"paint": paint, "coats": [{"of": coat["of"]} for coat in arguments.get("coats", ())]}
    made = call("paint", arguments, "Error: aground" if fails else json.dumps(after), f"s{n}")
    return LoggedStep(made, (), None if fails else ("boat", f"B{n}", made.content), True, not fails, json.dumps(before), ())


def said(written: Induced | None, step: LoggedStep) -> str | None:
    assert written is not None
    found = answered(written.rules, step, around().showing, {})
    return None if found is None else found.content


def test_two_calls_are_enough_for_a_tool_that_puts_what_it_is_given_where_it_is_named_so() -> None:
    two = write_rules([painted(0), painted(3, deck="ash")], around("state"))
    new = painted(5, deck="teak")
    assert said(two, new) == new.call.content
    assert said(write_rules([painted(0), painted(3)], around("state")), new) is None, "it may keep the deck as it was"
    assert said(two, painted(5, state="aground")) is None, "a state in which it was never seen to work"
    assert write_rules([painted(0)], around("state")) is None
    assert write_rules([painted(0), painted(3), painted(5, fails=True)], around("state")) is None, "it fails, nobody knows why"
    shouted = [one._replace(shown=("boat", one.call.arguments["boat"], one.call.content.replace('"hull": "', '"hull": "so ')))
               for one in (painted(0), painted(3))]
    assert write_rules(shouted, around("state")) is None, "what it makes of what it is given takes more to know"


def test_calls_of_another_shape_take_nothing_from_those_that_are_explained_and_are_not_answered() -> None:
    usual = [painted(n, coats=[{"of": "tar"}] * (1 + n % 2)) for n in range(6)]
    loud = painted(6, coats=[{"of": "tar", "loud": True}])
    odd = loud._replace(shown=("boat", "B6", loud.call.content.replace("tar", "TAR")))
    new = painted(4, coats=[{"of": "wax"}, {"of": "tar"}])
    written = write_rules([*usual, odd], around())
    assert said(written, new) == new.call.content
    assert said(written, loud) is None
    assert write_rules([*usual[:3], odd, odd], around()) is None, "not nearly all"
