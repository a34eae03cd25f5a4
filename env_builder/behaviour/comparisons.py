"""Conditions over terms, by contrast: which comparisons hold in refused calls and in no call that worked.

In: terms with their values in both. Out: conditions (runtime/linked.py) and where they hold in the refused calls; a comparison
must have been told in some calls that worked. Sees: two values at a time. Does not see: conditions that hold together alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import permutations, product
from typing import Any

from env_builder.behaviour.guards import OPEN
from env_builder.behaviour.terms import NOWHERE, UNKNOWN, Term
from env_builder.runtime.linked import Condition
from env_builder.world.features import is_number

MINIMUM_CONTRAST = 3
"""Calls that worked in which a condition must have been told."""
MAXIMUM_NUMBERS = 40
MAXIMUM_VALUES = 3
COMPUTED = ("sum", "total", "times", "minus", "plus", "round", "absolute", "length")
Compare = Callable[[Any, Any], bool | None]
Truth = list[list[bool | None]]
"""Does a condition hold (None: that is not known), for each refused call at each of its positions?"""


def conditions(terms: list[Term], others: list[Term], things: list[str]) -> Iterator[tuple[Condition, Truth]]:
    """(condition, where it holds in the refused calls), each with one of `terms` at least. `things`: what each of the
    calls that worked speaks of."""
    for term in terms:
        yield from _one_of(term, things)
    texts, more = (
        [term for term in some if term.expression[0] == "argument" and _any(term.bad, str)] for some in (terms, others))
    holders, wider = ([term for term in some if _any(term.bad, dict | list)] for some in (terms, others))
    yield from _compared("strange", [*product(texts, [*holders, *wider]), *product(more, holders)], is_strange)
    numbers, rest = (
        sorted((term for term in some if _any(term.bad, int | float)), key=lambda term: (
            term.expression[0] not in COMPUTED, len(str(term.expression))))[:MAXIMUM_NUMBERS] for some in (terms, others))
    pairs = [*permutations(numbers, 2), *product(numbers, rest), *product(rest, numbers)]
    yield from _compared("less", pairs, is_less)
    once = [(one, other) for one, other in pairs if str(one.expression) < str(other.expression)]
    yield from _compared("differ", once, _differs)


def _any(columns: list[list[Any]], kind: Any) -> bool:
    return any(isinstance(seen, kind) and not isinstance(seen, bool) for column in columns for seen in column)


def _compared(kind: str, pairs: Iterable[tuple[Term, Term]], compare: Compare) -> Iterator[tuple[Condition, Truth]]:
    for one, other in pairs:
        n_told = 0
        for left, right in zip(one.good, other.good, strict=True):
            told = list(map(compare, left, right))
            if True in told:
                break
            if False in told:
                n_told += any(a is not NOWHERE and b is not NOWHERE and held is False
                              for a, b, held in zip(left, right, told, strict=True))
        else:
            truth = [list(map(compare, left, right)) for left, right in zip(one.bad, other.bad, strict=True)]
            if n_told >= MINIMUM_CONTRAST and any(True in told for told in truth):
                yield [kind, one.expression, other.expression], truth


def is_less(one: Any, other: Any) -> bool | None:
    """Is one number below the other? None where either is none, or not known."""
    if one is NOWHERE or other is NOWHERE:
        return False
    return one < other if is_number(one) and is_number(other) else None


def _differs(one: Any, other: Any) -> bool | None:
    if one is NOWHERE or other is NOWHERE:
        return False
    return None if one is UNKNOWN or other is UNKNOWN else bool(one != other)


def is_strange(one: Any, other: Any) -> bool | None:
    """Does the object or list not hold the text? None where it is no such thing, or not known."""
    if one is NOWHERE or other is NOWHERE:
        return False
    return one not in other if isinstance(other, dict | list) and isinstance(one, str) else None


def _one_of(term: Term, things: list[str]) -> Iterator[tuple[Condition, Truth]]:
    """The term, where it takes few values, has one that it had in refused calls and in none that worked."""
    good = [seen for column in term.good for seen in column]
    plain = [seen for column in term.bad for seen in column if _is_word(seen)]
    values = sorted({seen for seen in plain if seen not in good}, key=str)
    n_told = sum(any(_is_word(seen) for seen in column) for column in term.good)
    if 0 < len(values) <= MAXIMUM_VALUES and n_told >= MINIMUM_CONTRAST and not _is_open(term, things):
        truth: Truth = [[_is_word(seen) and seen in values if seen is not UNKNOWN else None for seen in column]
                        for column in term.bad]
        yield ["among", [term.expression], [[seen] for seen in values]], truth


def _is_open(term: Term, things: list[str]) -> bool:
    """Were so many values seen with one thing only that others must be expected (Good and Turing's estimate)?"""
    seen: dict[str, set[str]] = defaultdict(set)
    for thing, column in zip(things, term.good, strict=True):
        for one in column:
            if one is not NOWHERE and one is not UNKNOWN:
                seen[str(one)].add(thing)
    return sum(len(having) == 1 for having in seen.values()) > OPEN * len(set[str]().union(*seen.values()))


def _is_word(seen: Any) -> bool:
    """Is it a value of few: no id, no number, no list?"""
    return isinstance(seen, bool) or (isinstance(seen, str) and not any(map(str.isdigit, seen)))
