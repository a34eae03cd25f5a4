"""Tools that compute one number from the numbers that they are given, whatever came before: conversions and arithmetic.

In: the calls of a tool that worked, with their answers. Out: a `value` rule, or None. The number is the product of an argument
and a factor, which may depend on the other arguments (a table of units or rates); or the sum, difference, product or quotient
of two arguments; or the sum or mean of a list. It must be exact to the last digit in every answer, and the answers must have
many more digits than the factors: then chance is no explanation, though calls are few.
Sees: answers that are a number, or an object with one number that varies. Does not see: what is rounded, or has an offset.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations
from typing import Any, NamedTuple

from env_builder.behaviour.evidence import UNEXPLAINED, Induced, ToolEvidence, one_or_none
from env_builder.behaviour.templates import AGAINST, limits
from env_builder.runtime.canonical import canonical
from env_builder.runtime.expressions import NoValue, evaluate
from env_builder.runtime.texts import admits
from env_builder.world.documents import STYLES
from env_builder.world.replay import LoggedStep

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


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool that computes a number from its arguments."""
    return one_or_none(conversion_rule(evidence.steps) if evidence.has_only(*UNEXPLAINED) else None)


def conversion_rule(steps: list[LoggedStep]) -> dict[str, Any] | None:
    """Return the `value` rule of one tool."""
    done = list({(step.call.key, step.call.content): step.call for step in steps if not step.call.failed}.values())
    values = [_parsed(call.content) for call in done]
    style = next((style for style in STYLES if all(
        json.dumps(value, **style) == call.content for value, call in zip(values, done, strict=True))), None)
    field = _varying(values)
    if style is None or field is None or len(done) < MINIMUM_QUESTIONS:
        return None
    numbers = [value[field] if field else value for value in values]
    examples = [NumberExample(call.arguments, number) for call, number in zip(done, numbers, strict=True)]
    expression = next(_computations(examples), None)
    when = limits([one.arguments for one in examples], set(examples[0].arguments))
    refused = [step for step in steps if step.call.failed and admits(when, step.call.arguments)]
    if expression is None or len(refused) > AGAINST * len(done):
        return None
    whole = expression if not field else ["object", [
        [name, expression if name == field else ["constant", value]] for name, value in values[0].items()]]
    return {"rule": "value", "when": {**when, "values": {}}, "value": whole, "style": dict(style)}


def _parsed(content: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _varying(values: list[Any]) -> str | None:
    """Return the one field that varies, and is a number; "" where the answers are numbers themselves; None where neither is."""
    if all(map(_is_number, values)):
        return ""
    if not all(isinstance(value, dict) for value in values) or len({tuple(value) for value in values}) != 1:
        return None
    varying = [name for name in values[0] if len({canonical(value[name]) for value in values}) > 1]
    return varying[0] if len(varying) == 1 and all(_is_number(value[varying[0]]) for value in values) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _computations(examples: list[NumberExample]) -> Iterator[Expression]:
    """Yield the computations that give every number, those without factors first."""
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
