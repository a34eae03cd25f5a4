"""Rows that lists of answers hold, entities found by what stands in them, and what entities tell of those they were made from.

A `rows` rule says which rows a tool's answers show: `class` (of rows; several tools may show one), `field` (of the answer
that holds them, if it is an object), `depth` (of the lists around them), `columns` (arguments that say something of each row,
where the row itself does not). What is known of a row is what all answers that show it agree on. A `makes` rule is read
backwards (`Origin`): only values that never change (`row` expressions).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any, NamedTuple, TypeGuard

from .canonical import canonical
from .expressions import NoValue, evaluate

ROWS = "[]"
"""How the name of a class of rows ends; such a class has no keys, its rows are named by the values of columns."""
Row = dict[str, Any]
Wanted = list[tuple[Any, ...]]
"""(path, value) pairs that must stand in what is found; of (path, value, `words`) the value's words must be among the words
there, whatever their capitals."""
WORDS = "words"
_WORD = re.compile(r"[^\W_]+")


class Table:
    """Rows, by the values of their columns."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: list[Row] = []
        self._places: dict[tuple[tuple[str, ...], str], set[int]] = {}
        self._words: dict[tuple[str, ...], dict[str, set[int]]] = {}
        """Path -> word -> rows, of paths that were asked for by words."""
        self._texts: set[str] = set()
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Take in a row; the same row again adds nothing."""
        text = canonical(row)
        if text not in self._texts:
            self._texts.add(text)
            for path, value in scalars(row):
                self._places.setdefault((path, canonical(value)), set()).add(len(self._rows))
                for word in words_of(value) if path in self._words else ():
                    self._words[path].setdefault(word, set()).add(len(self._rows))
            self._rows.append(row)

    def copy(self) -> Table:
        twin = Table()
        twin._rows, twin._texts = list(self._rows), set(self._texts)
        twin._places = {name: set(places) for name, places in self._places.items()}
        return twin

    def holding(self, value: Any) -> list[Row]:
        """Rows that hold the value in any column."""
        text = canonical(value)
        return [self._rows[place] for place in sorted(
            place for (_, other), places in self._places.items() if other == text for place in places)]

    def matching(self, wanted: Wanted) -> list[Row]:
        """Rows that have all these values."""
        places = [self._worded(*one[:2]) if WORDS in one[2:] else self._places.get((one[0], canonical(one[1])), set())
                  for one in wanted]
        return [self._rows[place] for place in sorted(set.intersection(*places))] if places else []

    def _worded(self, path: tuple[str, ...], value: Any) -> set[int]:
        if path not in self._words:
            here = self._words[path] = {}
            for place, row in enumerate(self._rows):
                for word in words_of(dict(scalars(row)).get(path)):
                    here.setdefault(word, set()).add(place)
        places = [self._words[path].get(word, set()) for word in words_of(value)]
        return set.intersection(*places) if places else set()


def rows_in(rule: dict[str, Any], arguments: dict[str, Any], answer: Any) -> Iterator[Row]:
    """Yield the rows that an answer shows, with the arguments that describe them; a list of cells as a row by their places."""
    field = rule.get("field")
    lists = [answer if field is None else answer.get(field) if isinstance(answer, dict) else None]
    for _ in range(rule["depth"]):
        lists = [item for items in lists if isinstance(items, list) for item in items]
    columns = {name: arguments[name] for name in rule["columns"] if name in arguments}
    for each in lists:
        row = {str(place): value for place, value in enumerate(each)} if _is_cells(each) else each
        if isinstance(row, dict):
            yield {**{name: value for name, value in columns.items() if row.get(name) is None},
                   **{name: value for name, value in row.items() if value is not None or name not in columns}}


def _is_cells(value: Any) -> TypeGuard[list[Any]]:
    """Return whether the value is the cells of a row, not a list of further rows."""
    return isinstance(value, list) and not any(isinstance(item, dict) for item in value) and not all(
        isinstance(item, list) for item in value)


def words_of(value: Any) -> frozenset[str]:
    """Return the words of a text, in lower case."""
    return frozenset(_WORD.findall(value.casefold())) if isinstance(value, str) else frozenset()


def agreed(rows: list[Row]) -> Row | None:
    """Return what all the rows agree on, None if there are none."""
    return reduce(_both, rows) if rows else None


def _both(one: Row, other: Row) -> Row:
    kept: Row = {}
    for name, value in one.items():
        if name in other and isinstance(value, dict) and isinstance(other[name], dict):
            kept[name] = _both(value, other[name])
        elif name in other and type(value) is type(other[name]) and value == other[name]:
            kept[name] = value
    return kept


def scalars(value: Any, path: tuple[str, ...] = (), depth: int = 3) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Scalars of an object and of the objects inside it, with their paths."""
    for name, item in value.items():
        if isinstance(item, dict) and depth:
            yield from scalars(item, (*path, name), depth - 1)
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            yield (*path, name), item


Name = tuple[str, str]


class Origin(NamedTuple):
    """The call that made an entity."""

    rule: dict[str, Any]
    arguments: dict[str, Any]
    answer: Any
    plain: Callable[[Name], Name]
    """The entity by its bare key."""

    def made(self) -> Name | None:
        """(class, key) of the entity, None where the answer does not name it."""
        try:
            return self.plain((self.rule["class"], str(evaluate(self.rule["key"], self.answer, self.arguments))))
        except NoValue:
            return None

    def rows(self, shown: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """(class, row) of what the entity, as a read showed it, tells of others."""
        for field, expression in self.rule["fields"].items() if isinstance(shown, dict) else ():
            if field not in shown or expression[0] != "row" or [name for name, _ in expression[2]] != ["key"]:
                continue
            first, *path = expression[3:]
            if first != "document" or not path or not all(isinstance(step, str) for step in path):
                continue
            try:
                key = evaluate(expression[2][0][1], self.answer, self.arguments)
            except NoValue:
                continue
            part = shown[field]
            for step in reversed(path):
                part = {step: part}
            kind, bare = self.plain((expression[1].removesuffix(ROWS), str(key)))
            yield kind, {"key": bare, "document": part}
