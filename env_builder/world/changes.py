"""Row changes of a database as evidence of the things that tools show: which table holds which class, and every version.

In: row changes (`core.row_changes`) and the looks of one service. Out: a `Feed` for each class whose documents a table holds.
A table holds a class where one of its columns has the keys that calls named, and each field of the documents that were seen
stands in a column at that time; a column of JSON text counts as what it says. Columns that no document shows are left out.
Sees: one row a thing. Does not see: documents put together from several tables, changes before the feed begins.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime.answers import parsed
from env_builder.world.documents import STYLES
from env_builder.world.replay import Step

AGREE = 0.98
"""Share of the looks that the rows must give, to the byte."""
NAMED = 0.8
"""Share of the keys that calls named which must stand in the key column."""
SLACK = timedelta(seconds=2)
"""How far the clocks of the log and of the feed may lie apart."""
MINIMUM_LOOKS = 3
LOOKS = 400
SNAPSHOT = "snapshot"

Row = dict[str, Any]
Version = tuple[datetime, Row | None, str]
"""(from when, row or None where it was deleted, id of the change)."""
Sight = tuple[str, datetime, str]
"""(key, when, text) of a look."""


class Feed(NamedTuple):
    """All versions of all things of one class."""

    entity_class: str
    versions: dict[str, list[tuple[datetime, str | None, str]]]
    """Key -> (from when, text of the document or None where there is none, id of the change), in order of time."""
    since: datetime
    """From when the feed tells."""
    complete: bool
    """A snapshot began it: what it does not hold is not there."""

    def at(self, key: str, instant: datetime) -> str | None:
        """The document as of the instant, None where there is none or nothing is known."""
        mine = self.versions.get(key, [])
        place = bisect_right(mine, instant, key=lambda version: version[0])
        return mine[place - 1][1] if place else None


def find(changes: pl.DataFrame, steps: list[Step]) -> dict[str, Feed]:
    """Feeds by class."""
    looks: dict[str, list[Sight]] = defaultdict(list)
    for step in steps:
        if step.shown and step.call.called_at and not step.act:
            looks[step.shown[0]].append((step.shown[1], step.call.called_at, step.shown[2]))
    tables = {table: list(_rows(rows)) for (table,), rows in sorted(changes.drop_nulls("happened_at").group_by("table_name"))}
    found: dict[str, Feed] = {}
    for kind, seen in sorted(looks.items()):
        feeds = [feed for table in tables.values() for feed in _feeds(kind, table, seen)]
        if feeds:
            found[kind] = max(feeds, key=lambda feed: len(feed.versions))
    return found


class Change(NamedTuple):
    """One change, parsed."""

    at: datetime
    operation: str
    before: Row | None
    after: Row | None
    change_id: str


def _rows(changes: pl.DataFrame) -> Iterator[Change]:
    ordered = changes.sort("happened_at", "change_id").select("happened_at", "operation", "before", "after", "change_id")
    for at, operation, before, after, change_id in ordered.iter_rows():
        yield Change(at, operation, _row(before), _row(after), change_id)


def _row(text: str | None) -> Row | None:
    value = None if text is None else parsed(text)
    if not isinstance(value, dict):
        return None
    return {name: _inner(one) for name, one in value.items()}


def _inner(value: Any) -> Any:
    """A column's value; what JSON text says where it holds an object or a list."""
    said = parsed(value) if isinstance(value, str) else None
    return value if said is None else said


def _feeds(kind: str, table: list[Change], seen: list[Sight]) -> Iterator[Feed]:
    keys = {key for key, _, _ in seen}
    held: dict[str, set[str]] = defaultdict(set)
    for change in table:
        for name, value in (change.after or change.before or {}).items():
            if isinstance(value, str | int) and str(value) in keys:
                held[name].add(str(value))
    began = min((change.at for change in table), default=None)
    snapshot = [change.at for change in table if change.operation == SNAPSHOT]
    for column in sorted(name for name, values in held.items() if len(values) >= NAMED * len(keys)):
        versions = _versions(table, column)
        project = _projection(versions, seen)
        if project is None or began is None:
            continue
        texts = {key: [(at, None if row is None else project(row), change_id) for at, row, change_id in mine]
                 for key, mine in versions.items()}
        feed = Feed(kind, texts, max(snapshot, default=began), bool(snapshot))
        if _agrees(feed, seen):
            yield feed


def _versions(table: list[Change], column: str) -> dict[str, list[Version]]:
    """Key -> versions. Changes of one instant stand in the order in which each finds what the one before left."""
    by_key: dict[str, list[Change]] = defaultdict(list)
    for change in table:
        row = change.after or change.before
        if row is not None and isinstance(row.get(column), str | int):
            by_key[str(row[column])].append(change)
    found: dict[str, list[Version]] = {}
    for key, mine in sorted(by_key.items()):
        left, versions, last = list(mine), list[Version](), None
        while left:
            same = [change for change in left if change.at == left[0].at]
            change = next((one for one in same if one.before == last), same[0])
            left.remove(change)
            last = change.after
            versions.append((change.at, change.after, change.change_id))
        found[key] = versions
    return found


class Projection(NamedTuple):
    """How a row is shown."""

    columns: dict[str, str]
    """Field of the document -> column, in the order of the documents."""
    empty: frozenset[str]
    """Fields that a document leaves out where the column is null."""
    style: dict[str, Any]

    def __call__(self, row: Row) -> str:
        """JSON text of the document."""
        fields = [(field, row[column]) for field, column in self.columns.items() if column in row]
        shown = {field: value for field, value in fields if value is not None or field not in self.empty}
        return json.dumps(shown, **self.style)


def _projection(versions: dict[str, list[Version]], seen: list[Sight]) -> Projection | None:
    """The projection that the looks speak for, None where a field stands in no column."""
    near = ((_near(versions.get(key, []), at), text) for key, at, text in seen[:LOOKS])
    pairs = [(row, parsed(text), text) for row, text in near if row is not None]
    if len(pairs) < MINIMUM_LOOKS:
        return None
    order = max((document for _, document, _ in pairs), key=len)
    fields = dict.fromkeys([*order, *(field for _, document, _ in pairs for field in document)])
    columns: dict[str, str] = {}
    for field in fields:
        having = [(row, document[field]) for row, document, _ in pairs if field in document]
        hits: Counter[str] = Counter(
            column for row, value in having for column in row if row[column] == value and type(row[column]) is type(value))
        fitting = [column for column, n in hits.items() if n >= AGREE * len(having) - 1]
        if not fitting:
            return None
        columns[field] = field if field in fitting else min(fitting, key=lambda column: (-hits[column], column))
    empty = frozenset(field for field in fields if all(document.get(field, "") is not None for _, document, _ in pairs))
    style = next((style for style in STYLES if json.dumps(order, **style) in {text for _, _, text in pairs}), None)
    return None if style is None else Projection(columns, empty, dict(style))


def _near(versions: list[Version], at: datetime) -> Row | None:
    place = bisect_right(versions, at, key=lambda version: version[0])
    return versions[place - 1][1] if place else None


def _agrees(feed: Feed, seen: list[Sight]) -> bool:
    """Do the looks show what the feed says, give or take the clocks?"""
    told = [look for look in seen if look[1] >= feed.since]
    good = sum(any(feed.at(key, at + slack) == text for slack in (timedelta(0), SLACK, -SLACK)) for key, at, text in told)
    return len(told) >= MINIMUM_LOOKS and good >= AGREE * len(told)
