"""Checks without a message: what calls that worked never broke, so that what becomes of a call which breaks it nobody knows.

In: scopes of calls that worked, and the fields of their rule. Out: conditions (runtime/linked.py). What calls gave always named
something in another document, and what they charged was never more than what an argument selects there.
Sees: one link away. Does not see: what was never broken by chance; a check that counts only in some calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from env_builder.behaviour.comparisons import MINIMUM_CONTRAST, Compare, is_less, is_strange
from env_builder.behaviour.examples import Expression
from env_builder.behaviour.terms import Position, Worked, numbers_of, places, speaks_of
from env_builder.runtime.expressions import Scope
from env_builder.runtime.linked import Condition, holds
from env_builder.world.features import features, is_number

MINIMUM_ALWAYS = 5
"""Calls that worked in which what they gave must have named something."""
MAXIMUM_PLACES = 100
"""Calls that worked by which positions of lists are told apart."""
LOOKED_AT = 16
"""Calls that worked in which things are looked for that never were otherwise."""


def find(worked: list[Scope], sample: Worked, fields: dict[str, Any], classes: tuple[str, ...]) -> Iterator[Condition]:
    """Conditions that hold in no call that worked. `sample`: some of these calls; `fields`: what the rule makes of a call."""
    if len(worked) < MINIMUM_ALWAYS:
        return
    numbers = [e for e in numbers_of(fields, worked[0].arguments) if e[0] != "total"]
    for position in places(worked[:MAXIMUM_PLACES], fields):
        for kind, one, other in _pairs(sample, position, len(worked), classes, numbers):
            columns = zip(sample.values(one, position), sample.values(other, position), strict=True)
            n_told = _n_unbroken(is_less if kind == "less" else is_strange, columns)
            full = [kind, one, other] if position is None else ["any", *position, [kind, one, other]]
            if n_told >= MINIMUM_ALWAYS and not any(holds(full, scope) for scope in worked):
                yield full


def _pairs(
    sample: Worked, position: Position, n_worked: int, classes: tuple[str, ...], numbers: list[Expression]
) -> Iterator[tuple[str, Expression, Expression]]:
    """(kind of comparison, what was given, what stands in another document)."""
    spoken: dict[str, tuple[Expression, Any]] = {}
    for scopes in sample.at(position)[:: max(1, n_worked // LOOKED_AT)][:LOOKED_AT]:
        for scope in scopes:
            for e, seen in features(scope.before, scope.arguments, scope.look, classes, plain=True):
                if seen is not None:
                    spoken.setdefault(str(e), (e, seen))
    given = [e for e, _ in spoken.values() if e[0] == "argument" and (position is None or speaks_of(e, position[0]))]
    ids = [e for e in given if _is_id(e, sample, position)]
    linked = [(e, seen) for e, seen in spoken.values() if e[0] == "at" and "document" in str(e[1])]
    holders = [e for e, seen in linked if e[1][0] == "document" and isinstance(seen, dict)]
    yield from (("strange", e, holder) for e, holder in product(ids, holders))
    if position is None:
        chosen = [e for e, seen in linked if is_number(seen) and len(e) > 2 and e[2][:1] == ["argument"]]
        yield from (("less", e, number) for e, number in product(chosen, numbers) if _is_tested(e, number, sample))


def _n_unbroken(compare: Compare, columns: Iterator[tuple[list[Any], list[Any]]]) -> int:
    """In how many calls the comparison does not hold, 0 as soon as it holds in one."""
    n_told = 0
    for left, right in columns:
        told = list(map(compare, left, right))
        if True in told:
            return 0
        n_told += False in told
    return n_told


def _is_tested(left: Expression, number: Expression, sample: Worked) -> bool:
    """Was something charged where it is known what is left, in several calls?"""
    both = zip(sample.values(left, None), sample.values(number, None), strict=True)
    return sum(bool(is_number(one) and is_number(other) and other > 0) for (one,), (other,) in both) >= MINIMUM_CONTRAST


def _is_id(expression: Expression, sample: Worked, position: Position) -> bool:
    texts = [seen for column in sample.values(expression, position) for seen in column if isinstance(seen, str)]
    return bool(texts) and all(any(map(str.isdigit, seen)) for seen in texts)
