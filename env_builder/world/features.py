"""What can be said about one example: every value that an expression over it reaches, with that expression.

In: an example's document before, arguments, and a look at other documents. Out: (expression, value), the simplest first: paths
of the arguments and the document; elements that an argument selects; then the same inside the documents that a value names.
Sees: one link away, the first items of lists. Does not see: documents that are not known at that moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from env_builder.runtime.expressions import Look, NoValue, Scope, evaluate, positions

MAXIMUM_TERMS = 24
MAXIMUM_ITEMS = 3
MAXIMUM_DEPTH = 3
Expression = list[Any]
Feature = tuple[Expression, Any]
_PLACE = re.compile(r", \d+[],]")


def features(
    before: Any, arguments: dict[str, Any], look: Look, classes: tuple[str, ...], plain: bool = False
) -> list[Feature]:
    """All features of an example. `plain`: those that name nothing by its place in a list, and look in one list at most."""
    given = [feature for name, value in arguments.items() for feature in _paths(["argument", name], value)]
    own = [feature for feature in _paths(["before"], before) if len(feature[0]) > 1]
    keys = [(expression, value) for expression, value in given if isinstance(value, str | int)]
    chosen = list(_selected(["before"], before, _Keys(keys)))
    all_features = [*given, *own, *chosen]
    linked = _linked(all_features, look, classes, plain)
    return [feature for feature in (*all_features, *linked) if _is_plain(feature[0])] if plain else [*all_features, *linked]


def _is_plain(expression: Expression) -> bool:
    text = str(expression)
    return text.count("'find'") < 2 and not _PLACE.search(text)


def _paths(base: Expression, value: Any, depth: int = 0, n_items: int = MAXIMUM_ITEMS) -> list[Feature]:
    """Return the value and what is inside it; `base` takes steps at its end. `n_items`: first elements of lists to name."""
    paths: list[Feature] = []
    _add_paths(paths, base, value, depth, n_items)
    return paths


def _add_paths(paths: list[Feature], base: Expression, value: Any, depth: int, n_items: int) -> None:
    paths.append((base, value))
    if depth > MAXIMUM_DEPTH:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            _add_paths(paths, [*base, name], item, depth + 1, n_items)
    elif isinstance(value, list):
        for index, item in enumerate(value[:n_items]):
            _add_paths(paths, [*base, index], item, depth + 1, n_items)


class _Keys:
    """Values that may select something, with the expressions that give them."""

    def __init__(self, keys: list[Feature]) -> None:
        self.all = keys
        self.words = [(expression, key) for expression, key in keys if isinstance(key, str)]
        self.texts = frozenset(key for _, key in self.words)


def _selected(
    base: Expression, value: Any, keys: _Keys, depth: int = 0, n_items: int = MAXIMUM_ITEMS
) -> Iterator[Feature]:
    """Yield what the keys select inside the value: a field of that name, or the first list element with one in a field."""
    if isinstance(value, dict):
        for expression, key in () if keys.texts.isdisjoint(value) else keys.words:
            if key in value:
                yield from _paths(["at", base, expression], value[key], 1, n_items)
        if depth < 2:
            for name, item in value.items():
                if isinstance(item, dict | list):
                    yield from _selected([*base, name], item, keys, depth + 1, n_items)
    elif isinstance(value, list):
        holding: dict[tuple[type, Any], tuple[dict[str, Any], str]] = {}
        for row in value:
            for field, item in row.items() if isinstance(row, dict) else ():
                if isinstance(item, str | int):
                    holding.setdefault((type(item), item), (row, field))
        for expression, key in keys.all:
            if (type(key), key) in holding:
                row, field = holding[type(key), key]
                yield from _paths(["at", ["find", base, field, expression]], row, 1, n_items)


def _linked(base_features: list[Feature], look: Look, classes: tuple[str, ...], plain: bool) -> Iterator[Feature]:
    """Yield what stands in the documents that a value names, each document by the simplest expression that names it."""
    keys = [(expression, value) for expression, value in base_features
            if isinstance(value, str | int) and not isinstance(value, bool)]
    spoken = _Keys([key for key in keys if not plain or _is_plain(key[0])])
    n_items = 0 if plain else MAXIMUM_ITEMS
    reached: set[tuple[str, str, str]] = set()
    for expression, value in keys:
        family = "find" if "find" in str(expression) else str(expression[:2])
        for entity_class in classes:
            document = look(entity_class, str(value)) if (entity_class, str(value), family) not in reached else None
            if document is not None:
                reached.add((entity_class, str(value), family))
                base = ["at", ["document", entity_class, expression]]
                if not plain or _is_plain(base):
                    yield from (feature for feature in _paths(base, document, 2, n_items) if len(feature[0]) > 2)
                    yield from _selected(base, document, spoken, 0, n_items)


def together(arguments: dict[str, Any]) -> list[list[str]]:
    """List arguments of one length: all that share it, then each alone."""
    lists = {name: len(value) for name, value in sorted(arguments.items()) if isinstance(value, list) and value}
    alike = [[name for name in lists if lists[name] == length] for length in sorted(set(lists.values()))]
    return [*(names for names in alike if len(names) > 1), *([name] for name in lists)]


def sums(before: Any, arguments: dict[str, Any], look: Look, classes: tuple[str, ...]) -> Iterator[Feature]:
    """Yield sums over the positions of list arguments: of a number that each names, or of the difference of two of those."""
    for names in together(arguments):
        row = positions(names, Scope(before, arguments))[0]
        marks = [str(["argument", name]) for name in names]
        terms = [
            expression for expression, value in features(row.before, row.arguments, look, classes)
            if is_number(value) and any(mark in str(expression) for mark in marks)
        ][:MAXIMUM_TERMS]
        items: list[Expression] = [*terms, *(["minus", one, other] for one in terms for other in terms if one != other)]
        for item in items:
            expression = ["sum", ["rows", names, item]]
            try:
                yield expression, evaluate(expression, before, arguments, look)
            except NoValue:
                continue


def is_number(value: Any) -> bool:
    """Return an int or a float, no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
