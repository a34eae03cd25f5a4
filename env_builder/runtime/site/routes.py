"""Requests of a site in, its routes out: what kinds of pages and forms it has.

A route is a method, a path in which segments vary, and the names of the query. Which segments vary is not judged here:
templates of paths come in (`extractors.routes` makes them), so that pages and tools share one judgement; and names in
queries whose values choose the page, which are a part of the path then. Sees: method, path, names of the query, values of
those. Does not see: who asks, and a form's fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

SELECTS = "?"
"""Between a template and a name whose values choose the page, where both are given to `SiteRoutes`."""


@dataclass(frozen=True, order=True)
class SiteRoute:
    """A kind of request that a site answers."""

    method: str
    path: str
    """`/orders/{orders_1}/`, `/main?page=order` where the page is chosen so; with
    and without the last slash are two routes, as one mostly leads to the other."""
    query: tuple[str, ...] = ()
    """Names of the query, sorted."""

    def __str__(self) -> str:
        mark = "&" if SELECTS in self.path else "?"
        return f"{self.method} {self.path}{mark if self.query else ''}{'&'.join(self.query)}"


class SiteRoutes:
    """The routes of a site, with which requests of before and new ones find theirs."""

    def __init__(self, templates: Mapping[str, str]) -> None:
        """Take a template for each path that was requested (`/orders/17` to `/orders/{orders_1}`), and `/main?page` where the
        values of `page` choose."""
        self._templates = {path: template for path, template in templates.items() if SELECTS not in path}
        self._selecting: dict[str, list[str]] = {}
        for path, _, name in sorted(each.partition(SELECTS) for each in templates if SELECTS in each):
            self._selecting.setdefault(path, []).append(name)
        self._by_length: dict[int, list[tuple[str, ...]]] = {}
        for template in sorted(set(self._templates.values())):
            parts = tuple(template.strip("/").split("/"))
            self._by_length.setdefault(len(parts), []).append(parts)

    def route(self, method: str, url: str) -> SiteRoute | None:
        """Return the route of a request, None where no path like this was ever requested; the url's host does not count."""
        address = urlsplit(url)
        path = address.path or "/"
        template = self._templates.get(path) or self._nearest(path)
        if template is None:
            return None
        ending = "/" if path.endswith("/") and not template.endswith("/") else ""
        path = f"{template}{ending}"
        values = dict(parse_qsl(address.query, keep_blank_values=True))
        chosen = [name for name in self._selecting.get(path, ()) if name in values]
        names = sorted(values.keys() - set(chosen))
        choice = "&".join(f"{name}={values[name]}" for name in chosen)
        return SiteRoute(method, f"{path}{SELECTS}{choice}" if chosen else path, tuple(names))

    def entity(self, route: SiteRoute, url: str) -> tuple[str, ...]:
        """Return what a request is about: what varies in its path, and values in its query that may be ids."""
        query = parse_qsl(urlsplit(url).query)
        return (*self.parameters(route, url).values(), *(
            value for name, value in sorted(query) if name in route.query and ID.fullmatch(value)))

    def parameters(self, route: SiteRoute, url: str) -> dict[str, str]:
        """Return the varying segments of a request's path by their names in the route's template."""
        names, parts = route.path.partition(SELECTS)[0].strip("/").split("/"), urlsplit(url).path.strip("/").split("/")
        return {name[1:-1]: unquote(part) for name, part in zip(names, parts, strict=True) if _varies(name)}

    def _nearest(self, path: str) -> str | None:
        """Return the template that a new path fits; of several the one with most names in it, names early in the path first."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        fitting = [template for template in self._by_length.get(len(parts), ())
                   if all(_varies(name) or name == part for name, part in zip(template, parts, strict=True))]
        if not fitting:
            return None
        return "/" + "/".join(max(fitting, key=lambda template: (
            sum(not _varies(name) for name in template), [not _varies(name) for name in template])))


ID = re.compile(r"[A-Za-z]{0,12}[-_]?\d{1,9}")
"""A text that may be an id: digits, or one word and digits."""


def _varies(name: str) -> bool:
    return name.startswith("{") and name.endswith("}")


def group_by_route(routes: SiteRoutes, requests: Iterable[tuple[str, str]]) -> dict[SiteRoute, list[int]]:
    """Return the ordinals of requests (method, url) of each route, routes sorted; a request without a route is in none."""
    groups: dict[SiteRoute, list[int]] = {}
    for index, (method, url) in enumerate(requests):
        if (route := routes.route(method, url)) is not None:
            groups.setdefault(route, []).append(index)
    return dict(sorted(groups.items()))
