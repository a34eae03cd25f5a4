"""Totals: what a sum over things a call lists comes to with what is charged beside it.

In: calls with a number that each of them must have come to. Out: an expression that gives every one, or None: a sum of a number
over the positions of a list, times the length of another list; and up to two charges beside it, each a constant times a number
that was given, the length of a list, or that where an argument has one value. Each constant must be the same in two calls.
Does not see: percentages, steps, charges that no call paid.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import permutations
from typing import Any

from env_builder.behaviour.examples import Expression
from env_builder.behaviour.terms import value
from env_builder.runtime.expressions import Scope
from env_builder.world.features import is_number

MINIMUM_CALLS = 3
MINIMUM_CHARGED = 2
KNOWN = 0.5
"""Share of the calls in which the sum must be known."""
FEW = 4
"""Values of an argument up to which a charge may hang on one of them."""
Told = list[tuple[Scope, Any]]
"""(call, what it comes to)."""


def fit(told: Told, elements: list[tuple[list[str], Expression]]) -> Expression | None:
    """The simplest total that gives every number, of calls in which its sum is known; it must be in most."""
    once = list({str((scope.arguments, number)): (scope, number) for scope, number in told}.values())
    for base in _bases(once, elements):
        known = [(scope, number, found) for scope, number in once for found in [value(base, scope)] if is_number(found)]
        if len(known) < KNOWN * len(once) or len({str(number) for _, number, _ in known}) < MINIMUM_CALLS:
            continue
        rest = [number - found for _, number, found in known]
        charges = list(_charges([scope for scope, _, _ in known])) if any(rest) else []
        for n in (0, 1, 2):
            for some in permutations(charges, n):
                charged = _charged(rest, list(some))
                if charged is not None:
                    return reduce(lambda total, e: ["plus", total, e], charged, base)
    return None


def _bases(told: Told, elements: list[tuple[list[str], Expression]]) -> Iterator[Expression]:
    sums: list[Expression] = [["sum", ["rows", names, e]] for names, e in elements]
    yield from sums
    yield from (["times", one, length] for one in sums for length in _lengths(told[0][0]))


def _lengths(scope: Scope) -> list[Expression]:
    return [
        *(["length", ["argument", name]] for name, given in sorted(scope.arguments.items()) if isinstance(given, list)),
        *(["length", ["before", name]] for name, kept in sorted(scope.before.items()) if isinstance(kept, list))]


def _charges(scopes: list[Scope]) -> Iterator[tuple[Expression, list[Any]]]:
    """What may be charged for, with how much of it each call had."""
    first = scopes[0]
    lengths = _lengths(first)
    switched: list[Expression] = []
    for name in sorted(first.arguments):
        given = [value(["argument", name], scope) for scope in scopes]
        if all(isinstance(one, str | bool) for one in given) and 1 < len(set(given)) <= FEW:
            switched += [
                ["first", ["same", ["argument", name], ["constant", one], unit], ["constant", 0]]
                for one in sorted(set(given), key=str) for unit in (*lengths, ["constant", 1])]
    units: list[Expression] = [["argument", name] for name, given in sorted(first.arguments.items()) if is_number(given)]
    for e in (*units, *lengths, *switched):
        amounts = [value(e, scope) for scope in scopes]
        if all(is_number(one) for one in amounts) and any(amounts):
            yield e, amounts


def _charged(rest: list[Any], charges: list[tuple[Expression, list[Any]]]) -> list[Expression] | None:
    """The charges with their constants, where they give all that is left."""
    found: list[Expression] = []
    for place, (e, amounts) in enumerate(charges):
        later = charges[place + 1:]
        alone = [left / n for left, n, *others in zip(rest, amounts, *(more for _, more in later), strict=True)
                 if n and not any(others)]
        if len(alone) < MINIMUM_CHARGED or len(set(alone)) != 1 or not alone[0]:
            return None
        constant = int(alone[0]) if alone[0] == int(alone[0]) else alone[0]
        found.append(["times", e, ["constant", constant]])
        rest = [left - n * constant for left, n in zip(rest, amounts, strict=True)]
    return None if any(rest) else found
