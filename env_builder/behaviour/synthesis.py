"""The simplest expression that explains all examples of a value, by enumeration.

In: examples (document before, arguments, value after). Out: an expression of the behaviour language
(`runtime/expressions.py`), or None where none of those tried explains every example. Order of trial = order of simplicity:
kept, constant, an argument, a value of the document before, then built ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from env_builder.runtime.expressions import Missing, evaluate

MAXIMUM_PATHS = 200
MAXIMUM_ITEMS = 3


class Example(NamedTuple):
    """What was so before a call, what it was given, and what came of it."""

    before: Any
    arguments: Any
    after: Any


Expression = list[Any]


def explain(examples: list[Example], hint: list[str]) -> Expression | None:
    """The first expression that gives `after` in every example. `hint`: path in the document before to try first."""
    for expression in _leaves(examples, hint):
        if fits(expression, examples):
            return expression
    return _object(examples, hint) or _extend(examples, hint)


def fits(expression: Expression, examples: list[Example]) -> bool:
    """Does the expression give exactly the value after (type and key order included) in every example?"""
    for before, arguments, after in examples:
        try:
            if not same(evaluate(expression, before, arguments), after):
                return False
        except Missing:
            return False
    return True


def same(one: Any, other: Any) -> bool:
    """Equal to the byte once written as JSON."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def _leaves(examples: list[Example], hint: list[str]) -> Iterator[Expression]:
    first = examples[0]
    if hint:
        yield ["before", *hint]
    if not isinstance(first.after, dict | list) or not first.after:  # a whole structure that never varies is a coincidence
        yield ["constant", first.after]
    for path in _paths(first.arguments, first.after):
        yield ["argument", *path]
    for path in _paths(first.before, first.after):
        yield ["before", *path]
    if isinstance(first.after, list):
        for name, value in sorted(first.arguments.items()):
            if isinstance(value, list) and len(value) == len(first.after):
                yield ["sorted", ["argument", name]]
    if isinstance(first.after, int | float) and not isinstance(first.after, bool):
        yield from _numbers(first)


def _numbers(first: Example) -> Iterator[Expression]:
    for root, value in (("argument", first.arguments), ("before", first.before)):
        for path in _paths(value, -first.after):
            yield ["negative", [root, *path]]
    for name, value in first.before.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            for field in sorted(value[0]):
                yield ["total", ["before", name], field]


def _paths(value: Any, wanted: Any) -> list[list[Any]]:
    """Paths of a JSON value that lead to `wanted`, the shortest first."""
    found = [path for path, leaf in _walk(value, []) if path and same(leaf, wanted)]
    return sorted(found, key=lambda path: (len(path), [str(step) for step in path]))[:MAXIMUM_PATHS]


def _walk(value: Any, path: list[Any]) -> Iterator[tuple[list[Any], Any]]:
    yield path, value
    if len(path) > 3:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _walk(item, [*path, name])
    elif isinstance(value, list):
        for index, item in enumerate(value[:MAXIMUM_ITEMS]):
            yield from _walk(item, [*path, index])


def _object(examples: list[Example], hint: list[str]) -> Expression | None:
    """An object of explained fields, where all examples have the same ones in the same order."""
    shapes = {tuple(example.after) if isinstance(example.after, dict) else None for example in examples}
    shape = shapes.pop()
    if shapes or not shape:
        return None
    fields = []
    for name in shape:
        inner = [example._replace(after=example.after[name]) for example in examples]
        expression = explain(inner, [*hint, name])
        if expression is None:
            return None
        fields.append([name, expression])
    return ["object", fields]


def _extend(examples: list[Example], hint: list[str]) -> Expression | None:
    """The list as it was with something at its end: one item for each that was there, or a fixed number of items."""
    grown = [_grown(example, hint) for example in examples]
    found = [pair for pair in grown if pair is not None]
    if len(found) < len(examples):
        return None
    if all(len(old) == len(extra) for old, extra in found) and any(len(old) > 1 for old, _ in found):
        items = [
            Example(item, example.arguments, new)
            for example, (old, extra) in zip(examples, found, strict=True) for item, new in zip(old, extra, strict=True)
        ]
        each = explain(items, []) if items else None
        return each and ["concat", ["before", *hint], ["each", ["before", *hint], each]]
    return _append(examples, [extra for _, extra in found], hint)


def _grown(example: Example, hint: list[str]) -> tuple[list[Any], list[Any]] | None:
    """(the list as it was, what came to its end), or None where it is not a list that grew at its end."""
    try:
        old = evaluate(["before", *hint], example.before, example.arguments)
    except Missing:
        return None
    after = example.after
    if not isinstance(old, list) or not isinstance(after, list) or not same(after[: len(old)], old):
        return None
    return old, after[len(old):]


def _append(examples: list[Example], extra: list[list[Any]], hint: list[str]) -> Expression | None:
    lengths = {len(items) for items in extra}
    n = lengths.pop()
    if lengths or not 0 < n <= MAXIMUM_ITEMS:
        return None
    items = []
    for index in range(n):
        inner = [example._replace(after=new[index]) for example, new in zip(examples, extra, strict=True)]
        expression = explain(inner, [])
        if expression is None:
            return None
        items.append(expression)
    return ["append", ["before", *hint], *items]
