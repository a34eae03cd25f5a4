"""Write the app of a site: what its recorded sessions teach, and for each task's session what it was answered in which state.

In: sessions of pages, the bytes of downloads by hash, who begins which task. Out: the folder of an app of the kind `site`:
what `learning.write_site` writes, laws of forms, who may log in (with passwords of the environment's own) and how logins run
out, recorded answers by state, and files. Does not see: pages as people without a login see them, where every recorded
session logged in first.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from env_builder import bundle
from env_builder.runtime.canonical import digest
from env_builder.runtime.site.evidence import SiteEvidence
from env_builder.runtime.site.form_ledger import SESSION, FormLaws, Post, changed_fields
from env_builder.runtime.site.port import Delivery, PortAnswer, PortRequest
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.session import advanced, login_text, question_of, write_text
from env_builder.site.expiring import LoginTarget, learn_expiry, login_target, refusals_of, usual_target
from env_builder.site.form_laws import accepted, form_before, learn_laws
from env_builder.site.layouts import learn_layout
from env_builder.site.learning import RecordedAnswer, SiteLearner, write_site
from env_builder.site.naming import learn_names
from env_builder.site.parsing import collapse
from env_builder.site.recorded import PageSession, asks_for_login, login_of, lost_requests, password_fields
from env_builder.site.selecting import SelectedRequest, page_marks, selecting_names
from env_builder.site.styles import compile_styles

Row = dict[str, Any]


class SiteContent(NamedTuple):
    """What an app of the kind `site` is made of."""

    sessions: Sequence[PageSession]
    templates: Mapping[str, str]
    """Path -> template."""
    task_sessions: frozenset[str]
    """Sessions that tasks begin with."""
    hashes: Mapping[tuple[str, int], str]
    """(session, place of the request) -> sha256 of what it downloaded."""
    blob: Callable[[str], bytes | None]
    """sha256 -> the bytes, where they are on record."""
    sheets: Mapping[str, str] = {}
    """Address -> text of a style sheet."""
    texts: Sequence[str] = ()
    """Asks and messages of the people who work with the site."""
    fixed: Sequence[str] = ()
    """Names of folders and channels, whose words stay."""
    values_of_asks: Mapping[str, Iterable[str]] = {}
    """By field of a form, the values that asks gave and people sent."""
    evidence: SiteEvidence | None = None
    """What other logs tell of the site."""


class LearntSite:
    """What sessions teach of a site."""

    def __init__(self, sessions: Sequence[PageSession], templates: Mapping[str, str],
                 evidence: SiteEvidence | None = None) -> None:
        """Take the sessions of a site, a template for each path, and what other logs tell of it."""
        self.evidence = evidence
        self.sessions = sorted(sessions, key=lambda each: (each.requests[0].at, each.session_id))
        self.templates = dict(templates) | selecting_names(dict(templates), _selected(self.sessions))
        self.routes = SiteRoutes(self.templates)
        self.law_rows = [law.to_row() for law in learn_laws(self.sessions, self._path)]
        self.laws = FormLaws(self.law_rows)

    def _path(self, method: str, url: str) -> str | None:
        route = self.routes.route(method, url)
        return None if route is None else route.path

    def write(self, folder: Path) -> SiteLearner:
        """Write what answers requests, and the laws of forms."""
        learner = write_site(folder, [each for session in self.sessions for each in answers_of(session)], self.templates,
                             self.evidence)
        bundle.write_lines(folder / "form_laws.jsonl", self.law_rows)
        return learner

    def access(self) -> Row:
        """Return who may log in where, and which pages only they see, as access.json has it."""
        logins = {session.login: str(session.user) for session in self.sessions if session.login}
        fields: dict[str, set[str]] = defaultdict(set)
        for request in (request for session in self.sessions for request in session.requests):
            if login_of(request) is not None and (path := self._path("POST", request.url)) is not None:
                fields[path].update(password_fields(request))
        routes = set(fields)
        login_pages, refusals = self._login_pages(routes), refusals_of(self.sessions, self._path)
        secret = digest(" ".join(session.session_id for session in self.sessions))
        return {"users": dict(sorted(logins.items())), "login_routes": sorted(routes),
                "login_fields": sorted({name for names in fields.values() for name in names}),
                "login_only": sorted(self._login_only()),
                "passwords": {login: digest(f"{secret} {login}")[:10] for login in sorted(logins)},
                "login_pages": dict(sorted(login_pages.items())), "login_posts": self._login_posts(routes),
                "refusals": refusals, "expiry": learn_expiry(self.sessions, self._path, {*login_pages, *refusals})}

    def _login_posts(self, login_routes: set[str]) -> dict[str, str]:
        """Return template of a path -> where forms led that were sent when the login had run out."""
        targets: dict[str, list[LoginTarget]] = defaultdict(list)
        for session in self.sessions:
            for request in (session.requests[place] for place in sorted(lost_requests(session))):
                path = self._path("POST", request.url)
                if request.method == "POST" and path is not None and path not in login_routes and request.location and (
                        self._path("GET", urlsplit(request.location).path) in login_routes):
                    targets[path].append(login_target(request.url, request.location))
        return {path: usual_target(each) for path, each in sorted(targets.items())}

    def _login_only(self) -> Iterator[str]:
        """Yield the templates of paths whose every page asks for a login: who is led there was refused."""
        asking: dict[str, set[bool]] = defaultdict(set)
        for session in self.sessions:
            for place, request in enumerate(session.requests):
                page = session.page(place)
                if page is not None and (path := self._path(request.method, request.url)) is not None:
                    asking[path].add(asks_for_login(page))
        yield from (path for path, answers in asking.items() if answers == {True})

    def _login_pages(self, login_routes: set[str]) -> dict[str, str]:
        """Return template of a path -> where people who are not logged in are led; only where every one of them was."""
        targets: dict[str, list[LoginTarget]] = defaultdict(list)
        shown: set[str] = set()
        for session in self.sessions:
            lost, is_out = lost_requests(session), True
            for place, request in enumerate(session.requests):
                is_out = is_out and login_of(request) is None
                path = self._path(request.method, request.url)
                if path is None or request.method != "GET" or not (is_out or place in lost):
                    continue
                if request.location and self._path("GET", urlsplit(request.location).path) in login_routes:
                    targets[path].append(login_target(request.url, request.location))
                elif is_out and request.status != HTTPStatus.UNAUTHORIZED:
                    shown.add(path)
        leading = {path: usual_target(each) for path, each in sorted(targets.items()) if path not in shown}
        others = {path for session in self.sessions for request in session.requests
                  if request.method == "GET" and (path := self._path("GET", request.url)) is not None}
        first = {path.strip("/").partition("/")[0]: target for path, target in leading.items()}
        for path in sorted(others - shown - login_routes - leading.keys()):
            if (target := first.get(path.strip("/").partition("/")[0])) is not None:
                leading[path] = target
        return leading

    def recorded(self, learner: SiteLearner, session_ids: Iterable[str]) -> list[Row]:
        """Return rows of recorded.jsonl: what a session was answered in which state, as numbers of visits."""
        visits = sorted((visit for session in learner.sessions.values() for visit in session), key=lambda visit: visit.at)
        numbers = {id(visit): number for number, visit in enumerate(visits)}
        wanted = set(session_ids)
        rows = []
        for session in self.sessions:
            if session.session_id in wanted:
                answered: set[tuple[str, str]] = set()
                lost = lost_requests(session)
                keyed_visits = zip(learner.sessions[session.session_id], self._states(session), strict=True)
                for place, (visit, key) in enumerate(keyed_visits):
                    if key not in answered and place not in lost and learner.is_whole(visit):
                        answered.add(key)
                        rows.append({"session_id": session.session_id, "state": key[0], "question": key[1],
                                     "visit": numbers[id(visit)]})
        return rows

    def _states(self, session: PageSession) -> Iterator[tuple[str, str]]:
        """Yield (state, question) of each request, as `SiteSession` reckons them."""
        state, login = "", None
        for place, request in enumerate(session.requests):
            write, is_taken, is_login = "", False, login_of(request) is not None
            route = self.routes.route(request.method, request.url) if request.method == "POST" else None
            if route is not None:
                post = Post(route.path, self.routes.entity(route, request.url), request.form or (),
                            form_before(session, place))
                is_taken = accepted(session, place)
                write = login_text(login_of(request), is_taken) if is_login else write_text(self.laws, post)
            yield state, question_of(request.method, request.url, write)
            if route is not None and is_taken:
                law = self.laws.law(route.path, request.form or ())
                if is_login and login_of(request) != login:
                    state, login = advanced(state, "in"), login_of(request)
                elif is_login:
                    continue   # in again after the session was lost: nothing is other than before
                elif law is None or law.effect != SESSION:
                    state = advanced(state, write)


def _selected(sessions: Iterable[PageSession]) -> Iterator[SelectedRequest]:
    for session in sessions:
        for place, request in enumerate(session.requests):
            if request.method == "POST":
                yield SelectedRequest("POST", request.url, frozenset(name for name, _ in request.form or ()))
            elif "?" in request.url and (page := session.page(place)) is not None and request.status == HTTPStatus.OK:
                yield SelectedRequest(request.method, request.url, page_marks(page))


def answers_of(session: PageSession) -> Iterator[RecordedAnswer]:
    """Yield the requests of a session as a site's learner takes them."""
    for place, request in enumerate(session.requests):
        page = session.page(place)
        file = Delivery(request.file.name, request.file.type, None) if request.file is not None else None
        if page is None and file is None and not request.location:
            file = Delivery("", "", None)
        yield RecordedAnswer(
            session.session_id, session.user or "", request.at, PortRequest(
                request.method, request.url, request.form, changed_fields(form_before(session, place), request.form or ())),
            PortAnswer(request.status, "recorded", request.location or None, None if page is None else collapse(page), file))


def write_app(folder: Path, content: SiteContent) -> None:
    """Write the folder of an app."""
    site = LearntSite(content.sessions, content.templates, content.evidence)
    learner = site.write(folder)
    templates = json.loads((folder / "templates.json").read_text("utf-8"))
    fixed = [*content.fixed, *site.templates.values(), *(session.host for session in site.sessions)]
    names = learn_names(site.sessions, site.routes, content.texts, templates, fixed, content.values_of_asks)
    bundle.write_json(folder / "names.json", names.to_row())
    bundle.write_json(folder / "access.json", site.access())
    bundle.write_lines(folder / "recorded_answers.jsonl", site.recorded(learner, content.task_sessions))
    bundle.write_lines(folder / "people.jsonl", [
        {"session_id": each.session_id, "login": each.login, "user": each.user} for each in site.sessions
        if each.session_id in content.task_sessions])
    styles = compile_styles(content.sheets, sorted(_inline_sheets(site.sessions)))
    bundle.write_json(folder / "styles.json", styles)
    people = {name for each in site.sessions for name in (each.login, each.user) if name}
    bundle.write_lines(folder / "layout.jsonl", learn_layout(
        site.sessions, site.routes, content.sheets.values(), styles, people))
    (folder / "blobs").mkdir(exist_ok=True)
    rows = []
    for session in site.sessions:
        for place, request in enumerate(session.requests):
            sha256 = content.hashes.get((session.session_id, place))
            data = content.blob(sha256) if sha256 is not None else None
            if sha256 is not None and data is not None:
                (folder / "blobs" / sha256).write_bytes(data)
                rows.append({"url": request.url, "at": request.at.isoformat(), "session_id": session.session_id,
                             "sha256": sha256})
    bundle.write_lines(folder / "downloads.jsonl", rows)


def _inline_sheets(sessions: Iterable[PageSession]) -> set[str]:
    pages = (page for session in sessions for place in range(len(session.requests))
             if (page := session.page(place)) is not None)
    return {"".join(child for child in element.children if isinstance(child, str))
            for page in pages for element in page.elements() if element.tag == "style"}
