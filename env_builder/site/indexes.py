"""Learn which lists are indexes: rows that each lead to an entity of their own, whose order a reset may change.

In: sessions of pages, routes, lists that may be laid out otherwise anyway. Out: rows of layout.jsonl. Such a list may be
sorted, by a column that it shows or by what no page shows; every row still shows all that it showed, so that no work needs the
order, but who remembers places in it does. Rows stay between the headings that part them, and on their page of the list.
What is no table needs more: its rows are list items or articles, as which snapshots show them, all lead to pages of one path,
each to another entity, and it has no text of its own.
Abstains: where a row of several leads nowhere, to the page itself or where another one leads, and where fields of rows have one
name; boxes to tick may, if no form of the log sent two of them. Does not see: asks for the first or the last row by its place.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from env_builder.runtime.site.layout import runs_of, step_of
from env_builder.runtime.site.routes import SiteRoute, SiteRoutes
from env_builder.runtime.site.trees import Element
from env_builder.site.ordering import containers, share_fields
from env_builder.site.recorded import PageSession

_LEAST_ROWS = 3
_TABLES, _ROWS = frozenset({"table", "tbody"}), frozenset({"article", "li"})
Way = tuple[str, ...]


def learn_indexes(sessions: Sequence[PageSession], routes: SiteRoutes, others: Iterable[dict[str, Any]]
                  ) -> list[dict[str, Any]]:
    """Return the indexes that are none of the `others`."""
    taken = {(each["path"], tuple(each["list"])) for each in others}
    rows_of = _IndexRows(routes, _sent_twice(sessions))
    longest: dict[tuple[str, Way], int] = defaultdict(int)
    fixed: set[tuple[str, Way]] = set()
    for session in sessions:
        for place, request in enumerate(session.requests):
            page, route = session.page(place), routes.route(request.method, request.url)
            if page is None or route is None or request.status >= 400:
                continue
            for way, element in containers(page, (step_of(page),)):
                if (route.path, way) not in taken | fixed:
                    length = rows_of.most(element, request.url)
                    if length is None:
                        fixed.add((route.path, way))
                    else:
                        longest[route.path, way] = max(longest[route.path, way], length)
    return [{"path": path, "list": list(way), "runs": True} for (path, way), length in sorted(longest.items())
            if length >= _LEAST_ROWS and (path, way) not in fixed]


def _sent_twice(sessions: Iterable[PageSession]) -> frozenset[str]:
    """Return the names of fields of which one request sent two: their order is that of the page."""
    names: set[str] = set()
    for session in sessions:
        for request in session.requests:
            for pairs in (request.form or (), parse_qsl(urlsplit(request.url).query, keep_blank_values=True)):
                names.update(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
    return frozenset(names)


class _IndexRows:
    """Looks for indexes on pages."""

    def __init__(self, routes: SiteRoutes, sent_twice: frozenset[str]) -> None:
        self._routes = routes
        self._sent_twice = sent_twice

    def most(self, element: Element, url: str) -> int | None:
        """Return how many rows of an element follow each other and are built alike; None if they are no index's."""
        rows = [child for child in element.children if isinstance(child, Element)]
        is_table = element.tag in _TABLES
        if not is_table and not (all(row.tag in _ROWS for row in rows) and not any(
                isinstance(child, str) and child.strip() for child in element.children)):
            return None
        runs = [[rows[number] for number in run] for run in runs_of(rows) if len(run) > 1]
        if not all(self._is_index(run, url, is_table) for run in runs):
            return None
        return max(map(len, runs), default=0)

    def _is_index(self, rows: Sequence[Element], url: str, is_table: bool) -> bool:
        """Whether each of these rows leads to an entity of its own."""
        targets = [target for row in rows if (target := self._target(row, url)) is not None]
        if len(targets) < len(rows) or len({path for path, *_ in targets}) < len(rows):
            return False
        entities = {self._routes.entity(route, path) for path, route in targets}
        if not is_table and (len({route.path for _, route in targets}) > 1 or len(entities) < len(rows)):
            return False
        return not share_fields(rows, self._sent_twice)

    def _target(self, row: Element, url: str) -> tuple[str, SiteRoute] | None:
        """Return the first address in a row that names an entity; None: none does, or it is the page itself."""
        for element in row.elements():
            if "href" in element.attributes:
                path = urlsplit(urljoin(url, element.attributes["href"])).path
                route = self._routes.route("GET", path or "/")
                if route is not None and self._routes.parameters(route, path):
                    return (path, route) if path != urlsplit(url).path else None
        return None
