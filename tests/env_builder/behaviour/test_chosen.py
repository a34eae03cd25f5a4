"""What acts chose inside other records between two looks at these."""

from __future__ import annotations

import json
from typing import Any

from env_builder.behaviour import chosen
from env_builder.runtime.programs import Programs
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

MEMBER = json.dumps({"member": "m1", "cards": {"card1": {"kind": "debit", "left": 5}, "card2": {"kind": "voucher", "left": 9}}})


def look(session: str) -> LoggedStep:
    made = call("show_member", {"member": "m1"}, MEMBER, session)
    return LoggedStep(made, (), ("member", "m1", MEMBER), False, False, None, ())


def act(session: str, card: str) -> LoggedStep:
    made = call("book", {"room": "r1", "card": card}, '{"room": "r1"}', session)
    return LoggedStep(made, (), None, True, True, None, ())


def program(**more: Any) -> dict[str, Any]:
    return {"tool": "book", "effect": "write", "class": None, "relation": {"member": "keeps"}, "rules": [{"rule": "recorded"}],
            **more}


def test_only_choices_after_which_somebody_looked_are_seen() -> None:
    steps = [look("a"), act("a", "card1"), look("a"), look("b"), act("b", "card2")]
    assert chosen.find(steps, False) == {"book": {"member": {"kind": ["debit"]}}}
    assert chosen.find([*steps, look("b")], False) == {"book": {"member": {"kind": ["debit", "voucher"]}}}
    assert chosen.find([look("a"), look("a")], False) == {}


def test_a_choice_that_nobody_saw_kept_may_touch_the_record() -> None:
    programs = Programs({"book": program(chosen={"member": {"kind": ["debit"]}})})
    asked = {card: programs.may_touch_part("book", {"room": "r1", "card": card}, ("member", "m1"), MEMBER)
             for card in ("card1", "card2", "card9")}
    assert asked == {"card1": False, "card2": True, "card9": False}
    assert not Programs({"book": program()}).may_touch_part("book", {"card": "card2"}, ("member", "m1"), MEMBER)
