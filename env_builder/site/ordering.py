"""Learn which lists of a site's pages have an order that says nothing, so that a reset may show them in another one.

In: sessions of pages, routes. Out: rows of layout.json: the path of a page and the way to a list in it. A list is the children
of one element that are built alike. Its order says nothing where several such lists were seen and no column of their rows
(texts, numbers, days, numbers of links) goes up or down in all of them, nor the instant at which a row was first seen. It stays
where evidence is missing: fewer than three lists of three rows, or the same rows every time. So do options, rows whose fields
have one name, and rows that lead nowhere whose labels always come in one order. Does not see: orders by
what no row shows, such as how often an entity was bought.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterator, Sequence
from datetime import datetime
from itertools import combinations, pairwise
from typing import Any, NamedTuple

from env_builder.runtime.site.layout import shown_text, step_of
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.trees import Element
from env_builder.site.recorded import PageSession

LEAST_LISTS, LEAST_ROWS = 3, 3
_FIXED = frozenset({"dl", "form", "head", "html", "select", "optgroup", "thead", "tfoot", "tr", "datalist", "svg"})
"""Elements whose children have an order."""
_LOOSE = frozenset({"script", "style", "template"})
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBER = re.compile(r"[^\d-]*(-?\d+(?:[ ,]\d{3})*(?:\.\d+)?)\D*")
_WORDED = re.compile(r"(?i)(?:(\d{1,2})(?:st|nd|rd|th)?\s+)?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+"
                     r"(?:(\d{1,2}),\s*)?(\d{4})(.*)")


class RowSequence(NamedTuple):
    """A list as a page showed it."""

    at: datetime
    rows: tuple[str, ...]
    """What each row shows."""
    names: tuple[str, ...]
    """By what each row is known again: where its first link leads, else what it shows."""
    are_links: bool
    """Whether each row leads somewhere else."""
    columns: dict[Hashable, list[str]]
    """Place in a row -> its texts, row by row, where every row has one."""


def learn_unordered(sessions: Sequence[PageSession], routes: SiteRoutes) -> list[dict[str, Any]]:
    """Return the lists whose order says nothing."""
    lists: dict[tuple[str, tuple[str, ...]], list[RowSequence]] = defaultdict(list)
    fixed: set[tuple[str, tuple[str, ...]]] = set()
    for session in sessions:
        for place, request in enumerate(session.requests):
            page, route = session.page(place), routes.route(request.method, request.url)
            if page is None or route is None or request.status >= 400:
                continue
            for way, element in containers(page, (step_of(page),)):
                rows = [child for child in element.children if isinstance(child, Element)]
                if not are_alike(rows) or share_fields(rows):
                    fixed.add((route.path, way))
                else:
                    lists[route.path, way].append(_shown(request.at, rows))
    return [{"path": path, "list": list(way)} for path, way in sorted(lists.keys() - fixed) if _says_nothing(lists[path, way])]


def containers(element: Element, way: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Element]]:
    """Yield the elements with two children and more, and the ways to them."""
    children = [child for child in element.children if isinstance(child, Element)]
    if len(children) > 1 and element.tag not in _FIXED:
        yield way, element
    counts: Counter[str] = Counter()
    for child in children:
        step = step_of(child, counts)
        if child.tag not in ("script", "style", "svg"):
            yield from containers(child, (*way, step))


def are_alike(rows: Sequence[Element]) -> bool:
    """Whether rows have one tag, and hold elements of the same tags in the same order."""
    shapes = {(row.tag, tuple(child.tag for child in row.children if isinstance(child, Element))) for row in rows}
    return len(shapes) == 1 and rows[0].tag not in _LOOSE and not any("colspan" in row.attributes for row in rows)


def share_fields(rows: Sequence[Element], sent_twice: Container[str] | None = None) -> bool:
    """Whether fields of several rows have one name: then the order in which they are sent would change.

    `sent_twice`: names of which one form sent two; boxes of any other name are sent alone, and do not count. None: all do."""
    names = [{element.attributes["name"] for element in row.elements()
              if "name" in element.attributes and element.tag in ("input", "select", "textarea") and (
                  kind := element.attributes.get("type", "").lower()) not in ("hidden", "submit") and not (
                  kind in ("checkbox", "radio") and sent_twice is not None and element.attributes["name"] not in sent_twice)}
             for row in rows]
    return sum(map(len, names)) > len(set().union(*names))


def _shown(at: datetime, rows: Sequence[Element]) -> RowSequence:
    cells = [dict(_cells(row, ())) for row in rows]
    columns = {place: [each[place] for each in cells] for place in cells[0] if all(place in each for each in cells)}
    links = [next((each.attributes["href"] for each in row.elements() if "href" in each.attributes), "") for row in rows]
    texts = [shown_text(row) for row in rows]
    names = tuple(link or text for link, text in zip(links, texts, strict=True))
    return RowSequence(at, tuple(texts), names, all(links) and len(set(links)) == len(links), columns)


def _cells(element: Element, place: tuple[int, ...]) -> Iterator[tuple[Hashable, str]]:
    """Yield places in a row and what stands there: texts, and the numbers of links."""
    text = " ".join(" ".join(child for child in element.children if isinstance(child, str)).split())
    if text:
        yield place, text
    numbers = re.findall(r"\d+", element.attributes.get("href", ""))
    if numbers:
        yield (*place, "href"), numbers[-1]
    for number, child in enumerate(child for child in element.children if isinstance(child, Element)):
        yield from _cells(child, (*place, number))


def _says_nothing(lists: Sequence[RowSequence]) -> bool:
    """Whether the order of lists says nothing, as far as they show."""
    long = list({each.rows: each for each in lists if len(each.rows) >= LEAST_ROWS}.values())
    if len(long) < LEAST_LISTS or len({frozenset(each.names) for each in long}) < LEAST_LISTS:
        return False
    places = set(long[0].columns).intersection(*(each.columns for each in long))
    if not all(each.are_links for each in long) and any(_is_fixed([each.columns[place] for each in long]) for place in places):
        return False
    return not any(_is_ordered([each.columns[place] for each in long]) for place in places) and not _is_by_time(lists)


def _is_by_time(lists: Sequence[RowSequence]) -> bool:
    """Whether rows stand in the order in which they were first seen, as far as that differs."""
    first: dict[str, datetime] = {}
    for each in sorted(lists, key=lambda each: each.at):
        for name in each.names:
            first.setdefault(name, each.at)
    begin = min(each.at for each in lists)
    times = [[first[name] for name in each.names] for each in lists if any(first[name] != begin for name in each.names)]
    differing = [each for each in times if len(set(each)) > 1]
    return bool(differing) and (all(map(_rises, differing)) or all(_rises(each[::-1]) for each in differing))


def _is_fixed(columns: Sequence[Sequence[str]]) -> bool:
    """Whether texts of a column come again together, and always in one order, as the labels of a table do."""
    pairs = Counter(pair for texts in columns for pair in set(combinations(dict.fromkeys(texts), 2)))
    return max(pairs.values(), default=0) > 1 and not any((other, one) in pairs for one, other in pairs)


def _is_ordered(columns: Sequence[Sequence[str]]) -> bool:
    """Whether the texts of a column go up, or down, in every list."""
    for key in (_day, _number, str.casefold):
        values = [[key(text) for text in texts] for texts in columns]
        if any(value is None for own in values for value in own) or all(len(set(own)) == 1 for own in values):
            continue
        if all(map(_rises, values)) or all(_rises(own[::-1]) for own in values):
            return True
    return False


def _rises(values: Sequence[Any]) -> bool:
    return all(one <= other for one, other in pairwise(values))


def _number(text: str) -> float | None:
    match = _NUMBER.fullmatch(text)
    return float(match[1].replace(",", "").replace(" ", "")) if match is not None else None


def _day(text: str) -> tuple[int, ...] | None:
    """Return year, month and day of a text in numbers or English words, and the numbers after them."""
    match = _WORDED.search(text)
    if match is not None:
        return int(match[4]), _MONTHS.index(match[2].lower()) + 1, int(match[1] or match[3] or 0)
    numbers = [int(each) for each in re.findall(r"\d+", text)]
    if len(numbers) >= 3 and (1900 <= numbers[0] < 2100):
        return tuple(numbers)
    if len(numbers) >= 3 and (1900 <= numbers[2] < 2100):
        return numbers[2], numbers[1], numbers[0]
    return None
