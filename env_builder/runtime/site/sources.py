"""What can give a place of an answer its value: a source and a request's context in, the value out.

A source is one value for all (`constant`), a text with values of the request in it (`pattern`: path, query, form, the form
posted just before, day and time, the url of the page before, texts of the last row that linked to what is requested; after a
form the next number behind a word, of all pages or of those of the requested path), what stood with the same value of another
place the last time (`same`), the number of rows of the page (`count`), the own session's last visit of the route or of the url,
the last visit of the url by the same user or by anybody, the same place of another page of the session or of the user, or the
last look at a list with a row more (`row added`), with texts that the rows' own pages have since (`rows renewed`) or as posts
since then leave it (`rows acted`), or the like place of the path's last page, whatever its query: one since which nothing was
posted there (`page of the path`), or one before that (`page before acts`); of a box of messages, what it says after a form of
this route, on whatever page (`message`), else nothing. What is taken from an earlier page has its ages in words as of now
(`aged`).
Sees: visits before the request. Does not see: sums, which rows a search finds, ids that are no numbers.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from operator import attrgetter, itemgetter
from typing import Any, Protocol, TypeAlias
from urllib.parse import urljoin, urlsplit

from .acted import after_acts, laws_of
from .aged import AgedRows, RowLook, instants_told, links_of, path_from
from .ages import AgeFormat
from .evidence import SiteEvidence
from .times import SiteTimes
from .trees import Element, decode, encode
from .visits import (
    KIND,
    Place,
    SiteVisit,
    Value,
    chosen,
    greatest_numbers,
    path_of,
    rows_of,
    words_of,
    written_days,
    written_instant,
)

__all__ = ["ABSENT", "LOOKS", "MARK", "OtherVisits", "SiteSource", "SourceContext", "bounded", "linked_rows", "links_of",
           "rows_to", "texts_of_row", "with_row", "write_pattern"]

SiteSource: TypeAlias = tuple[str, ...]
"""Its name, then what it needs: a constant's or a pattern's text (an `argument` is a pattern of one name); another place;
side, position and pattern of a row; places of rows' own pages by the ordinals of texts; the place of rows, how many of them
are no records, and a pattern."""
MARK = "\x00"
ABSENT = "\x01"
"""What a source gives that has no value; no page holds it."""
_NEXT = "next "
_WHEN = "when "
_RECORD = "record "
_NOTHING = "[]"
_WHOLE = frozenset({"path", "query", "url"})
_LOOKED = frozenset({"own route", "own url", "same user", "anybody", "same", "page of the path", "page before acts",
                     "rows acted", "rows renewed", "row added"})
"""Sources that give what an earlier page of the request's path had."""
_NO_TIMES = SiteTimes()
_DAY, _LATE = timedelta(days=1), timedelta(seconds=3)
"""How late after a request began the site may stamp what it writes."""
_LAST_NUMBER = re.compile(r"((?<!%)(?<!%[0-9A-Fa-f])([A-Za-z]+)(?:%20|[^A-Za-z0-9%]){0,3})(\d{1,9})(?![\w.])")
LOOKS = ("own route", "own url", "same user", "anybody")
_LONGEST = 40
"""A value of more characters is no word that another text repeats."""
_LEAST_ROW = 20
"""Characters of the least list with a row that links."""
_LONGEST_PATH = 2_000
"""Characters of a path on the site, which is one word."""
_SHORTEST = 2
"""A value of fewer characters stands in too many texts to say that it came from the request."""


_instant_of = attrgetter("at")


@lru_cache(maxsize=256)
def _instant(at: datetime) -> dict[str, str]:
    return dict(written_instant(at))


class OtherVisits(Protocol):
    """What other sessions did before an instant."""

    def last_page(self, place: Place) -> SiteVisit | None:
        """Return the last page of the same user that has a place."""

    def is_known(self, word: str) -> bool:
        """Return whether a visit holds a word."""

    def rows(self, url: str) -> dict[str, Mapping[str, str]]:
        """Return the texts of the last rows that link to an address, by route and place."""

    def greatest(self, word: str, path: str | None) -> int:
        """Return the greatest number that stood behind a word, on pages of a path alone if one is given; 0 for none."""

    def last_with(self, route: str, kind: Value, partner: Place, value: Value, place: Place) -> SiteVisit | None:
        """Return the last answer of a route and kind that has a place, and this value in another one."""

    def pages_of(self, path: str) -> Iterator[SiteVisit]:
        """Yield the pages of a path, whatever the query, the last first."""

    def instants(self, path: str) -> list[datetime]:
        """Return when something happened to what a path names, as visits tell."""

    def writes_since(self, at: datetime) -> Iterator[SiteVisit]:
        """Yield what was posted after an instant."""

    def is_changing(self, route: str, place: Place) -> bool:
        """Return whether a place was something else when an address of the route was looked at again."""

    def row_looks(self, path: str, name: str) -> Iterator[SiteVisit]:
        """Yield the pages whose list of this name (route and place) has a row that links to a path, the last first."""


def _is_path(text: str) -> bool:
    """Return whether a text is a path on the site, which is one word however long it is."""
    return text[0] == "/" and len(text) <= _LONGEST_PATH and not any(map(str.isspace, text))


class SourceContext:
    """What the sources of one request may see."""

    def __init__(self, request: SiteVisit, own: Sequence[SiteVisit], before: Sequence[SiteVisit],
                 others: OtherVisits, ages: AgeFormat | None = None, times: SiteTimes = _NO_TIMES,
                 evidence: tuple[SiteEvidence, datetime] | None = None) -> None:
        """Take a request, its session's visits so far, visits of the same url by others before, what others did before, how
        ages and instants are written, and what other logs tell up to an instant."""
        self.request = request
        self.own = own
        self.before = before
        self.given: dict[Place, Value] = {}
        """Values of the answer's places so far; of those that can be relied on."""
        self.trusted: frozenset[str] = frozenset()
        """Names of the sources that can be relied on; empty for all."""
        self._others = others
        self._times = times
        self._evidence = evidence
        self._looks: dict[tuple[str, Value], SiteVisit | None] = {}
        self._ages = AgedRows(ages, self) if ages is not None else None
        self._acted_since: dict[int, bool] = {}
        self._lists: dict[str, tuple[SiteVisit, Place] | None] = {}
        self._aged: dict[tuple[int, Place], Value] = {}
        self._instants: dict[str, list[datetime]] = {}

    @property
    def arguments(self) -> dict[str, str]:
        """Return what a text may be made of, by name; of equal texts the first is meant."""
        return {**self._of_look, **self._of_request, **self._of_instant, **self._of_rows, **self._of_records}

    def argument(self, name: str) -> str | None:
        """Return what a text may be made of, None if there is nothing of this name."""
        if name.startswith("row "):
            return self._of_rows.get(name)
        if name.startswith(_NEXT):
            return self._next_number(name[len(_NEXT):])
        if name.startswith(_RECORD):
            return self._of_records.get(name)
        if name.startswith("look "):
            return self._of_look.get(name)
        if name.startswith(("day ", "time ", _WHEN)):
            return self._of_instant.get(name)
        return self._of_request.get(name)

    @cached_property
    def _of_look(self) -> dict[str, str]:
        url = self.request.url
        look = next((visit.values for visit in reversed(self.own) if visit.is_page and visit.url == url), {})
        return {f"look {place}": text.strip() for place, text in look.items()
                if place != KIND and text and text[0] != "[" and (len(text) <= _LONGEST or _is_path(text))}

    @cached_property
    def _of_request(self) -> dict[str, str]:
        posted = self.posted.arguments if self.posted is not None else {}
        page = next((visit for visit in reversed(self.own) if visit.is_page), None)
        user = {"user": self.request.user} if self.request.user else {}
        when = _written(self.posted.at, self._times) if self.posted is not None else {}
        return {**{f"posted {name}": text for name, text in posted.items()}, **user,
                **self.request.arguments, **written_days(self.request.arguments),
                **({"page before": page.url} if page is not None else {}),
                **{f"posted {name}": text for name, text in when.items()}}

    @cached_property
    def _of_rows(self) -> dict[str, str]:
        rows = self._others.rows(self.request.url)
        for visit in self.own:
            rows |= rows_to(visit, self.request.url)
        own = {f"row {name} {index}": text for name, texts in rows.items() for index, text in texts.items()}
        return own | {f"{name} {when}": text for name, each in own.items() for when, text in _rewritten(each, self._times)}

    @cached_property
    def _of_records(self) -> dict[str, str]:
        if self._evidence is None:
            return {}
        evidence, until = self._evidence
        named = {name: text for name, text in self.request.arguments.items()
                 if text and not name.startswith("form ") and name not in _WHOLE}
        return evidence.columns(named, until, self._times)

    @cached_property
    def _of_instant(self) -> dict[str, str]:
        at = self.request.at
        return {**_written(at, self._times), **_instant(at + timedelta(seconds=self._times.zone))}

    @cached_property
    def _named(self) -> dict[str, str]:
        """Return the names of texts, the longest first."""
        names = {text: name for name, text in reversed(self.arguments.items()) if len(text) >= _SHORTEST}
        return {text: names[text] for text in sorted(names, key=lambda text: (-len(text), text))}

    def abstracted(self, value: Value) -> Value:
        """Return a text with the arguments in it replaced by their names, the longest first."""
        names = self._named
        if not isinstance(value, str) or not names:
            return value
        parts = self._timed(value).split(MARK)
        for index in range(0, len(parts), 2):
            if met := tuple(text for text in names if text in parts[index]):
                parts[index] = _alternatives(met).sub(lambda match: f"{MARK}{names[match[0]]}{MARK}", parts[index])
        abstracted = MARK.join(parts)
        if self.request.is_write or self.posted is not None:
            abstracted = _numbered(abstracted, self._next_name)
        if "?" in value:   # in an address a list has other commas and spaces
            spelling = "quote" if "%20" in value else "quote_plus"
            return re.sub(rf"{MARK}(?:posted )?form (\*changed[a-z ]*){MARK}", rf"{MARK}\1 {spelling}{MARK}", abstracted)
        return abstracted

    def _timed(self, value: str) -> str:
        """Return a text with times of day replaced by whose they are: of the form posted just before, or of the request.

        What the site stamps, it stamps a little after the request began."""
        whose = [*([("posted ", self.posted.at)] if self.posted is not None else []), ("", self.request.at)]
        for number, each in enumerate(self._times.formats):
            for match in () if each.unit >= _DAY else reversed(list(each.instants(value))):
                name = next((name for name, at in whose if each.shown(at) <= match.at <= each.shown(at + _LATE)), None)
                if name is not None and value.count(MARK, 0, match.start) % 2 == 0:
                    value = f"{value[:match.start]}{MARK}{name}{_WHEN}{number}{MARK}{value[match.end:]}"
        return value

    def _next_name(self, word: str, number: str) -> str | None:
        """Return the name of the sequence whose next number this is: of the site, or of what the request is about."""
        names = [f"{word}", f"{word} here"]
        if self._evidence is not None and self.request.is_write:   # a page has the number in its own address
            names += [f"{_RECORD}{each}" for each in self._evidence[0].sequences]
        return next((f"{_NEXT}{name}" for name in names if self._next_number(name) == number), None)

    def _next_number(self, name: str) -> str | None:
        """Return the number after the greatest so far behind a word; `here`: on pages of the request's path."""
        if name.startswith(_RECORD):
            return self._next_record(name[len(_RECORD):])
        word, _, here = name.partition(" ")
        path = path_of(self.request.url) if here else None
        own = (greatest_numbers(value).get(word, 0) for visit in self.own if path is None or path_of(visit.url) == path
               for value in visit.values.values() if value)
        greatest = max(self._others.greatest(word, path), *own, 0)
        return f"{greatest + 1}" if greatest or here else None

    @property
    def act(self) -> SiteVisit | None:
        """Return the form that the request is, or that was posted since the session's last page."""
        return self.request if self.request.is_write else self.posted

    def _next_record(self, name: str) -> str | None:
        """Return the number after the greatest of a table as the session began and what the session sent like this request."""
        greatest = self._evidence[0].greatest(name, self._evidence[1]) if self._evidence is not None else None
        act = self.act
        if greatest is None or act is None:
            return None
        n_own = sum(each.route == act.route and bool(each.values.get("location")) for each in self.own if each is not act)
        return f"{greatest + 1 + n_own}"

    def is_stale(self, source: SiteSource, place: Place, value: Value) -> bool:
        """Return whether a value stood on a page since which something was posted there that no recorded page shows: to the
        path of the request, or to what a row of the value leads to."""
        if self._evidence is None or source[0] not in _LOOKED or not self._evidence[0].unseen:
            return False
        evidence, until = self._evidence
        look, own = next(self.pages_of_path(), None), path_of(self.request.url)
        if look is None:
            return False
        paths = [own] if self._others.is_changing(self.request.route, place) else []
        paths += linked_rows(value or "", own) if rows_of(value) is not None else ()
        return any(evidence.is_written(path, look.at, until) for path in paths)

    @cached_property
    def posted(self) -> SiteVisit | None:
        """Return what was posted since the session's last page."""
        last = next((visit for visit in reversed(self.own) if visit.is_write or visit.is_page), None)
        return last if last is not None and last.is_write else None

    @cached_property
    def case(self) -> str:
        """Return the case that an answer may be of: the route of what was posted since the last page, the empty text if
        nothing was, `start` for a session's first request."""
        if not self.own:
            return "start"
        return self.posted.route if self.posted is not None else ""

    def cases(self, place: Place, choices: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Return the cases of a place, the narrowest first.

        Narrower than `case`: with the values of the fields that are choices (`choices`: fields by route), of what was posted
        or is, all of them or one; for an answer's kind, whether the request names an entity without a record."""
        visit = self.act
        case = f"{self.case} new" if place == KIND and self._is_new else self.case
        fields = choices.get(visit.route, ()) if visit is not None else ()
        values = [f"{case} {name}={chosen(visit.arguments, name)}" for name in fields] if visit is not None else []
        return (" ".join(values), *values, case) if len(values) > 1 else (*values, case)

    @cached_property
    def _is_new(self) -> bool:
        words = {word for word in words_of(self.request.url) if not self._others.is_known(word)}
        if words:
            for visit in self.own:
                words.difference_update(words_of(visit.url))
                for value in visit.values.values():
                    words.difference_update(words_of(value or ""))
        return bool(words)

    def _visits(self, name: str, kind: Value) -> Iterator[SiteVisit]:
        """Yield the visits that a kind of look may use, the last first; `kind`: of answers of this kind alone."""
        request = self.request
        for visit in reversed(self.own if name.startswith("own") else self.before):
            if (kind is None or visit.kind == kind) and (
                    visit.route == request.route if name == "own route" else
                    (visit.url, visit.is_write) == (request.url, request.is_write) if name == "own url" else
                    name == "anybody" or visit.user == request.user):
                yield visit

    def instants(self, path: str, until: datetime) -> Sequence[datetime]:
        """Return when something happened to what a path names, as posts and pages up to an instant tell, sorted."""
        if path not in self._instants:
            self._instants[path] = sorted({*self._own_instants.get(path, ()), *self._others.instants(path)})
        return self._instants[path][:bisect_right(self._instants[path], until)]

    @cached_property
    def _own_instants(self) -> dict[str, list[datetime]]:
        instants: dict[str, list[datetime]] = {}
        for visit in self.own:
            for path, at in instants_told(visit, self._times):
                instants.setdefault(path, []).append(at)
        return instants

    def row_looks(self, path: str, name: str, until: datetime) -> Iterator[RowLook]:
        """Yield the looks before an instant at the row of a list that links to a path, the last first."""
        own = (visit for visit in reversed(self.own) if visit.is_page and name.startswith(f"{visit.route} "))
        for visit in (*own, *self._others.row_looks(path, name)):
            rows = linked_rows(visit.values.get(name[len(visit.route) + 1:]) or "", path_of(visit.url))
            if visit.at < until and path in rows:
                yield RowLook(visit.at, rows[path])

    def shown(self, visit: SiteVisit, place: Place) -> Value:
        """Return what a place of an earlier visit had, its ages as of now."""
        if self._ages is None:
            return visit.values[place]
        key = id(visit), place
        if key not in self._aged:
            try:
                self._aged[key] = self._ages.value(visit, place, self.request.at)
            except LookupError:
                self._aged[key] = ABSENT
        return self._aged[key]

    def look(self, name: str, place: Place, kind: Value) -> Value:
        """Return a place's value at the last look of this kind."""
        key = name, kind
        if key not in self._looks:
            self._looks[key] = next(self._visits(name, kind), None)
        last = self._looks[key]
        if last is None or place in last.values:
            return ABSENT if last is None else self.shown(last, place)
        return next((self.shown(visit, place) for visit in self._visits(name, kind) if place in visit.values), ABSENT)

    def of_frame(self, name: str, place: Place) -> Value:
        """Return what stood at the same place of other pages, as what frames all pages of a site does: whose session it is."""
        if name == "own page":
            last = next((visit for visit in reversed(self.own) if visit.is_page and place in visit.values), None)
        else:
            last = self._others.last_page(place)
        return self.shown(last, place) if last is not None else ABSENT

    def _with_partner(self, partner: Place, place: Place, kind: Value) -> Value:
        """Return what a place had the last time that another one had the value that it has now."""
        value = self.given.get(partner, ABSENT)
        if value == ABSENT:
            return ABSENT
        for visit in reversed(self.own):
            if visit.route == self.request.route and visit.kind == kind and visit.values.get(partner, ABSENT) == value and (
                    place in visit.values):
                return self.shown(visit, place)
        last = self._others.last_with(self.request.route, kind, partner, value, place)
        return self.shown(last, place) if last is not None else ABSENT

    def looked_since(self, place: Place) -> tuple[Value, dict[str, SiteVisit]]:
        """Return what a list of the url was when it was last looked at, and the session's pages since then by their paths."""
        pages: dict[str, SiteVisit] = {}
        for visit in reversed(self.own):
            if visit.url == self.request.url and visit.is_page and place in visit.values:
                return self.shown(visit, place), pages
            if visit.is_page:
                pages.setdefault(path_of(visit.url), visit)
        return next((self.shown(visit, place) for visit in reversed(self.before) if place in visit.values), ABSENT), pages

    def pages_of_path(self, *, own: bool | None = None) -> Iterator[SiteVisit]:
        """Yield the pages of the request's path so far, whatever the query, the session's first, the last first.

        `own`: the session's alone, or others' alone."""
        if own is not False:
            yield from self._own_of_path
        if not own:
            yield from self._others.pages_of(path_of(self.request.url))

    @cached_property
    def _own_of_path(self) -> list[SiteVisit]:
        path = path_of(self.request.url)
        return [visit for visit in reversed(self.own) if visit.is_page and path_of(visit.url) == path]

    def _of_path(self, places: Mapping[str, Place], *, is_acted: bool) -> Value:
        """Return what stood at the like place of the last page of the path; `places`: these places by route.

        `is_acted`: whether something was posted there since then; there is no value where it is not so."""
        for visit in self.pages_of_path():
            place = places.get(visit.route)
            if place is not None and place in visit.values:
                return self.shown(visit, place) if self._is_acted(visit) == is_acted else ABSENT
        return ABSENT

    def _is_acted(self, look: SiteVisit) -> bool:
        """Return whether something was posted to the path of the request, or led to it, since a look."""
        if id(look) not in self._acted_since:
            path = path_of(self.request.url)
            self._acted_since[id(look)] = any(path in (path_of(act.url), path_of(act.values["location"] or ""))
                                              for act in self.acts_since(look))
        return self._acted_since[id(look)]

    def list_look(self, place: Place, alike: str) -> tuple[SiteVisit, Place] | None:
        """Return the last look at a list, and its place there: at the url, or at the path where the list is alike.

        `alike`: places by route, as JSON."""
        if alike not in self._lists:
            places = {**_plain(alike), self.request.route: place}
            fitting = [visit for visits in (self.pages_of_path(own=True), self.pages_of_path(own=False)) for visit in [next((
                each for each in visits if places.get(each.route) in each.values
                and (each.route != self.request.route or each.url == self.request.url)), None)] if visit is not None]
            last = max(fitting, key=_instant_of, default=None)
            self._lists[alike] = None if last is None else (last, places[last.route])
        return self._lists[alike]

    def acts_since(self, look: SiteVisit) -> list[SiteVisit]:
        """Return the posts that led on since a look, in order of time."""
        own = (visit for visit in self.own if visit.is_write and visit.at > look.at)
        acts = [visit for visit in (*own, *self._others.writes_since(look.at)) if visit.values.get("location")]
        return sorted(acts, key=_instant_of)

    def _acted(self, place: Place, alike: str, laws: str) -> Value:
        """Return a list as acts since the last look leave it; nothing without such acts."""
        look = self.list_look(place, alike)
        value = self.shown(*look) if look is not None else ABSENT
        if look is None or value is None or rows_of(value) is None:
            return ABSENT
        ages = self._ages.format if self._ages is not None else None
        acted = after_acts(value, self.request.url, self.acts_since(look[0]), laws_of(laws), ages, self.request.at)
        return ABSENT if acted is None else acted

    def _renewed(self, place: Place, cells: Mapping[str, Place]) -> Value:
        """Return a list as last looked at; texts of rows whose own page the session saw since are as that page has them."""
        look, pages = self.looked_since(place)
        rows = decode(look or "[]") if rows_of(look) is not None else []
        is_renewed = False
        for row in rows:
            page = next((pages[path] for path in links_of(row, self.request.url) if path in pages), None)
            if page is not None and isinstance(row, Element):
                is_renewed = True
                _renew(row, {int(cell): (page.values.get(each) or "").strip() for cell, each in cells.items()})
        return encode(rows) if is_renewed else ABSENT

    def last_look(self, place: Place) -> Value:
        """Return what a place of the url was when it was last looked at, by the own session or anybody."""
        for visit in reversed(self.own):
            if visit.url == self.request.url and visit.is_page and place in visit.values:
                return self.shown(visit, place)
        return next((self.shown(visit, place) for visit in reversed(self.before) if place in visit.values), ABSENT)

    def value(self, source: SiteSource, place: Place, kind: Value) -> Value:
        """Return what a source gives a place of an answer of this kind."""
        name = source[0]
        if name == "constant":
            return source[1]
        if name in ("argument", "pattern"):
            return write_pattern(source[1], self.argument)
        if name in ("page of the path", "page before acts"):
            return self._of_path(_plain(source[1]), is_acted=name == "page before acts")
        if name == "rows acted":
            return self._acted(place, source[1], source[2])
        if name == "message":
            pattern = _plain(source[1]).get(self.act.route, ABSENT) if self.act is not None else _NOTHING
            return write_pattern(pattern, self.argument)
        if name == "rows renewed":
            return self._renewed(place, json.loads(source[1]))
        if name == "count":
            rows = rows_of(self.given.get(source[1]))
            count = f"{len(rows) - int(source[2])}" if rows is not None else None
            return write_pattern(source[3], lambda name: count if name == "count" else self.argument(name))
        if name == "same":
            return self._with_partner(source[1], place, kind)
        if name in LOOKS:
            return self.look(name, place, kind)
        if name == "row added":
            look = self.last_look(place)
            return with_row(look, source[1], int(source[2]), write_pattern(source[3], self.argument)) if look else ABSENT
        return self.of_frame(name, place)


@lru_cache(maxsize=256)
def _written(at: datetime, times: SiteTimes) -> dict[str, str]:
    """Return an instant in each format of a site, by name."""
    return {f"{_WHEN}{number}": each.written(at) for number, each in enumerate(times.formats)}


@lru_cache(maxsize=1 << 14)
def _rewritten(text: str, times: SiteTimes) -> tuple[tuple[str, str], ...]:
    """Return the one instant that a text names in other formats that are not more exact, by name."""
    if len(text) > _LONGEST or not times.formats:
        return ()
    named = [(match.at, each.unit) for each in times.formats for match in each.instants(text)]
    at, unit = min(named, key=itemgetter(1), default=(None, _DAY))
    return tuple((f"{_WHEN}{number}", written) for number, each in enumerate(times.formats)
                 if at is not None and each.unit >= unit and (written := each.written(at)) not in text)


@lru_cache(maxsize=1 << 12)
def _plain(text: str) -> Any:
    return json.loads(text)


@lru_cache(maxsize=1 << 12)
def _alternatives(texts: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of any of these texts, the first that fits."""
    return re.compile("|".join(map(bounded, texts)))


def _numbered(text: str, name_of: Callable[[str, str], str | None]) -> str:
    """Return a text with numbers that are the next of a sequence replaced by its name, marked; marked parts stay."""
    parts = text.split(MARK)
    for index in range(0, len(parts), 2):
        parts[index] = _LAST_NUMBER.sub(lambda match: _named_number(match, name_of), parts[index])
    return MARK.join(parts)


def _named_number(match: re.Match[str], name_of: Callable[[str, str], str | None]) -> str:
    name = name_of(match[2].lower(), match[3])
    return match[0] if name is None else f"{match[1]}{MARK}{name}{MARK}"


def bounded(text: str) -> str:
    """Return the pattern of a text that is no part of another word; a number may stand behind letters (`card12`), and all
    behind what addresses write for a space (`%20`)."""
    if text.isdigit():
        return rf"(?:(?<!\d)|(?<=%[0-9A-Fa-f]{{2}})){text}(?!\d)"
    return rf"(?:(?<!\w)|(?!\w)|(?<=%[0-9A-Fa-f]{{2}})){re.escape(text)}(?:(?!\w)|(?<!\w))"


def texts_of_row(row: Element) -> list[str]:
    """Return the texts of a row, each element's before those of the elements below."""
    return [child.strip() for each in row.elements() for child in each.children if isinstance(child, str)]


def _renew(row: Element, texts: Mapping[int, str]) -> None:
    ordinal = 0
    for element in list(row.elements()):
        for index, child in enumerate(element.children):
            if isinstance(child, str):
                if texts.get(ordinal):
                    element.children[index] = child.replace(child.strip(), texts[ordinal]) if child.strip() else texts[ordinal]
                ordinal += 1


@lru_cache(maxsize=1 << 15)
def linked_rows(value: str, url: str) -> Mapping[str, Mapping[str, str]]:
    """Return the texts of the rows of a list by their ordinals, for each path that a row links to the first row that does.
    `url`: the path of the page.

    Of a text with commas, each part has an ordinal of its own."""
    linked: dict[str, Mapping[str, str]] = {}
    for row in decode(value) if len(value) > _LEAST_ROW and rows_of(value) is not None else ():
        if isinstance(row, Element):
            elements = list(row.elements())
            written = texts_of_row(row)
            texts = {f"{index}": text for index, text in enumerate(written)}
            texts |= {f"{index}.{number}": part for index, text in enumerate(written) if ", " in text
                      for number, part in enumerate(text.split(", "))}
            for each in elements:
                href = each.attributes.get("href", "")
                if href[:1] == "?" or path_from(url, href):
                    linked.setdefault(row_keys(urljoin(url, href))[0], texts)
    return linked


def rows_to(visit: SiteVisit, url: str) -> dict[str, Mapping[str, str]]:
    """Return the texts of the rows of a visit's page that link to the path of an address, by route and place."""
    keys, page = row_keys(url), path_of(visit.url)
    ends = {keys[0].partition("?")[2] or keys[0].rstrip("/").rpartition("/")[2], keys[-1].rstrip("/").rpartition("/")[2]}
    rows: dict[str, Mapping[str, str]] = {}
    for place, value in visit.values.items():
        if value and value[0] == "[" and any(end in value for end in ends):
            linked = linked_rows(value, page)
            rows |= {f"{visit.route} {place}": linked[key] for key in reversed(keys) if key in linked}
    return rows


def row_keys(url: str) -> tuple[str, ...]:
    """Return under which names rows lead to an address: with its query, and by its path."""
    path = path_of(url)
    query = urlsplit(url).query if path else ""
    return (f"{path}?{query}", path) if query else (path,)


def with_row(look: Value, side: str, at: int, row: Value) -> Value:
    """Return a list with a row more, at a position from this side."""
    rows = rows_of(look)
    if rows is None or row is None or row == ABSENT:
        return ABSENT
    if rows and structure_of(json.loads(row)) not in map(structure_of, rows):
        return ABSENT   # a row that says that there are none, or a list of something else
    position = min(at, len(rows)) if side == "start" else max(len(rows) - at, 0)
    return encode([*decode(look or "[]")[:position], *decode(f"[{row}]"), *decode(look or "[]")[position:]])


def structure_of(row: Any) -> Any:
    """Return the tags of a row, given as JSON, without its texts and attributes."""
    return (row[0], *map(structure_of, row[2])) if isinstance(row, list) else ""


def write_pattern(pattern: Value, argument: Callable[[str], str | None]) -> Value:
    """Return a pattern's text for a request, `ABSENT` if the request lacks a name. In nodes, texts are written as JSON."""
    if pattern is None or MARK not in pattern:
        return pattern
    is_json = pattern[:1] == "["
    parts = pattern.split(MARK)
    for index in range(1, len(parts), 2):
        value = argument(parts[index])
        if value is None:
            return ABSENT
        parts[index] = json.dumps(value, ensure_ascii=False)[1:-1] if is_json else value
    return "".join(parts)
