"""From reads of one record in a world that all sessions share to the spans over which each of its values held, by field.

Between two equal reads nothing changed; where a write call between them is known to change the field (`Touch`), the value
follows it. Between unequal reads it is unknown when the change came, unless the later read is the answer of the call that made
it. Beyond its reads a value is carried until the chance that something unlogged changed it passes `STALE` (`Drift`): the share
of changed pairs within a gap, monotone in the gap (pool adjacent violators), with a little doubt added for few pairs. A
document is known where all its fields are. Sees: reads and logged write calls. Does not see: a change that came and went
between reads, hours of the day.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from env_builder.runtime.answers import UNKNOWN_VALUE, parsed
from env_builder.runtime.canonical import IdentityCache
from env_builder.world.documents import STYLES
from warehouse.records import Derivation

STALE = 0.04
"""Chance of an unlogged change up to which a value is carried beyond its reads."""
DOUBT = 0.1
"""Changes added to what was counted: five pairs without any change are just enough, thirty with one are not."""
FEW_VALUES = 20
MINIMUM_PAIRS = 5


class Pair(NamedTuple):
    """A field of one record, looked at twice."""

    kind: str
    field: str
    gap_s: float
    before: Any
    after: Any


class Drift:
    """How long values keep."""

    def __init__(self, pairs: list[Pair]) -> None:
        few = _few_values(pairs)
        outcomes: dict[tuple[Any, ...], list[tuple[float, bool]]] = defaultdict(list)
        for pair in pairs:
            changed = pair.before != pair.after
            for direction, value in (("forward", pair.before), ("backward", pair.after)):
                outcomes[direction, pair.kind, pair.field].append((pair.gap_s, changed))
                if (pair.kind, pair.field) in few:
                    outcomes[direction, pair.kind, pair.field, value].append((pair.gap_s, changed))
        self._few = few
        self._outcomes = outcomes
        self._limit = cache(lambda place: carried(sorted(outcomes.get(place, ()))))

    def limit_s(self, direction: str, kind: str, field: str, value: Any) -> float:
        """Seconds beyond a look for which the value may be taken to hold; infinite where it was never seen to change."""
        exact = (direction, kind, field, flat(value)) if (kind, field) in self._few else (direction, kind, field)
        return self._limit(exact if len(self._outcomes.get(exact, ())) >= MINIMUM_PAIRS else (direction, kind, field))


_texts = IdentityCache[str](json.dumps)


def flat(value: Any) -> Any:
    """Return a value that can be compared and counted. Of a list or an object the text is kept: it must not be changed."""
    return _texts(value) if isinstance(value, dict | list) else value


def carried(outcomes: list[tuple[float, bool]]) -> float:
    """Return the longest gap up to which values hardly ever changed; `seen`: (gap, changed), sorted."""
    if len(outcomes) < MINIMUM_PAIRS:
        return 0.0
    blocks: list[list[float]] = []  # [pairs, changes, longest gap]
    for gap, changed in outcomes:
        blocks.append([1, changed, gap])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            n, k, longest = blocks.pop()
            blocks[-1] = [blocks[-1][0] + n, blocks[-1][1] + k, longest]
    limit = 0.0
    for n, k, longest in blocks:
        if (k + DOUBT) / (n + 1) > STALE:
            return limit
        limit = longest
    return math.inf


def _few_values(pairs: list[Pair]) -> set[tuple[str, str]]:
    values: dict[tuple[str, str], set[Any] | None] = {}
    for pair in pairs:
        observed = values.setdefault((pair.kind, pair.field), set())
        if observed is None:
            continue
        observed.update(value for value in (pair.before, pair.after) if isinstance(value, str | int | bool))
        if len(observed) > FEW_VALUES or not all(isinstance(value, str | int | bool) for value in (pair.before, pair.after)):
            values[pair.kind, pair.field] = None
    return {place for place, observed in values.items() if observed is not None and place[1]}


WHOLE = ""
"""The field of an answer that is no document."""
ABSENT = "\0absent"
"""Value of a field that a document does not have."""
NULL = "\0null"
"""Value of a field that is null; None stands for what is not known."""
LONGEST_S = 1e9


class DocumentRead(NamedTuple):
    """One record as one answer showed it."""

    at: datetime
    text: str
    written: bool
    """The answer of a call that changed it: the value holds from just then."""
    event_id: str
    kept: frozenset[str] = frozenset()
    """Where written: fields that the call leaves as they were."""


class Touch(NamedTuple):
    """An act that may change the record without showing it."""

    at: datetime
    fields: frozenset[str]
    change: Callable[[dict[str, Any]], dict[str, Any] | None]
    """Part of the document before -> after; None where that is not known."""


class DocumentSpan(NamedTuple):
    """A value and when it held: since `since` (None: ever) until before `until` (None: for ever)."""

    text: str
    since: datetime | None
    until: datetime | None
    derivation: Derivation
    observed_at: datetime
    event_id: str


class FieldSpan(NamedTuple):
    """A field's value over an interval."""

    since: datetime | None
    until: datetime | None
    value: Any
    derivation: Derivation


Span = TypeVar("Span", DocumentSpan, FieldSpan)
Event = DocumentRead | Touch
Stretch = tuple[datetime | None, datetime | None]
"""Since, until; None: ever, for ever."""


def fields_of(text: str, document: bool) -> dict[str, Any]:
    """Return the fields of a document, or the one field of any other answer."""
    value = parsed(text) if document else None
    return value if isinstance(value, dict) and value else {WHOLE: text}


def pairs(kind: str, events: list[Event], document: bool) -> Iterator[Pair]:
    """Pairs of reads that follow each other, field by field, with what is known to have changed between them left out."""
    for field, field_events in _by_field(events, document).items():
        for before, touches, after in _stretches(field_events):
            if before is None or after is None or after[1] is None:
                continue
            value = _chain(field, before[2], touches)[-1]
            if value is not None:
                yield Pair(kind, field, (after[0] - before[0]).total_seconds(), flat(value), flat(after[1]))


def spans(kind: str, events: list[Event], drift: Drift, document: bool = True) -> list[DocumentSpan]:
    """Spans of one record from its reads and what touched it, in order of time."""
    by_field = {
        field: _merged(_field_spans(kind, field, field_events, drift), lambda span: (span.value, span.derivation))
        for field, field_events in _by_field(events, document).items()}
    looks = [event for event in events if isinstance(event, DocumentRead)]
    if not looks:  # without a clock nothing is known of when
        return []
    cuts = sorted({cut for kept in by_field.values() for one in kept for cut in (one.since, one.until) if cut is not None})
    stretches = list(pairwise([None, *cuts, None]))
    texts = _Texts(looks, document)
    document_spans = []
    for (since, until), *values in zip(stretches, *(along(kept, stretches) for kept in by_field.values()), strict=True):
        if all(value is not None for value in values):
            fields_there = {field: value for field, value in zip(by_field, values, strict=True) if value is not None}
            derivations = {one.derivation for one in fields_there.values()}
            derivation: Derivation = next((label for label in ("carried", "implied") if label in derivations), "seen")
            nearest = texts.nearest(since)
            fields = {name: _plain(one.value) for name, one in fields_there.items() if one.value != ABSENT}
            document_spans.append(
                DocumentSpan(texts.of(fields, nearest), since, until, derivation, nearest.at, nearest.event_id))
    return _merged(document_spans, lambda span: (span.text, span.derivation))


def from_birth(spans_in_order: list[DocumentSpan], born: datetime | None) -> Iterator[DocumentSpan]:
    """Yield what the spans say from the instant on from which the record is known to exist; None: it always was."""
    for span in spans_in_order:
        if born is None or (span.since is not None and span.since >= born):
            yield span
        elif span.until is None or span.until > born:
            yield span._replace(since=born)


FieldEvent = tuple[datetime, Any, Any] | Touch
"""(at, value just before or None where not told, value from then on), or a touch."""
FieldRead = tuple[datetime, Any, Any]


def _marked(value: Any) -> Any:
    """Return the value of a field as its spans hold it."""
    return NULL if value is None else value


def _plain(value: Any) -> Any:
    """Return the value of a field as its document holds it."""
    return None if value == NULL else value


def _by_field(events: list[Event], document: bool) -> dict[str, list[FieldEvent]]:
    reads = [(event, fields_of(event.text, document)) for event in events if isinstance(event, DocumentRead)]
    names = list(dict.fromkeys(name for _, fields in reads for name in fields))
    events_by_field: dict[str, list[FieldEvent]] = {name: [] for name in names}
    remaining = iter(reads)
    for event in events:
        fields = next(remaining)[1] if isinstance(event, DocumentRead) else {}
        for name in names:
            if isinstance(event, Touch):
                if name in event.fields:
                    events_by_field[name].append(event)
            else:
                value = _marked(fields.get(name, ABSENT))
                events_by_field[name].append((event.at, value if not event.written or name in event.kept else None, value))
    return events_by_field


def _stretches(field_events: list[FieldEvent]) -> Iterator[tuple[FieldRead | None, list[Touch], FieldRead | None]]:
    """(read, touches, next read) all along, open at both ends."""
    before: FieldRead | None = None
    touches: list[Touch] = []
    for one in field_events:
        if isinstance(one, Touch):
            touches.append(one)
        else:
            yield before, touches, one
            before, touches = one, []
    yield before, touches, None


def _chain(field: str, value: Any, touches: list[Touch]) -> list[Any]:
    """Return the value, and what each touch made of it; None from where that is not known."""
    values = [value]
    for touch in touches:
        part = None if value is None else touch.change({} if value == ABSENT else {field: _plain(value)})
        value = None if part is None else _marked(part.get(field, ABSENT))
        value = None if isinstance(value, str) and value.startswith(UNKNOWN_VALUE) else value
        values.append(value)
    return values


def _field_spans(kind: str, field: str, field_events: list[FieldEvent], drift: Drift) -> Iterator[FieldSpan]:
    for before, touches, after in _stretches(field_events):
        if before and after and not touches and before[2] == after[1]:
            if before[0] < after[0]:
                yield FieldSpan(before[0], after[0], before[2], "seen")
            continue
        chain = [] if before is None else _chain(field, before[2], touches)
        if before and after and after[1] is not None and chain[-1] is not None and chain[-1] == after[1]:
            yield from _linked(before[0], touches, after[0], chain, "seen")
            continue
        if before and after and chain[-1] is None and before[2] == after[1]:  # what touched it left it as it was
            yield FieldSpan(before[0], after[0], before[2], "seen")
            continue
        gap = (after[0] - before[0]).total_seconds() * STALE if before and after and after[1] is not None else LONGEST_S
        if before:
            limit = min(gap, drift.limit_s("forward", kind, field, before[2]))
            until = None if limit >= LONGEST_S else before[0] + timedelta(seconds=limit)
            until = min((at for at in (until, after and after[0]) if at is not None), default=None)
            yield from (one for one in _linked(before[0], touches, until, chain, "carried") if one.value is not None)
        if after and after[1] is not None:
            limit = min(gap, drift.limit_s("backward", kind, field, after[1]))
            since = None if limit >= LONGEST_S else after[0] - timedelta(seconds=limit)
            earliest = touches[-1].at if touches else before[0] if before else None
            since = earliest if since is None or (earliest is not None and since < earliest) else since
            if since is None or since < after[0]:
                yield FieldSpan(since, after[0], after[1], "implied")


def _merged(spans_in_order: Iterable[Span], content: Callable[[Span], Any]) -> list[Span]:
    """Return the spans, with those that follow each other with the same content as one."""
    merged: list[Span] = []
    until, last = None, None
    for one in spans_in_order:
        own = content(one)
        if merged and until == one.since and last == own:
            until = one.until
            continue
        if merged and merged[-1].until != until:
            merged[-1] = merged[-1]._replace(until=until)
        merged.append(one)
        until, last = one.until, own
    if merged and merged[-1].until != until:
        merged[-1] = merged[-1]._replace(until=until)
    return merged


def _linked(
    since: datetime, touches: list[Touch], until: datetime | None, chain: list[Any], derivation: Derivation
) -> Iterator[FieldSpan]:
    """Yield the values of a chain, each from its touch to the next, all before `until`."""
    marks = [since, *(touch.at for touch in touches), until]
    for value, begins, ends in zip(chain, marks, marks[1:], strict=False):
        stops = until if ends is None or (until is not None and until < ends) else ends
        if begins is not None and (stops is None or begins < stops):
            yield FieldSpan(begins, stops, value, derivation)


def along(intervals: list[FieldSpan], stretches: Iterable[Stretch]) -> Iterator[FieldSpan | None]:
    """Yield what holds over all of each stretch between two cuts; both in order of time, no interval within another."""
    at = 0
    for since, until in stretches:
        while at < len(intervals) and since is not None and (ends := intervals[at].until) is not None and ends <= since:
            at += 1
        one = intervals[at] if at < len(intervals) else None
        holds = one is not None and (one.since is None or (since is not None and one.since <= since)) and (
            one.until is None or (until is not None and until <= one.until))
        yield one if holds else None


class _Texts:
    """The reads of one record, in order of time, and how each of its documents was written first."""

    def __init__(self, looks: list[DocumentRead], document: bool) -> None:
        self._looks, self._document = looks, document

    @cached_property
    def _first(self) -> dict[Any, str]:
        """Fields -> the text that showed just these first."""
        first: dict[Any, str] = {}
        for text in dict.fromkeys(look.text for look in self._looks):
            first.setdefault(_frozen(fields_of(text, self._document)), text)
        return first

    def nearest(self, since: datetime | None) -> DocumentRead:
        """Return the last look at or before the instant, else the first."""
        n_before = 0 if since is None else bisect_right(self._looks, since, key=lambda look: look.at)
        return self._looks[max(0, n_before - 1)]

    def of(self, fields: dict[str, Any], nearest: DocumentRead) -> str:
        """Return the text of these fields: as it was seen, else in the order of the nearest read."""
        shown = fields_of(nearest.text, self._document)
        if shown == fields:
            return nearest.text
        if (first_text := self._first.get(_frozen(fields))) is not None:
            return first_text
        ordered = [name for name in shown if name in fields] + [name for name in fields if name not in shown]
        style = next((style for style in STYLES if json.dumps(shown, **style) == nearest.text), STYLES[0])
        return json.dumps({name: fields[name] for name in ordered}, **style)


def _frozen(value: Any) -> Any:
    """Return a JSON value by which equal ones are found."""
    if isinstance(value, dict):
        return frozenset((name, _frozen(each)) for name, each in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
