"""From looks at one thing in a world that all sessions share to the spans over which each of its values held, field by field.

Between two equal looks nothing changed; where an act between them is known to change the field (`Touch`), the value follows it.
Between unequal looks it is unknown when the change came, unless the later look is the answer of the call that made it. Beyond
its looks a value is carried as long as such values were hardly ever seen to change by themselves (`drift`). A document is known
where all its fields are.
Sees: looks and logged acts. Does not see: a change that came and went between looks.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.world.documents import STYLES
from env_builder.world.drift import STALE, Drift, Pair, flat
from warehouse.records import Known

WHOLE = ""
"""The field of an answer that is no document."""
ABSENT = "\0absent"
"""Value of a field that a document does not have."""
LONGEST_S = 1e9


class Look(NamedTuple):
    """One thing as one answer showed it."""

    at: datetime
    text: str
    written: bool
    """The answer of a call that changed it: the value holds from just then."""
    event_id: str
    kept: frozenset[str] = frozenset()
    """Where written: fields that the call leaves as they were."""


class Touch(NamedTuple):
    """An act that may change the thing without showing it."""

    at: datetime
    fields: frozenset[str]
    change: Callable[[dict[str, Any]], dict[str, Any] | None]
    """Part of the document before -> after; None where that is not known."""


class Span(NamedTuple):
    """A value and when it held: since `since` (None: ever) until before `until` (None: for ever)."""

    text: str
    since: datetime | None
    until: datetime | None
    known: Known
    observed_at: datetime
    event_id: str


class Held(NamedTuple):
    """A field's value over an interval."""

    since: datetime | None
    until: datetime | None
    value: Any
    known: Known


Event = Look | Touch
Stretch = tuple[datetime | None, datetime | None]
"""Since, until; None: ever, for ever."""


def fields_of(text: str, document: bool) -> dict[str, Any]:
    """The fields of a document, or the one field of any other answer."""
    value = parsed(text) if document else None
    return value if isinstance(value, dict) and value else {WHOLE: text}


def pairs(kind: str, events: list[Event], document: bool) -> Iterator[Pair]:
    """Pairs of looks that follow each other, field by field, with what is known to have changed between them left out."""
    for field, seen in _by_field(events, document).items():
        for before, touches, after in _stretches(seen):
            if before is None or after is None or after[1] is None:
                continue
            value = _chain(field, before[2], touches)[-1]
            if value is not None:
                yield Pair(kind, field, (after[0] - before[0]).total_seconds(), flat(value), flat(after[1]))


def spans(kind: str, events: list[Event], drift: Drift, document: bool = True) -> list[Span]:
    """Spans of one thing from its looks and what touched it, in order of time."""
    held = {field: _merged(_held(kind, field, seen, drift)) for field, seen in _by_field(events, document).items()}
    looks = [event for event in events if isinstance(event, Look)]
    if not looks:  # without a clock nothing is known of when
        return []
    cuts = sorted({cut for kept in held.values() for one in kept for cut in (one.since, one.until) if cut is not None})
    stretches = list(pairwise([None, *cuts, None]))
    texts = _Texts(looks, document)
    found: list[Span] = []
    for (since, until), *values in zip(stretches, *(along(kept, stretches) for kept in held.values()), strict=True):
        if all(value is not None for value in values):
            known = {field: value for field, value in zip(held, values, strict=True) if value is not None}
            span = _span(known, since, until, texts)
            if found and found[-1].until == since and found[-1].text == span.text and found[-1].known == span.known:
                found[-1] = found[-1]._replace(until=until)
            else:
                found.append(span)
    return found


Seen = tuple[datetime, Any, Any] | Touch
"""(at, value just before or None where not told, value from then on), or a touch."""
Told = tuple[datetime, Any, Any]


def _by_field(events: list[Event], document: bool) -> dict[str, list[Seen]]:
    told = [(event, fields_of(event.text, document)) for event in events if isinstance(event, Look)]
    names = list(dict.fromkeys(name for _, fields in told for name in fields))
    found: dict[str, list[Seen]] = {name: [] for name in names}
    remaining = iter(told)
    for event in events:
        fields = next(remaining)[1] if isinstance(event, Look) else {}
        for name in names:
            if isinstance(event, Touch):
                if name in event.fields:
                    found[name].append(event)
            else:
                value = fields.get(name, ABSENT)
                found[name].append((event.at, value if not event.written or name in event.kept else None, value))
    return found


def _stretches(seen: list[Seen]) -> Iterator[tuple[Told | None, list[Touch], Told | None]]:
    """(look, touches, next look) all along, open at both ends."""
    before: Told | None = None
    touches: list[Touch] = []
    for one in seen:
        if isinstance(one, Touch):
            touches.append(one)
        else:
            yield before, touches, one
            before, touches = one, []
    yield before, touches, None


def _chain(field: str, value: Any, touches: list[Touch]) -> list[Any]:
    """The value, and what each touch made of it; None from where that is not known."""
    found = [value]
    for touch in touches:
        part = None if value is None else touch.change({} if value == ABSENT else {field: value})
        value = None if part is None else part.get(field, ABSENT)
        found.append(value)
    return found


def _held(kind: str, field: str, seen: list[Seen], drift: Drift) -> Iterator[Held]:
    for before, touches, after in _stretches(seen):
        chain = [] if before is None else _chain(field, before[2], touches)
        if before and after and after[1] is not None and chain[-1] is not None and chain[-1] == after[1]:
            yield from _linked(before[0], touches, after[0], chain, "seen")
            continue
        if before and after and chain[-1] is None and before[2] == after[1]:  # what touched it left it as it was
            yield Held(before[0], after[0], before[2], "seen")
            continue
        gap = (after[0] - before[0]).total_seconds() * STALE if before and after and after[1] is not None else LONGEST_S
        if before:
            limit = min(gap, drift.limit_s("forward", kind, field, before[2]))
            until = _later(before[0], limit, after)
            yield from (one for one in _linked(before[0], touches, until, chain, "carried") if one.value is not None)
        if after and after[1] is not None:
            limit = min(gap, drift.limit_s("backward", kind, field, after[1]))
            since = None if limit >= LONGEST_S else after[0] - timedelta(seconds=limit)
            earliest = touches[-1].at if touches else before[0] if before else None
            since = earliest if since is None or (earliest is not None and since < earliest) else since
            if since is None or since < after[0]:
                yield Held(since, after[0], after[1], "implied")


def _merged(intervals: Iterator[Held]) -> list[Held]:
    found: list[Held] = []
    for one in intervals:
        if found and found[-1].until == one.since and found[-1].value == one.value and found[-1].known == one.known:
            found[-1] = found[-1]._replace(until=one.until)
        else:
            found.append(one)
    return found


def _later(at: datetime, limit: float, after: Told | None) -> datetime | None:
    until = None if limit >= LONGEST_S else at + timedelta(seconds=limit)
    return until if after is None else after[0] if until is None else min(until, after[0])


def _linked(
    since: datetime, touches: list[Touch], until: datetime | None, chain: list[Any], known: Known
) -> Iterator[Held]:
    """The values of a chain, each from its touch to the next, all before `until`."""
    marks = [since, *(touch.at for touch in touches), until]
    for value, begins, ends in zip(chain, marks, marks[1:], strict=False):
        stops = until if ends is None or (until is not None and until < ends) else ends
        if begins is not None and (stops is None or begins < stops):
            yield Held(begins, stops, value, known)


def along(intervals: list[Held], stretches: Iterable[Stretch]) -> Iterator[Held | None]:
    """What holds over all of each stretch between two cuts; both in order of time, no interval within another."""
    at = 0
    for since, until in stretches:
        while at < len(intervals) and since is not None and (ends := intervals[at].until) is not None and ends <= since:
            at += 1
        one = intervals[at] if at < len(intervals) else None
        holds = one is not None and (one.since is None or (since is not None and one.since <= since)) and (
            one.until is None or (until is not None and until <= one.until))
        yield one if holds else None


class _Texts:
    """The looks at one thing, in order of time, and how each of its documents was written first."""

    def __init__(self, looks: list[Look], document: bool) -> None:
        self._looks, self._document = looks, document
        self._first: dict[Any, str] = {}
        for look in looks:
            self._first.setdefault(_frozen(fields_of(look.text, document)), look.text)

    def nearest(self, since: datetime | None) -> Look:
        """The last look at or before the instant, else the first."""
        n_before = 0 if since is None else bisect_right(self._looks, since, key=lambda look: look.at)
        return self._looks[max(0, n_before - 1)]

    def of(self, fields: dict[str, Any], nearest: Look) -> str:
        """The text of these fields: as it was seen, else in the order of the nearest look."""
        shown = fields_of(nearest.text, self._document)
        if shown == fields:
            return nearest.text
        if (seen := self._first.get(_frozen(fields))) is not None:
            return seen
        ordered = [name for name in shown if name in fields] + [name for name in fields if name not in shown]
        style = next((style for style in STYLES if json.dumps(shown, **style) == nearest.text), STYLES[0])
        return json.dumps({name: fields[name] for name in ordered}, **style)


def _frozen(value: Any) -> Any:
    """A JSON value by which equal ones are found."""
    if isinstance(value, dict):
        return frozenset((name, _frozen(each)) for name, each in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _span(values: dict[str, Held], since: datetime | None, until: datetime | None, texts: _Texts) -> Span:
    known: Known = next(
        (label for label in ("carried", "implied") if any(one.known == label for one in values.values())), "seen")
    nearest = texts.nearest(since)
    fields = {name: one.value for name, one in values.items() if one.value != ABSENT}
    return Span(texts.of(fields, nearest), since, until, known, nearest.at, nearest.event_id)
