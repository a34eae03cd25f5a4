"""Expressions of the behaviour language: JSON lists ["operator", …] over the document before and the arguments.

    ["before", name, …]        value at a path of the document before
    ["argument", name, …]      value at a path of the arguments
    ["constant", value]        the value itself
    ["object", [[name, e], …]] an object in this order
    ["sorted", e]              the list e, sorted
    ["append", e, e1, …]       the list e with the values of e1 … at its end
    ["negative", e]            minus the number e
    ["total", e, name]         sum of the field `name` over the list of objects e
    ["each", e, item]          the list of `item`, once for each element of the list e; in it `before` is the element
    ["concat", e, e2]          the list e followed by the list e2
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Missing(Exception):
    """A path leads nowhere, or a value has another type than the operator needs: the rule does not answer."""


def evaluate(expression: list[Any], before: Any, arguments: Any) -> Any:
    """Value of the expression; raises Missing where it has none."""
    operator, *operands = expression
    return OPERATORS[operator](operands, before, arguments)


def _at(value: Any, path: list[Any]) -> Any:
    for step in path:
        if not _has(value, step):
            raise Missing(step)
        value = value[step]
    return value


def _has(value: Any, step: Any) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value)


def _object(operands: list[Any], before: Any, arguments: Any) -> Any:
    return {name: evaluate(expression, before, arguments) for name, expression in operands[0]}


def _sorted(operands: list[Any], before: Any, arguments: Any) -> Any:
    value = _list(evaluate(operands[0], before, arguments))
    if not all(isinstance(item, str) for item in value):
        raise Missing("sorted")
    return sorted(value)


def _append(operands: list[Any], before: Any, arguments: Any) -> Any:
    first, *items = (evaluate(operand, before, arguments) for operand in operands)
    return [*_list(first), *items]


def _negative(operands: list[Any], before: Any, arguments: Any) -> Any:
    value = evaluate(operands[0], before, arguments)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Missing("negative")
    return -value


def _total(operands: list[Any], before: Any, arguments: Any) -> Any:
    rows = _list(evaluate(operands[0], before, arguments))
    values = [_at(row, [operands[1]]) for row in rows]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise Missing("total")
    return sum(values)


def _each(operands: list[Any], before: Any, arguments: Any) -> Any:
    return [evaluate(operands[1], item, arguments) for item in _list(evaluate(operands[0], before, arguments))]


def _concat(operands: list[Any], before: Any, arguments: Any) -> Any:
    one, other = (_list(evaluate(operand, before, arguments)) for operand in operands)
    return one + other


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Missing("list")
    return value


OPERATORS: dict[str, Callable[[list[Any], Any, Any], Any]] = {
    "before": lambda operands, before, arguments: _at(before, operands),
    "argument": lambda operands, before, arguments: _at(arguments, operands),
    "constant": lambda operands, before, arguments: operands[0],
    "object": _object,
    "sorted": _sorted,
    "append": _append,
    "negative": _negative,
    "total": _total,
    "each": _each,
    "concat": _concat,
}
