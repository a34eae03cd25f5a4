"""Lay out a site's pages for an episode: what says nothing about the work is otherwise under every seed.

In: what `env_builder.site.ordering` learnt may differ (layout.jsonl), and a seed. Out: a port before a session's, whose pages
hold the same in another order (rows and blocks without one), with other ids and names of fields that mean nothing, other
tokens, and links named by another word that the site itself uses for where they lead. Forms come back with the recorded names.
Session, ledger and recorded answers know nothing of it. A row's place follows from the seed and from what it shows, so two rows
stand in one order wherever they come together in an episode; but a row of an index stands in another one's place, always.
A page is laid out once, and shares what stays.
Does not see: columns, positions on the screen, names that a form sends by GET (they stand in addresses).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from ..canonical import canonical, digest
from .port import PortAnswer, PortRequest, SitePort
from .trees import Element

SECRET = "[secret]"
"""What stands in recorded pages for a token that was never stored."""
RUNS: frozenset[str] = frozenset()
"""Of a list: of rows that follow each other and are built alike each stands in another one's place."""
_MOST_PAGES = 1024
"""Pages whose layout is kept; the oldest goes first."""
_WORDED = re.compile(r"[A-Za-z]{3,}")
_CODED = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[0-9A-Za-z]{5,}")
_REFERENCES = ("for", "aria-labelledby", "aria-describedby", "aria-controls", "aria-owns", "list", "form",
               "popovertarget", "headers")
_FRAGMENTS = ("href", "data-target", "data-bs-target")
_FIELDS = frozenset({"input", "select", "textarea", "button"})
Way = tuple[str, ...]


class LayoutRules:
    """What may differ in the pages of a site."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        """Take rows of layout.jsonl, each with one of:

        `path` (template of a page's path) and `list` (steps of tags with classes from the page's root), and `blocks` where
        only these children change places, `runs` where rows between others do; `address` and `labels` (names of links to
        it); `viewport` (width and height);
        `ids` (those that style sheets or scripts name)."""
        self._lists: dict[str, dict[Way, frozenset[str] | None]] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        self.viewports: list[tuple[int, int]] = []
        self.kept_ids: frozenset[str] | None = None
        """None: nothing tells, and all stay."""
        for row in rows:
            if "list" in row:
                blocks = RUNS if row.get("runs") else frozenset(row["blocks"]) if "blocks" in row else None
                self._lists.setdefault(row["path"], {})[tuple(row["list"])] = blocks
            elif "labels" in row:
                self.labels[row["address"]] = tuple(row["labels"])
            elif "viewport" in row:
                self.viewports.append((row["viewport"][0], row["viewport"][1]))
            elif "ids" in row:
                self.kept_ids = frozenset(row["ids"])

    def of(self, path: str) -> Mapping[Way, frozenset[str] | None]:
        """Return the lists on pages of a path; with the names of the blocks that change places, None: all."""
        return self._lists.get(path, {})


def step_of(element: Element, counts: Counter[str] | None = None) -> str:
    """Return how the way to a list names an element on it: by tag, classes, and its place among siblings like it.

    `counts`: of the siblings before it, which goes on to count."""
    step = " ".join([element.tag, *sorted(element.attributes.get("class", "").split())])
    if counts is None:
        return step
    counts[step] += 1
    return step if counts[step] == 1 else f"{step} #{counts[step]}"


def row_shape(row: Element) -> tuple[str, ...]:
    """Return how a row is built: its tag, and those of its children."""
    return (row.tag, *(child.tag for child in row.children if isinstance(child, Element)))


def runs_of(rows: Sequence[Element]) -> list[list[int]]:
    """Return the numbers of rows, those together that follow each other and are built alike."""
    return [[number for number, _ in run] for _, run in groupby(enumerate(rows), key=lambda each: row_shape(each[1]))]


def block_name(element: Element) -> str:
    """Return by what a block is known again: tag, classes, and its first heading."""
    heading = next((each for each in element.elements() if re.fullmatch("h[1-6]|legend|summary", each.tag)), None)
    return f"{step_of(element)} | {shown_text(heading) if heading is not None else ''}"


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


def is_meaningless(name: str) -> bool:
    """Whether a name of a field says nothing: it has no word, or is a code."""
    return bool(name) and (_CODED.fullmatch(name) is not None or _WORDED.search(name) is None)


def link_label(element: Element) -> int | None:
    """Return the place of the one text that a link has, among its children; None: it has none or several."""
    places = [place for place, child in enumerate(element.children) if isinstance(child, str) and child.strip()]
    inner = any(isinstance(node, str) and node.strip() for child in element.children if isinstance(child, Element)
                for each in child.elements() for node in each.children)
    return places[0] if len(places) == 1 and not inner else None


class PageLayout:
    """How one seed lays out pages; shared by the episodes of that seed."""

    def __init__(self, rules: LayoutRules, seed: int) -> None:
        self._rules = rules
        self._seed = seed
        self._pages: dict[tuple[int, str], tuple[Element, Element]] = {}
        self._recorded: dict[int, tuple[Element, Element, str]] = {}
        """By the arranged page: that, the page that it was made of, and its path."""
        self.viewport = self._draw("viewport", rules.viewports or [(1280, 720)])
        self._names: dict[str, str] = {}
        """Name of a field as it was shown -> the recorded one."""
        self._labels: dict[str, dict[str, str]] = {}
        for address, labels in rules.labels.items():
            turn = self._draw(f"labels {address}", range(1, len(labels))) if len(labels) > 1 else 0
            self._labels[address] = {label: labels[(place + turn) % len(labels)] for place, label in enumerate(labels)}

    def arranged(self, path: str, page: Element) -> Element:
        """Return a page of a path as this seed lays it out; the page itself stays as it is."""
        kept = self._pages.get((id(page), path))
        if kept is None or kept[0] is not page:
            if len(self._pages) >= _MOST_PAGES:
                _, oldest = self._pages.pop(next(iter(self._pages)))
                self._recorded.pop(id(oldest), None)
            lists = self._rules.of(path)
            placed = self._below(page, (step_of(page),), lists, max(map(len, lists))) if lists else page
            kept = self._pages[id(page), path] = page, self._dressed(placed, False)
            self._recorded[id(kept[1])] = kept[1], page, path
        return kept[1]

    def places(self, page: Element) -> list[int] | None:
        """Return where each element of the recorded page stands on this arranged one, both counted in the page's order."""
        kept = self._recorded.get(id(page))
        if kept is None or kept[0] is not page:
            return None
        order = list(self._numbers(kept[1], 0, (step_of(kept[1]),), self._rules.of(kept[2])))
        places = [0] * len(order)
        for place, number in enumerate(order):
            places[number] = place
        return places

    def meant(self, form: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Return a form with the recorded names and tokens."""
        return tuple((self._names.get(name, name), SECRET if value == self.token else value) for name, value in form)

    def _given(self, name: str) -> str:
        """Return what stands in the place of a field's name that means nothing."""
        given = f"f{digest(canonical([self._seed, 'name', name]))[:8]}"
        self._names[given] = name
        return given

    @property
    def token(self) -> str:
        """Return what pages show in the place of a token."""
        return digest(canonical([self._seed, "token"]))[:40]

    def _draw(self, what: str, among: Sequence[Any]) -> Any:
        return random.Random(canonical([self._seed, what])).choice(among)

    def _below(self, element: Element, way: Way, lists: Mapping[Way, frozenset[str] | None], longest: int) -> Element:
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
            rows = [child for child in element.children if isinstance(child, Element)]
            below = [children[place] for place in places]
            for place, number in zip(places, self._order(rows, lists[way]), strict=True):
                children[place] = below[number]
        same = all(one is other for one, other in zip(children, element.children, strict=True))
        return element if same else Element(element.tag, element.attributes, children)

    def _order(self, rows: Sequence[Element], blocks: frozenset[str] | None) -> list[int]:
        """Return the numbers of the rows of a list in their new order."""
        if blocks == RUNS:
            return self._turned(rows)
        names = [block_name(row) for row in rows] if blocks is not None else []
        moving = [number for number in range(len(rows)) if blocks is None or names[number] in blocks]
        by_rank = sorted(moving, key=lambda number: self._rank(names[number] if names else shown_text(rows[number])))
        order = list(range(len(rows)))
        for place, number in zip(moving, by_rank, strict=True):
            order[place] = number
        return order

    def _turned(self, rows: Sequence[Element]) -> list[int]:
        """Return the numbers of rows with each one in the place of another one of its run."""
        order = list(range(len(rows)))
        for run in runs_of(rows):
            turn = sorted(run, key=lambda number: self._rank(shown_text(rows[number])))
            for number, place in zip(turn, [*turn[1:], turn[0]], strict=True):
                order[place] = number
        return order

    def _numbers(self, element: Element, number: int, way: Way, lists: Mapping[Way, frozenset[str] | None]) -> Iterator[int]:
        """Yield the numbers that the elements of a recorded page have there, in their order on the arranged page."""
        yield number
        children = [child for child in element.children if isinstance(child, Element)]
        first, counts, own = number + 1, Counter[str](), []
        for child in children:
            own.append((child, first, (*way, step_of(child, counts))))
            first += sum(1 for _ in child.elements())
        for place in self._order(children, lists[way]) if way in lists else range(len(children)):
            yield from self._numbers(*own[place], lists)

    def _dressed(self, element: Element, is_posted: bool) -> Element:
        """Return an element with other ids, tokens, names and labels where they say nothing; itself where nothing changes."""
        attributes = element.attributes
        is_posted = attributes.get("method", "").lower() == "post" if element.tag == "form" else is_posted
        changed = dict(self._changed(element, is_posted))
        children: list[Element | str] = [
            self._dressed(child, is_posted) if isinstance(child, Element) else child for child in element.children]
        if element.tag == "a" and self._labels:
            own = self._labels.get(urlsplit(attributes.get("href", "")).path, {})
            place = link_label(element) if own else None
            if place is not None:
                text = str(element.children[place])
                children[place] = text.replace(text.strip(), own.get(" ".join(text.split()), text.strip()))
        if not changed and all(one is other for one, other in zip(children, element.children, strict=True)):
            return element
        return Element(element.tag, {**attributes, **changed}, children)

    def _changed(self, element: Element, is_posted: bool) -> Iterator[tuple[str, str]]:
        """Yield the attributes that differ."""
        attributes = element.attributes
        if self._rules.kept_ids is not None:
            for name in ("id", *_REFERENCES):
                if name in attributes:
                    ids = [self._id(each) for each in attributes[name].split()]
                    if ids != attributes[name].split():
                        yield name, " ".join(ids)
            for name in _FRAGMENTS:
                if attributes.get(name, "").startswith("#") and self._id(attributes[name][1:]) != attributes[name][1:]:
                    yield name, f"#{self._id(attributes[name][1:])}"
        if element.tag == "input" and attributes.get("value") == SECRET:
            yield "value", self.token
        if is_posted and element.tag in _FIELDS and is_meaningless(attributes.get("name", "")):
            yield "name", self._given(attributes["name"])

    def _id(self, text: str) -> str:
        """Return what stands in the place of an id: another one, where it has a number and nothing else names it."""
        is_kept = self._rules.kept_ids is None or text in self._rules.kept_ids or not any(map(str.isdigit, text))
        return text if is_kept else f"x{digest(canonical([self._seed, 'id', text]))[:8]}"

    def _rank(self, text: str) -> str:
        return digest(canonical([self._seed, "row", text]))


class ArrangedSite(SitePort):
    """A site whose pages are laid out by a seed."""

    def __init__(self, site: SitePort, layout: PageLayout,
                 path_of: Callable[[str, str], tuple[str, tuple[str, ...]] | None]) -> None:
        """`path_of`: method and url -> template of the path, and what varies in it."""
        self._site = site
        self._layout = layout
        self._path_of = path_of

    def ask(self, request: PortRequest) -> PortAnswer:
        route = self._path_of(request.method, request.url)
        answer = self._site.ask(request._replace(form=self._layout.meant(request.form)) if request.form else request)
        if answer.page is None:
            return answer
        return answer._replace(page=self._layout.arranged(route[0] if route is not None else "", answer.page))
