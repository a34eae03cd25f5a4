"""A request and its session's visits in, the values of the answer's places out, by the sources that each place learnt.

What was learnt is a list of sources for each place, the best first, and for each case (what was posted just before) a list of
its own where that case was recorded. The first source that has a value gives it. It is marked as unknown where the source was
right too rarely in sessions that it was not learnt of. Recorded visits count before an instant alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeAlias

from .aged import instants_told
from .ages import AgeFormat
from .evidence import SiteEvidence
from .sources import ABSENT, SiteSource, SourceContext, linked_rows, row_keys, rows_to
from .times import SiteTimes
from .visits import AS, KIND, Place, SiteVisit, Value, given_fields, greatest_numbers, path_of, words_of

__all__ = ["FieldKinds", "LearntSource", "LearntSources", "LearntValues", "SourceKey", "VisitIndex"]


class SourceKey(NamedTuple):
    """What sources are learnt for: a place of a route's answers of one kind, in all cases or after one form."""

    route: str
    kind: Value
    """None for the place of the kind itself."""
    place: Place
    case: str | None = None
    """A case (`SourceContext.case`); None: all cases."""


_ALIKE = frozenset({"argument", "constant", "message", "own page", "page of the same user", "pattern"})
"""Sources of pages of one path whatever the query: what all have, what frames them, and what the request itself says."""
FieldKinds: TypeAlias = Mapping[str, Sequence[str] | None]
"""Kind of a form's field, or with how it was filled in -> the kinds of answers that forms got without it; None: few gave it."""
_NO_TIMES = SiteTimes()
_N_MET = 30
"""Visits that are kept of those that hold a word: more than one session has."""


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


_instant_of = attrgetter("at")
_number_of = itemgetter(0)


class VisitIndex:
    """Recorded visits by url and by user, in order of time."""

    def __init__(self, visits: Iterable[SiteVisit], ages: AgeFormat | None = None, times: SiteTimes = _NO_TIMES,
                 evidence: SiteEvidence | None = None) -> None:
        """Take visits of whole sessions, how the site writes ages and instants, and what other logs tell."""
        self._ages, self._times, self._evidence = ages, times, evidence or None
        self.by_url: dict[tuple[str, bool], list[SiteVisit]] = defaultdict(list)
        self.of_user: dict[tuple[str, Place], list[SiteVisit]] = defaultdict(list)
        self.writes: list[SiteVisit] = []
        self.of_path: dict[str, list[SiteVisit]] = defaultdict(list)
        self.words: dict[str, list[SiteVisit]] = {}
        self.linking: dict[str, dict[str, list[SiteVisit]]] = {}
        """Pages by the path that a row of them links to, then by the list."""
        self._of_kind: dict[tuple[str, Value], list[SiteVisit]] = defaultdict(list)
        self._with_value: dict[tuple[str, Value, Place], Mapping[Value, Sequence[SiteVisit]]] = {}
        for visit in sorted(visits, key=_instant_of):
            self._add_words(visit)
            self._add_rows(visit)
            self._of_kind[visit.route, visit.kind].append(visit)
            self.by_url[visit.url, visit.is_write].append(visit)
            if visit.is_write:
                self.writes.append(visit)
            if visit.is_page:
                self.of_path[path_of(visit.url)].append(visit)
            for place in visit.values if visit.is_page else ():
                self.of_user[visit.user, place].append(visit)

    def _add_words(self, visit: SiteVisit) -> None:
        """Keep the first visits that hold a word, of two sessions if there are."""
        for value in (visit.url, *visit.values.values()):
            for word in words_of(value or ""):
                met = self.words.setdefault(word, [])
                if len(met) < _N_MET and (not met or met[-1] is not visit):
                    met.append(visit)

    def _add_rows(self, visit: SiteVisit) -> None:
        for place, value in visit.values.items():
            for path in linked_rows(value, path_of(visit.url)) if value and value[0] == "[" else ():
                self.linking.setdefault(path, {}).setdefault(f"{visit.route} {place}", []).append(visit)

    @cached_property
    def _numbers(self) -> dict[tuple[str, str | None], list[tuple[int, SiteVisit]]]:
        """Greatest numbers behind words, of all visits and of those of a path, the greatest first."""
        numbers: dict[tuple[str, str | None], list[tuple[int, SiteVisit]]] = defaultdict(list)
        for visit in (visit for visits in self.by_url.values() for visit in visits):
            greatest: Counter[str] = Counter()
            for value in visit.values.values():
                for word, number in greatest_numbers(value).items() if value else ():
                    greatest[word] = max(greatest[word], number)
            path = path_of(visit.url)
            for word, number in greatest.items():
                numbers[word, None].append((number, visit))
                numbers[word, path].append((number, visit))
        for each in numbers.values():
            each.sort(key=_number_of, reverse=True)
        return numbers

    @cached_property
    def instants(self) -> dict[str, list[tuple[datetime, SiteVisit]]]:
        """When something happened to what a path names, and the visits that tell."""
        instants: dict[str, list[tuple[datetime, SiteVisit]]] = defaultdict(list)
        for visit in (visit for visits in self.by_url.values() for visit in visits):
            for path, at in instants_told(visit, self._times):
                instants[path].append((at, visit))
        return instants

    @cached_property
    def changing(self) -> frozenset[tuple[str, Place]]:
        """Return the places of routes that were something else when an address was looked at again."""
        return frozenset((visit.route, place) for visits in self.by_url.values() for look, visit in pairwise(visits)
                         if look.kind == visit.kind for place, value in visit.values.items()
                         if look.values.get(place, value) != value)

    def numbers(self, word: str, path: str | None) -> Sequence[tuple[int, SiteVisit]]:
        """Return the greatest number behind a word in each visit, of a path alone if one is given, the greatest first."""
        return self._numbers.get((word, path), ())

    def context(self, request: SiteVisit, own: Sequence[SiteVisit], until: datetime,
                without: frozenset[int] = frozenset()) -> SourceContext:
        """Return what the sources of a request may see; `without`: ids of visits that do not count, those of its session."""
        others = _IndexBefore(self, request, until, without)
        visits = self.by_url.get((request.url, request.is_write), ())
        before = [*others.before(visits)][::-1] if without else visits[:bisect_left(visits, until, key=_instant_of)]
        evidence = (self._evidence, min(until, own[0].at if own else until)) if self._evidence is not None else None
        return SourceContext(request, own, before, others, self._ages, self._times, evidence)

    def kinds(self, route: str, until: datetime) -> Counter[str]:
        """Return how often a route was answered with each kind before an instant."""
        visits = (visits for (name, kind), visits in self._of_kind.items() if name == route and kind)
        return Counter({each[0].kind or "": n for each in visits if (n := bisect_left(each, until, key=_instant_of))})

    def with_value(self, route: str, kind: Value, place: Place) -> Mapping[Value, Sequence[SiteVisit]]:
        """Return the answers of a route and kind by what a place has, in order of time."""
        key = route, kind, place
        if key not in self._with_value:
            visits: dict[Value, list[SiteVisit]] = defaultdict(list)
            for visit in self._of_kind.get((route, kind), ()):
                if place in visit.values:
                    visits[visit.values[place]].append(visit)
            self._with_value[key] = visits
        return self._with_value[key]


class _IndexBefore:
    """Visits of an index before an instant, without those of one session."""

    def __init__(self, index: VisitIndex, request: SiteVisit, until: datetime, without: frozenset[int]) -> None:
        self._index = index
        self._request = request
        self._until = until
        self._without = without

    def before(self, visits: Sequence[SiteVisit]) -> Iterator[SiteVisit]:
        """Yield the visits that count, the last first."""
        for index in range(bisect_left(visits, self._until, key=_instant_of) - 1, -1, -1):
            if id(visits[index]) not in self._without:
                yield visits[index]

    def last_page(self, place: Place) -> SiteVisit | None:
        return next(self.before(self._index.of_user.get((self._request.user, place), ())), None)

    def is_known(self, word: str) -> bool:
        return next(self.before(self._index.words.get(word, ())), None) is not None

    def rows(self, url: str) -> dict[str, Mapping[str, str]]:
        linked: dict[str, Mapping[str, str]] = {}
        for key in reversed(row_keys(url)):
            for place, visits in self._index.linking.get(key, {}).items():
                if (last := next(self.before(visits), None)) is not None:
                    linked |= {name: texts for name, texts in rows_to(last, url).items() if name == place}
        return linked

    def greatest(self, word: str, path: str | None) -> int:
        return next((number for number, visit in self._index.numbers(word, path)
                     if self._counts(visit)), 0)

    def instants(self, path: str) -> list[datetime]:
        return [at for at, visit in self._index.instants.get(path, ()) if self._counts(visit)]

    def writes_since(self, at: datetime) -> Iterator[SiteVisit]:
        writes = self._index.writes
        yield from filter(self._counts, writes[bisect_right(writes, at, key=_instant_of):
                                              bisect_left(writes, self._until, key=_instant_of)])

    def pages_of(self, path: str) -> Iterator[SiteVisit]:
        yield from self.before(self._index.of_path.get(path, ()))

    def is_changing(self, route: str, place: Place) -> bool:
        return (route, place) in self._index.changing

    def row_looks(self, path: str, name: str) -> Iterator[SiteVisit]:
        yield from self.before(self._index.linking.get(path, {}).get(name, ()))

    def _counts(self, visit: SiteVisit) -> bool:
        return visit.at < self._until and id(visit) not in self._without

    def last_with(self, route: str, kind: Value, partner: Place, value: Value, place: Place) -> SiteVisit | None:
        visits = self._index.with_value(route, kind, partner).get(value, ())
        return next((visit for visit in self.before(visits) if place in visit.values), None)


class LearntSources:
    """Answers requests by the sources that places learnt."""

    def __init__(self, places: Mapping[tuple[str, str], Sequence[Place]], sources: Mapping[SourceKey, Sequence[LearntSource]],
                 visits: Iterable[SiteVisit], choices: Mapping[str, Sequence[str]], least_trust: float = 0.0,
                 fields: Mapping[str, FieldKinds] | None = None, ages: AgeFormat | None = None,
                 times: SiteTimes = _NO_TIMES, evidence: SiteEvidence | None = None) -> None:
        """Take the places of each route's answers by kind, the sources of each place, the recorded visits, the fields that are
        choices by the route that they are posted to, the trust below which a place is unknown, what is known of all fields
        by the route that they are posted to, how ages and instants are written, and what other logs tell."""
        self._fields = fields or {}
        self._places = places
        self._sources = sources
        self._choices = choices
        self._least_trust = least_trust
        self._index = VisitIndex(visits, ages, times, evidence)
        self._plans: dict[tuple[str, Value, tuple[str, ...]], list[tuple[Place, Sequence[LearntSource]]]] = {}

    def page_kinds(self, route: str, until: datetime) -> list[str]:
        """Return the kinds of pages that a route answered with before an instant, the most frequent first."""
        return [kind for kind, _ in self._index.kinds(route, until).most_common() if kind.endswith(" page")]

    @cached_property
    def routes(self) -> Mapping[str, frozenset[str]]:
        """Return the kinds of answers of each route that was requested."""
        kinds: dict[str, set[str]] = defaultdict(set)
        for route, kind in self._places:
            kinds[route].add(kind)
        return {route: frozenset(each) for route, each in kinds.items()}

    def answer(self, request: SiteVisit, own: Sequence[SiteVisit], until: datetime | None = None,
               kind: Value = None, *, is_like: bool = False) -> LearntValues | None:
        """Return places and values for a request, given its session's visits so far; None for a route never requested.

        `kind`: the answer's, where it is known by other means. `is_like`: the request is of another route, and its page
        is like this one's; what the latter had at some time is unknown then."""
        context = self._index.context(request, own, until or request.at)
        if is_like:
            context.trusted = _ALIKE
        values: dict[Place, Value] = {} if kind is None else {KIND: kind}
        unknown: list[Place] = []
        if kind is None:
            self._fill(context, None, (KIND,), values, unknown)
            kind = values.get(KIND)
            if KIND not in unknown and kind is not None and self._may_be_refused(request, kind):
                unknown.append(KIND)
        if kind is None:
            return None
        self._fill(context, kind, self._places[request.route, kind], values, unknown)
        if is_like:
            unknown = [KIND, *(place for place in unknown if place != KIND)]
        return LearntValues(values, tuple(unknown))

    def _may_be_refused(self, request: SiteVisit, kind: str) -> bool:
        """Return whether a form leaves out what all forms gave that got such an answer, or sends what none did."""
        fields = self._fields.get(request.route) if request.is_write else None
        if fields is None:
            return False
        given = given_fields(request.arguments)
        return any(AS not in name and name not in fields for name in given) or any(
            kinds is not None and kind not in kinds for name, kinds in fields.items() if name not in given)

    def _fill(self, context: SourceContext, kind: Value, places: Sequence[Place], values: dict[Place, Value],
              unknown: list[Place]) -> None:
        route, cases = context.request.route, context.cases(places[0] if places else KIND, self._choices)
        if (route, kind, cases) not in self._plans:
            self._plans[route, kind, cases] = [(place, self._learnt(SourceKey(route, kind, place), cases)) for place in places]
        for place, sources in self._plans[route, kind, cases]:
            values[place] = None
            is_reliable = False
            for trust, source in sources:
                value = context.value(source, place, kind)
                if value != ABSENT and (place != KIND or value in self.routes[route]):
                    values[place] = value
                    is_reliable = trust >= self._least_trust and not context.is_stale(source, place, value) and (
                        not context.trusted or source[0] in context.trusted)
                    break
            if is_reliable:
                context.given[place] = values[place]
            else:
                unknown.append(place)

    def _learnt(self, key: SourceKey, cases: Sequence[str]) -> Sequence[LearntSource]:
        keys = (key._replace(case=case) for case in cases)
        return next((self._sources[each] for each in keys if each in self._sources), self._sources.get(key, ()))
