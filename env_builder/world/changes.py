"""Row changes of a database as evidence of the records that tools show: which table holds which class, and every version.

In: row changes (`core.row_changes`) and the reads of one service. Out: a `Feed` for each class whose documents a table holds.
A table holds a class where one of its columns has the keys that calls named, and each field of the documents that were read
stands in a column at that time; a column of JSON text counts as its value. Columns that no document shows are left out.
Sees: one row a record. Does not see: documents put together from several tables, changes before the feed begins.

From reads of a world that all sessions share, and feeds, follow the final states: by class and field the values into which at
least `MINIMUM` records came and in which none of them changed in any way, whoever wrote. Sees: fields that take few values;
with reads alone, records that were read again. Does not see: what nobody tried.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import polars as pl

from env_builder.runtime.answers import parsed
from env_builder.world.documents import STYLES
from env_builder.world.replay import LoggedStep
from env_builder.world.spans import FEW_VALUES

AGREE = 0.98
"""Share of the reads that the rows must give, to the byte."""
NAMED = 0.8
"""Share of the keys that calls named which must stand in the key column."""
SLACK = timedelta(seconds=2)
"""How far the clocks of the log and of the feed may lie apart."""
MINIMUM_LOOKS = 3
LOOKS = 400
SNAPSHOT = "snapshot"

Row = dict[str, Any]
Value = TypeVar("Value")
Version = tuple[datetime, Row | None, str]
"""(from when, row or None where it was deleted, id of the change)."""
Sight = tuple[str, datetime, str]
"""(key, when, text) of a read."""


class Feed(NamedTuple):
    """All versions of all records of one class."""

    entity_class: str
    versions: dict[str, list[tuple[datetime, str | None, str]]]
    """Key -> (from when, text of the document or None where there is none, id of the change), in order of time."""
    since: datetime
    """From when the feed tells."""
    complete: bool
    """A snapshot began it: what it does not hold is not there."""

    def at(self, key: str, instant: datetime) -> str | None:
        """Return the document as of the instant, None where there is none or nothing is known."""
        return _at(self.versions.get(key, []), instant)


def _at(versions: Sequence[tuple[datetime, Value | None, str]], instant: datetime) -> Value | None:
    place = bisect_right(versions, instant, key=lambda version: version[0])
    return versions[place - 1][1] if place else None


def find(changes: pl.DataFrame, steps: list[LoggedStep]) -> dict[str, Feed]:
    """Return feeds by class."""
    looks: dict[str, list[Sight]] = defaultdict(list)
    for step in steps:
        if step.shown and step.call.called_at and not step.act:
            looks[step.shown[0]].append((step.shown[1], step.call.called_at, step.shown[2]))
    columns = ("table_name", "happened_at", "operation", "before", "after", "change_id")
    tables: dict[str, list[FeedChange]] = defaultdict(list)
    for table, at, operation, before, after, change_id in changes.drop_nulls("happened_at").sort(
            "table_name", "happened_at", "change_id").select(columns).iter_rows():
        tables[table].append(FeedChange(at, operation, _row(before), _row(after), change_id))
    by_kind: dict[str, Feed] = {}
    for kind, sights in sorted(looks.items()):
        feeds = [feed for table in tables.values() for feed in _feeds(kind, table, sights)]
        if feeds:
            by_kind[kind] = max(feeds, key=lambda feed: len(feed.versions))
    return by_kind


class FeedChange(NamedTuple):
    """One change, parsed."""

    at: datetime
    operation: str
    before: Row | None
    after: Row | None
    change_id: str


def _row(text: str | None) -> Row | None:
    value = None if text is None else parsed(text)
    if not isinstance(value, dict):
        return None
    inner = {name: parsed(one) if isinstance(one, str) else None for name, one in value.items()}
    return {name: one if inner[name] is None else inner[name] for name, one in value.items()}  # JSON text is what it says


def _feeds(kind: str, table: list[FeedChange], sights: list[Sight]) -> Iterator[Feed]:
    keys = {key for key, _, _ in sights}
    contents: dict[str, set[str]] = defaultdict(set)
    for change in table:
        for name, value in (change.after or change.before or {}).items():
            if isinstance(value, str | int) and str(value) in keys:
                contents[name].add(str(value))
    began = min((change.at for change in table), default=None)
    snapshot = [change.at for change in table if change.operation == SNAPSHOT]
    for column in sorted(name for name, values in contents.items() if len(values) >= NAMED * len(keys)):
        versions = _versions(table, column)
        project = _projection(versions, sights)
        if project is None or began is None:
            continue
        texts = {key: [(at, None if row is None else project(row), change_id) for at, row, change_id in mine]
                 for key, mine in versions.items()}
        feed = Feed(kind, texts, max(snapshot, default=began), bool(snapshot))
        later = [look for look in sights if look[1] >= feed.since]
        good = sum(any(feed.at(key, at + slack) == text for slack in (timedelta(0), SLACK, -SLACK)) for key, at, text in later)
        if len(later) >= MINIMUM_LOOKS and good >= AGREE * len(later):  # the reads show what it says, give or take the clocks
            yield feed


def _versions(table: list[FeedChange], column: str) -> dict[str, list[Version]]:
    """Key -> versions. Changes of one instant stand in the order in which each finds what the one before left."""
    by_key: dict[str, list[FeedChange]] = defaultdict(list)
    for change in table:
        row = change.after or change.before
        if row is not None and isinstance(row.get(column), str | int):
            by_key[str(row[column])].append(change)
    versions_by_key: dict[str, list[Version]] = {}
    for key, mine in sorted(by_key.items()):
        remaining, versions, last = list(mine), list[Version](), None
        while remaining:
            same = [change for change in remaining if change.at == remaining[0].at]
            change = next((one for one in same if one.before == last), same[0])
            remaining.remove(change)
            last = change.after
            versions.append((change.at, change.after, change.change_id))
        versions_by_key[key] = versions
    return versions_by_key


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


def _projection(versions: dict[str, list[Version]], sights: list[Sight]) -> Projection | None:
    """Return the projection that the reads speak for, None where a field stands in no column."""
    near = ((_at(versions.get(key, []), at), text) for key, at, text in sights[:LOOKS])
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


MINIMUM = 20
"""Records that must have stayed as they were: were one in seven to change, twenty would all stay in 5 % of cases."""
Finals = dict[str, dict[str, list[Any]]]
"""Class -> field -> values, sorted."""


def find_finals(steps: list[LoggedStep], feeds: dict[str, Feed]) -> Finals:
    """Return the states of all classes of one service that nothing leaves. `feeds`: row changes, by class."""
    kinds = sorted({step.shown[0] for step in steps if step.shown}.union(feeds))
    by_kind = {kind: _of_class(_followed(feeds[kind]) if kind in feeds else _looks(steps, kind)) for kind in kinds}
    return {kind: finals for kind, finals in by_kind.items() if finals}


def _followed(feed: Feed) -> list[list[str | None]]:
    """Texts of each record that followed each other; the last one stands until the feed ends."""
    several = [[text for _, text, _ in versions] for versions in feed.versions.values() if len(versions) > 1]
    return [[*texts, texts[-1]] for texts in several]


def _looks(steps: list[LoggedStep], kind: str) -> list[list[str | None]]:
    """Of each record its reads in order of time."""
    reads: dict[str, list[tuple[Any, str]]] = defaultdict(list)
    for step in steps:
        if step.shown and step.shown[0] == kind and step.call.called_at:
            reads[step.shown[1]].append((step.call.called_at, step.shown[2]))
    return [[text for _, text in sorted(looks)] for looks in reads.values()]


def _of_class(records: list[list[str | None]]) -> dict[str, list[Any]]:
    stayed: dict[tuple[str, Any], set[int]] = defaultdict(set)
    changed_later: set[tuple[str, Any]] = set()
    values: dict[str, set[Any]] = defaultdict(set)
    for number, texts in enumerate(records):
        for text, following in pairwise(texts):
            document = parsed(text) if text is not None else None
            for place in document.items() if isinstance(document, dict) else ():
                if isinstance(place[1], str):
                    values[place[0]].add(place[1])
                    if text == following:
                        stayed[place].add(number)
                    else:
                        changed_later.add(place)
    by_field: dict[str, list[Any]] = defaultdict(list)
    for (field, value), numbers in sorted(stayed.items()):
        if (field, value) not in changed_later and len(numbers) >= MINIMUM and len(values[field]) <= FEW_VALUES:
            by_field[field].append(value)
    return dict(by_field)
