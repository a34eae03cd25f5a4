"""Learn which tables are indexes: rows that each lead to an entity of their own, whose order a reset may change.

In: sessions of pages, routes, lists that may be laid out otherwise anyway. Out: rows of layout.jsonl. Such a table may be
sorted, by a column that it shows or by what no page shows; every row still shows all that it showed, so that no work needs the
order, but who remembers places in it does. Rows stay between the headings that part them, and on their page of the list.
Abstains: where a row of several leads nowhere, to the page itself or where another one leads, and where fields of rows have one
name. Does not see: asks for the first or the last row by its place, lists that are no tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from env_builder.runtime.site.layout import runs_of, step_of
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.trees import Element
from env_builder.site.ordering import containers, share_fields
from env_builder.site.recorded import PageSession

_LEAST_ROWS = 3
_TABLES = frozenset({"table", "tbody"})
Way = tuple[str, ...]


def learn_indexes(sessions: Sequence[PageSession], routes: SiteRoutes, others: Iterable[dict[str, Any]]
                  ) -> list[dict[str, Any]]:
    """Return the indexes that are none of the `others`."""
    taken = {(each["path"], tuple(each["list"])) for each in others}
    longest: dict[tuple[str, Way], int] = defaultdict(int)
    fixed: set[tuple[str, Way]] = set()
    for session in sessions:
        for place, request in enumerate(session.requests):
            page, route = session.page(place), routes.route(request.method, request.url)
            if page is None or route is None or request.status >= 400:
                continue
            for way, element in containers(page, (step_of(page),)):
                if element.tag in _TABLES and (route.path, way) not in taken | fixed:
                    rows = [child for child in element.children if isinstance(child, Element)]
                    runs = [[rows[number] for number in run] for run in runs_of(rows) if len(run) > 1]
                    if all(_is_index(run, request.url, routes) for run in runs):
                        longest[route.path, way] = max([longest[route.path, way], *map(len, runs)])
                    else:
                        fixed.add((route.path, way))
    return [{"path": path, "list": list(way), "runs": True} for (path, way), length in sorted(longest.items())
            if length >= _LEAST_ROWS and (path, way) not in fixed]


def _is_index(rows: Sequence[Element], url: str, routes: SiteRoutes) -> bool:
    """Whether each of these rows leads to an entity of its own."""
    targets = [_target(row, url, routes) for row in rows]
    return None not in targets and len(set(targets)) == len(rows) and not share_fields(rows)


def _target(row: Element, url: str, routes: SiteRoutes) -> str | None:
    """Return the first address in a row that names an entity; None: none does, or it is the page itself."""
    for element in row.elements():
        if "href" in element.attributes:
            path = urlsplit(urljoin(url, element.attributes["href"])).path
            route = routes.route("GET", path or "/")
            if route is not None and routes.parameters(route, path):
                return path if path != urlsplit(url).path else None
    return None
