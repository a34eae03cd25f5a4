"""What a format reads of each field of a log's records, and what it does not.

In: parsed records (JSON values, rows of tables) and their format. Out: a `FieldReading` for each field: the columns of events
that it decides, or none, with an example of its value. Method: each field is removed from the records (an ablation), which are
read again; what changes is what the field is read as, for any format, without a word of the format's own. A part whose removal
changes nothing is not looked into further, nor is one that an event carries whole.
Sees: the first records and elements of lists (`_MOST_RECORDS`, `_MOST_ELEMENTS`). Does not see: fields of lines of text, of
archives, databases and XML; why a format that reads a field of one of two names reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from extractors.configuration import Source
from extractors.formats import Emit, Format, LogRecord
from extractors.formats.envelope import Envelope
from extractors.formats.values import json_text

_MOST_RECORDS = 24
_MOST_ELEMENTS = 20
_MOST_BYTES = 1 << 16
"""Of the records that are read again for each field; at least one record is."""
_MOST_REMOVALS = 400
_DEEPEST = 12
_LONGEST = 80
_PAIR_NAMES = ("key", "name")
_BOOKKEEPING = frozenset({"event_id", "record_id", "file_id", "source", "format", "position", "kind"})
_SHARED = frozenset({"session_id", "happened_at", "service", "name", "model", "usage", "latency_ms", "lossy"})
"""Columns that events of all kinds have."""
_MOST_LABELS = 4
_REPEATED = ("what another field states",)
_SHORTEST = 3
"""Characters of a value that is found again by more than chance."""
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FieldReading:
    """What one field of the records is read as."""

    path: str
    """Keys joined by dots; of a list the fields of its elements."""
    read_as: tuple[str, ...]
    """Kinds of events that it makes, and columns that it decides; none: it is not read."""
    example: str
    """First value that holds something, as text."""


def field_uses(values: list[Any], log_format: Format, source: Source) -> list[FieldReading]:
    """Return the use of every field of the records, in the order of their paths."""
    records = [_shortened(value) for value in values[:_MOST_RECORDS] if isinstance(value, dict | list)]
    while len(records) > 1 and len(orjson.dumps(records, default=str)) > _MOST_BYTES:
        records = records[:len(records) // 2]
    if not records:
        return []
    return _Ablation(records, log_format, source).uses()


def _shortened(value: Any) -> Any:
    """Return a value with lists of a few elements."""
    if isinstance(value, dict):
        return {key: _shortened(each) for key, each in value.items()}
    return [_shortened(each) for each in value[:_MOST_ELEMENTS]] if isinstance(value, list) else value


class _Ablation:
    """The records, and what is read of them."""

    def __init__(self, records: list[Any], log_format: Format, source: Source) -> None:
        self._records, self._format, self._source = records, log_format, source
        self._columns, self._order = self._read(records)
        self._texts = "\n".join(each for values in self._columns.values() for each in values)
        self._values = {each for values in self._columns.values() for each in values}
        self._n_left = _MOST_REMOVALS

    def uses(self) -> list[FieldReading]:
        return sorted(self._uses(()), key=lambda each: each.path)

    def _uses(self, above: Path) -> Iterator[FieldReading]:
        """Yield the uses of what is right below a path."""
        for key, example in _children(self._records, above).items():
            path = (*above, key)
            if self._n_left <= 0:
                return
            self._n_left -= 1
            read_as = self._changes(path)
            if read_as and len(path) < _DEEPEST and not self._is_carried(path):
                below = list(self._uses(path))
                if below and not (all(each.read_as for each in below) and len({each.read_as for each in below}) == 1):
                    yield from below
                    continue
            read_as = read_as or (_REPEATED if self._is_repeated(path) else ())
            yield FieldReading(".".join(path), read_as, shortened_text(example))

    def _is_repeated(self, path: Path) -> bool:
        """Return whether events hold all values of a field, though from another one."""
        values = [each for each in _at(self._records, path) if each not in (None, "", [], {})]
        return bool(values) and all(
            isinstance(each, str) and len(each) >= _SHORTEST and each in self._values for each in values)

    def _is_carried(self, path: Path) -> bool:
        """Return whether events hold all parts at a path as a whole, so that their own fields are payload."""
        parts = [each for each in _at(self._records, path) if each not in (None, "", [], {})]
        return all(isinstance(each, dict | list) and json_text(each) in self._texts for each in parts)

    def _changes(self, path: Path) -> tuple[str, ...]:
        """Return what of the events a field decides."""
        columns, order = self._read([_without(record, path) for record in self._records])
        kinds = {kind for kind, column in {*columns, *self._columns} if column == "kind" and len(
            columns.get((kind, column), ())) != len(self._columns.get((kind, column), ()))}
        changed = {_label(kind, column) for kind, column in {*columns, *self._columns}
                   if kind not in kinds and columns.get((kind, column)) != self._columns.get((kind, column))}
        labels = [*sorted(kinds), *sorted(changed)]
        return tuple(labels[:_MOST_LABELS]) if labels or order == self._order else ("order",)

    def _read(self, records: list[Any]) -> tuple[dict[tuple[str, str], list[str]], list[Any]]:
        """Return the values of each column by kind of event, sorted, and the order of the events."""
        emit = Emit("", self._source.name, self._format.name, Envelope(self._source.fields, self._source.service))
        self._format.read(iter([LogRecord(f"{i:064d}", i + 1, value) for i, value in enumerate(records)]), emit)
        columns: dict[tuple[str, str], list[str]] = {}
        for row in emit.events:
            for column, value in {**row, "kind": row["kind"]}.items():
                if column == "kind" or (column not in _BOOKKEEPING and value not in (None, [], "")):
                    columns.setdefault((row["kind"], column), []).append(value if isinstance(value, str) else json_text(value))
        for row in emit.declarations:
            columns.setdefault(("tool declaration", "kind"), []).append(json_text(
                {key: value for key, value in row.items() if key != "declaration_id"}))
        for _, reason, _ in emit.rejects:
            columns.setdefault(("rejected", "kind"), []).append(reason)
        order = [(row["kind"], row.get("session_id"), row.get("position"), row.get("content")) for row in emit.events]
        return {key: sorted(values) for key, values in columns.items()}, sorted(order, key=json_text)


def _label(kind: str, column: str) -> str:
    if column == "kind":
        return kind
    return column if column in _SHARED else f"{kind}.{column}"


def _children(values: list[Any], path: Path) -> dict[str, Any]:
    """Return the keys below a path, each with the first value that holds something, else left out."""
    examples: dict[str, Any] = {}
    for each in _at(values, path):
        for key, value in _pairs(each):
            if value not in (None, "", [], {}) and key not in examples:
                examples[key] = value
    return examples


def _at(values: list[Any], path: Path) -> list[Any]:
    """Return all values at a path, through lists."""
    for key in path:
        values = [inner for each in values for name, inner in _pairs(each) if name == key]
    return values


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys of an object, of each element of a list, or of a list of pairs, with their values."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        name = pair_name(value)
        for each in value:
            yield from _pairs(each) if name is None else ((str(each[name]), each.get("value")),)


def pair_name(values: list[Any]) -> str | None:
    """Return the field that names each element of a list of pairs (`[{"key": …, "value": …}]`); None if none does."""
    return next((name for name in _PAIR_NAMES if values and all(
        isinstance(each, dict) and isinstance(each.get(name), str) and each.keys() <= {name, "value"}
        for each in values)), None)


def _without(value: Any, path: Path) -> Any:
    """Return the records without the field at a path."""
    if isinstance(value, list):
        name = pair_name(value)
        if name is None:
            return [_without(each, path) for each in value]
        kept = [each for each in value if each[name] != path[0] or len(path) > 1]
        return [{**each, "value": _without(each.get("value"), path[1:])} if each[name] == path[0] else each for each in kept]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    if len(path) == 1:
        return {key: each for key, each in value.items() if key != path[0]}
    return {**value, path[0]: _without(value[path[0]], path[1:])}


def shortened_text(value: Any) -> str:
    """Return a value as a text of few characters."""
    text = value if isinstance(value, str) else json_text(value)
    return " ".join(text.split())[:_LONGEST]


def n_unread(uses: list[FieldReading]) -> int:
    """Return how many fields are not read."""
    return sum(not each.read_as for each in uses)
