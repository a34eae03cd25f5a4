"""Schema drift: what a log is made of that appeared, vanished, was renamed or changed its type, and from which day on.

In: frames of `core.events` and `core.turns` of any time span. Out: a frame of verdicts of stage `drift`, one for each change.
A feature vanished if it was seen, has not been seen since a day, and would have been by chance in the units (sessions) like
those that had it: those whose tools are mostly the same. It appeared if that holds backwards. One that vanished when another
of its context with like values appeared was renamed.
Does not see: the end of one kind of work and the begin of another (all tools at once), what changed within a few sessions,
changes of meaning, fields below the first level, and fields that a format does not carry over to the events (there the column
that they filled vanishes).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import polars as pl

from extractors.sightings import Key, Sighting, sightings
from warehouse.records import Verdict, frame

_BY_CHANCE = 1e-7
_ALIKE = 0.5
_MOSTLY = 0.5
_A_FEW = 10
_Company = dict[str, frozenset[str]]
"""The tools of each unit."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A feature that came or went: the first day with it, or without it."""

    feature: str
    day: str
    last_day: str
    """Of one that went: the last day with it."""


def drift(events: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Changes in what the logs are made of, as verdicts sorted by subject."""
    seen = sightings(events, turns)
    company = _company(seen)
    verdicts: list[Verdict] = []
    for key, each in sorted(seen.items()):
        verdicts += _Context(key, each, company.get(key[:2], {})).verdicts()
    return frame(Verdict, sorted(verdicts, key=lambda each: (each.subject, each.reason)))


def _company(seen: dict[Key, Sighting]) -> dict[tuple[str, str], _Company]:
    """The tools of each unit, by source and format."""
    found: dict[tuple[str, str], dict[str, set[str]]] = {}
    for (source, log_format, context), each in seen.items():
        if context.startswith("tools of "):
            held = found.setdefault((source, log_format), {})
            for tool, days in each.features.items():
                for unit in set().union(*days.values()):
                    held.setdefault(unit, set()).add(tool)
    return {key: {unit: frozenset(tools) for unit, tools in held.items()} for key, held in found.items()}


class _Context:
    """One context, and what changed in it."""

    def __init__(self, key: Key, seen: Sighting, company: _Company) -> None:
        self._key, self._seen, self._company = key, seen, company
        self._days = sorted(seen.units)

    def verdicts(self) -> list[Verdict]:
        """One for each change."""
        gone, come = [], []
        for feature, units in sorted(self._seen.features.items()) if len(self._days) > 1 else ():
            first, last = min(units), max(units)
            after = [day for day in self._days if day > last]
            if after and self._is_change(feature, [day for day in self._days if day <= last], after):
                gone.append(_Change(feature, after[0], last))
            before = [day for day in self._days if day < first]
            if before and self._is_change(feature, [day for day in self._days if day >= first], before):
                come.append(_Change(feature, first, last))
        return self._said(gone, come)

    def _is_change(self, feature: str, with_it: list[str], without: list[str]) -> bool:
        """Whether so many units without the feature are no chance, given how many had it on the days with it."""
        had = self._seen.features[feature]
        like = _Like(set().union(*had.values()), self._company)
        others = [self._seen.units[day] for day in without]
        if not like.goes_on(set().union(*others)):
            return False
        n_without = sum(len(like(units)) for units in others)
        counts = [(len(had.get(day, ())), len(like(self._seen.units[day]) | had.get(day, set()))) for day in with_it]
        shares = [_often(n_seen, n_of) for n_seen, n_of in counts if n_of >= _A_FEW]
        overall = _often(sum(n_seen for n_seen, _ in counts), sum(n_of for _, n_of in counts))
        return (1 - min(shares, default=overall)) ** n_without < _BY_CHANCE

    def _said(self, gone: list[_Change], come: list[_Change]) -> list[Verdict]:
        is_type = self._key[2].startswith("type of ")
        verdicts, left = [], list(come)
        for each in gone:
            new = self._renamed(each, left)
            if new is None:
                verdicts.append(self._verdict(each.feature, "vanished", f"{each.feature} is not seen since {each.day}"))
                continue
            left.remove(new)
            reason, verb = ("changed_type", "became") if is_type else ("renamed", "is called")
            verdicts.append(self._verdict(each.feature, reason, f"{each.feature} {verb} {new.feature} since {new.day}"))
        return verdicts + [self._verdict(each.feature, "appeared", f"{each.feature} is seen since {each.day}") for each in left]

    def _renamed(self, gone: _Change, come: list[_Change]) -> _Change | None:
        """What came when it went, with values most like its own."""
        shapes = self._seen.shapes
        alike = [(_likeness(shapes[gone.feature], shapes[each.feature]), each) for each in come
                 if gone.last_day <= each.day <= gone.day]
        share, best = max(alike, key=lambda pair: pair[0], default=(0.0, None))
        return best if share >= _ALIKE else None

    def _verdict(self, feature: str, reason: str, what: str) -> Verdict:
        source, log_format, context = self._key
        return Verdict(stage="drift", subject=f"{source}/{log_format}/{context}/{feature}", kept=True, reason=reason,
                       detail=f"source {source}, format {log_format}, {context}: {what}; check what writes the log, and map "
                       "the field in the configuration where its meaning stayed.")


class _Like:
    """Units like those that had a feature: most of their tools are theirs.

    Where units have one tool each (records without a session), all are alike; so are those without any.
    """

    def __init__(self, had: set[str], company: _Company) -> None:
        held = [company.get(unit, frozenset()) for unit in had]
        self._company = company
        self._tools = frozenset().union(*held)
        self._tells = sum(map(len, held)) > 1.5 * len(held)

    def __call__(self, units: set[str]) -> set[str]:
        """Those of `units` that are alike."""
        return {unit for unit in units if self._is_alike(self._company.get(unit, frozenset()))} if self._tells else units

    def goes_on(self, units: set[str]) -> bool:
        """Whether half of the tools are used in `units` too: else what had the feature ended, or began, as a whole."""
        there: frozenset[str] = frozenset().union(*(self._company.get(unit, frozenset()) for unit in units))
        return not self._tells or 2 * len(self._tools & there) >= len(self._tools)

    def _is_alike(self, tools: frozenset[str]) -> bool:
        return not tools or len(tools & self._tools) > _MOSTLY * len(tools)


def _often(n_seen: int, n_of: int) -> float:
    """A cautious share: two units more without it."""
    return n_seen / (n_of + 2)


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    """Share of the shapes that two features have in common."""
    return sum(min(one[shape] / one.total(), other[shape] / other.total()) for shape in one)
