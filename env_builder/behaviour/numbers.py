"""Numbers that a call computes over the positions of its list arguments: what each names, or the difference of two of those.

In: examples. Out: an expression that gives every one, or None. Also values that switch with the sign of such a sum.
Does not see: products, percentages, sums of more than two terms a position.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from env_builder.behaviour.examples import NOTHING, SAMPLES, Example, Expression, best, same, values
from env_builder.behaviour.features import features
from env_builder.runtime.expressions import Scope, positions

DIGITS = 2
"""Digits to which money is rounded, where numbers only agree once rounded."""
MAXIMUM_TERMS = 24
MINIMUM_SIDES = 3


def computed(examples: list[Example]) -> Expression | None:
    """A number that is such a sum, as it stands, rounded, without or with the other sign."""
    if any(isinstance(one.after, bool) or not isinstance(one.after, int | float) for one in examples):
        return None
    return best((shape for one in examples[:SAMPLES] for shape in _shapes(one)), examples)


def _shapes(one: Example) -> Iterator[Expression]:
    """Sums in every shape that gives the number of this example."""
    for expression, value in _sums(one):
        for shape, shaped in (
            (expression, value), (["round", expression, DIGITS], round(value, DIGITS)), (["absolute", expression], abs(value)),
            (["negative", expression], -value), (["round", ["absolute", expression], DIGITS], round(abs(value), DIGITS)),
        ):
            if same(shaped, one.after):
                yield shape


def switched(examples: list[Example]) -> Expression | None:
    """One of two constants, by the sign of such a sum."""
    known = list({example.after: None for example in examples if isinstance(example.after, str)})
    if len(known) != 2 or any(sum(example.after == one for example in examples) < MINIMUM_SIDES for one in known):
        return None
    return best((shape for one in examples[:SAMPLES] for shape in _signs(one, known)), examples)


def _signs(one: Example, known: list[str]) -> Iterator[Expression]:
    for expression, value in _sums(one):
        above, below = sorted(known, key=lambda text: (text == one.after) != (value > 0))
        yield ["sign", expression, ["constant", above], ["constant", below]]


def together(arguments: dict[str, Any]) -> list[list[str]]:
    """List arguments of one length: all that share it, then each alone."""
    lists = {name: len(value) for name, value in sorted(arguments.items()) if isinstance(value, list) and value}
    alike = [[name for name in lists if lists[name] == length] for length in sorted(set(lists.values()))]
    return [*(names for names in alike if len(names) > 1), *([name] for name in lists)]


def _sums(example: Example) -> Iterator[tuple[Expression, Any]]:
    """Sums over positions, and their values in this example."""
    for names in together(example.arguments):
        row = positions(names, Scope(example.before, example.arguments))[0]
        marks = [str(["argument", name]) for name in names]
        terms = [
            expression for expression, value in features(row.before, row.arguments, example.look, example.classes)
            if isinstance(value, int | float) and not isinstance(value, bool) and any(mark in str(expression) for mark in marks)
        ][:MAXIMUM_TERMS]
        items: list[Expression] = [*terms, *(["minus", one, other] for one in terms for other in terms if one != other)]
        for item in items:
            expression = ["sum", ["rows", names, item]]
            (value,) = values(expression, [example])
            if value is not NOTHING:
                yield expression, value
