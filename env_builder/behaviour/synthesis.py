"""The simplest expression that explains all examples of a value, by enumeration.

In: examples (document before, arguments, value after). Out: an expression of the behaviour language
(`runtime/expressions.py`), or None where none of those tried explains every example. Order of trial = order of simplicity:
kept, constant, an argument, a value of the document before, then built ones, then what nobody can foretell. A day that is
always that of the call is no constant, however few days the log has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from env_builder.behaviour import volatile
from env_builder.behaviour.examples import SAMPLES, Example, Expression, best, fits, same
from env_builder.behaviour.lists import extended, replaced
from env_builder.behaviour.numbers import computed, switched
from env_builder.world.features import features

MAXIMUM_PATHS = 200
MAXIMUM_ITEMS = 3
__all__ = ["Example", "explain", "fits", "same"]


def explain(examples: list[Example], hint: list[str]) -> Expression | None:
    """The first expression that gives `after` in every example. `hint`: path in the document before to try first.

    Where both something given and something kept explain all, neither is proven: the answer is what they agree on.
    """
    today = volatile.now(examples) if isinstance(examples[0].after, str) else None
    if today is not None and not volatile.paths(today):
        return today
    found: list[Expression] = []
    for expression in _leaves(examples, hint):
        if all(one[0] != expression[0] for one in found) and fits(expression, examples):
            if not found and expression[0] not in ("before", "argument"):
                return expression
            if expression[0] in ("before", "argument") and (not isinstance(examples[0].after, dict) or not found):
                found.append(expression)
    if len(found) == 1 and found[0][0] == "argument" and fits(["sorted", found[0]], examples):
        found.append(["sorted", found[0]])  # no example tells whether it is put in order
    if found:
        return ["agree", *found] if len(found) > 1 else found[0]
    return (
        _object(examples, hint) or extended(examples, hint, explain) or replaced(examples, hint, explain)
        or _reached(examples) or computed(examples) or switched(examples) or volatile.explained(examples, hint))


def _leaves(examples: list[Example], hint: list[str]) -> Iterator[Expression]:
    first = examples[0]
    if hint:
        yield ["before", *hint]
        if same(first.arguments.get(hint[-1]), first.after):  # what is named so is put there, though it never varied
            yield ["argument", hint[-1]]
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


def _reached(examples: list[Example]) -> Expression | None:
    """A value that an argument selects, in the document or in another one."""
    return best(
        (expression for one in examples[:SAMPLES]
         for expression, value in features(one.before, one.arguments, one.look, one.classes) if same(value, one.after)),
        examples)
