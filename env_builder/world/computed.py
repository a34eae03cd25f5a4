"""Numbers that tools compute from the numbers that they are given, whatever came before: conversions and arithmetic.

In: questions with the number that each was answered, or the calls of a tool. Out: the computations that give every number; or
whether the tool computes all that it answers, by one computation or by one and, since an instant, another (`bends`). Then an
answer that differs from the one before to the same question tells of no change of state. The number is the product of an
argument and a factor, which may depend on the other arguments (a table of units or rates); or the sum, difference, product or
quotient of two arguments; or the sum or mean of a list. It must be exact to the last digit in every answer, and the answers
must have many more digits than the factors: then chance is no explanation, though calls are few.
Sees: answers that are a number, or an object with one number that varies. Does not see: what is rounded, or has an offset.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical
from env_builder.runtime.expressions import NoValue, evaluate
from env_builder.world.bends import bend
from env_builder.world.calls import LoggedCall, order_of

MINIMUM_QUESTIONS = 3
"""Different questions that a computation must answer, and two for each factor."""
SURPLUS_DIGITS = 8
"""Digits that the answers have more than the factors, at least."""
MOST_DIGITS = 10
"""Digits of a factor behind its point."""
Expression = list[Any]


class NumberExample(NamedTuple):
    """A question and the number that it was answered."""

    arguments: dict[str, Any]
    number: int | float


def is_computed(calls: Sequence[LoggedCall]) -> bool:
    """Return whether a tool computes all its answers from the questions, in the same way or, since an instant, in another."""
    worked = [call for call in calls if not call.failed]
    if _are_computed(worked):
        return True
    if varying([call.parsed for call in worked]) is None or not all(call.called_at for call in worked):
        return False
    timed = sorted(worked, key=order_of)
    return bend([True] * len(timed), lambda begin, end: _are_computed(timed[begin:end]), MINIMUM_QUESTIONS) is not None


def _are_computed(worked: list[LoggedCall]) -> bool:
    calls = list({(call.key, call.content): call for call in worked}.values())
    values = [call.parsed for call in calls]
    field = varying(values)
    return field is not None and next(computations(examples_of(calls, values, field)), None) is not None


def examples_of(calls: list[LoggedCall], values: list[Any], field: str) -> list[NumberExample]:
    """Return the question and the number of each call. `values`: its answers; `field`: the one that varies, "" for none."""
    return [NumberExample(call.arguments, value[field] if field else value) for call, value in zip(calls, values, strict=True)]


def varying(values: list[Any]) -> str | None:
    """Return the one field that varies, and is a number; "" where the answers are numbers themselves; None where neither is."""
    if all(map(_is_number, values)):
        return "" if values else None
    if not all(isinstance(value, dict) for value in values) or len({tuple(value) for value in values}) != 1:
        return None
    varying = [name for name in values[0] if len({canonical(value[name]) for value in values}) > 1]
    return varying[0] if len(varying) == 1 and all(_is_number(value[varying[0]]) for value in values) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def computations(examples: list[NumberExample]) -> Iterator[Expression]:
    """Yield the computations that give every number, those without factors first; none of too few questions."""
    if len(examples) < MINIMUM_QUESTIONS:
        return
    names = set.intersection(*(set(one.arguments) for one in examples))
    numbers = sorted(name for name in names if all(_is_number(one.arguments[name]) for one in examples))
    lists = sorted(name for name in names if all(isinstance(one.arguments[name], list) for one in examples))
    plain: list[Expression] = [[kind, ["argument", one], ["argument", other]] for one, other in permutations(numbers, 2)
                               for kind in ("plus", "minus", "times", "over")]
    for name in lists:
        total = ["sum", ["argument", name]]
        plain += [total, ["over", total, ["length", ["argument", name]]]]
    n_digits = sum(_digits(one.number) for one in examples)
    for expression in plain:
        if all(_fits(expression, one) for one in examples) and n_digits >= SURPLUS_DIGITS:
            yield expression
    for name in numbers:
        factor = _factor(name, examples)
        if factor is not None:
            yield ["times", ["argument", name], factor]


def _fits(expression: Expression, one: NumberExample) -> bool:
    try:
        return json.dumps(evaluate(expression, {}, one.arguments)) == json.dumps(one.number)
    except NoValue:
        return False


def _factor(name: str, examples: list[NumberExample]) -> Expression | None:
    """Return the factor of an argument, chosen by the other arguments where there are some; None where there is none."""
    groups: dict[str, list[NumberExample]] = defaultdict(list)
    for one in examples:
        groups[canonical({other: value for other, value in one.arguments.items() if other != name})].append(one)
    if len({tuple(sorted(one.arguments)) for one in examples}) > 1:
        return None
    factors: list[tuple[list[Any], float]] = []
    surplus = n_sure = 0
    for group in groups.values():
        several = len({one.arguments[name] for one in group}) > 1
        factor = _ratio(name, group) if several else None
        if several and factor is None:
            return None
        if factor is not None:
            n_sure += len(group)
            surplus += sum(_digits(one.number) for one in group) - _digits(factor)
            factors.append(([value for other, value in sorted(group[0].arguments.items()) if other != name], factor))
    if n_sure < MINIMUM_QUESTIONS or surplus < SURPLUS_DIGITS:
        return None
    return _chosen(sorted(other for other in examples[0].arguments if other != name), factors)


def _chosen(names: list[str], factors: list[tuple[list[Any], float]]) -> Expression:
    """Return the factor that belongs to the values of these arguments."""
    if not names:
        return ["constant", factors[0][1]]
    groups: dict[str, list[tuple[list[Any], float]]] = defaultdict(list)
    for values, factor in factors:
        groups[canonical(values[0])].append((values[1:], factor))
    cases = [[json.loads(text), _chosen(names[1:], inner)] for text, inner in sorted(groups.items())]
    return ["choose", ["argument", names[0]], cases]


def _ratio(name: str, group: list[NumberExample]) -> float | None:
    """Return the factor with the fewest digits that gives all numbers of the group."""
    first = next((one for one in group if one.arguments[name]), None)
    if first is None:
        return None
    ratio = first.number / first.arguments[name]
    candidates: list[float] = [int(ratio)] if ratio == int(ratio) else []
    candidates += [round(ratio, places) for places in range(MOST_DIGITS + 1)]
    return next((factor for factor in candidates
                 if all(_fits(["times", ["argument", name], ["constant", factor]], one) for one in group)), None)


def _digits(number: float) -> int:
    """Return how many digits tell the number, without zeros at its ends; a number that is not exact in ten tells no more."""
    return min(MOST_DIGITS, len(re.sub(r"e.*|\D", "", repr(number)).strip("0")))
