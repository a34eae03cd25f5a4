"""From looks at one thing in a world that all sessions share to the spans over which each value held.

Between two equal looks nothing changed. Between unequal ones it is unknown when the change came, unless the later look is
the answer of the call that made it. Before the first and after the last look a value is carried on only where such values
were hardly ever seen to change by themselves (`Drift`): a status that moves on is not, a closed case is.
Sees: pairs of looks with nothing logged between them. Does not see: how long ago; a drift that came and went between looks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from env_builder.runtime.answers import parse
from warehouse.records import Known

STALE = 0.02
"""Chance of an unlogged change up to which a value is carried beyond its looks (measured on a prototype: exact 100 %)."""
FEW_VALUES = 20
MINIMUM_PAIRS = 5


class Look(NamedTuple):
    """One thing as one answer showed it."""

    at: datetime
    text: str
    written: bool
    """The answer of a call that changed it: the value holds from just then."""
    event_id: str


class Span(NamedTuple):
    """A value and when it held: since `since` (None: ever) until before `until` (None: for ever)."""

    text: str
    since: datetime | None
    until: datetime | None
    known: Known
    observed_at: datetime
    event_id: str


class Drift:
    """How often values change with nothing logged, by class, field and (where a field has few values) value."""

    def __init__(self, looks: dict[tuple[str, str], list[Look]]) -> None:
        self._few = _few_values(looks)
        self._n: Counter[tuple[Any, ...]] = Counter()
        self._changed: Counter[tuple[Any, ...]] = Counter()
        for (kind, _), seen in sorted(looks.items()):
            for before, after in pairwise(seen):
                if not after.written:
                    self._count(kind, before.text, after.text)

    def _count(self, kind: str, before: str, after: str) -> None:
        one, other = _fields(before), _fields(after)
        for direction, here, there in (("forward", one, other), ("backward", other, one)):
            for name, value in here.items():
                places = {(direction, kind, name), (direction, kind, name, self._value(kind, name, value))}
                self._n.update(places)
                if there.get(name) != value:
                    self._changed.update(places)

    def chance(self, direction: str, kind: str, text: str) -> float:
        """Estimated chance that the value changed beyond its looks; 1 where too few pairs were seen to tell."""
        worst = 0.0
        for name, value in _fields(text).items():
            exact = (direction, kind, name, self._value(kind, name, value))
            place = exact if self._n[exact] >= MINIMUM_PAIRS else (direction, kind, name)
            worst = max(worst, self._changed[place] / self._n[place] if self._n[place] >= MINIMUM_PAIRS else 1.0)
        return worst

    def _value(self, kind: str, name: str, value: Any) -> Any:
        return value if (kind, name) in self._few and isinstance(value, str | int | bool) else None


def spans(kind: str, looks: list[Look], drift: Drift) -> list[Span]:
    """Spans of one thing from its looks in order of time."""
    runs = _runs(looks)
    found: list[Span] = []
    for index, run in enumerate(runs):
        first, last = run[0], run[-1]
        after = runs[index + 1][0] if index + 1 < len(runs) else None
        carried = after is None or after.written
        until = after.at if after else None
        if index == 0 and not first.written and drift.chance("backward", kind, first.text) <= STALE:
            found.append(Span(first.text, None, first.at, "implied", first.at, first.event_id))
        if carried and drift.chance("forward", kind, last.text) <= STALE:
            found.append(Span(last.text, first.at, until, "carried", last.at, last.event_id))
        else:
            found.append(Span(last.text, first.at, last.at, "seen", last.at, last.event_id))
    return [span for span in found if span.since is None or span.until is None or span.since < span.until]


def _runs(looks: list[Look]) -> list[list[Look]]:
    runs: list[list[Look]] = []
    for look in looks:
        if runs and runs[-1][-1].text == look.text:
            runs[-1].append(look)
        else:
            runs.append([look])
    return runs


def _fields(text: str) -> dict[str, Any]:
    value = parse(text)
    return value if isinstance(value, dict) and value else {"": text}


def _few_values(looks: dict[tuple[str, str], list[Look]]) -> set[tuple[str, str]]:
    values: dict[tuple[str, str], set[Any]] = defaultdict(set)
    many: set[tuple[str, str]] = set()
    for (kind, _), seen in looks.items():
        for look in seen:
            for name, value in _fields(look.text).items():
                place = (kind, name)
                if place in many:
                    continue
                if isinstance(value, str | int | bool) and name:
                    values[place].add(value)
                if not isinstance(value, str | int | bool) or len(values[place]) > FEW_VALUES:
                    many.add(place)
    return set(values) - many
