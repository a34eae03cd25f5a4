"""Words of acts: what two acts must have in common when one speaks of what the other did.

In: acts (`extractors.work.events`). Out: for each act the words that are new in it and the words of its record before it.
Sees: words, numbers in one notation (`80900.0` is `80900`), instants as days and minutes, ids, addresses, and the words of a
record that a field points to. Does not see: inflected forms, synonyms, pictures.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from warehouse.records import WorkEvent

_WORD = re.compile(r"[^\W_]+(?:[-@.#'_][^\W_]+)*")
_NUMBER = re.compile(r"\d+\.\d+")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)t(\d\d)")
_FIRST_INSTANT, _LAST_INSTANT = 946684800, 4102444800
"""Numbers between them may be seconds since 1970: the years 2000 to 2100."""
_SHORT = 120
"""Longer values count as texts, which an act has in its own words."""
_POINTS = 0.9
"""A field points to records of a class if this share of its values are ids of such."""


class ActWords(NamedTuple):
    """Words of one act."""

    own: frozenset[str]
    """New in it: written, or a value that a field took."""
    earlier: frozenset[str]
    """Of its record before it, and of the records to which its fields point."""


def act_words(events: Sequence[WorkEvent]) -> list[ActWords]:
    """Return the words of acts, which are in the order of time."""
    pointers = _pointers(events)
    records: dict[tuple[str, str], dict[str, frozenset[str]]] = defaultdict(dict)
    words = []
    for event in events:
        today = datetime.fromtimestamp(event.at / 1_000_000, UTC).isoformat()[:10]
        own = {word for word in _own(event) if not word.startswith(today)}
        fields = records[event.record]
        earlier = set().union(*fields.values())
        for change in event.changes:
            target = pointers.get((table_of(event.record), change.field))
            if target is not None and isinstance(change.after, str | int):
                pointed = records.get((target[0], target[1] + str(change.after)), {})
                fields[f"{change.field}."] = frozenset().union(*pointed.values())
            if isinstance(change.after, str | int | float) and len(str(change.after)) <= _SHORT:
                fields[change.field] = frozenset(_value_words(change.after))
        earlier |= set().union(*fields.values())
        words.append(ActWords(frozenset(own), frozenset(word for word in earlier - own if not word.startswith(today))))
    return words


def _own(event: WorkEvent) -> Iterator[str]:
    for text in event.texts:
        yield from text_words(text)
    yield from text_words(event.record[1].rsplit("/", 1)[-1])
    for change in event.changes:
        after = change.after
        if isinstance(after, int | float) or not event.texts:
            yield from _value_words(_new_members(change.before, after))
        elif isinstance(after, str) and "@" in after and " " not in after:
            yield from text_words(after)
        elif isinstance(after, list):
            yield from (word for each in after if isinstance(each, str) and "@" in each for word in text_words(each))


def _new_members(before: Any, after: Any) -> Any:
    """Return what is new in a list; any other value as it is."""
    return [each for each in after if each not in before] if isinstance(after, list) and isinstance(before, list) else after


def text_words(text: str) -> Iterator[str]:
    """Yield the words of a text, in one notation."""
    for word in _WORD.findall(text.lower()):
        if _NUMBER.fullmatch(word):
            yield word.rstrip("0").rstrip(".")
            continue
        yield word
        instant = _DAY.match(word)
        if instant:
            yield instant[1]
            yield f"{instant[1]}t{instant[2]}"
        elif any(mark in word for mark in "-@.#'_"):
            yield from (part for part in re.split(r"[-@.#'_]", word) if len(part) > 2 and not part.isdigit())


def _value_words(value: Any) -> Iterator[str]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        if _FIRST_INSTANT < value < _LAST_INSTANT:
            yield from text_words(datetime.fromtimestamp(value, UTC).isoformat()[:16])
        else:
            yield f"{value:g}" if value != int(value) else str(int(value))
    elif isinstance(value, str) and len(value) <= _SHORT:
        yield from text_words(value)
    elif isinstance(value, list):
        for each in value:
            if isinstance(each, str):
                yield from _value_words(each)


def table_of(record: tuple[str, str]) -> tuple[str, str]:
    """Return a record's class and, where its id is `table/key`, its table."""
    table, slash, _ = record[1].rpartition("/")
    return record[0], table + slash


def _pointers(events: Sequence[WorkEvent]) -> dict[tuple[tuple[str, str], str], tuple[str, str]]:
    """Return which fields hold ids of which records' tables: ((class, table), field) -> (class, table)."""
    ids: dict[tuple[str, str], set[str]] = defaultdict(set)
    values: dict[tuple[tuple[str, str], str], set[str]] = defaultdict(set)
    for event in events:
        table = table_of(event.record)
        ids[table].add(event.record[1][len(table[1]):])
        for change in event.changes:
            if isinstance(change.after, str | int) and not isinstance(change.after, bool):
                values[table, change.field].add(str(change.after))
    pointers = {}
    for (table, field), fields in values.items():
        fitting = [other for other, earlier in ids.items()
                   if other != table and len(fields) > 2 and sum(value in earlier for value in fields) >= _POINTS * len(fields)]
        named = [other for other in fitting if field.lower() in other[1].lower() or field.lower() in other[0].lower()]
        if len(named or fitting) == 1 and fields != ids[table]:
            pointers[table, field] = (named or fitting)[0]
    return pointers
