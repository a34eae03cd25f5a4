"""The simplest expression that explains all examples of a value, by enumeration.

In: examples (document before, arguments, value after). Out: an expression of the behaviour language
(`runtime/expressions.py`), or None if none of those tried explains every example. They are tried in the order of simplicity:
unchanged, constant, an argument, a value of the document before, then composed ones, then values that nobody can predict. A day
that is always that of the call is no constant, however few days the log has.

Numbers may be computed over the positions of list arguments: the sum of what each names, or of the difference of two of those;
and values may switch with the sign of such a sum. Does not see: products, percentages, sums of more than two terms a position.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from env_builder.behaviour import volatile
from env_builder.behaviour.examples import SAMPLES, Expression, WriteExample, best, fits, same
from env_builder.behaviour.lists import extended, replaced
from env_builder.world.features import features, is_number, sums

DIGITS = 2
"""Digits to which money is rounded, where numbers only agree once rounded."""
MINIMUM_SIDES = 3


def computed(examples: list[WriteExample]) -> Expression | None:
    """Return a number that is such a sum, as it stands, rounded, without or with the other sign."""
    if not all(is_number(one.after) for one in examples):
        return None
    return best((shape for one in examples[:SAMPLES] for shape in _shapes(one)), examples)


def _shapes(one: WriteExample) -> Iterator[Expression]:
    """Yield sums in every shape that gives the number of this example."""
    for expression, value in sums(one.before, one.arguments, one.look, one.classes):
        for shape, shaped in (
            (expression, value), (["round", expression, DIGITS], round(value, DIGITS)), (["absolute", expression], abs(value)),
            (["negative", expression], -value), (["round", ["absolute", expression], DIGITS], round(abs(value), DIGITS)),
        ):
            if same(shaped, one.after):
                yield shape


def switched(examples: list[WriteExample]) -> Expression | None:
    """One of two constants, by the sign of such a sum."""
    texts = list({example.after: None for example in examples if isinstance(example.after, str)})
    if len(texts) != 2 or any(sum(example.after == one for example in examples) < MINIMUM_SIDES for one in texts):
        return None
    return best((shape for one in examples[:SAMPLES] for shape in _signs(one, texts)), examples)


def _signs(one: WriteExample, texts: list[str]) -> Iterator[Expression]:
    for expression, value in sums(one.before, one.arguments, one.look, one.classes):
        above, below = sorted(texts, key=lambda text: (text == one.after) != (value > 0))
        yield ["sign", expression, ["constant", above], ["constant", below]]


MAXIMUM_PATHS = 200
MAXIMUM_ITEMS = 3
__all__ = ["WriteExample", "explain", "fits", "same"]


def explain(examples: list[WriteExample], hint: list[str]) -> Expression | None:
    """Return the first expression that gives `after` in every example. `hint`: path in the document before to try first.

    Where both something given and something kept explain all, neither is proven: the answer is what they agree on.
    """
    today = volatile.now(examples) if isinstance(examples[0].after, str) else None
    if today is not None and not volatile.paths(today):
        return today
    expressions: list[Expression] = []
    for expression in _leaves(examples, hint):
        if all(one[0] != expression[0] for one in expressions) and fits(expression, examples):
            if not expressions and expression[0] not in ("before", "argument"):
                return expression
            if expression[0] in ("before", "argument") and (not isinstance(examples[0].after, dict) or not expressions):
                expressions.append(expression)
    if len(expressions) == 1 and expressions[0][0] == "argument" and fits(["sorted", expressions[0]], examples):
        expressions.append(["sorted", expressions[0]])  # no example tells whether it is put in order
    if expressions:
        return ["agree", *expressions] if len(expressions) > 1 else expressions[0]
    return (
        _object(examples, hint) or extended(examples, hint, explain) or replaced(examples, hint, explain)
        or best(_selected(examples), examples) or computed(examples) or switched(examples)
        or volatile.explained(examples, hint))


def _leaves(examples: list[WriteExample], hint: list[str]) -> Iterator[Expression]:
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


def _numbers(first: WriteExample) -> Iterator[Expression]:
    for root, value in (("argument", first.arguments), ("before", first.before)):
        for path in _paths(value, -first.after):
            yield ["negative", [root, *path]]
    for name, value in first.before.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            for field in sorted(value[0]):
                yield ["total", ["before", name], field]


def _paths(value: Any, wanted: Any) -> list[list[Any]]:
    """Paths of a JSON value that lead to `wanted`, the shortest first."""
    matching = [path for path, leaf in _walk(value, []) if path and same(leaf, wanted)]
    return sorted(matching, key=lambda path: (len(path), [str(step) for step in path]))[:MAXIMUM_PATHS]


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


def _object(examples: list[WriteExample], hint: list[str]) -> Expression | None:
    """Return an object of explained fields, where all examples have the same ones in the same order."""
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


def _selected(examples: list[WriteExample]) -> Iterator[Expression]:
    """Yield what gives the value of an example: an element that an argument selects, in the document or in another one."""
    for one in examples[:SAMPLES]:
        candidates = features(one.before, one.arguments, one.look, one.classes)
        yield from (expression for expression, value in candidates if same(value, one.after))
