"""Operators of expressions over numbers, and over lists of them (expressions.py holds the language)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .scopes import Expression, Make, Run, Scope, amount, at, rows


def list_of(expression: Expression, make: Make) -> Run:
    """The expression as a function whose value is a list."""
    e = make(expression)
    return lambda scope: rows(e(scope))


def _append(operands: list[Any], make: Make) -> Run:
    runs = list(map(make, operands))

    def run(scope: Scope) -> Any:
        first, *items = [one(scope) for one in runs]
        return [*rows(first), *items]

    return run


def _append_where(holds: Callable[[Any], bool]) -> Callable[[list[Any], Make], Run]:
    """The list with the item at its end where this holds of the number."""
    def operator_of(operands: list[Any], make: Make) -> Run:
        e, number, item = operands
        with_it, without, n = _append([e, item], make), _append([e], make), _number(number, make)
        return lambda scope: (with_it if holds(n(scope)) else without)(scope)

    return operator_of


def _number(expression: Expression, make: Make) -> Run:
    e = make(expression)
    return lambda scope: amount(e(scope))


def _of_number(work: Callable[[Any], Any]) -> Callable[[list[Any], Make], Run]:
    def operator_of(operands: list[Any], make: Make) -> Run:
        number = _number(operands[0], make)
        return lambda scope: work(number(scope))

    return operator_of


def _of_numbers(work: Callable[[Any, Any], Any]) -> Callable[[list[Any], Make], Run]:
    def operator_of(operands: list[Any], make: Make) -> Run:
        one, other = _number(operands[0], make), _number(operands[1], make)
        return lambda scope: work(one(scope), other(scope))

    return operator_of


def _rounded(operands: list[Any], make: Make) -> Run:
    number, digits = _number(operands[0], make), operands[1]
    return lambda scope: round(number(scope), digits)


def total(values: list[Any]) -> Any:
    """Sum from left to right, as a loop adds (the built-in sum compensates for rounding since Python 3.12)."""
    found: Any = 0
    for value in values:
        found += amount(value)
    return found


def _sum(operands: list[Any], make: Make) -> Run:
    e = list_of(operands[0], make)
    return lambda scope: total(e(scope))


def _total(operands: list[Any], make: Make) -> Run:
    e, path = list_of(operands[0], make), [operands[1]]
    return lambda scope: total([at(row, path) for row in e(scope)])


def _sign(operands: list[Any], make: Make) -> Run:
    number, (above, other) = _number(operands[0], make), list(map(make, operands[1:]))
    return lambda scope: above(scope) if number(scope) > 0 else other(scope)


def _length(operands: list[Any], make: Make) -> Run:
    e = list_of(operands[0], make)
    return lambda scope: len(e(scope))


AMOUNTS: dict[str, Callable[[list[Any], Make], Run]] = {
    "append": _append,
    "append_above": _append_where(lambda number: bool(number > 0)),
    "append_unless_zero": _append_where(lambda number: bool(number != 0)),
    "times": _of_numbers(operator.mul),
    "length": _length,
    "negative": _of_number(operator.neg),
    "absolute": _of_number(abs),
    "round": _rounded,
    "plus": _of_numbers(operator.add),
    "minus": _of_numbers(operator.sub),
    "sum": _sum,
    "total": _total,
    "sign": _sign,
}
"""Operator -> what makes a function of its operands."""
