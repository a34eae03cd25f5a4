"""Shapes of acts: what acts of different pieces of work have in common, and the values in which they differ.

In: the acts of all apps. Out: for each act the container in which it happened (a channel, a project, a table, a file), a name
of its shape, and its values by position: a column of a table, a field, the n-th number of a text.
Sees: numbers, days and times in any text; whole values of short fields and cells. Does not see: values that are words within a
longer text, beyond whether a value of another act occurs there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from extractors.apps import installed_apps
from extractors.work.events import CREATED, WorkEvent

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*(?:[-T]\d+(?:[-:.]\d+)*)*")
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)\S*")
_PLAIN_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FIRST_SECOND, _LAST_SECOND = 10**9, 4 * 10**9
"""Numbers of fields between these are instants: seconds since 1970."""
_SHORT = 40
"""Characters of a field whose whole text is one value."""
_NUMBERS = 6
"""Numbers of one text that count."""
_FEW_VALUES, _TIMES_EACH = 10, 5
"""A field of at most so many values, each so often on average, is a state: its value belongs to the shape."""
_CHANGES_EACH = 8
"""A class whose records change so often on average has containers for records: tables, files, pages."""


class Position(NamedTuple):
    """Where acts of one shape have a value."""

    verb: str
    container: str
    part: str
    """`field`, `field[column]`, or `#n`, the n-th number of the texts."""


class ActShapes:
    """What the acts of a company have in common."""

    def __init__(self, events: Sequence[WorkEvent]) -> None:
        self._states = _states(events)
        self._headings: dict[tuple[str, str], str] = {}
        self._texts = {(kind.name, field) for app in installed_apps() for kind in app.kinds for field in kind.texts}
        records: dict[str, Counter[str]] = defaultdict(Counter)
        for event in events:
            records[event.record[0]][event.record[1]] += 1
        self._holders = {name for name, counts in records.items()
                         if sum(counts.values()) >= _CHANGES_EACH * len(counts) or len(counts) == 1}
        self._paths = {name for name, counts in records.items() if all("/" in key for key in counts)}

        for event in events:
            self._learn_headings(event)

    def _learn_headings(self, event: WorkEvent) -> None:
        for change in event.changes:
            first = change.after[0] if isinstance(change.after, list) and change.after else None
            if isinstance(first, list) and all(isinstance(cell, str) and not _NUMBER.search(cell) for cell in first):
                for number, cell in enumerate(first):
                    self._headings[self.container(event), f"{change.field}[{number}]"] = cell

    def label(self, container: str, part: str) -> str:
        """Return the heading of a column, the name of a field, or `number` of a number within a text."""
        return self._headings.get((container, part)) or ("number" if part.startswith("#") else part)

    def container(self, event: WorkEvent) -> str:
        """Return where an act happened: its place, the table of its row, the file; else its class."""
        name, key = event.record
        if event.place:
            return event.place
        if name in self._paths:
            return f"{name}:{key.rpartition('/')[0]}"
        return f"{name}:{key}" if name in self._holders else name

    def name(self, event: WorkEvent) -> str:
        """Return what kind of act it is: verb, container, and the state that it set."""
        states = [f"{change.field}={change.after}" for change in event.changes if (event.verb, change.field) in self._states]
        return " ".join([event.verb, self.container(event), *sorted(states)])

    def values(self, event: WorkEvent) -> dict[Position, str]:
        """Return the values of an act, written alike in all apps."""
        verb, container = event.verb, self.container(event)
        parts: dict[str, str] = {}
        for change in event.changes:
            if isinstance(change.after, list):
                before = change.before if isinstance(change.before, list) else []
                rows = [row for row in change.after if isinstance(row, list) and row not in before]
                parts |= {f"{change.field}[{number}]": plain_value(cell)
                          for row in rows for number, cell in enumerate(row)}
            elif self._is_value(event, change.field, change.after):
                parts[change.field] = plain_value(change.after)
        numbers = _NUMBER.findall(" ; ".join(event.texts))
        parts |= {f"#{number}": plain_value(word) for number, word in enumerate(numbers[:_NUMBERS])}
        return {Position(verb, container, part): value for part, value in parts.items() if value}

    def _is_value(self, event: WorkEvent, field: str, value: Any) -> bool:
        if isinstance(value, bool) or (event.record[0], field) in self._texts:
            return False
        return isinstance(value, (int, float)) or (isinstance(value, str) and 0 < len(value) <= _SHORT)


def _states(events: Iterable[WorkEvent]) -> set[tuple[str, str]]:
    """Return (verb, field) of fields that take few values."""
    taken: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for event in events:
        if not event.verb.endswith(CREATED):
            for change in event.changes:
                if isinstance(change.after, str) and 0 < len(change.after) <= _SHORT:
                    taken[event.verb, change.field][change.after] += 1
    return {key for key, counts in taken.items()
            if len(counts) <= _FEW_VALUES and sum(counts.values()) >= _TIMES_EACH * len(counts)}


def plain_value(value: Any) -> str:
    """Return a value in one notation: numbers without zeros at their end, instants to the minute, words in small letters."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if _FIRST_SECOND < value < _LAST_SECOND:
            return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M")
        return f"{float(value):.10g}"
    text = "" if value is None else str(value).strip()
    if _PLAIN_NUMBER.fullmatch(text):
        return f"{float(text):.10g}"
    instant = _INSTANT.fullmatch(text)
    return f"{instant[1]}T{instant[2]}" if instant else text.casefold()


class EarlierTexts:
    """What had been written before, to look values up."""

    def __init__(self) -> None:
        self._text = ""
        self._values: set[str] = set()

    def copy(self) -> EarlierTexts:
        """Return what had been written until now."""
        other = EarlierTexts()
        other._text, other._values = self._text, set(self._values)
        return other

    def add(self, shapes: ActShapes, event: WorkEvent) -> None:
        """Take in an act: its texts, their numbers, its values."""
        text = " ; ".join(event.texts)
        self._text += f" ; {text.casefold()}"
        values = {plain_value(word) for word in _NUMBER.findall(text)} | set(shapes.values(event).values())
        self._values |= values | {value[:10] for value in values if _INSTANT.fullmatch(value)}   # an instant names its day, too

    def holds(self, value: str) -> bool:
        """Return whether a value was written."""
        return value in self._values or (not _PLAIN_NUMBER.fullmatch(value)
                                         and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", self._text) is not None)
