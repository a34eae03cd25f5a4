"""A request and its session's visits in, the values of the answer's places out, by the sources that each place learnt.

What was learnt is a list of sources for each place, the best first, and for each form posted just before a list of its own
where that case was recorded. The first source that has a value gives it. Recorded visits count before an instant alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from .sources import ABSENT, SiteSource, SourceContext
from .visits import KIND, Place, SiteVisit, Value

__all__ = ["LearntSources", "SourceKey", "VisitIndex"]


class SourceKey(NamedTuple):
    """What sources are learnt for: a place of a route's answers of one kind, in all cases or after one form."""

    route: str
    kind: Value
    """None for the place of the kind itself."""
    place: Place
    case: str | None = None
    """A case (`SourceContext.case`); None: all cases."""


class VisitIndex:
    """Recorded visits by url and by user, in order of time."""

    def __init__(self, visits: Iterable[SiteVisit]) -> None:
        """Take visits of whole sessions."""
        self._by_url: dict[tuple[str, bool], list[SiteVisit]] = defaultdict(list)
        self._of_user: dict[tuple[str, Place], list[SiteVisit]] = defaultdict(list)
        for visit in sorted(visits, key=lambda each: each.at):
            self._by_url[visit.url, visit.is_write].append(visit)
            for place in visit.values if visit.is_page else ():
                self._of_user[visit.user, place].append(visit)

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

        return SourceContext(request, own, before(self._by_url.get((request.url, request.is_write), ())), last_page)


class LearntSources:
    """Answers requests by the sources that places learnt."""

    def __init__(self, places: Mapping[tuple[str, str], Sequence[Place]], sources: Mapping[SourceKey, Sequence[SiteSource]],
                 visits: Iterable[SiteVisit]) -> None:
        """Take the places of each route's answers by kind, the sources of each place, and the recorded visits."""
        self._places = places
        self._sources = sources
        self._index = VisitIndex(visits)
        self._plans: dict[tuple[str, Value, str], list[tuple[Place, Sequence[SiteSource]]]] = {}

    def answer(self, request: SiteVisit, own: Sequence[SiteVisit], until: datetime | None = None) -> dict[Place, Value] | None:
        """Return places and values for a request, given its session's visits so far; None for a route never requested."""
        context = self._index.context(request, own, until or request.at)
        values = self._values(context, None, (KIND,))
        kind = values.get(KIND)
        if kind is None:
            return None
        return values | self._values(context, kind, self._places[request.route, kind])

    def _values(self, context: SourceContext, kind: Value, places: Sequence[Place]) -> dict[Place, Value]:
        route, case = context.request.route, context.case
        if (route, kind, case) not in self._plans:
            self._plans[route, kind, case] = [(place, self._learnt(SourceKey(route, kind, place, case))) for place in places]
        values: dict[Place, Value] = {}
        for place, sources in self._plans[route, kind, case]:
            values[place] = None
            for source in sources:
                value = context.value(source, place, kind)
                if value != ABSENT:
                    values[place] = value
                    break
        return values

    def _learnt(self, key: SourceKey) -> Sequence[SiteSource]:
        if key in self._sources:
            return self._sources[key]
        return self._sources.get(key._replace(case=None), ())
