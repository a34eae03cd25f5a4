"""A site induced from recorded requests, as the benchmark of browser environments asks it: a request in, an answer out.

Joins routes, templates, fillings and sources of `env_builder.site`. Answers with the recorded session so far, not with its own
answers: each request is judged alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from browser_pages import Download, SiteAnswer, mask_text
from browser_replay import SiteRequest

from env_builder.runtime.site.trees import Element
from env_builder.site.filling import Filling, Place, Value, extract, fill
from env_builder.site.routes import SiteRoute, SiteRoutes
from env_builder.site.shapes import ElementShape, learn_template
from env_builder.site.sources import KIND, SiteModel, SiteVisit
from extractors.routes import templates

_WHAT = ("redirect", "page", "download")


class InducedSite:
    """Routes, a template for each route and status, and a model of what fills them."""

    def __init__(self, requests: Sequence[SiteRequest]) -> None:
        """Learn from the requests of whole sessions."""
        paths = templates([urlsplit(request.url).path or "/" for request in requests])
        self.routes = SiteRoutes({path: template for path, (template, _) in paths.items()})
        self.pages: dict[tuple[SiteRoute | None, int | None], list[Element]] = defaultdict(list)
        for request in requests:
            if request.answer.page is not None:
                self.pages[self._key(request)].append(request.answer.page)
        self.templates: dict[tuple[SiteRoute | None, int | None], ElementShape] = {
            key: learn_template(pages) for key, pages in self.pages.items()}
        self._visits: dict[tuple[object, ...], SiteVisit] = {}
        self._model = SiteModel([self._visit(request) for request in requests])

    def template(self, request: SiteRequest) -> ElementShape | None:
        """Return the template of the pages that a request's route answers with this status."""
        return self.templates.get(self._key(request))

    def answer(self, request: SiteRequest, earlier: Sequence[SiteRequest]) -> SiteAnswer | None:
        """Return what the site answers, None for a route that was never requested."""
        route = self.routes.route(request.method, request.url)
        if route is None:
            return None
        asked = self._asked(request, route, {}, is_page=False)
        values = self._model.answer(asked, [self._visit(each) for each in earlier])
        return self._answered(route, values) if values is not None else None

    def count_places(self, request: SiteRequest, earlier: Sequence[SiteRequest]) -> tuple[int, int]:
        """Return how many places of the recorded page are answered right, and how many it has; none if it fits no template."""
        recorded = self._visit(request)
        if recorded.route is None or not request.is_page:
            return 0, 0
        asked = replace(recorded, is_page=False, values={})
        values = self._model.answer(asked, [self._visit(each) for each in earlier]) or {}
        places = [place for place in recorded.values if place != KIND]
        return sum(place in values and values[place] == recorded.values[place] for place in places), len(places)

    def _answered(self, route: SiteRoute, values: Mapping[Place, Value]) -> SiteAnswer:
        status, _, what = (values[KIND] or "").partition(" ")
        if what == "redirect":
            return SiteAnswer(int(status), values["location",] or "")
        if what == "page":
            return SiteAnswer(int(status), page=fill(self.templates[route, int(status)], values))
        kind, file, size = (values[name,] or "" for name in ("type", "file", "size"))
        return SiteAnswer(int(status), download=Download(kind, file, int(size)))

    def _key(self, request: SiteRequest) -> tuple[SiteRoute | None, int | None]:
        return self.routes.route(request.method, request.url), request.answer.status

    def _visit(self, request: SiteRequest) -> SiteVisit:
        key = request.session, request.at, request.method, request.url
        if key not in self._visits:
            route = self.routes.route(request.method, request.url)
            self._visits[key] = self._asked(request, route, self._values(request), request.is_page)
        return self._visits[key]

    def _values(self, request: SiteRequest) -> Filling:
        answer, template = request.answer, self.template(request)
        what = _WHAT[0] if answer.location else _WHAT[1] if answer.page is not None else _WHAT[2]
        values: Filling = {KIND: f"{answer.status} {what}"}
        if answer.page is not None and template is not None:
            values |= extract(template, answer.page) or {}
        elif answer.location:
            values["location",] = answer.location
        elif answer.download is not None:
            values |= {("type",): answer.download.kind, ("file",): answer.download.name, ("size",): str(answer.download.size)}
        return values

    def _asked(self, request: SiteRequest, route: SiteRoute | None, values: Filling, is_page: bool) -> SiteVisit:
        return SiteVisit(request.session, request.user, request.at, route, mask_text(request.url), request.method == "POST",
                         is_page, self._arguments(request, route), values)

    def _arguments(self, request: SiteRequest, route: SiteRoute | None) -> dict[str, str]:
        address = urlsplit(request.url)
        path = address.path or "/"
        form: Any = request.form if isinstance(request.form, dict) else {}
        parameters = self.routes.parameters(route, request.url) if route is not None else {}
        return {"url": f"{path}?{address.query}" if address.query else path, "path": path, **parameters,
                **{f"query {name}": value for name, value in parse_qsl(address.query)},
                **{f"form {name}": value for name, value in form.items() if isinstance(value, str)}}
