"""Requests of a site in, its routes out: what kinds of pages and forms it has.

A route is a method, a path in which segments vary, and the names of the query. Which segments vary is not judged here:
templates of paths come in (`extractors.routes` makes them), so that pages and tools share one judgement. Sees: method, path,
names of the query. Does not see: who asks, and a form's fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True, order=True)
class SiteRoute:
    """A kind of request that a site answers."""

    method: str
    path: str
    """`/orders/{orders_1}/`; with and without the last slash are two routes, as one mostly leads to the other."""
    query: tuple[str, ...] = ()
    """Names of the query, sorted."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}{'?' if self.query else ''}{'&'.join(self.query)}"


class SiteRoutes:
    """The routes of a site, with which requests of before and new ones find theirs."""

    def __init__(self, templates: Mapping[str, str]) -> None:
        """Take a template for each path that was requested (`/orders/17` to `/orders/{orders_1}`)."""
        self._templates = dict(templates)
        self._by_length: dict[int, list[tuple[str, ...]]] = {}
        for template in sorted(set(templates.values())):
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
        names = sorted({name for name, _ in parse_qsl(address.query, keep_blank_values=True)})
        return SiteRoute(method, f"{template}{ending}", tuple(names))

    def parameters(self, route: SiteRoute, url: str) -> dict[str, str]:
        """Return the varying segments of a request's path by their names in the route's template."""
        names, parts = route.path.strip("/").split("/"), urlsplit(url).path.strip("/").split("/")
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


def _varies(name: str) -> bool:
    return name.startswith("{") and name.endswith("}")


def group_by_route(routes: SiteRoutes, requests: Iterable[tuple[str, str]]) -> dict[SiteRoute, list[int]]:
    """Return the ordinals of requests (method, url) of each route, routes sorted; a request without a route is in none."""
    groups: dict[SiteRoute, list[int]] = {}
    for index, (method, url) in enumerate(requests):
        if (route := routes.route(method, url)) is not None:
            groups.setdefault(route, []).append(index)
    return dict(sorted(groups.items()))
