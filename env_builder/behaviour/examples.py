"""Examples of a value, and whether an expression gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from env_builder.runtime.expressions import Look, NoValue, evaluate, nothing
from env_builder.runtime.tables import Table

Expression = list[Any]
MINIMUM_SHARE = 0.5
"""Share of the examples in which other documents that an expression speaks of must be known."""
NEARLY = 0.02
"""Share of examples in which an expression may say nothing without others being tried."""
SAMPLES = 3
"""Examples from which candidates are made: another document may not be known in the first."""
NOTHING = object()
"""Stands where an expression has no value."""


class WriteExample(NamedTuple):
    """What was so before a call, what it was given, and what came of it."""

    before: Any
    arguments: Any
    after: Any
    look: Look = nothing
    """Other documents, as known just before."""
    classes: tuple[str, ...] = ()
    """Classes of which there are any."""
    rows: Mapping[str, Table] = MappingProxyType({})
    """Class of rows -> all that were ever listed: to look for columns, not for values."""
    tool: str = ""
    """The tool that was called, where the number of its calls may count."""


def fits(expression: Expression, examples: list[WriteExample]) -> bool:
    """Return whether the expression gives exactly the value after (type and key order included) in every example.

    Where it speaks of another document, examples in which that is not known say nothing; most must say something.
    """
    return silence(expression, examples) is not None


def best(candidates: Iterable[Expression], examples: list[WriteExample]) -> Expression | None:
    """Return the first that fits and (nearly) always says something, else the one that says nothing least often."""
    least, best_expression, tried = len(examples), None, set[str]()
    for expression in candidates:
        mark = str(expression)
        silent = None if mark in tried else silence(expression, examples, least - 1)
        tried.add(mark)
        if silent is not None and silent < least:
            least, best_expression = silent, expression
        if least <= NEARLY * len(examples):
            break
    return best_expression


def silence(expression: Expression, examples: list[WriteExample], most: int | None = None) -> int | None:
    """In how many examples it says nothing; None where it does not fit, or that is in more than `most`."""
    silent, allowed = 0, (1 - MINIMUM_SHARE) * len(examples) if is_linked(expression) else 0
    allowed = allowed if most is None else min(allowed, most)
    for value, example in zip(values(expression, examples), examples, strict=True):
        silent += value is NOTHING
        if silent > allowed or (value is not NOTHING and not same(value, example.after)):
            return None
    return silent if silent < len(examples) else None


def is_linked(expression: Any) -> bool:
    """Return whether it speaks of another record, or of a row."""
    return isinstance(expression, list) and (expression[:1] in (["document"], ["row"]) or any(map(is_linked, expression)))


def values(expression: Expression, examples: list[WriteExample]) -> Iterator[Any]:
    """Its value in each example, `NOTHING` where it has none."""
    for example in examples:
        try:
            yield evaluate(expression, example.before, example.arguments, example.look)
        except NoValue:
            yield NOTHING


def same(one: Any, other: Any) -> bool:
    """Equal to the byte once written as JSON."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other
