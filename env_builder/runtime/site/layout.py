"""Lay out a site's pages for an episode: rows whose order says nothing stand in an order of the seed.

In: the lists without an order, as `env_builder.site.ordering` learnt them (layout.json), and a seed. Out: a port before a
session's, whose pages hold the same rows in another order. Session, ledger and recorded answers know nothing of it. A row's
place follows from the seed and from what it shows, so two rows stand in one order wherever they come together in an episode.
Parts of a page without such a list are shared with the session's own page, and a page is laid out once. Does not see: names of
fields, columns, blocks, widths of a window: they stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..canonical import canonical, digest
from .port import PortAnswer, PortRequest, SitePort
from .trees import Element

_MOST_PAGES = 1024
"""Pages whose layout is kept; the oldest goes first."""


class UnorderedLists:
    """The lists of a site whose order says nothing."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        """Take rows {"path": template of a page's path, "list": steps of tags with classes from the page's root}."""
        self._lists: dict[str, set[tuple[str, ...]]] = {}
        for row in rows:
            self._lists.setdefault(row["path"], set()).add(tuple(row["list"]))

    def of(self, path: str) -> frozenset[tuple[str, ...]]:
        """Return the lists on pages of a path."""
        return frozenset(self._lists.get(path, ()))


def step_of(element: Element, counts: Counter[str] | None = None) -> str:
    """Return how the way to a list names an element on it: by tag, classes, and its place among siblings like it.

    `counts`: of the siblings before it, which goes on to count."""
    step = " ".join([element.tag, *sorted(element.attributes.get("class", "").split())])
    if counts is None:
        return step
    counts[step] += 1
    return step if counts[step] == 1 else f"{step} #{counts[step]}"


def shown_text(element: Element) -> str:
    """Return what an element shows: its texts, and where its links lead."""
    parts: list[str] = []
    waiting: list[Element | str] = [element]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            parts.append(node)
        else:
            if "href" in node.attributes:
                parts.append(node.attributes["href"])
            waiting += reversed(node.children)
    return " ".join(" ".join(parts).split())


class PageLayout:
    """How one seed lays out pages; shared by the episodes of that seed."""

    def __init__(self, lists: UnorderedLists, seed: int) -> None:
        self._lists = lists
        self._seed = seed
        self._pages: dict[int, tuple[Element, Element]] = {}

    def arranged(self, path: str, page: Element) -> Element:
        """Return a page of a path with its rows in another order; the page itself stays as it is."""
        lists = self._lists.of(path)
        if not lists:
            return page
        kept = self._pages.get(id(page))
        if kept is None or kept[0] is not page:
            if len(self._pages) >= _MOST_PAGES:
                del self._pages[next(iter(self._pages))]
            longest = max(map(len, lists))
            kept = self._pages[id(page)] = page, self._below(page, (step_of(page),), lists, longest)
        return kept[1]

    def _below(self, element: Element, way: tuple[str, ...], lists: frozenset[tuple[str, ...]], longest: int) -> Element:
        """Return an element with the lists within it arranged; itself where there are none."""
        children = list(element.children)
        if len(way) < longest:
            counts: Counter[str] = Counter()
            for place, child in enumerate(children):
                if isinstance(child, Element):
                    further = (*way, step_of(child, counts))
                    if any(each[:len(further)] == further for each in lists):
                        children[place] = self._below(child, further, lists, longest)
        if way in lists:
            places = [place for place, child in enumerate(children) if isinstance(child, Element)]
            rows = sorted((child for child in children if isinstance(child, Element)), key=self._rank)
            for place, row in zip(places, rows, strict=True):
                children[place] = row
        same = all(one is other for one, other in zip(children, element.children, strict=True))
        return element if same else Element(element.tag, element.attributes, children)

    def _rank(self, row: Element) -> str:
        return digest(canonical([self._seed, "row", shown_text(row)]))


class ArrangedSite(SitePort):
    """A site whose pages are laid out by a seed."""

    def __init__(self, site: SitePort, layout: PageLayout,
                 path_of: Callable[[str, str], tuple[str, tuple[str, ...]] | None]) -> None:
        """`path_of`: method and url -> template of the path, and what varies in it."""
        self._site = site
        self._layout = layout
        self._path_of = path_of

    def ask(self, request: PortRequest) -> PortAnswer:
        answer = self._site.ask(request)
        route = self._path_of(request.method, request.url) if answer.page is not None else None
        if answer.page is None or route is None:
            return answer
        return answer._replace(page=self._layout.arranged(route[0], answer.page))
