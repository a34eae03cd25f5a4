"""Boundaries without an example: what no call that worked ever chose, and lists of other lengths."""

from __future__ import annotations

from typing import Any

import pytest

from env_builder.behaviour.checks import KnownTerms, MessageCase, induce
from env_builder.behaviour.trials import Before, TrialCall
from env_builder.runtime.expressions import Scope
from env_builder.runtime.refusals import Untold, refusal, refusing
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call as logged

ROOMS = {f"r{n}": {"room": f"r{n}", "open": n % 2 == 0, "beds": n, "name": "abcdefgh"[n]} for n in range(8)}


def case(room: str) -> MessageCase:
    return MessageCase(Scope({"hotel": "h1", "rooms": ROOMS}, {"room": room}, lambda *_: None), room, None)


def checked(rooms: list[str]) -> list[Any]:
    """Return the conditions of checks without a message, of calls that all worked."""
    messages = induce([case(room) for room in rooms], KnownTerms({}, (), {}, False))
    return [when for message in messages if message["pieces"] is None for when in message["when"]]


def test_what_could_be_chosen_and_never_was_is_a_boundary() -> None:
    when = checked(["r0", "r2", "r4", "r6"] * 3)
    assert ["among", [["at", ["before", "rooms"], ["argument", "room"], "open"]], [[False]]] in when
    assert not any("name" in str(one) for one in when), "a name is not chosen for its kind"
    refuse = refusal([{"when": [one], "pieces": None, "over": [], "past": []} for one in when])
    assert refuse(case("r2").scope) is None
    with pytest.raises(Untold):
        refuse(case("r3").scope)


def test_what_chance_explains_or_was_chosen_is_none() -> None:
    assert not any("open" in str(when) for when in checked(["r0", "r2", "r4", "r6", "r0"])), "one in 32 times"
    assert not any("open" in str(when) for when in checked(["r0", "r2", "r4", "r6", "r1"] * 3))


def test_a_refusal_by_an_element_s_place_asks_for_the_length_that_such_lists_had() -> None:
    message = {"content": "The same card.", "when": [["is", "card", ["paid", 0, "card"]]], "document": {}, "over": []}
    state = Before(TrialCall(LoggedStep(logged("pay", {"card": "c1"}, ""), (), None, True, True, None, ()), {}), {})
    call = {"paid": [{"card": "c1"}, {"card": "c2"}]}, {"card": "c1"}, state
    assert refusing({"class": "bill", "messages": [message]})(*call) == "The same card."
    with pytest.raises(Untold):
        refusing({"class": "bill", "messages": [{**message, "lengths": {"paid": [1]}}]})(*call)
