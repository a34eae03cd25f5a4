"""A site induced from recorded requests: a request in, the page, redirect or download out that the site would answer.

Reads the files that `env_builder.site.learning.write_site` writes: `routes.json`, `templates.json`, `sources.json`,
`visits.jsonl`, `values.json` (texts of visits, each once) and, where other logs tell something, `evidence.json`.
Anti-forgery fields, which no recording holds, are drawn: the same in an episode, others in the next. A place of which nothing
reliable is known is marked in the page (`templates`) and is no part of the visit; where that is so of the answer's kind or
where it leads, the tier is `unknown`. A query with names that nobody requested gets the page of the path's likest query,
without what that had at some time.
Sees: what was recorded before an instant, and what this episode was answered. Does not see: what others do meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from .ages import AgeFormat
from .evidence import SiteEvidence
from .learnt import LearntSource, LearntSources, LearntValues, SourceKey
from .port import Delivery, PortAnswer, PortRequest
from .routes import SiteRoute, SiteRoutes
from .templates import PageTemplate
from .times import SiteTimes
from .visits import KIND, SiteVisit, arguments_of, local_url

__all__ = ["InducedPages"]
_PAGE = f"{HTTPStatus.OK} page"
MOST_RENDERED = 4096
"""Recorded answers whose trees are kept; the oldest goes first."""


class InducedPages:
    """Routes, a template for each route and status, and the sources that fill its places."""

    def __init__(self, routes: SiteRoutes, templates: dict[tuple[str, int], PageTemplate], sources: LearntSources,
                 visits: Sequence[SiteVisit] = ()) -> None:
        """Take what was learnt, and the recorded visits."""
        self._visits = visits
        self._rendered: dict[tuple[int, str], PortAnswer] = {}
        """Recorded answers as trees, so that episodes of one task share them and what browsers make of them."""
        self._routes = routes
        self._templates = templates
        self._sources = sources
        self._by_name: dict[SiteRoute, str] = {}

    @classmethod
    def load(cls, folder: Path) -> InducedPages:
        """Read a site that was written. Errors: OSError, ValueError for a folder that holds none."""
        plain = {name: json.loads((folder / f"{name}.json").read_text("utf-8"))
                 for name in ("routes", "templates", "sources", "values")}
        names: list[str] = plain["sources"]["routes"]
        templates = {(route, status): PageTemplate(tree) for route, status, tree in plain["templates"]}
        places = {(names[route], kind): each for route, kind, each in plain["sources"]["places"]}
        sources = {SourceKey(names[route], kind, place, case):
                   [LearntSource(trust, (*source,)) for trust, *source in each]
                   for route, kind, place, case, each in plain["sources"]["sources"]}
        visits = [_visit(json.loads(line), names, plain["values"])
                  for line in (folder / "visits.jsonl").read_text("utf-8").splitlines()]
        times = SiteTimes.of(*plain["sources"].get("times", (0, ())))
        forms = plain["sources"]["ages"]
        file = folder / "evidence.json"
        evidence = SiteEvidence.of(json.loads(file.read_text("utf-8"))) if file.exists() else None
        return cls(SiteRoutes(plain["routes"]), templates, LearntSources(
            places, sources, visits, plain["sources"]["choices"], plain["sources"]["least_trust"],
            plain["sources"].get("fields"), AgeFormat.of(forms, times) if forms else None, times, evidence), visits)

    def path_of(self, method: str, url: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the template of a request's path and what it is about (`SiteRoutes.entity`); None for no path like this."""
        route = self._routes.route(method, url)
        return None if route is None else (route.path, self._routes.entity(route, url))

    def recorded(self, number: int, request: PortRequest, user: str, at: datetime,
                 start: datetime) -> tuple[PortAnswer, SiteVisit] | None:
        """Return what a recorded visit (a line of `visits.jsonl`) was answered, for the same request; None if it is another.

        `start`: the episode's."""
        recorded, route = self._visits[number], self._routes.route(request.method, request.url)
        if route is None or str(route) != recorded.route:
            return None
        arguments = arguments_of(request, self._routes.parameters(route, request.url))
        visit = replace(recorded, user=user, at=at, arguments=arguments)
        key = number, _token(user, start)
        if key not in self._rendered:
            if len(self._rendered) >= MOST_RENDERED:
                del self._rendered[next(iter(self._rendered))]
            answer = self._answer(recorded.route, LearntValues(dict(recorded.values), ()), key[1])
            self._rendered[key] = answer._replace(tier="recorded")
        return self._rendered[key], visit

    def answer(self, request: PortRequest, user: str, at: datetime, own: Sequence[SiteVisit],
               until: datetime | None = None) -> tuple[PortAnswer, SiteVisit] | None:
        """Return what the site answers a user and the visit to append to `own`; None for a route that was never requested.

        `own`: the episode's visits so far, as this method returned them. `until`: the episode's start; recorded visits of
        others count before it alone (default: before `at`).
        """
        visit = self._to_answer(request, user, at)
        return None if visit is None else self._induced(visit, own, until, None)

    def refused(self, request: PortRequest, user: str, at: datetime, own: Sequence[SiteVisit],
                until: datetime) -> tuple[PortAnswer, SiteVisit] | None:
        """Return the page that a form gets which is not taken, as such forms got one before; None where none ever did.

        That it is not taken is for the caller to know: what was typed in secret is in no recording."""
        visit = self._to_answer(request, user, at)
        kinds = self._sources.page_kinds(visit.route, until) if visit is not None else []
        return self._induced(visit, own, until, kinds[0]) if visit is not None and kinds else None

    def _to_answer(self, request: PortRequest, user: str, at: datetime) -> SiteVisit | None:
        """Return a request as a visit that is still to be answered; None for a route that was never requested."""
        try:
            route = self._routes.route(request.method, request.url)
        except ValueError:   # an invalid address
            return None
        if route is None:
            return None
        parameters = self._routes.parameters(route, request.url)
        return SiteVisit(user, at, self._by_name.setdefault(route, str(route)), local_url(request.url),
                         request.method == "POST", False, arguments_of(request, parameters), {})

    def _induced(self, visit: SiteVisit, own: Sequence[SiteVisit], until: datetime | None,
                 kind: str | None) -> tuple[PortAnswer, SiteVisit] | None:
        is_like = visit.route not in self._sources.routes
        if is_like:
            if (likest := self._likest(visit.route)) is None:
                return None
            visit, kind = replace(visit, route=likest), kind or _PAGE
        learnt = self._sources.answer(visit, own, until, kind, is_like=is_like)
        if learnt is None:
            return None
        answer = self._answer(visit.route, learnt, _token(visit.user, until or (own[0].at if own else visit.at)))
        values = {place: value for place, value in learnt.values.items() if place == KIND or place not in learnt.unknown}
        return answer, replace(visit, is_page=answer.page is not None, values=values, unknown=learnt.unknown)

    def _likest(self, route: str) -> str | None:
        """Return the requested route of pages of the same path, with most names of the query in common; None if there is none,
        or for a form."""
        begin, _, query = route.partition("?")
        names = frozenset(query.split("&"))
        if not route.startswith("GET ") or "=" in query:
            return None
        shared = {each: frozenset(each.partition("?")[2].split("&")) for each, kinds in self._sources.routes.items()
                  if each.partition("?")[0] == begin and "=" not in each and _PAGE in kinds}
        return max(sorted(shared), key=lambda each: len(names & shared[each]) / len(names | shared[each]), default=None)

    def _answer(self, route: str, learnt: LearntValues, token: str) -> PortAnswer:
        values, unknown = learnt
        tier = "unknown" if KIND in unknown or "location" in unknown else "induced"
        status, _, what = (values[KIND] or "").partition(" ")
        if what == "redirect":
            return PortAnswer(int(status), tier, values["location"] or "/", unknown=unknown)
        if what == "page":
            page = self._templates[route, int(status)].fill(values, token, frozenset(unknown))
            return PortAnswer(int(status), tier, page=page, unknown=unknown)
        file = Delivery(values["file"] or "", values["type"] or "", None)
        return PortAnswer(int(status), tier, file=file, unknown=unknown)


def _visit(plain: list[Any], names: Sequence[str], texts: Sequence[str]) -> SiteVisit:
    user, at, route, url, is_write, is_page, values, *posted = plain
    return SiteVisit(user, datetime.fromisoformat(at), names[route], url, bool(is_write), bool(is_page), dict(*posted),
                     {place: None if text is None else texts[text] for place, text in values.items()})


def _token(user: str, start: datetime) -> str:
    """Return an anti-forgery token of an episode."""
    return hashlib.sha256(f"{user} {start.isoformat()}".encode()).hexdigest()
