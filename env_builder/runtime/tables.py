"""Rows that lists of answers hold, and things found by what stands in them.

A `rows` rule says which rows a tool's answers show: `class` (of rows; several tools may show one), `depth` (of the lists
around them), `columns` (arguments that say something of each row, where the row itself does not). What is known of a row is
what all answers that show it agree on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .canonical import canonical

ROWS = "[]"
"""How the name of a class of rows ends; such a class has no keys, its rows are named by the values of columns."""
Row = dict[str, Any]
Wanted = list[tuple[tuple[str, ...], Any]]
"""(path, value) pairs that must stand in what is found."""


class Table:
    """Rows, by the values of their columns."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: list[Row] = []
        self._places: dict[tuple[tuple[str, ...], str], set[int]] = {}
        self._seen: set[str] = set()
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Take in a row; the same row again adds nothing."""
        text = canonical(row)
        if text not in self._seen:
            self._seen.add(text)
            for path, value in scalars(row):
                self._places.setdefault((path, canonical(value)), set()).add(len(self._rows))
            self._rows.append(row)

    def copy(self) -> Table:
        """The same, independent from here on."""
        twin = Table()
        twin._rows, twin._seen = list(self._rows), set(self._seen)
        twin._places = {name: set(places) for name, places in self._places.items()}
        return twin

    def holding(self, value: Any) -> list[Row]:
        """Rows that hold the value in any column."""
        text = canonical(value)
        return [self._rows[place] for place in sorted(
            place for (_, other), places in self._places.items() if other == text for place in places)]

    def found(self, wanted: Wanted) -> list[Row]:
        """Rows that have all these values."""
        places = [self._places.get((path, canonical(value)), set()) for path, value in wanted]
        return [self._rows[place] for place in sorted(set.intersection(*places))] if places else []


def rows_in(rule: dict[str, Any], arguments: dict[str, Any], answer: Any) -> Iterator[Row]:
    """The rows that an answer shows, with the arguments that say something of them."""
    lists = [answer]
    for _ in range(rule["depth"]):
        lists = [item for found in lists if isinstance(found, list) for item in found]
    said = {name: arguments[name] for name in rule["columns"] if name in arguments}
    for row in lists:
        if isinstance(row, dict):
            yield {**{name: value for name, value in said.items() if row.get(name) is None},
                   **{name: value for name, value in row.items() if value is not None or name not in said}}


def agreed(rows: list[Row]) -> Row | None:
    """What all the rows say alike, None where there are none."""
    if not rows:
        return None
    first, *rest = rows
    for row in rest:
        first = _both(first, row)
    return first


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
