"""What other logs add to a site's recorded pages: changes of database rows, and writes that no page was recorded of.

In: `evidence.json` of a site. Out: of a request, the columns of the rows that its path and query name, as they were when the
session began; the next number of a table; whether something was written that a page looked at earlier cannot show. What the
session itself wrote is not in the rows. Secrets are no columns here.
Sees: rows that a path or query names by a column of which each row has its own value. Does not see: rows that were never
changed, rows that another row names, which of several tables is meant (the sources of places count that).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

from .times import SiteTimes

__all__ = ["RowVersion", "SiteEvidence", "UnseenWrite"]

_LEAST_ROWS = 2
"""Rows of a table whose values must differ for a column to name rows."""
_NUMBER = re.compile(r"-?\d+\.\d+")
_MONEY = 2
"""Digits behind the point of an amount."""


class RowVersion(NamedTuple):
    """A row as it was from an instant on."""

    at: datetime
    table: str
    key: str
    values: Mapping[str, Any] | None
    """Its columns; None: it is deleted."""


class UnseenWrite(NamedTuple):
    """A form that was posted by somebody whose pages were not recorded."""

    at: datetime
    path: str


class SiteEvidence:
    """Rows and unseen writes of a site, in order of time."""

    def __init__(self, versions: Sequence[RowVersion] = (), unseen: Sequence[UnseenWrite] = ()) -> None:
        self.versions = sorted(versions, key=lambda each: (each.at, each.table, each.key))
        self.unseen = sorted(unseen)
        self._of_path: dict[str, list[datetime]] = defaultdict(list)
        for each in self.unseen:
            self._of_path[each.path].append(each.at)

    def __bool__(self) -> bool:
        return bool(self.versions or self.unseen)

    def plain(self) -> list[list[Any]]:
        """Return it as JSON."""
        return [[[each.at.isoformat(), each.table, each.key, each.values] for each in self.versions],
                [[each.at.isoformat(), each.path] for each in self.unseen]]

    @classmethod
    def of(cls, plain: Sequence[Sequence[Sequence[Any]]]) -> SiteEvidence:
        """Read what `plain` gives."""
        versions, unseen = plain
        return cls([RowVersion(datetime.fromisoformat(at), *rest) for at, *rest in versions],
                   [UnseenWrite(datetime.fromisoformat(at), path) for at, path in unseen])

    @cached_property
    def _naming(self) -> dict[tuple[str, str], dict[str, set[str]]]:
        """Return, by table and column that names rows, the keys of the rows that ever had a value."""
        keys: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for each in self.versions:
            for column, value in (each.values or {}).items():
                if isinstance(value, str | int) and not isinstance(value, bool):
                    keys[each.table, column][f"{value}"].add(each.key)
        return {name: dict(values) for name, values in keys.items()
                if len(values) >= _LEAST_ROWS and all(len(each) == 1 for each in values.values())}

    @cached_property
    def _of_row(self) -> dict[tuple[str, str], list[RowVersion]]:
        versions: dict[tuple[str, str], list[RowVersion]] = defaultdict(list)
        for each in self.versions:
            versions[each.table, each.key].append(each)
        return versions

    def columns(self, names: Mapping[str, str], until: datetime, times: SiteTimes) -> dict[str, str]:
        """Return what pages may show of the rows that values name before an instant, by a name for each.

        `names`: values of path and query by name; `times`: how the site writes instants."""
        columns: dict[str, str] = {}
        for parameter, text in names.items():
            for (table, column), keys in self._naming.items():
                for key in keys.get(text, ()):
                    values = self._row(table, key, until)
                    if values is not None and f"{values.get(column)}" == text:
                        begin = f"record {parameter} {table}.{column}"
                        columns |= {f"{begin} {name}": each for other, value in values.items()
                                  for name, each in _written(other, value, times)}
        return columns

    def _row(self, table: str, key: str, until: datetime) -> Mapping[str, Any] | None:
        versions = self._of_row[table, key]
        place = bisect_left(versions, until, key=lambda each: each.at)
        return versions[place - 1].values if place else None

    @cached_property
    def _numbers(self) -> dict[str, tuple[list[datetime], list[int]]]:
        """Return, by table and column, the greatest number so far with each instant of a greater one."""
        numbers: dict[str, tuple[list[datetime], list[int]]] = {}
        naming = self._naming
        for each in self.versions:
            for column, value in (each.values or {}).items():
                if (each.table, column) in naming and f"{value}".isdecimal():
                    instants, greatest = numbers.setdefault(f"{each.table}.{column}", ([], []))
                    if not greatest or int(value) > greatest[-1]:
                        instants.append(each.at)
                        greatest.append(int(value))
        return numbers

    @property
    def sequences(self) -> Sequence[str]:
        """Return the names of tables and columns that number rows."""
        return tuple(self._numbers)

    def greatest(self, name: str, until: datetime) -> int | None:
        """Return the greatest number of a table and column before an instant; None where it has none."""
        instants, greatest = self._numbers.get(name, ((), ()))
        place = bisect_left(instants, until)
        return greatest[place - 1] if place else None

    def is_written(self, path: str, since: datetime, until: datetime) -> bool:
        """Return whether something unseen was posted to a path after a look at it and before an instant."""
        instants = self._of_path.get(path, ())
        return bisect_right(instants, since) < bisect_left(instants, until)


def _written(column: str, value: Any, times: SiteTimes) -> Iterator[tuple[str, str]]:
    """Yield how pages may write a column, by name."""
    if value is None or isinstance(value, bool | dict | list):
        return
    text = f"{value}"
    yield column, text
    if _NUMBER.fullmatch(text) and text != f"{float(text):.{_MONEY}f}":
        yield f"{column} amount", f"{float(text):.{_MONEY}f}"
    if text.count("-") >= _MONEY and len(text) >= len("2026-01-01"):
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        for number, each in enumerate(times.formats):
            yield f"{column} when {number}", each.written(at)
