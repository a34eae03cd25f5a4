"""Numbers that a call computes over the positions of its list arguments: what each names, or the difference of two of those.

In: examples. Out: an expression that gives every one, or None. Also values that switch with the sign of such a sum.
Does not see: products, percentages, sums of more than two terms a position.
"""

from __future__ import annotations

from collections.abc import Iterator

from env_builder.behaviour.examples import SAMPLES, Example, Expression, best, same
from env_builder.world.features import is_number, sums

DIGITS = 2
"""Digits to which money is rounded, where numbers only agree once rounded."""
MINIMUM_SIDES = 3


def computed(examples: list[Example]) -> Expression | None:
    """A number that is such a sum, as it stands, rounded, without or with the other sign."""
    if not all(is_number(one.after) for one in examples):
        return None
    return best((shape for one in examples[:SAMPLES] for shape in _shapes(one)), examples)


def _shapes(one: Example) -> Iterator[Expression]:
    """Sums in every shape that gives the number of this example."""
    for expression, value in sums(one.before, one.arguments, one.look, one.classes):
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
    for expression, value in sums(one.before, one.arguments, one.look, one.classes):
        above, below = sorted(known, key=lambda text: (text == one.after) != (value > 0))
        yield ["sign", expression, ["constant", above], ["constant", below]]
