"""A request and its session's visits in, the values of the answer's places out, by the sources that each place learnt.

What was learnt is a list of sources for each place, the best first, and for each case (what was posted just before) a list of
its own where that case was recorded. The first source that has a value gives it. It is marked as unknown where the source was
right too rarely in sessions that it was not learnt of. Recorded visits count before an instant alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from .sources import ABSENT, SiteSource, SourceContext
from .visits import KIND, Place, SiteVisit, Value, words_with_digits

__all__ = ["LearntSource", "LearntSources", "LearntValues", "SourceKey", "VisitIndex"]


class SourceKey(NamedTuple):
    """What sources are learnt for: a place of a route's answers of one kind, in all cases or after one form."""

    route: str
    kind: Value
    """None for the place of the kind itself."""
    place: Place
    case: str | None = None
    """A case (`SourceContext.case`); None: all cases."""


_N_MET = 30
"""Visits that are kept of those that hold a word: more than one session has."""


@lru_cache(maxsize=1 << 14)
def words_of(value: str) -> tuple[str, ...]:
    """Return the words of a value that may be ids, each once."""
    return tuple(dict.fromkeys(words_with_digits(value)))


class LearntSource(NamedTuple):
    """A source of a place, and how far it can be relied on."""

    trust: float
    """Lower bound of the share of values that it gives right, where the sources before it have none."""
    source: SiteSource


class LearntValues(NamedTuple):
    """Values of an answer's places."""

    values: dict[Place, Value]
    unknown: tuple[Place, ...]
    """Places whose value cannot be relied on."""


class VisitIndex:
    """Recorded visits by url and by user, in order of time."""

    def __init__(self, visits: Iterable[SiteVisit]) -> None:
        """Take visits of whole sessions."""
        self._by_url: dict[tuple[str, bool], list[SiteVisit]] = defaultdict(list)
        self._of_user: dict[tuple[str, Place], list[SiteVisit]] = defaultdict(list)
        self._words: dict[str, list[SiteVisit]] = {}
        for visit in sorted(visits, key=lambda each: each.at):
            self._add_words(visit)
            self._by_url[visit.url, visit.is_write].append(visit)
            for place in visit.values if visit.is_page else ():
                self._of_user[visit.user, place].append(visit)

    def _add_words(self, visit: SiteVisit) -> None:
        """Keep the first visits that hold a word, of two sessions if there are."""
        for value in (visit.url, *visit.values.values()):
            for word in words_of(value or ""):
                met = self._words.setdefault(word, [])
                if len(met) < _N_MET and (not met or met[-1] is not visit):
                    met.append(visit)

    def context(self, request: SiteVisit, own: Sequence[SiteVisit], until: datetime,
                without: frozenset[int] = frozenset()) -> SourceContext:
        """Return what the sources of a request may see; `without`: ids of visits that do not count, those of its session."""
        def before(visits: Sequence[SiteVisit]) -> list[SiteVisit]:
            earlier = visits[:bisect_left(visits, until, key=lambda each: each.at)]
            return [visit for visit in earlier if id(visit) not in without] if without else list(earlier)

        def last_page(place: Place) -> SiteVisit | None:
            visits = self._of_user.get((request.user, place), ())
            for index in range(bisect_left(visits, until, key=lambda each: each.at) - 1, -1, -1):
                if id(visits[index]) not in without:
                    return visits[index]
            return None

        def is_known(word: str) -> bool:
            return any(visit.at < until and id(visit) not in without for visit in self._words.get(word, ()))

        visits = before(self._by_url.get((request.url, request.is_write), ()))
        return SourceContext(request, own, visits, last_page, is_known)


class LearntSources:
    """Answers requests by the sources that places learnt."""

    def __init__(self, places: Mapping[tuple[str, str], Sequence[Place]], sources: Mapping[SourceKey, Sequence[LearntSource]],
                 visits: Iterable[SiteVisit], least_trust: float = 0.0) -> None:
        """Take the places of each route's answers by kind, the sources of each place, the recorded visits, and the trust below
        which a place is unknown."""
        self._places = places
        self._sources = sources
        self._least_trust = least_trust
        self._index = VisitIndex(visits)
        self._plans: dict[tuple[str, Value, str], list[tuple[Place, Sequence[LearntSource]]]] = {}

    def answer(self, request: SiteVisit, own: Sequence[SiteVisit], until: datetime | None = None) -> LearntValues | None:
        """Return places and values for a request, given its session's visits so far; None for a route never requested."""
        context = self._index.context(request, own, until or request.at)
        values: dict[Place, Value] = {}
        unknown: list[Place] = []
        self._fill(context, None, (KIND,), values, unknown)
        kind = values.get(KIND)
        if kind is None:
            return None
        self._fill(context, kind, self._places[request.route, kind], values, unknown)
        return LearntValues(values, tuple(unknown))

    def _fill(self, context: SourceContext, kind: Value, places: Sequence[Place], values: dict[Place, Value],
              unknown: list[Place]) -> None:
        route, case = context.request.route, context.case if kind is not None else context.kind_case
        if (route, kind, case) not in self._plans:
            self._plans[route, kind, case] = [(place, self._learnt(SourceKey(route, kind, place, case))) for place in places]
        for place, sources in self._plans[route, kind, case]:
            values[place] = None
            is_reliable = False
            for trust, source in sources:
                value = context.value(source, place, kind)
                if value != ABSENT:
                    values[place] = value
                    is_reliable = trust >= self._least_trust
                    break
            if not is_reliable:
                unknown.append(place)

    def _learnt(self, key: SourceKey) -> Sequence[LearntSource]:
        if key in self._sources:
            return self._sources[key]
        return self._sources.get(key._replace(case=None), ())
