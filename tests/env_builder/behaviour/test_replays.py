"""Held-out replay answers each half of the sessions by rules from the other half, and says what is not measured."""

from __future__ import annotations

from typing import Any

from env_builder.behaviour.trials import held_out
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

SHOW: dict[str, Any] = {"rule": "document", "class": "box", "argument": "box", "before": "", "after": ""}


def looked(session: int, text: str) -> LoggedStep:
    made = call("show", {"box": "b"}, text, f"s{session}")
    return LoggedStep(made, (), ("box", "b", text), False, False, None, ())


def program(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"tool": "show", "effect": "read", "class": "box", "relation": {}, "rules": [{"rule": "recorded"}, *rules]}


def test_what_all_others_saw_alike_is_answered_and_held_against_what_was_seen() -> None:
    same = [looked(session, '{"kilos": 3}') for session in range(12)]
    assert held_out(same, program(SHOW), lambda half: [{"rule": "recorded"}, SHOW]) == (1.0, 0.0)
    other = [*same[:-1], looked(11, '{"kilos": 4}')]
    exact, abstains = held_out(other, program(SHOW), lambda half: [SHOW])
    assert exact is not None and abstains is not None and (exact, abstains) != (1.0, 0.0)


def test_the_rules_of_the_one_half_answer_the_other() -> None:
    steps = [looked(session, f'{{"kilos": {session}}}') for session in range(12)]
    asked: list[set[str]] = []

    def induced(half: list[LoggedStep]) -> list[dict[str, Any]]:
        asked.append({step.call.session_id for step in half})
        return [{"rule": "constant", "content": half[0].call.content}]

    assert held_out(steps, program({"rule": "constant", "content": ""}), induced) == (0.0, 0.0)
    assert asked[0].isdisjoint(asked[1]) and len(asked[0] | asked[1]) == 12 and all(asked)


def test_what_cannot_be_measured_so_has_no_figure() -> None:
    steps = [looked(session, "{}") for session in range(4)]
    assert held_out(steps, program(), lambda half: []) == (None, None)
    assert held_out(steps, program({"rule": "rows"}), lambda half: []) == (None, None)
    assert held_out(steps, program(SHOW), lambda half: []) == (None, 1.0), "the other half finds nothing"
