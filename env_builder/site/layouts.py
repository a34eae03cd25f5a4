"""Learn what of a site's pages may differ at a reset without changing the work: rows of layout.jsonl.

In: sessions of pages, routes, style sheets. Out: lists whose order says nothing (`ordering.py`) or
is not needed (`indexes.py`); blocks that the site itself
showed in two orders; names of links to one address that share a word, each seen in two sessions; ids that style sheets or
scripts name, which stay; and sizes of a window in which recorded pages show all links, buttons and fields that they show in the
usual one.
Sees: children of one element that are not built alike, by tag, classes and heading. Abstains: from a label with a digit, of
more than three words, or with a name of a person; from elements with many children. Does not see: synonyms of buttons and
fields (goals name them), nor sizes at which a script changes the page.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any
from urllib.parse import urlsplit

from env_builder.runtime.site.flat import CONTROLS, FlatPage
from env_builder.runtime.site.layout import Way, block_name, link_label, step_of
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.shown_pages import ViewShelf
from env_builder.runtime.site.styling import Styles
from env_builder.runtime.site.trees import Element
from env_builder.site.indexes import learn_indexes
from env_builder.site.ordering import are_alike, containers, learn_unordered
from env_builder.site.recorded import PageSession

Row = dict[str, Any]
USUAL = (1280, 720)
SIZES = ((1024, 768), USUAL, (1366, 768), (1440, 900), (1536, 864), (1600, 900), (1920, 1080))
"""Windows of people at a desk."""
_LABEL_WORDS, _LEAST_SEEN, _PAGES_TRIED = 3, 2, 3
_MOST_BLOCKS = 24
"""Children of an element that are compared."""
_WORDS = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)*")
_ID = re.compile(r"[\w-]+")


def learn_layout(sessions: Sequence[PageSession], routes: SiteRoutes, sheets: Iterable[str], styles: Mapping[str, Any],
                 names: Iterable[str] = ()) -> list[Row]:
    """Return the rows. `sheets`: texts of style sheets; `styles`: as compiled; `names`: of people."""
    rows: list[Row] = [*learn_unordered(sessions, routes)]
    rows += learn_blocks(sessions, routes)
    rows += learn_indexes(sessions, routes, rows)
    rows += learn_labels(sessions, routes, names)
    rows += [{"ids": sorted(_named_ids(sessions, sheets))}]
    return rows + [{"viewport": list(size)} for size in fitting_viewports(sessions, routes, styles)]


def learn_blocks(sessions: Sequence[PageSession], routes: SiteRoutes) -> list[Row]:
    """Return the blocks that changed places: two of them stood in both orders, each in two sessions."""
    orders: dict[tuple[str, Way], dict[tuple[str, str], set[str]]] = defaultdict(lambda: defaultdict(set))
    repeated: dict[tuple[str, Way], set[str]] = defaultdict(set)
    for session, path, page in _pages(sessions, routes):
        for way, element in containers(page, (step_of(page),)):
            children = [child for child in element.children if isinstance(child, Element)]
            if are_alike(children) or len(children) > _MOST_BLOCKS:
                continue
            names = [block_name(child) for child in children]
            counts = Counter(names)
            repeated[path, way].update(name for name in names if counts[name] > 1)
            for pair in combinations((name for name in names if counts[name] == 1), 2):
                orders[path, way][pair].add(session.session_id)
    rows = []
    for (path, way), pairs in sorted(orders.items()):
        moving = {name for (one, other), own in pairs.items()
                  if len(own) >= _LEAST_SEEN and len(pairs.get((other, one), ())) >= _LEAST_SEEN for name in (one, other)
                  if name not in repeated[path, way]}
        if len(moving) > 1:
            rows.append({"path": path, "list": list(way), "blocks": sorted(moving)})
    return rows


def learn_labels(sessions: Sequence[PageSession], routes: SiteRoutes, names: Iterable[str] = ()) -> list[Row]:
    """Return names of links to one page that is about no entity."""
    sessions_of: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    people = {name.partition("@")[0].casefold() for name in names}
    for session, _, page in _pages(sessions, routes):
        for element in page.elements():
            address = urlsplit(element.attributes.get("href", "")) if element.tag == "a" else None
            if address is None or address.netloc or address.query or address.fragment or not address.path.startswith("/"):
                continue
            route, place = routes.route("GET", address.path), link_label(element)
            if place is None or route is None or "{" in route.path:
                continue
            label = " ".join(str(element.children[place]).split())
            words = label.split()
            if _WORDS.fullmatch(label) and len(words) <= _LABEL_WORDS and not people.intersection(map(str.casefold, words)):
                sessions_of[address.path][label].add(session.session_id)
    rows = []
    for path, labels in sorted(sessions_of.items()):
        shared = _akin([label for label, own in sorted(labels.items()) if len(own) >= _LEAST_SEEN])
        if len(shared) > 1 and len({label.casefold() for label in shared}) == len(shared):
            rows.append({"address": path, "labels": shared})
    return rows


def _akin(labels: Sequence[str]) -> list[str]:
    """Return the labels that share the word that most of them have."""
    counts = Counter(word for label in labels for word in {*label.casefold().split()} if len(word) > _LABEL_WORDS)
    word = max(sorted(counts), key=counts.__getitem__, default="")
    return [label for label in labels if word in label.casefold().split()]


def fitting_viewports(sessions: Sequence[PageSession], routes: SiteRoutes, styles: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the sizes in which pages of every route show what can be acted on in the usual one."""
    tried: Counter[str] = Counter()
    pages = []
    for _, path, page in _pages(sessions, routes):
        tried[path] += 1
        if tried[path] <= _PAGES_TRIED:
            pages.append(page)
    shelves = {size: ViewShelf(Styles(styles, *size)) for size in SIZES}
    offered = {size: [_offered(shelf, page) for page in pages] for size, shelf in shelves.items()}
    return [size for size in SIZES if all(own >= usual for own, usual in zip(offered[size], offered[USUAL], strict=True))]


def _offered(shelf: ViewShelf, page: Element) -> set[int]:
    """Return the numbers of the links, buttons and fields that a page shows."""
    flat: FlatPage = shelf.flat(page)
    return {number for number in shelf.view(page).nodes if flat.tags[number] in (*CONTROLS, "a")}


def _named_ids(sessions: Sequence[PageSession], sheets: Iterable[str]) -> set[str]:
    """Return the ids of pages that style sheets or scripts name."""
    texts, ids = set(sheets), set[str]()
    for session in sessions:
        for place in range(len(session.requests)):
            page = session.page(place)
            for element in page.elements() if page is not None else ():
                if "id" in element.attributes:
                    ids.add(element.attributes["id"])
                if element.tag in ("script", "style"):
                    texts.update(child for child in element.children if isinstance(child, str))
    return ids & {word for text in texts for word in _ID.findall(text)}


def _pages(sessions: Sequence[PageSession], routes: SiteRoutes) -> Iterator[tuple[PageSession, str, Element]]:
    """Yield pages that were not refused, with the templates of their paths."""
    for session in sessions:
        for place, request in enumerate(session.requests):
            page, route = session.page(place), routes.route(request.method, request.url)
            if page is not None and route is not None and request.status < 400:
                yield session, route.path, page


