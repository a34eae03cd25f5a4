"""Learn which names of a site may be exchanged at a reset, so that what was learnt by heart names something else.

In: sessions of pages, the routes, texts of asks and messages, the words of templates. Out: `NameClasses`: numbers and codes in
the varying segments of paths, long numbers that people typed, words of the titles of what pages are about, names of logins,
and the years of the log. A word is exchanged only if it stands in titles alone: not in what templates hold, buttons, options,
other short texts, addresses, or what is left of an ask when titles are taken out, as these tell people what to do. Titles
and texts of several words that asks gave to people to type are exchanged as wholes (`phrasing.py`).
Ids of few digits, and those of three or four that stand on a page without a link to them (they may be quantities), are judged
by what stands around them (`short_numbers.py`).
Sees: headings of pages with an id in their path. Does not see: titles that no heading shows, words of other letters than a-z,
ids of one digit that end no slug. Abstains: from years, where dates have years of two digits.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from env_builder.runtime.exchanges import CYCLE, NameClasses
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.trees import Element
from env_builder.site.phrasing import KnownTexts, learn_phrases
from env_builder.site.recorded import PageSession, login_of
from env_builder.site.short_numbers import learn_short_numbers

LEAST_NUMBER, LEAST_TYPED, LEAST_CODE, LEAST_WORD = 3, 7, 5, 4
"""Characters of a number in a path, of one in a query, a form or an ask, of a code, of a word."""
MOST_SHARED = 1 / 3
"""Of the titles of a route, those that a word may stand in; a word of more is no name."""
SHORT_TEXT = 3
"""Words of a text that is a label and no sentence."""
_RUN = re.compile(r"[A-Za-z0-9]+")
_WORD = re.compile(r"[^\W\d_]+")
_SLUG = re.compile(r"(?=[^\d]*[A-Za-z])[A-Za-z0-9][\w-]*[_-]\d{1,4}")
_SHORT_NUMBER = re.compile(r"(?<!\d)\d{3,4}(?!\d)")
_PLAIN_WORD = re.compile(r"[a-z]+")
_ADDRESSED = re.compile(r"^\W*(?:(?:hi|hey|hello|dear) )?[\w.-]+ *[,:;–—-](?= )", re.IGNORECASE)
_HEADINGS = frozenset({"h1", "h2"})
_LABELS = frozenset({"button", "label", "option", "th", "legend", "summary"})
_SHOWN = ("alt", "aria-label", "placeholder", "title")
_SHORT_YEAR = re.compile(r"(?<![\d/.-])(?:\d{1,2}[/.]\d{1,2}[/.]\d{2}|\d{2}-\d{2}-\d{2})(?![\d/.-])")


def learn_names(sessions: Sequence[PageSession], routes: SiteRoutes, texts: Iterable[str], templates: Any,
                fixed: Iterable[str] = (), values_of_asks: Mapping[str, Iterable[str]] | None = None) -> NameClasses:
    """Return the classes. `texts`: asks and messages; `templates`: templates.json's value; `fixed`: addresses and paths;
    `values_of_asks`: by field, values that asks gave."""
    texts, fixed = list(texts), list(fixed)
    pages = SitePages(sessions, routes)
    constants = set(_constants(templates))
    words = _unique_words(pages, texts, constants.union(fixed), values_of_asks or {})
    runs = {run for value in pages.parameters for run in _RUN.findall(value)}
    typed = {run for text in [*pages.given, *texts] for run in _RUN.findall(text) if len(run) >= LEAST_TYPED and run.isdigit()}
    numbers: dict[tuple[int, bool], set[str]] = defaultdict(set)
    codes: dict[tuple[int, str], set[str]] = defaultdict(set)
    short = learn_short_numbers(sessions, routes, fixed, pages.loose)
    stemmed = {f"{stem}{number}" for stem in short.stems for each in short.ids for number in each}
    for run in {*runs, *typed}:
        if run.isdigit() and len(run) >= LEAST_NUMBER and run not in pages.loose and not _is_date(run, pages.years):
            numbers[len(run), run[0] == "0"].add(run)
        elif not run.isdigit() and not run.isalpha() and len(run) >= LEAST_CODE and run.lower() not in stemmed:
            codes[len(run), _kind(run)].add(run)
    slugs = {value for value in pages.parameters if _SLUG.fullmatch(value)}
    return NameClasses(_classes(numbers.values()), _classes(words), _classes(codes.values()),
                       years=() if pages.has_short_years else pages.years, slugs=_classes([slugs]),
                       ids=short.ids, stems=short.stems, counting=short.counting,
                       phrases=_classes(learn_phrases(sessions, routes, KnownTexts(
                           texts, values_of_asks or {}, constants | pages.labels, {word for each in words for word in each}))))


class SitePages:
    """What recorded pages and requests hold that names are learnt from."""

    def __init__(self, sessions: Sequence[PageSession], routes: SiteRoutes) -> None:
        self.parameters: set[str] = set()
        """Values of varying segments of paths."""
        self.given: set[str] = set()
        """Values of queries and forms."""
        self.headings: dict[str, dict[str, set[tuple[str, ...]]]] = defaultdict(lambda: defaultdict(set))
        """Path template -> heading -> what the pages with it are about."""
        self.labels: set[str] = set()
        """Texts of buttons and the like."""
        self.short: set[str] = set()
        """Other texts that are no sentences."""
        self.loose: set[str] = set()
        """Numbers of few digits that stand where nothing leads to what has that number."""
        self.logins: set[str] = set()
        self.has_short_years = False
        instants = []
        for session in sessions:
            self.logins |= {name.partition("@")[0].lower() for name in (session.login, session.user) if name}
            for place, request in enumerate(session.requests):
                instants.append(request.at.year)
                route = routes.route(request.method, request.url)
                values = tuple(routes.parameters(route, request.url).values()) if route is not None else ()
                self.parameters.update(values)
                if login_of(request) is None:
                    self.given.update(value for _, value in parse_qsl(urlsplit(request.url).query))
                    self.given.update(value for _, value in request.form or ())
                self.loose |= {value for _, value in request.form or () if _SHORT_NUMBER.fullmatch(value)
                               } - set(_RUN.findall(request.url))
                page = session.page(place)
                if page is not None and request.status < 400:
                    self._read(page, self.headings[route.path] if route is not None and values else None, values)
                    self.loose |= _unlinked(page, request.url)
        first, last = (min(instants), max(instants)) if instants else (0, -1)
        self.years: tuple[int, ...] = tuple(range(first - 1, last + 2)) if last - first + 2 < CYCLE else ()

    @property
    def titles(self) -> dict[str, set[str]]:
        """Return path template -> headings that stand on the pages of one entity alone."""
        return {path: {text for text, entities in headings.items() if len(entities) == 1}
                for path, headings in self.headings.items()}

    def _read(self, page: Element, headings: dict[str, set[tuple[str, ...]]] | None, entity: tuple[str, ...]) -> None:
        for element in page.elements():
            if element.tag in ("script", "style", "head", "title"):
                continue
            own = " ".join(" ".join(child for child in element.children if isinstance(child, str)).split())
            if headings is not None and element.tag in _HEADINGS and own:
                headings[own].add(entity)
            for text in (own, *(element.attributes[name] for name in _SHOWN if name in element.attributes)):
                if text and element.tag in _LABELS:
                    self.labels.add(text)
                elif text and len(text.split()) <= SHORT_TEXT:
                    self.short.add(text)
                if text and _SHORT_YEAR.search(text):
                    self.has_short_years = True


def _unique_words(pages: SitePages, texts: Sequence[str], constants: set[str], values_of_asks: Mapping[str, Iterable[str]]
                  ) -> list[set[str]]:
    """Return classes of words that stand in titles alone, and of the names of logins. `constants`: texts that stay."""
    instructive = {word for text in constants for word in _words(text)}
    groups = []
    of_path = pages.titles
    names = {title.lower() for titles in of_path.values() for title in titles if len(title) >= LEAST_WORD}
    others = instructive | {word for text in pages.labels for word in _words(text)}
    titles = sorted(names, key=lambda name: (-len(name), name))
    elsewhere = {word for text in [*pages.short, *texts] for word in _words(_without(text.lower(), titles))}
    for path in sorted(of_path):
        counts = Counter(word for title in of_path[path] for word in set(_words(title)))
        most = max(2, int(MOST_SHARED * len(of_path[path])))
        groups.append({word for word, n in counts.items() if n <= most and len(word) >= LEAST_WORD} - others - elsewhere)
    groups.append(_people(pages, constants, texts, values_of_asks))
    return groups


def _people(pages: SitePages, constants: set[str], texts: Sequence[str], values_of_asks: Mapping[str, Iterable[str]]
            ) -> set[str]:
    """Return the names of logins that are no words besides: a text that is a login alone names a person, and so does an ask
    that gives several of them to one field."""
    logins = {name for name in pages.logins if _PLAIN_WORD.fullmatch(name) and len(name) > 2}
    fields = [logins.intersection(map(str.lower, values)) for values in values_of_asks.values()]
    given = set().union(*(each for each in fields if len(each) > 1))
    sentences = [text for text in [*constants, *pages.labels] if text.strip().lower() not in logins]
    return logins - {word for text in sentences for word in _words(text)} - (
        {word for text in texts for word in _words(_without_mentions(text))} - given)


def _unlinked(page: Element, url: str) -> set[str]:
    """Return numbers of few digits that a page shows, and to which neither it nor its own address leads."""
    linked, shown = set(_RUN.findall(url)), set[str]()
    for element in page.elements():
        attributes = element.attributes
        for name in ("href", "action"):
            linked.update(_RUN.findall(attributes.get(name, "")))
        if element.tag not in ("script", "style"):
            texts = [child for child in element.children if isinstance(child, str)]
            if attributes.get("type") != "hidden":
                texts.append(attributes.get("value", ""))
            shown.update(number for text in texts for number in _SHORT_NUMBER.findall(text))
    return shown - linked


def _without(text: str, titles: Sequence[str]) -> str:
    for title in titles:
        if title in text:
            text = text.replace(title, " ")
    return text


def _without_mentions(text: str) -> str:
    """Return a text without names behind `@`, and without whom it is addressed to."""
    return _ADDRESSED.sub(" ", re.sub(r"@[\w.-]+", " ", text))


def _words(text: str) -> Iterator[str]:
    return (word for word in map(str.lower, _WORD.findall(unquote(text))) if _PLAIN_WORD.fullmatch(word))


def _constants(templates: Any) -> Iterator[str]:
    """Yield the texts that templates hold, and their attributes."""
    waiting = [templates]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, Mapping):
            waiting += value.values()


def _is_date(run: str, years: Sequence[int]) -> bool:
    return len(run) in (4, 6, 8, 14) and int(run[:4]) in years and 1 <= int(run[4:6] or 1) <= 12


def _kind(run: str) -> str:
    """Return which letters a code has."""
    case = "small" if run == run.lower() else "capital" if run == run.upper() else "mixed"
    return f"hex {case}" if re.fullmatch("[0-9a-fA-F]{8,}", run) else case


def _classes(groups: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(sorted(each for group in groups if len(each := tuple(sorted(group))) > 1))
