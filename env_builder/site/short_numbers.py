"""Learn which numbers of few digits are ids of a site, and in which contexts they count something instead.

In: sessions of pages, routes, names that stay. Out: `ShortNumbers`: ids of two digits (of up to four, where a word stands
before them without a gap, or where they are quantities elsewhere) in the varying segments of paths that people asked for or
pages link to, and in queries whose pages have them in their headings; and the contexts (`of {}`, `{} days`) in which such a
number stands where nothing around leads to what has it. Around is the row, the list item or the link, and the own address.
Abstains: from a number that counts without any context, as a cell or a text of its own does, that somebody set in a form, or
that stays in the names given. Does not see: ids of one digit, numbers in words, what the choices of a list count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

from env_builder.runtime.short_ids import LEAST, MOST, contexts_of, is_joined, short_numbers
from env_builder.runtime.site.form_ledger import changed_fields
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.trees import Element
from env_builder.site.form_laws import form_before
from env_builder.site.recorded import PageSession, login_of

_ROWS = frozenset({"article", "dd", "dt", "li", "option", "tr"})
"""Elements of which the links say what their numbers are."""
_SHOWN = ("alt", "aria-label", "placeholder", "title", "value")
_HEADINGS = frozenset({"h1", "h2", "title"})
_FEW = 3
"""Ids with one word before them, from which on it is a stem; and digits from which on ids are exchanged by themselves."""


class ShortNumbers(NamedTuple):
    """Ids of few digits, and where such numbers are none."""

    ids: tuple[tuple[str, ...], ...]
    stems: tuple[str, ...]
    counting: tuple[str, ...]


def learn_short_numbers(sessions: Sequence[PageSession], routes: SiteRoutes, fixed: Iterable[str],
                        quantities: Iterable[str] = ()) -> ShortNumbers:
    """Return the ids and contexts. `quantities`: numbers of three digits and more that count somewhere."""
    occurrences = _Occurrences(routes)
    occurrences.learn_keys((request.url, page) for session in sessions for place, request in enumerate(session.requests)
                    if "?" in request.url and request.status < 400 and (page := session.page(place)) is not None)
    for session in sessions:
        for place, request in enumerate(session.requests):
            occurrences.read(request.url, session.page(place) if request.status < 400 else None)
            if request.form and login_of(request) is None:
                changed = changed_fields(form_before(session, place), request.form)
                occurrences.alone |= {value for name, value in request.form if value.isdigit() and name in changed
                               } - set(_numbers(request.url, occurrences.stems))
    stems = frozenset(occurrences.stems)
    occurrences.alone.update(number for text in fixed for number in _numbers(text, stems))
    return occurrences.judged(frozenset(quantities))


def _query(url: str) -> list[tuple[str, str]]:
    """Return the names and values of a query that may be ids."""
    return [(name, value) for name, value in parse_qsl(urlsplit(url).query)
            if value.isdigit() and value[0] != "0" and LEAST <= len(value) <= MOST]


def _numbers(text: str, stems: Iterable[str]) -> list[str]:
    return [text[begin:end] for begin, end in short_numbers(text, frozenset(stems))]


class _Occurrences:
    """Where numbers of few digits stand."""

    def __init__(self, routes: SiteRoutes) -> None:
        self._routes = routes
        self._of_address: dict[str, frozenset[str]] = {}
        """Path -> the numbers of what it is about."""
        self._stemmed: dict[str, set[str]] = defaultdict(set)
        """Word -> the numbers that stand behind it without a gap."""
        self._plain: set[str] = set()
        self._keys: set[tuple[str, str]] = set()
        """Paths, and names in their queries, whose values are ids."""
        self._in_queries: set[str] = set()
        self._bound: Counter[str] = Counter()
        self._unbound: Counter[str] = Counter()
        """By context: numbers of what is led to, and others."""
        self._n_bound: Counter[str] = Counter()
        self._n_loose: Counter[str] = Counter()
        self._loose: list[tuple[str, tuple[str, ...]]] = []
        """Numbers that nothing leads to, with their contexts."""
        self.alone: set[str] = set()
        """Numbers that count without a context."""

    @property
    def stems(self) -> set[str]:
        """Return the words before numbers."""
        return {word for word, numbers in self._stemmed.items() if len(numbers) >= _FEW}

    def learn_keys(self, pages: Iterable[tuple[str, Element]]) -> None:
        """Learn which names of queries are of ids: the pages of several values have these in their headings."""
        headed: dict[tuple[str, str], set[str]] = defaultdict(set)
        for url, page in pages:
            given = _query(url)
            if given:
                heads = {number for element in page.elements() if element.tag in _HEADINGS for child in element.children
                         if isinstance(child, str) for number in _numbers(child, ())}
                for key, number in given:
                    if number in heads:
                        headed[urlsplit(url).path, key].add(number)
        self._keys = {each for each, numbers in headed.items() if len(numbers) >= _FEW}
        self._in_queries = {number for each in self._keys for number in headed[each]}

    def read(self, url: str, page: Element | None) -> None:
        """Read an address and its page."""
        own = self._about(url)
        if page is not None:
            self._below(page, url, own)

    def _below(self, element: Element, url: str, around: frozenset[str]) -> None:
        if element.tag in ("script", "style"):
            return
        if element.tag in _ROWS or "href" in element.attributes:
            around = around.union(*(self._about(urljoin(url, each.attributes["href"])) for each in element.elements()
                                    if "href" in each.attributes))
        attributes = element.attributes
        for text in (child for child in element.children if isinstance(child, str) and element.tag != "option"):
            self._note(text, around)
        for name in _SHOWN:
            if name in attributes and attributes.get("type") != "hidden" and element.tag != "option":
                self._note(attributes[name], around)
        if "href" in attributes:
            address = attributes["href"]
            self._note(address, around)
        for child in element.children:
            if isinstance(child, Element):
                self._below(child, url, around)

    def _note(self, text: str, around: frozenset[str]) -> None:
        if not any(map(str.isdigit, text)):
            return
        for begin, end in short_numbers(text, frozenset()):
            number, contexts = text[begin:end], tuple(contexts_of(text, begin, end))
            if number in around:
                self._bound.update(contexts)
                self._n_bound[number] += 1
            else:
                self._n_loose[number] += 1
                self._unbound.update(contexts)
                self._loose.append((number, contexts))

    def _about(self, url: str) -> frozenset[str]:
        """Return the numbers of what an address is about."""
        path = urlsplit(url).path
        if path not in self._of_address:
            route = self._routes.route("GET", path or "/")
            values = self._routes.parameters(route, path).values() if route is not None else ()
            self._of_address[path] = frozenset(self._ids(path, values))
        if "?" not in url or not self._keys:
            return self._of_address[path]
        return self._of_address[path].union(number for key, number in _query(url) if (path, key) in self._keys)

    def _ids(self, path: str, values: Iterable[str]) -> Iterator[str]:
        """Yield the numbers among the varying segments of a path, and remember them."""
        for value in values:
            stem = value.rstrip("0123456789")
            number = value[len(stem):]
            at = unquote(path).find(value) + len(stem)
            if LEAST <= len(number) <= MOST and number[0] != "0" and not is_joined(unquote(path), at, at + len(number)):
                if not stem:
                    self._plain.add(number)
                    yield number
                elif stem.isascii() and stem.isalpha() and len(stem) > 1:
                    self._stemmed[stem.lower()].add(number)
                    yield number

    def judged(self, quantities: frozenset[str]) -> ShortNumbers:
        """Return what is an id, and the contexts in which it is none."""
        stems = self.stems
        stemmed = {number for stem in stems for number in self._stemmed[stem]}
        ids = stemmed | self._in_queries | {number for number in self._plain if len(number) < _FEW or number in quantities}
        ids -= {number for number in quantities if self._n_bound[number] <= self._n_loose[number]}
        counting = set[str]()
        for number, contexts in self._loose:
            if number not in ids:
                continue
            mostly = {context for context in contexts if self._unbound[context] > self._bound[context]
                      and context.rpartition("{")[0].rstrip(" #-_/") not in stems}
            counting |= mostly
            if not mostly:
                self.alone.add(number)
        kept = ids - self.alone
        classes = (tuple(sorted(number for number in kept if len(number) == length)) for length in range(LEAST, MOST + 1))
        return ShortNumbers(tuple(each for each in classes if len(each) > 1), tuple(sorted(stems)), tuple(sorted(counting)))
