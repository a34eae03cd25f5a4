"""A value that a page had at some time in, the same with its ages in words as they are now out.

Of each text that is an age (`AgeFormat`), the instant that it counts from is looked for among the times that the text's own
element, its row or the page of the row's entity name, and the posts about that entity; else it lies in the middle of what all
looks at the row so far leave. An age of which no text was learnt leaves the whole value unknown.
Sees: what happened before the request. Does not see: acts on the entity since the value was looked at (`acted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple, Protocol
from urllib.parse import urljoin

from .ages import AgeFormat
from .times import SiteTimes, instants_in
from .trees import Element, Node, decode, encode
from .visits import Place, SiteVisit, Value, path_of, rows_of

__all__ = ["AgedRows", "RowLook", "Witnesses", "instants_told", "links_of", "named_instants", "path_from", "row_paths"]

_MOST_LOOKS = 48
"""Earlier looks at a row that are asked for where its age began."""
_FUTURE, _SLACK = timedelta(minutes=1), timedelta(seconds=2)
"""How far clocks of pages may be ahead; between an act and the time that is written of it."""
_OLDEST = 1e9
"""Seconds; nothing on a site is older."""


class RowLook(NamedTuple):
    """A look at a row: when, and its texts by their ordinals."""

    at: datetime
    texts: Mapping[str, str]


class Witnesses(Protocol):
    """What is known of entities before a request."""

    def instants(self, path: str, until: datetime) -> Sequence[datetime]:
        """Return when something happened to what a path names, as posts and pages up to an instant tell, sorted."""

    def row_looks(self, path: str, name: str, until: datetime) -> Iterable[RowLook]:
        """Return the looks before an instant at the row of a list that links to a path, the last first."""


def named_instants(node: Node, times: SiteTimes) -> Iterator[datetime]:
    """Yield the times that an element's attributes and texts name, or a text."""
    if isinstance(node, str):
        yield from instants_in(node, times)
        return
    for element in node.elements():
        for text in (*element.attributes.values(), *(each for each in element.children if isinstance(each, str))):
            yield from instants_in(text, times)


def instants_told(visit: SiteVisit, times: SiteTimes) -> Iterator[tuple[str, datetime]]:
    """Yield what a visit tells of when something happened: the path of what it happened to, and the instant.

    A post that leads on happened to what it was sent to and to where it leads; a page names times of what it is about."""
    if visit.is_write and (location := visit.values.get("location")):
        yield from dict.fromkeys(((path_of(visit.url), visit.at), (path_of(location), visit.at)))
    elif visit.is_page:
        path = path_of(visit.url)
        instants = {each for value in visit.values.values() if value for each in instants_in(value, times)}
        yield from ((path, each) for each in sorted(instants) if each <= visit.at + _FUTURE)


class AgedRows:
    """Brings the ages of a value up to date."""

    def __init__(self, format_: AgeFormat, witnesses: Witnesses) -> None:
        self.format = format_
        self._witnesses = witnesses

    def value(self, visit: SiteVisit, place: Place, now: datetime) -> Value:
        """Return what a place of a visit had, as of now. Errors: LookupError for an age of which no text was learnt."""
        value = visit.values[place]
        if not value or visit.at == now or not self.format.is_in(value):
            return value
        if rows_of(value) is None:
            return self._text(value, visit, now, path_of(visit.url))
        nodes = decode(value)
        paths = row_paths(nodes, visit.url)
        name = f"{visit.route} {place}"
        for node, path in zip(nodes, paths, strict=True):
            if isinstance(node, Element):
                self._age_row(node, path or path_of(visit.url), name if path else "", visit.at, now)
        return encode(nodes)

    def _text(self, text: str, visit: SiteVisit, now: datetime, path: str) -> str:
        stripped = text.strip()
        meant = self.format.meant(stripped)
        if meant is None:
            return text
        anchor = self._anchor(meant, visit.at, now, (), path, "", 0)
        return text.replace(stripped, self._written(now, anchor))

    def _age_row(self, row: Element, path: str, name: str, at: datetime, now: datetime) -> None:
        ordinal = 0
        for element in list(row.elements()):
            for index, child in enumerate(element.children):
                if not isinstance(child, str):
                    continue
                text = child.strip()
                meant = self.format.meant(text)
                if meant is not None:
                    near = (*(each for value in element.attributes.values() for each in instants_in(value, self.format.times)),
                            *named_instants(row, self.format.times))
                    anchor = self._anchor(meant, at, now, near, path, name, ordinal)
                    element.children[index] = child.replace(text, self._written(now, anchor))
                ordinal += 1

    def _written(self, now: datetime, anchor: datetime) -> str:
        text = self.format.written((now - anchor).total_seconds())
        if text is None:
            raise LookupError("no text was learnt for this age")
        return text

    def _is_one(self, begin: datetime, end: datetime, now: datetime) -> bool:
        """Return whether one text is written now for all instants between two."""
        return self.format.written((now - begin).total_seconds()) == self.format.written((now - end).total_seconds())

    def _anchor(self, meant: tuple[float, float], at: datetime, now: datetime, near: Sequence[datetime], path: str, name: str,
                ordinal: int) -> datetime:
        """Return the instant that an age counts from, as far as it says what is written now; `at`: when the age was shown."""
        begin, end = at - timedelta(seconds=min(meant[1], _OLDEST)), at - timedelta(seconds=meant[0])
        if self._is_one(begin, end, now):
            return end
        for instants in (near, self._witnesses.instants(path, at)[::-1]):
            fitting = [each for each in instants if begin - _SLACK <= each <= end + _SLACK]
            if fitting:
                return fitting[0]
        for look in islice(self._witnesses.row_looks(path, name, at), _MOST_LOOKS) if name else ():
            earlier = self.format.meant(look.texts.get(f"{ordinal}", ""))
            if earlier is None:
                break
            narrow = (max(begin, look.at - timedelta(seconds=min(earlier[1], _OLDEST))),
                      min(end, look.at - timedelta(seconds=earlier[0])))
            if narrow[0] >= narrow[1]:
                break
            begin, end = narrow
            if self._is_one(begin, end, now):
                break
        return begin + (end - begin) / 2


def row_paths(nodes: Sequence[Node], url: str) -> list[str | None]:
    """Return for each row the path that it is about: the first that no other row links to."""
    of_rows = [links_of(node, url) for node in nodes]
    met: dict[str, int] = {}
    for each in of_rows:
        for path in set(each):
            met[path] = met.get(path, 0) + 1
    own = path_of(url)
    return [next((path for path in each if path and met[path] == 1 and path != own), None) for each in of_rows]


def links_of(row: Node, url: str) -> list[str]:
    """Return the paths that a row links to, on the page of an address."""
    return [path_from(url, each.attributes["href"]) for each in row.elements() if "href" in each.attributes] if isinstance(
        row, Element) else []


def path_from(url: str, href: str) -> str:
    """Return the path to which a link on the page of an address leads; an empty text where it leads to no other page."""
    path = path_of(href)
    return path if not path or path[0] == "/" else path_of(urljoin(url, href))
