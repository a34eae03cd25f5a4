"""Numbers that tools compute from their arguments: exact to the last digit, or not answered."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from env_builder.behaviour.conversions import conversion_rule
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

FACTORS = {"ell": 1.143, "rod": 5.0292, "span": 0.2286}


def step(arguments: dict[str, Any], answer: Any) -> LoggedStep:
    return LoggedStep(call("measure", arguments, json.dumps(answer)), (), None, True, True, None, ())


def say(rule: dict[str, Any] | None, arguments: dict[str, Any]) -> Any:
    assert rule is not None
    program = {"tool": "measure", "effect": "read", "class": None, "relation": {}, "rules": [rule]}
    answered = EpisodeState(World([], []), {"measure": program}, View(None, frozenset())).call("measure", arguments)
    return None if answered.tier == "unknown" else json.loads(answered.content)


def metres(ells: float, unit: str = "ell") -> dict[str, Any]:
    return {"metres": ells * FACTORS[unit], "exact": True}


def test_a_factor_is_found_to_its_last_digit_and_applied_to_other_numbers() -> None:
    rule = conversion_rule([step({"ells": ells}, metres(ells)) for ells in (3, 12.5, 7)])
    assert say(rule, {"ells": 40.25}) == metres(40.25)
    assert say(rule, {"ells": "40"}) is None


@given(st.floats(0.001, 1000).map(lambda number: round(number, 3)),
       st.lists(st.integers(100, 10**6), min_size=4, max_size=6, unique=True))
def test_any_factor_of_few_digits_is_found(factor: float, amounts: list[int]) -> None:
    rule = conversion_rule([step({"amount": amount}, amount * factor) for amount in amounts])
    if rule is not None:
        assert say(rule, {"amount": 123457}) == 123457 * factor


def test_a_factor_for_each_unit_and_none_for_a_unit_that_was_seen_once() -> None:
    asked = [(3, "ell"), (12.5, "ell"), (7, "rod"), (2.75, "rod"), (9, "span")]
    rule = conversion_rule([step({"amount": amount, "unit": unit}, metres(amount, unit)) for amount, unit in asked])
    assert say(rule, {"amount": 41, "unit": "rod"}) == metres(41, "rod")
    assert say(rule, {"amount": 41, "unit": "span"}) is None
    assert say(rule, {"amount": 41, "unit": "mile"}) is None


def test_arithmetic_of_two_arguments_and_of_a_list() -> None:
    pairs = [(17, 4), (250, 7), (1234, 11)]
    rule = conversion_rule([step({"part": one, "whole": other}, {"share": one / other}) for one, other in pairs])
    assert say(rule, {"part": 9, "whole": 8}) == {"share": 9 / 8}
    assert say(rule, {"part": 9, "whole": 0}) is None
    lists = [[1, 2, 4], [10.5, 20, 7], [3, 100]]
    rule = conversion_rule([step({"of": numbers}, sum(numbers) / len(numbers)) for numbers in lists])
    assert say(rule, {"of": [2, 3]}) == 2.5


def test_what_chance_or_anything_else_explains_is_not_answered() -> None:
    assert conversion_rule([step({"n": n}, {"seats": 2 * n}) for n in (1, 2, 3)]) is None, "three digits are chance"
    assert conversion_rule([step({"n": n}, {"left": 1000.25 - n}) for n in (12, 345, 71)]) is None
    exact = [step({"ells": ells}, metres(ells)) for ells in (3, 12.5, 7)]
    assert conversion_rule([*exact, step({"ells": 9}, {"metres": 9.0, "exact": True})]) is None
    assert conversion_rule([*exact, step({"ells": 2}, {"metres": 2 * 1.143, "exact": False})]) is None
    refused = [step({"ells": ells}, {"error": "too long"}) for ells in (50, 60)]
    assert conversion_rule([*exact, *refused]) is None, "nobody knows where too long begins"
    assert conversion_rule(refused) is None and conversion_rule([]) is None
