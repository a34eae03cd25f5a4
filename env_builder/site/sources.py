"""Visits of a site in, a model out that answers a request: status, where it leads, what stands in each place of its page.

Every route's answers are of kinds (a page, a redirect, a download; of one status); a kind's answer maps places to values. Each
place learns by counting which source gives its value: one value for all, the own session's last look at the route or the same
url, the last look at the url by the same user or by anybody, the same place of another page of the session or the user, or a
text with values of the request in it (path, query, form, the form posted just before, its day, the url of the page before).
What was posted just before makes a case of its own. A value does not vouch for itself.
Sees: looks before the request's instant; constants and texts of all visits that it learns from. Does not see: facts behind
rows, sums, counters; optional children and rows are one value each, repeated as they were.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import product

from env_builder.runtime.site.trees import decode, encode
from env_builder.site.filling import Place, Value

KIND: Place = ("kind",)
"""The place of an answer's kind."""
_MARK = "\x00"
_LONGEST = 40
"""A value of more characters is no word that another text repeats."""
_SHORTEST = 2
"""A value of fewer characters stands in too many texts to say that it came from the request."""


@dataclass(frozen=True)
class SiteVisit:
    """A request of a session with its answer as places and values."""

    session: str
    user: str
    at: datetime
    route: Hashable
    url: str
    is_write: bool
    is_page: bool
    """Whether a page came back; of a request whose answer is to be predicted, False."""
    arguments: Mapping[str, str]
    """Values of the request by name: of path, query and form."""
    values: Mapping[Place, Value]
    """Places to values; `KIND` is one of them. Empty for a request whose answer is to be predicted."""

    @property
    def kind(self) -> Value:
        """Return the answer's kind."""
        return self.values[KIND]


@dataclass(frozen=True, eq=False)
class _VisitContext:
    """What a source may see."""

    request: SiteVisit
    own: Sequence[SiteVisit]
    before: Sequence[SiteVisit]
    """Visits of the same url by other sessions before the instant, in order."""

    @cached_property
    def arguments(self) -> dict[str, str]:
        """Return what a text may be made of: the request's values and those of the form posted just before, its day in words
        and numbers, the url of the page before, the user, and short texts of the last look."""
        pages = [visit for visit in reversed(self.own) if visit.is_page]
        posted = self.posted.arguments if self.posted is not None else {}
        look = next((visit.values for visit in pages if visit.url == self.request.url), {})
        return {**{f"look {place}": text for place, text in look.items()
                   if place != KIND and text and len(text) <= _LONGEST and text[0] != "["},
                **{f"posted {name}": text for name, text in posted.items()}, "user": self.request.user,
                **self.request.arguments, **_days(self.request.at), **({"page before": pages[0].url} if pages else {})}

    @cached_property
    def _named(self) -> tuple[re.Pattern[str] | None, dict[str, str]]:
        names = {text: name for name, text in reversed(self.arguments.items()) if len(text) >= _SHORTEST}
        alternatives = "|".join(re.escape(text) for text in sorted(names, key=lambda text: (-len(text), text)))
        return (re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)") if names else None), names

    def abstracted(self, value: Value) -> Value:
        """Return a text with the arguments in it replaced by their names, the longest first."""
        pattern, names = self._named
        if not isinstance(value, str) or pattern is None:
            return value
        return pattern.sub(lambda match: f"{_MARK}{names[match[0]]}{_MARK}", value)

    @cached_property
    def posted(self) -> SiteVisit | None:
        """Return what was posted since the session's last page."""
        last = next((visit for visit in reversed(self.own) if visit.is_write or visit.is_page), None)
        return last if last is not None and last.is_write else None

    def keys(self, place: Place, kind: Value) -> tuple[Hashable, Hashable]:
        """Return what counts are kept for: the place after what was posted since the last page, and the place in all cases."""
        posted = self.posted.route if self.posted is not None else None
        return (self.request.route, kind, place, posted), (self.request.route, kind, place)


class SiteModel:
    """Answers requests of a site by the sources that its places learnt."""

    def __init__(self, visits: Iterable[SiteVisit]) -> None:
        """Learn from visits of whole sessions."""
        self._by_url: dict[tuple[str, bool], list[SiteVisit]] = defaultdict(list)
        self._by_user: dict[tuple[str, Place], list[SiteVisit]] = defaultdict(list)
        self._places: dict[Hashable, tuple[Place, ...]] = {}
        self._texts: dict[Hashable, Counter[Value]] = defaultdict(Counter)
        self._patterns: dict[Hashable, Counter[Value]] = defaultdict(Counter)
        self._tried: dict[Hashable, Counter[str]] = defaultdict(Counter)
        self._right: dict[Hashable, Counter[str]] = defaultdict(Counter)
        self._added: dict[Hashable, Counter[tuple[str, int, Value]]] = defaultdict(Counter)
        ordered = sorted(visits, key=lambda visit: (visit.at, visit.session))
        contexts = self._contexts(ordered)
        for context in contexts:
            self._count_texts(context)
        for context in contexts:
            self._count_sources(context)

    def answer(self, request: SiteVisit, own: Sequence[SiteVisit]) -> dict[Place, Value] | None:
        """Return places and values for a request, given its session's visits so far; None for a route never requested."""
        before = [visit for visit in self._by_url.get((request.url, request.is_write), ()) if visit.at < request.at]
        context = _VisitContext(request, own, before)
        kind = self._predict(context, KIND, None)
        if kind is None:
            return None
        return {KIND: kind} | {place: self._predict(context, place, kind) for place in self._places[request.route, kind]}

    def _contexts(self, visits: Sequence[SiteVisit]) -> list[_VisitContext]:
        own: dict[str, list[SiteVisit]] = defaultdict(list)
        contexts = []
        for visit in visits:
            same_url = self._by_url[visit.url, visit.is_write]
            before = [each for each in same_url if each.session != visit.session]
            contexts.append(_VisitContext(visit, list(own[visit.session]), before))
            own[visit.session].append(visit)
            same_url.append(visit)
            for place in visit.values if visit.is_page else ():
                self._by_user[visit.user, place].append(visit)
        return contexts

    def _count_texts(self, context: _VisitContext) -> None:
        visit = context.request
        self._places[visit.route, visit.kind] = tuple(place for place in visit.values if place != KIND)
        for place, value in visit.values.items():
            for key in context.keys(place, None if place == KIND else visit.kind):
                self._texts[key][value] += 1
                self._patterns[key][context.abstracted(value)] += 1
                self._added[key].update(_added_rows(self._last_look(context, place), value, context))

    def _count_sources(self, context: _VisitContext) -> None:
        visit = context.request
        for place, value in visit.values.items():
            kind = None if place == KIND else visit.kind
            for key in context.keys(place, kind):
                for name, candidate in self._candidates(context, place, kind, key, (value,)):
                    self._tried[key][name] += 1
                    self._right[key][name] += candidate == value

    def _predict(self, context: _VisitContext, place: Place, kind: Value) -> Value:
        key = next((key for key in context.keys(place, kind) if key in self._tried), None)
        if key is None:
            key = next((key for key in context.keys(place, kind) if key in self._texts), None)
        candidates = dict(self._candidates(context, place, kind, key, ())) if key is not None else {}
        tried, right = self._tried[key], self._right[key]
        best = max(candidates, key=lambda name: (right[name] + 1) / (tried[name] + 2), default=None)
        return candidates[best] if best is not None else None

    def _candidates(self, context: _VisitContext, place: Place, kind: Value, key: Hashable,
                    without: Sequence[Value]) -> Iterator[tuple[str, Value]]:
        """Yield each source that has a value; `without`: the value that is judged and must not vouch for itself."""
        request = context.request
        patterns = self._patterns[key] - Counter(context.abstracted(value) for value in without)
        if patterns:   # before a constant: that a text holds a value of its request is rarely chance
            yield "pattern", _written(patterns.most_common(1)[0][0], context.arguments)
        texts = self._texts[key] - Counter(without)
        if texts:
            yield "constant", texts.most_common(1)[0][0]
        looks = {"own route": [visit for visit in context.own if visit.route == request.route],
                 "own url": [visit for visit in context.own if (visit.url, visit.is_write) == (request.url, request.is_write)],
                 "same user": [visit for visit in context.before if visit.user == request.user], "anybody": context.before}
        for name, visits in looks.items():
            last = next((visit for visit in reversed(visits) if kind in (None, visit.kind) and place in visit.values), None)
            if last is not None:
                yield name, last.values[place]
        if place != KIND:
            yield from self._of_frame(context, place)
        look = self._last_look(context, place)
        added = self._added[key] - Counter(_added_rows(look, without[0], context) if without else ())
        if added and look is not None:
            (side, at, row), _ = max(added.items(), key=lambda item: (item[1], item[0][0], -item[0][1]))
            yield "row added", _with_row(look, side, at, _written(row, context.arguments))

    @staticmethod
    def _last_look(context: _VisitContext, place: Place) -> Value:
        """Return what a place of the url was when it was last looked at, by the own session or anybody."""
        visits = (*context.before, *(visit for visit in context.own if visit.url == context.request.url and visit.is_page))
        return next((visit.values[place] for visit in reversed(visits) if place in visit.values), None)

    def _of_frame(self, context: _VisitContext, place: Place) -> Iterator[tuple[str, Value]]:
        """Yield what stood at the same place of other pages, as what frames all pages of a site does: whose session it is."""
        last = next((visit for visit in reversed(context.own) if visit.is_page and place in visit.values), None)
        if last is not None:
            yield "own page", last.values[place]
        user = self._by_user.get((context.request.user, place))
        last = next((visit for visit in reversed(user or ()) if visit.at < context.request.at
                     and visit.session != context.request.session), None)
        if last is not None:
            yield "page of the same user", last.values[place]


def _added_rows(before: Value, value: Value, context: _VisitContext) -> list[tuple[str, int, Value]]:
    """Return the one row that a list has more than at the last look, as (side, its place from there, pattern); none else."""
    old, new = _rows_of(before), _rows_of(value)
    if old is None or new is None or len(new) != len(old) + 1:
        return []
    at = next((index for index, row in enumerate(old) if new[index] != row), len(old))
    if new[at + 1:] != old[at:]:
        return []
    pattern = context.abstracted(json.dumps(new[at], ensure_ascii=False))
    return [("start", at, pattern), ("end", len(old) - at, pattern)]


def _with_row(look: Value, side: str, at: int, row: Value) -> Value:
    rows = _rows_of(look) or []
    position = min(at, len(rows)) if side == "start" else max(len(rows) - at, 0)
    return encode([*decode(look or "[]")[:position], *decode(f"[{row}]"), *decode(look or "[]")[position:]])


def _rows_of(value: Value) -> list[object] | None:
    if not value or value[0] != "[":
        return None
    try:
        rows = json.loads(value)
    except ValueError:
        return None
    return rows if isinstance(rows, list) else None


_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")


def _days(at: datetime) -> dict[str, str]:
    """Return the day of an instant (UTC) as pages in English and in numbers write it, by the way of writing."""
    day, year = at.day, at.year
    ordinal = "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    days = {"th": f"{day}{ordinal}", "d": f"{day}", "dd": f"{day:02}"}
    months = {"month": _MONTHS[at.month - 1], "mon": _MONTHS[at.month - 1][:3]}
    written = {"iso": f"{year}-{at.month:02}-{day:02}", "dd/mm": f"{day:02}/{at.month:02}/{year}",
               "mm/dd": f"{at.month:02}/{day:02}/{year}", "dd.mm": f"{day:02}.{at.month:02}.{year}"}
    for (name, text), (month_name, month) in product(days.items(), months.items()):
        written |= {f"{name} {month_name}": f"{text} {month} {year}", f"{month_name} {name}": f"{month} {text}, {year}"}
    return {f"day {name}": text for name, text in written.items()}


def _written(pattern: Value, arguments: Mapping[str, str]) -> Value:
    """Return a pattern's text for a request; a name that the request lacks is empty. In nodes, texts are written as JSON."""
    if not isinstance(pattern, str):
        return pattern
    is_json = pattern[:1] == "["

    def text(match: re.Match[str]) -> str:
        value = arguments.get(match[1], "")
        return json.dumps(value, ensure_ascii=False)[1:-1] if is_json else value

    return re.sub(f"{_MARK}([^{_MARK}]*){_MARK}", text, pattern)
