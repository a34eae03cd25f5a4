"""Changes of rows in a company's change streams, grouped by the act that made them.

In: a company's world. Out: `RowAct`s, oldest first, and `RowStore`, the tables as they were while the changes are replayed.
The first change of an act (in the order of the log) is what somebody wrote; the others followed from it. An act is what the
log dates within `SAME_ACT`. Rows that were there as the stream began are no act.
Does not see: two people who write within that time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from env_builder.runtime.company import PRESENT, CompanyWorld
from env_builder.runtime.office.row_tables import ROW, key_of

SAME_ACT = 50_000
"""Microseconds."""
MOST_CHANGES = 40
"""Changes of an act above which it is a load of data."""
TableRow = dict[str, Any]


class StreamChange(NamedTuple):
    """A change of one row."""

    at: int
    table: str
    key: str
    values: TableRow
    """Columns that changed, with their new values."""
    is_there: bool | None
    """True: the log says that the row is there from now on; false: it is deleted."""


class RowAct(NamedTuple):
    """What changed by one act."""

    changes: list[StreamChange]

    @property
    def at(self) -> int:
        """When, in microseconds."""
        return self.changes[0].at


class RowStore:
    """Tables while changes are replayed."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, TableRow]] = defaultdict(dict)

    def row(self, table: str, key: str) -> TableRow | None:
        """Return a row, which nobody may change."""
        return self.tables.get(table, {}).get(key)

    def apply(self, change: StreamChange) -> None:
        """Carry out a change."""
        if change.is_there is False:
            self.tables[change.table].pop(change.key, None)
        else:
            self.tables[change.table][change.key] = {**self.tables[change.table].get(change.key, {}), **change.values}

    def children(self, table: str, reference: str, key: str) -> list[TableRow]:
        """Return the rows of a table that refer to a key."""
        return [row for row in self.tables.get(table, {}).values() if str(row.get(reference)) == key]


def row_changes(world: CompanyWorld) -> Iterator[StreamChange]:
    """Yield the changes of all rows in the order of the log."""
    change: StreamChange | None = None
    source = ("", "")
    for version in world.versions:
        if version.entity_class != ROW:
            continue
        if change is None or (version.record, version.entity_id) != source:
            if change is not None:
                yield change
            source = (version.record, version.entity_id)
            change = StreamChange(version.at, version.entity_id.partition("/")[0], key_of(version.entity_id), {}, None)
        if version.field == PRESENT:
            change = change._replace(is_there=bool(version.value))
        else:
            change.values[version.field] = version.value
    if change is not None:
        yield change


def split_acts(changes: Iterable[StreamChange]) -> tuple[list[StreamChange], list[RowAct]]:
    """Return the rows with which the stream begins, and the acts after that."""
    beginning: list[StreamChange] = []
    acts: list[RowAct] = []
    first: int | None = None
    for change in changes:
        first = change.at if first is None else first
        if change.at == first:
            beginning.append(change)
        elif acts and change.at - acts[-1].changes[-1].at <= SAME_ACT:
            acts[-1].changes.append(change)
        else:
            acts.append(RowAct([change]))
    return beginning, acts
