"""Rows of tables as things that are worked on: which acts changed one row, one after another.

In: acts in the order of time. Out: for each act whose rows all go back to one, the name of that row, which has the first act
that wrote it. A row that took the place of another is the same one if half of their cells are alike.
Sees: rows by what is in them. Does not see: rows that change their place alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from warehouse.records import WorkEvent

_ALIKE = 0.5
"""Share of cells that a row and the one that it became have in common."""
_Row = tuple[str, ...]


def row_threads(acts: Sequence[WorkEvent]) -> dict[int, str]:
    """Return number of the act -> name of the row that it changed."""
    origins: dict[tuple[tuple[str, str], str, _Row], str] = {}
    threads: dict[int, str] = {}
    for number, act in enumerate(acts):
        names: set[str] = set()
        for change in act.changes:
            before, after = Counter(_rows(change.before)), Counter(_rows(change.after))
            got, lost = list((after - before).elements()), list((before - after).elements())
            place = (act.record, change.field)
            for place_of_row, row in enumerate(got):
                old = _became(row, lost)
                name = origins.get((*place, old)) if old is not None else None
                if old is not None:
                    lost.remove(old)
                origins[(*place, row)] = name or f"row {act.ref} {change.field} {place_of_row}"
                names.add(origins[(*place, row)])
            names.update(origins[(*place, row)] for row in lost if (*place, row) in origins)
        if len(names) == 1:
            threads[number] = names.pop()
    return threads


def _rows(value: Any) -> list[_Row]:
    """Return the rows of a table, without empty cells at their ends; none of any other value."""
    rows = []
    for row in value if isinstance(value, list) else ():
        if isinstance(row, list):
            cells = [str(cell) for cell in row]
            while cells and not cells[-1]:
                cells.pop()
            rows.append(tuple(cells))
    return rows


def _became(row: _Row, lost: Sequence[_Row]) -> _Row | None:
    """Return the row that became this one."""
    best = max(lost, key=lambda old: _shared(row, old), default=None)
    return best if best is not None and _shared(row, best) >= _ALIKE * max(len(row), len(best)) else None


def _shared(one: _Row, other: _Row) -> int:
    return sum(cell == old != "" for cell, old in zip(one, other, strict=False))
