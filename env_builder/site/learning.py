"""Recorded answers of a site in, the files out of which the runtime answers: routes, templates, sources, visits.

A template is learnt for each route and status. Each of its places learns by counting which source gives its value
(`env_builder.runtime.site.sources`), in all cases and in each case: what was posted just before, with which choices. A session
vouches neither for its own values nor for texts that it alone holds. Values count as equal where they differ in volatile parts
alone; of sources that are right as often, the one that is right to the letter more often goes first. How far each source can
be relied on is written with it, and the trust below which a place is unknown.
Sees: whole sessions. Does not see: an order of requests that were made at once; pages that fit no template of their route.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from env_builder.runtime.site.evidence import SiteEvidence
from env_builder.runtime.site.learnt import LearntSource, LearntSources, SourceKey, VisitIndex
from env_builder.runtime.site.port import PortAnswer, PortRequest
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.sources import ABSENT, LOOKS, MARK, SiteSource, SourceContext, links_of, texts_of_row
from env_builder.runtime.site.templates import PageTemplate
from env_builder.runtime.site.trees import Element, decode
from env_builder.runtime.site.visits import (
    CHANGED,
    GIVEN,
    KIND,
    Place,
    SiteVisit,
    Value,
    arguments_of,
    chosen,
    field_kind,
    given_fields,
    local_url,
    rows_of,
)
from env_builder.site.acting import act_laws, posted_fields
from env_builder.site.ageing import site_ages
from env_builder.site.echoes import open_echoes, repeated_values
from env_builder.site.filling import Filling, extract, plain_template
from env_builder.site.likeness import like_places
from env_builder.site.messages import MessageBox, after_forms, box_value, boxes_by_kind, open_boxes
from env_builder.site.selecting import SelectedRequest, page_marks, selecting_names
from env_builder.site.shapes import ElementShape, learn_template, texts_of
from env_builder.site.timing import learn_times
from env_builder.site.volatile import mask_volatile
from env_builder.site.witnessing import kept_columns

_NAMES = ("message", "pattern", "argument", "constant", *LOOKS, "own page", "page of the same user", "page of the path",
          "page before acts", "row added", "rows acted", "rows renewed", "count")
"""Sources, of equals the first: that a text holds a value of its request is rarely chance."""
_WRONG = .002
"""Share of all places of pages that may be wrong and not marked as unknown."""
_RIGHT = 0.97
"""A place that is right more often needs no second place."""
_RENEWED = 0.7
"""Share of a row's changed texts that its own page must have for the list to go by that page."""
_N_TRIED, _N_PARTNERS, _LEAST_RIGHT = 40, 2, 3
"""Places that are tried, those that a place may go by, and how often such a one has to have been right."""
_N_CHOICES, _CHOSEN, _N_FIELDS = 12, 0.7, 3
"""Values that a choice has at most, which share of them several sessions posted, and how many fields of a form count."""
_LEAST_POSTS, _LEAST_SESSIONS = 5, 2
"""Forms of a route, and sessions that posted them, that say which fields are always given."""
_WHOLE = frozenset({"path", "query", "url"})
"""Values of a request that all pages of one address share."""
_Trial: TypeAlias = dict[str, tuple[bool, bool]]
"""Sources that had a value for a place: whether it was right, and right to the letter."""


@dataclass(frozen=True)
class RecordedAnswer:
    """A request of a session with what the site answered."""

    session: str
    user: str
    at: datetime
    request: PortRequest
    answer: PortAnswer
    """Its page as parsed, its spaces as `env_builder.site.parsing.collapse` leaves them."""


class SiteLearner:
    """Routes, templates and visits of recorded answers."""

    def __init__(self, answers: Sequence[RecordedAnswer], templates: Mapping[str, str]) -> None:
        """Take answers of whole sessions, and a template for each path that was requested (`extractors.routes.templates`)."""
        self.paths = dict(templates) | selecting_names(dict(templates), _selected(answers))
        self.routes = SiteRoutes(self.paths)
        self.pages: dict[tuple[str, int], list[Element]] = defaultdict(list)
        requests: dict[tuple[str, int], list[PortRequest]] = defaultdict(list)
        for each in answers:
            if each.answer.page is not None:
                key = self.route(each.request), each.answer.status
                self.pages[key].append(each.answer.page)
                requests[key].append(each.request)
        self.templates: dict[tuple[str, int], ElementShape] = {key: learn_template(pages) for key, pages in self.pages.items()}
        for key, template in self.templates.items():
            self._open(template, requests[key])
        ordered: dict[str, list[RecordedAnswer]] = defaultdict(list)
        for each in sorted(answers, key=lambda each: (each.at, each.session)):
            ordered[each.session].append(each)
        self.boxes = open_boxes(self.templates, self._pages_after_forms(ordered.values()))
        self.sessions = {name: [self.visit(each) for each in session] for name, session in ordered.items()}

    def _pages_after_forms(self, sessions: Iterable[Sequence[RecordedAnswer]]) -> Iterator[
            tuple[tuple[str, int], Element, bool]]:
        sessions = list(sessions)
        marks = after_forms([(each.request.method == "POST", each.answer.page is not None) for each in session]
                            for session in sessions)
        for session, own in zip(sessions, marks, strict=True):
            for each, is_after in zip(session, own, strict=True):
                if each.answer.page is not None:
                    yield (self.route(each.request), each.answer.status), each.answer.page, is_after

    def route(self, request: PortRequest) -> str:
        """Return the name of a request's route, or an empty text without one."""
        return str(self.routes.route(request.method, request.url) or "")

    def _open(self, template: ElementShape, requests: Sequence[PortRequest]) -> None:
        """Make places of what repeats values that all requests of a template's pages have in common."""
        arguments = []
        for request in requests:
            route = self.routes.route(request.method, request.url)
            parameters = self.routes.parameters(route, request.url) if route is not None else {}
            arguments.append({**parameters, **arguments_of(request._replace(form=None), {})})
        names = {name for each in arguments for name in each if name not in _WHOLE}
        open_echoes(template, repeated_values(arguments, sorted(names)))

    def visit(self, recorded: RecordedAnswer) -> SiteVisit:
        """Return a recorded answer as places and values."""
        request, answer = recorded.request, recorded.answer
        route = self.routes.route(request.method, request.url)
        parameters = self.routes.parameters(route, request.url) if route is not None else {}
        return SiteVisit(recorded.user, recorded.at, str(route or ""), local_url(request.url), request.method == "POST",
                         answer.page is not None, arguments_of(request, parameters), self._values(str(route or ""), answer))

    def is_whole(self, visit: SiteVisit) -> bool:
        """Return whether the visit's values give its answer again: a page that fits no template has its kind alone."""
        template = self.templates.get((visit.route, int((visit.kind or "0").partition(" ")[0])))
        return bool(visit.values) and (len(visit.values) > 1 or not visit.is_page or (
            template is not None and not PageTemplate(plain_template(template)).places))

    def _values(self, route: str, answer: PortAnswer) -> Filling:
        what = "redirect" if answer.location else "page" if answer.page is not None else "download"
        values: Filling = {KIND: f"{answer.status} {what}"}
        if answer.location:
            values["location"] = answer.location
        elif answer.page is not None:
            template = self.templates.get((route, answer.status))
            values |= (extract(template, answer.page) or {}) if template is not None else {}
        else:
            values |= {"type": answer.file.type if answer.file else "", "file": answer.file.name if answer.file else ""}
        return values


def _selected(answers: Sequence[RecordedAnswer]) -> Iterator[SelectedRequest]:
    for each in answers:
        if each.request.method == "POST":
            yield SelectedRequest("POST", each.request.url, frozenset(name for name, _ in each.request.form or ()))
        elif "?" in each.request.url and each.answer.page is not None and each.answer.status == HTTPStatus.OK:
            yield SelectedRequest(each.request.method, each.request.url, page_marks(each.answer.page))


class SourceLearner:
    """Counts which source gives each place its value."""

    def __init__(self, sessions: Iterable[Sequence[SiteVisit]], n_places: int = 0,
                 evidence: SiteEvidence | None = None,
                 boxes: Mapping[tuple[str, Value], MessageBox] | None = None) -> None:
        """Learn from visits of whole sessions, in order; their pages have this number of places and constants.

        `evidence`: what other logs tell. `boxes`: where pages say what a form did, by route and kind."""
        self._n_places, self.evidence, self._boxes = n_places, evidence, boxes or {}
        self._messages: dict[str, _Votes] = defaultdict(_Votes)
        self._messages_without: dict[int | None, SiteSource] = {}
        self.places: dict[tuple[str, str], tuple[Place, ...]] = {}
        self.visits: list[SiteVisit] = []
        self._texts: dict[SourceKey, _Votes] = defaultdict(_Votes)
        self._patterns: dict[SourceKey, _Votes] = defaultdict(_Votes)
        self._names: dict[SourceKey, _Votes] = defaultdict(_Votes)
        self._rows: dict[SourceKey, _Votes] = defaultdict(_Votes)
        self._cells: dict[SourceKey, Counter[tuple[str, Place]]] = defaultdict(Counter)
        self._changed: dict[SourceKey, Counter[str]] = defaultdict(Counter)
        self._counts: dict[SourceKey, _Votes] = defaultdict(_Votes)
        self._counted = {"pattern": self._patterns, "argument": self._names, "constant": self._texts, "row added": self._rows,
                         "count": self._counts}
        self._trials: dict[SourceKey, list[_Trial]] = defaultdict(list)
        self._wider: dict[SourceKey, SourceKey] = {}
        """The case that holds a case."""
        self._contexts_of: dict[SourceKey, list[SourceContext]] = defaultdict(list)
        self._partners: dict[SourceKey, list[Place]] = {}
        recorded = [list(session) for session in sessions]
        self.choices, self.fields = choices_of(recorded), fields_of(recorded)
        contexts = self._contexts(recorded)
        self._alike = like_places((visit, context) for _, visit, context in contexts if visit.is_page)
        self._acts = act_laws(((visit, context) for _, visit, context in contexts if visit.is_page), self._alike, self.ages)
        for number, visit, context in contexts:
            self._count_texts(number, visit, context)
        for number, visit, context in contexts:
            self._count_sources(number, visit, context)
        self._count_partners()

    def _contexts(self, sessions: Sequence[Sequence[SiteVisit]]) -> list[tuple[int, SiteVisit, SourceContext]]:
        """Return each visit with its session's number and what its sources may see: earlier visits of it, others of others."""
        self.visits = sorted((visit for session in sessions for visit in session), key=lambda visit: visit.at)
        self.times = learn_times(sessions)
        self.ages = site_ages(sessions, self.times)
        index = VisitIndex(self.visits, self.ages, self.times, self.evidence)
        contexts = []
        for number, session in enumerate(sessions):
            without = frozenset(map(id, session))
            contexts += [(number, visit, index.context(visit, session[:position], visit.at, without))
                         for position, visit in enumerate(session)]
        return contexts

    def _count_texts(self, session: int, visit: SiteVisit, context: SourceContext) -> None:
        box, form = self._boxes.get((visit.route, visit.kind)), context.act
        if box is not None and form is not None and (message := box_value(visit, box)) is not None:
            self._messages[form.route].add(session, ("message", context.abstracted(message)))
        self.places.setdefault((visit.route, visit.kind or ""), tuple(place for place in visit.values if place != KIND))
        for place, value in visit.values.items():
            rows = list(_added_rows(context.last_look(place), value, context))
            names = _named(value, context)
            self._count_cells(visit, place, context)
            counts = list(_counted(place, visit))
            for key in _keys(visit, place, context, self.choices):
                self._texts[key].add(session, ("constant", value))
                self._patterns[key].add(session, ("pattern", context.abstracted(value)))
                for name in names:
                    self._names[key].add(session, ("argument", name))
                for count in counts:
                    self._counts[key].add(session, count)
                for row in rows:
                    self._rows[key].add(session, row)

    def _count_sources(self, session: int, visit: SiteVisit, context: SourceContext) -> None:
        for place, value in visit.values.items():
            kind = None if place == KIND else visit.kind
            keys = list(_keys(visit, place, context, self.choices))
            self._wider |= dict.fromkeys(keys[1:-1], keys[-1]) | {keys[-1]: keys[0]}
            for key in keys:
                trial: _Trial = {}
                context.given = dict(visit.values)
                for source in self._possible(key, session):
                    candidate = context.value(source, place, kind)
                    if candidate != ABSENT and not context.is_stale(source, place, candidate):
                        trial[source[0]] = are_same(candidate, value), candidate == value
                self._trials[key].append(trial)
                self._contexts_of[key].append(context)

    def _count_cells(self, visit: SiteVisit, place: Place, context: SourceContext) -> None:
        """Count, for texts of rows that changed since the last look, which places of the row's own page have them now."""
        look, pages = context.looked_since(place)
        if not pages or rows_of(look) is None or rows_of(visit.values[place]) is None:
            return
        key = SourceKey(visit.route, visit.kind, place)
        before = {tuple(links_of(row, visit.url)): row for row in decode(look or "[]")}
        for row in decode(visit.values[place] or "[]"):
            links = links_of(row, visit.url)
            page, former = next((pages[path] for path in links if path in pages), None), before.get(tuple(links))
            if page is None or not isinstance(row, Element) or not isinstance(former, Element):
                continue
            for cell, (old, new) in enumerate(zip(texts_of_row(former), texts_of_row(row), strict=False)):
                if old != new:
                    self._changed[key][f"{cell}"] += 1
                    self._cells[key].update((f"{cell}", each) for each, text in page.values.items()
                                            if text and text.strip() == new)

    def _renewing(self, key: SourceKey) -> dict[str, Place]:
        """Return the places that most changed texts of a list's rows came from."""
        key = key._replace(case=None)
        cells = {cell: each for (cell, each), n in reversed(self._cells.get(key, Counter()).most_common())
                 if n > 1 and n >= _RENEWED * self._changed[key][cell]}
        return dict(sorted(cells.items()))

    def _count_partners(self) -> None:
        """Try, for each place, what stood with the same value of a place that is right more often: the best few of these."""
        rates = {key: _rate(trials, list(self._possible(key))) for key, trials in self._trials.items()}
        for (route, kind), places in list(self.places.items()):
            general = {place: SourceKey(route, kind, place) for place in places}
            self.places[route, kind] = tuple(sorted(places, key=lambda place: (
                self._is_counted(general[place]), -rates[general[place]])))
            uncounted = [place for place in places if not self._is_counted(general[place])]
            for key in general.values():
                if rates[key] < _RIGHT:
                    better = sorted((each for each in uncounted if rates[general[each]] > rates[key]),
                                    key=lambda each: -self._texts[general[each]].n_sources)
                    self._partners[key] = self._best_partners(key, better[:_N_TRIED], rates)
        for key, contexts in self._contexts_of.items():
            for partner in self._partners.get(key._replace(case=None), ()):
                for context, trial in zip(contexts, self._trials[key], strict=True):
                    trial |= _tried_partner(context, partner, key)

    def _is_counted(self, key: SourceKey) -> bool:
        """Return whether a place is best given by the number of rows, which therefore have to be there first."""
        best = _ordered(list(self._possible(key)), self._trials[key])[:1] if self._counts[key].n_sources else []
        return bool(best) and best[0][0] == "count"

    def _best_partners(self, key: SourceKey, places: Sequence[Place], rates: Mapping[SourceKey, float]) -> list[Place]:
        scored = []
        for place in places:
            trials = [_tried_partner(context, place, key) for context in self._contexts_of[key]]
            n_tried, n_right = sum(map(bool, trials)), sum(each[0] for trial in trials for each in trial.values())
            if n_right >= _LEAST_RIGHT:
                scored.append((lower_bound(n_right, n_tried) * rates[key._replace(place=place)], n_right, place))
        return [place for *_, place in sorted(scored, reverse=True)[:_N_PARTNERS]]

    def _possible(self, key: SourceKey, without: int | None = None) -> Iterator[SiteSource]:
        """Yield the sources that a place may have; `without`: the session that must not vouch for itself."""
        for name in _NAMES:
            if name == "message":
                yield from [self._message(without)] if self._is_box(key) else []
                continue
            if name == "rows renewed":
                cells = self._renewing(key)
                yield from [(name, json.dumps(cells))] if cells else []
                continue
            if name == "rows acted":
                acts = self._acts.get((key.route, key.kind, key.place))
                yield from [(name, *acts)] if acts else []
                continue
            if name in ("page of the path", "page before acts"):
                alike = self._alike.get((key.route, key.kind, key.place))
                yield from [(name, json.dumps(alike))] if alike else []
                continue
            counted = self._counted.get(name)
            source = counted[key].first(without) if counted is not None else (name,)
            if source is not None and not (key.kind is None and name in ("own page", "page of the same user")):
                yield source
        if without is None:
            yield from (("same", place) for place in self._partners.get(key._replace(case=None), ()))

    def _is_box(self, key: SourceKey) -> bool:
        box = self._boxes.get((key.route, key.kind))
        return box is not None and box.is_open and key.place == f"{box.path}0"

    def _message(self, without: int | None) -> SiteSource:
        """Return the source of what a box says: by the route of the form before, what boxes of all pages say most often."""
        if without not in self._messages_without:
            first = {route: source[1] for route, votes in sorted(self._messages.items())
                     if (source := votes.first(without)) is not None}
            self._messages_without[without] = "message", json.dumps(first, ensure_ascii=False)
        return self._messages_without[without]

    @cached_property
    def sources(self) -> dict[SourceKey, list[LearntSource]]:
        """Return the sources of each place, the best first; a case of its own is left out where nothing vouches for it.

        Of two, the one goes first that is right more often where both have a value (`_ordered`). Where the sources of the
        wider case, learnt of more visits, are never wrong in a case or right more often than its own, they are used."""
        learnt: dict[SourceKey, list[LearntSource]] = {}
        right: dict[SourceKey, dict[int, bool]] = {}
        for key in sorted(self._trials, key=lambda key: self._breadth(key)):
            wider, trials = self._wider.get(key), self._trials[key]
            visits = [id(context) for context in self._contexts_of[key]]
            if wider is not None and not any(trials):
                right[key] = right[wider]
                continue
            learnt[key], results = _judged(list(self._possible(key)), trials)
            if wider is not None:
                widely = [right[wider][visit] for visit in visits]
                wide = learnt.get(wider, learnt[key._replace(case=None)])
                if all(widely) and (not all(results) or wide[0].source == learnt[key][0].source):
                    learnt[key], results = wide, widely
                elif sum(widely) > sum(results):
                    trust = lower_bound(sum(widely), len(widely))
                    learnt[key] = [LearntSource(min(trust, each), source) for each, source in wide]
                    results = widely
            right[key] = dict(zip(visits, results, strict=True))
        return learnt

    def _breadth(self, key: SourceKey) -> int:
        """Return 0 for the sources of all cases, 1 for those of a case, 2 for those of a choice in it."""
        wider = self._wider.get(key)
        return 0 if wider is None else 1 + self._breadth(wider)

    @cached_property
    def least_trust(self) -> float:
        """Return the least trust of which so few values are wrong that most pages have none: `_WRONG` of all places.

        Constants of pages count as places, as they do for a reader of the page."""
        wrong: Counter[float] = Counter()
        for key, sources in self.sources.items():
            trials = self._trials[key] if key.case is not None and key.kind is not None and key.kind.endswith("page") else []
            for trust, source in sources if sources is not self.sources.get(self._wider.get(key, key)) else ():
                wrong[trust] += sum(_label(source) in trial and not trial[_label(source)][0] for trial in trials)
                trials = [trial for trial in trials if _label(source) not in trial]
        budget = _WRONG * self._n_places
        for trust in sorted(wrong, reverse=True):
            budget -= wrong[trust]
            if budget < 0:
                return math.nextafter(trust, 1)
        return 0.0

    def learnt(self) -> LearntSources:
        """Return what answers requests."""
        return LearntSources(self.places, self.sources, self.visits, self.choices, self.least_trust, self.fields, self.ages,
                             self.times, self.evidence)


def _judged(sources: Sequence[SiteSource], trials: Sequence[_Trial]) -> tuple[list[LearntSource], list[bool]]:
    """Return sources, the best first, with the trust of each where those before it have no value; and which trials they got
    right."""
    learnt = []
    remaining = list(enumerate(trials))
    right = [False] * len(trials)
    for best in _ordered(sources, trials):
        label = _label(best)
        results = [trial[label][0] for _, trial in remaining if label in trial]
        learnt.append(LearntSource(lower_bound(sum(results), len(results)), best))
        for index, trial in remaining:
            right[index] |= label in trial and trial[label][0]
        remaining = [each for each in remaining if label not in each[1]]
    return learnt, right


class _Votes:
    """Sources that differ in what they need, counted by session; those that differ in volatile parts alone count as one."""

    def __init__(self) -> None:
        self._all: Counter[SiteSource] = Counter()
        self._ranked: list[tuple[int, int, SiteSource]] = []
        self._of_session: dict[int, Counter[SiteSource]] = defaultdict(Counter)
        self._written: dict[SiteSource, Counter[tuple[Any, ...]]] = defaultdict(Counter)

    def add(self, session: int, source: tuple[Any, ...]) -> None:
        masked = (*source[:-1], masked_value(source[-1]))
        self._ranked = []
        self._all[masked] += 1
        self._of_session[session][masked] += 1
        self._written[masked][source] += 1

    @property
    def n_sources(self) -> int:
        """Return the number of sources that differ."""
        return len(self._all)

    def first(self, without: int | None) -> SiteSource | None:
        """Return the source with most votes of other sessions, of several the first."""
        own = self._of_session.get(without, Counter()) if without is not None else Counter[SiteSource]()
        if not self._ranked:
            self._ranked = sorted((-n_votes, at, source) for at, (source, n_votes) in enumerate(self._all.items()))
        best, n_best, at_best = None, 0, 0
        for n_votes, at, source in self._ranked:
            n_others = -n_votes - own[source]
            if -n_votes < max(n_best, 1):
                break
            if n_others > n_best or (best is not None and n_others == n_best and at < at_best):
                best, n_best, at_best = source, n_others, at
        if best is None:
            return None
        return max(self._written[best], key=lambda source: self._written[best][source])


def _label(source: SiteSource) -> str:
    """Return what trials call a source."""
    return " ".join(source) if source[0] == "same" else source[0]


def _rate(trials: Sequence[_Trial], sources: Sequence[SiteSource]) -> float:
    """Return how often the sources, the best first, give the right value."""
    names = [_label(source) for source in _ordered(sources, trials)]
    first = [next((trial[name][0] for name in names if name in trial), False) for trial in trials]
    return sum(first) / max(len(first), 1)


def _tried_partner(context: SourceContext, partner: Place, key: SourceKey) -> _Trial:
    value, candidate = context.given[key.place], context.value(("same", partner), key.place, key.kind)
    return {} if candidate == ABSENT else {f"same {partner}": (are_same(candidate, value), candidate == value)}


def _ordered(sources: Sequence[SiteSource], trials: Sequence[_Trial]) -> list[SiteSource]:
    """Return sources by how often they are right; neighbours change places where the second is right instead of the first
    more often than the other way round."""
    ordered = sorted(sources, key=lambda source: _rates(_label(source), trials), reverse=True)
    for _ in ordered:
        for index in range(len(ordered) - 1):
            one, other = _label(ordered[index]), _label(ordered[index + 1])
            joint = [(trial[one][0], trial[other][0]) for trial in trials if one in trial and other in trial]
            if sum(second - first for first, second in joint) > 0:
                ordered[index], ordered[index + 1] = ordered[index + 1], ordered[index]
    return ordered


def _rates(name: str, trials: Sequence[_Trial]) -> tuple[float, float]:
    """Return how often a source is right where it has a value, and how often to the letter."""
    results = [trial[name] for trial in trials if name in trial]
    return ((sum(right for right, _ in results) + 0.5) / (len(results) + 2),
            sum(exact for _, exact in results) / max(len(results), 1))


def lower_bound(n_right: int, n_tried: int) -> float:
    """Return the lower end of Wilson's interval of one standard error for a share; 0 without trials."""
    if not n_tried:
        return 0.0
    share = n_right / n_tried
    centre, spread = share + 1 / (2 * n_tried), math.sqrt(share * (1 - share) / n_tried + 1 / (4 * n_tried ** 2))
    return round((centre - spread) / (1 + 1 / n_tried), 4)


def choices_of(sessions: Sequence[Sequence[SiteVisit]]) -> dict[str, list[str]]:
    """Return the fields of forms that are choices: of few values, most of which several sessions posted.

    Not to send a field, as of a button that was not pressed, is a value too. Of a field with more values it may be a choice
    whether anything was given. Of each form the few that tell most of what is answered, those first."""
    choices: dict[str, list[str]] = {}
    for route, posts in sorted(_posts_of(sessions).items()):
        fields = sorted({name for _, visit in posts for name in visit.arguments if name.startswith("form ")})
        n_alike = max(Counter(map(_answer_of, (visit for _, visit in posts))).values())
        by_parts: dict[tuple[int, ...], tuple[int, int, str]] = {}
        for field in fields:
            for name in (field, f"{field}{GIVEN}"):
                choice = _FieldChoice.of(name, posts)
                if choice.is_shared and (name == field or choice.n_explained > n_alike):
                    by_parts.setdefault(choice.parts, (-choice.n_explained, len(set(choice.parts)), name))
                    break
        if by_parts:
            choices[route] = [name for *_, name in sorted(by_parts.values())[:_N_FIELDS]]
    return choices


def fields_of(sessions: Sequence[Sequence[SiteVisit]]) -> dict[str, dict[str, list[str] | None]]:
    """Return, of each route that enough forms were posted to, their fields, and how forms were answered without each.

    Where all forms gave a field, nothing says that one without it is taken; and where all gave it as a number, a day or an
    address, that another text is."""
    fields: dict[str, dict[str, list[str] | None]] = {}
    for route, posts in sorted(_posts_of(sessions).items()):
        if len(posts) < _LEAST_POSTS or len({session for session, _ in posts}) < _LEAST_SESSIONS:
            continue
        given = [(visit.kind or "", given_fields(visit.arguments)) for _, visit in posts]
        names = {field_kind(name) for _, visit in posts for name in visit.arguments
                 if name.startswith("form ") and not name.startswith(CHANGED)}.union(*(own for _, own in given))
        fields[route] = {
            name: sorted({kind for kind, own in given if name not in own})
            if sum(name in own for _, own in given) >= _LEAST_POSTS else None for name in sorted(names)}
    return fields


class _FieldChoice(NamedTuple):
    """How the values of a field part the forms that were posted to a route."""

    parts: tuple[int, ...]
    """Of each form the number of the first one with its value: of two fields that part them alike, one tells all."""
    is_shared: bool
    """Whether there are few values, and several sessions posted most of them."""
    n_explained: int
    """Forms that were answered as most with their value."""

    @classmethod
    def of(cls, name: str, posts: Sequence[tuple[int, SiteVisit]]) -> _FieldChoice:
        sessions, answers = defaultdict[str, set[int]](set), defaultdict[str, Counter[str]](Counter)
        first: dict[str, int] = {}
        parts = []
        for number, (session, visit) in enumerate(posts):
            value = chosen(visit.arguments, name)
            parts.append(first.setdefault(value, number))
            sessions[value].add(session)
            answers[value][_answer_of(visit)] += 1
        n_shared = sum(len(each) > 1 for each in sessions.values())
        return cls(tuple(parts), 1 < len(sessions) <= _N_CHOICES and n_shared >= _CHOSEN * len(sessions),
                   sum(max(each.values()) for each in answers.values()))


def _posts_of(sessions: Sequence[Sequence[SiteVisit]]) -> dict[str, list[tuple[int, SiteVisit]]]:
    """Return the forms that were posted to each route, with the numbers of their sessions."""
    posts: dict[str, list[tuple[int, SiteVisit]]] = defaultdict(list)
    for number, session in enumerate(sessions):
        for visit in session:
            if visit.is_write:
                posts[visit.route].append((number, visit))
    return posts


def _answer_of(visit: SiteVisit) -> str:
    """Return the kind of an answer and where it leads, numbers aside."""
    return f"{visit.kind} {mask_numbers(visit.values.get('location') or '')}"


def mask_numbers(text: str) -> str:
    """Return a text without the numbers in it, so that where two forms of one kind lead is the same."""
    return re.sub(r"\d+", "#", text)


@lru_cache(maxsize=1 << 16)
def masked_value(value: Value) -> Value:
    """Return a value without its volatile parts."""
    return None if value is None else mask_volatile(value)


def are_same(one: Value, other: Value) -> bool:
    """Return whether values differ in volatile parts at most."""
    return one == other or masked_value(one) == masked_value(other)


def _keys(visit: SiteVisit, place: Place, context: SourceContext, choices: Mapping[str, Sequence[str]]) -> Iterator[SourceKey]:
    """Yield what counts are kept for: the place in all cases, and in its case."""
    key = SourceKey(visit.route, None if place == KIND else visit.kind, place)
    yield key
    yield from (key._replace(case=case) for case in context.cases(place, choices))


def _named(value: Value, context: SourceContext) -> list[str]:
    """Return the patterns of one name that give a value, its spaces aside; those of the last look, which may lack it, last."""
    if not value or not (text := value.strip()):
        return []
    names = sorted((name for name, argument in context.arguments.items() if argument == text),
                   key=lambda name: name.startswith("look "))
    return [value.replace(text, f"{MARK}{name}{MARK}") for name in names]


def _counted(place: Place, visit: SiteVisit) -> Iterator[SiteSource]:
    """Yield the texts that hold the number of rows of the page, all or all but the first."""
    value = visit.values[place]
    if not value or not visit.is_page or rows_of(value) is not None or not any(map(str.isdigit, value)):
        return
    for listed, rows in visit.values.items():
        if (nodes := rows_of(rows)) is not None:
            for n_others in range(min(len(nodes), 2)):
                pattern = re.sub(rf"(?<![\w.,]){len(nodes) - n_others}(?![\w.,])", f"{MARK}count{MARK}", value)
                if MARK in pattern:
                    yield "count", listed, f"{n_others}", pattern


def _added_rows(before: Value, value: Value, context: SourceContext) -> Iterator[SiteSource]:
    """Yield the one row that a list has more than at the last look, by its place from either side; none else."""
    old, new = rows_of(before), rows_of(value)
    if old is None or new is None or len(new) != len(old) + 1:
        return
    at = next((index for index, row in enumerate(old) if new[index] != row), len(old))
    if new[at + 1:] == old[at:]:
        pattern = context.abstracted(json.dumps(new[at], ensure_ascii=False)) or ""
        yield "row added", "start", str(at), pattern
        yield "row added", "end", str(len(old) - at), pattern


def write_site(folder: Path, answers: Sequence[RecordedAnswer], templates: Mapping[str, str],
               evidence: SiteEvidence | None = None) -> SiteLearner:
    """Learn a site and write what `InducedPages.load` reads; the same answers give the same bytes.

    `evidence`: what other logs tell of rows and writes."""
    site = SiteLearner(answers, templates)
    n_places = sum(len(pages) * texts_of(site.templates[key]) for key, pages in site.pages.items())
    learner = SourceLearner(site.sessions.values(), n_places, evidence, boxes_by_kind(site.boxes))
    names = sorted({visit.route for visit in learner.visits})
    numbers = {name: number for number, name in enumerate(names)}
    sources = learner.sources
    texts: dict[str, int] = {}
    fields = posted_fields(source for each in sources.values() for _, source in each)
    visits = [[visit.user, visit.at.isoformat(), numbers[visit.route], visit.url, int(visit.is_write), int(visit.is_page),
               {place: None if text is None else texts.setdefault(text, len(texts)) for place, text in visit.values.items()},
               *([posted] if (posted := {name: visit.arguments[name] for name in fields.get(visit.route, ())
                                         if name in visit.arguments}) else [])]
              for visit in learner.visits]
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "routes.json", dict(sorted(site.paths.items())))
    _write(folder / "templates.json", [[*key, plain_template(site.templates[key])] for key in sorted(site.templates)])
    _write(folder / "sources.json", {
        "routes": names, "least_trust": learner.least_trust, "choices": learner.choices, "fields": learner.fields,
        "ages": learner.ages.plain() if learner.ages is not None else [], "times": learner.times.plain(),
        "places": [[numbers[route], kind, learner.places[route, kind]] for route, kind in sorted(learner.places)],
        "sources": [[numbers[key.route], key.kind, key.place, key.case,
                     [[trust, *source] for trust, source in sources[key]]]
                    for key in sorted(sources, key=lambda key: [each or "" for each in key])]})
    _write(folder / "values.json", list(texts))
    if evidence:
        used = {name for each in sources.values() for _, source in each for text in source[1:]
                for name in (text or "").split(MARK)[1::2]}
        if kept := kept_columns(evidence, used):
            _write(folder / "evidence.json", kept.plain())
    (folder / "visits.jsonl").write_text("".join(f"{_text(visit)}\n" for visit in visits), "utf-8")
    return site


def _write(path: Path, plain: Any) -> None:
    path.write_text(_text(plain) + "\n", "utf-8")


def _text(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), sort_keys=False)
