"""One session of a site in an episode: behind the port, what was recorded in this state, else what is induced.

A request in the same state as a recorded one of the task's own session (the same posts taken so far, logged in or not) gets the
recorded answer; any other gets what sources learnt from all sessions before the start. A post that is taken changes the state
and the ledger. A login is right with the password that the task gives, as no log's password is stored; with a wrong one the
form comes again. Pages that the log shows to people alone who are logged in lead to the login.
Sees: posts and downloads of the episode. Does not see: what others do meanwhile, sessions that run out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from ..canonical import canonical, digest
from .acts import SESSION, FormLaws, Ledger, Post, ShownForm, shown_form
from .model import InducedPages
from .port import Delivery, PortAnswer, PortRequest, SitePort
from .trees import Element
from .visits import SiteVisit

__all__ = ["SiteAccess", "SiteSession", "advanced", "question_of"]

_STEP = timedelta(seconds=1)
_UNKNOWN = "This page is not on record: nobody requested it before."


class SiteAccess(NamedTuple):
    """Who may come in, and where."""

    passwords: Mapping[str, str]
    """Login -> the password of the environment."""
    users: Mapping[str, str]
    """Login -> user, as recorded visits name people."""
    login_pages: Mapping[str, str]
    """Template of a page's path that only people who are logged in see -> where it leads others; `{next}` is what was asked."""
    login_routes: frozenset[str]
    """Templates of paths at which people log in."""


class SiteRecord(NamedTuple):
    """What is recorded of the session of a task."""

    answers: Mapping[tuple[str, str], tuple[PortAnswer, SiteVisit]]
    """(state, question) -> answer."""


class _SessionState(NamedTuple):
    """All that an episode changed; never changed itself."""

    own: tuple[SiteVisit, ...]
    pages: tuple[tuple[str, Element], ...]
    """(url, page) of the last pages with forms."""
    ledger: Ledger
    state: str
    login: str | None
    waited: timedelta
    unknown: bool
    """Whether the last answer to a post was one that nobody knows."""


def question_of(method: str, url: str, act: str = "") -> str:
    """Return what is asked, as recorded answers are found by."""
    return f"{method} {url} {act}".rstrip()


def advanced(state: str, act: str) -> str:
    """Return the state after an act was taken."""
    return digest(f"{state} {act}")[:16]


class SiteSession(SitePort):
    """What a browser asks."""

    def __init__(self, pages: InducedPages, laws: FormLaws, access: SiteAccess, record: SiteRecord, start: datetime,
                 files: Mapping[str, bytes]) -> None:
        """`files`: question -> what is downloaded there."""
        self._pages = pages
        self._laws = laws
        self._access = access
        self._record = record
        self._start = start
        self._files = files
        self._now = _SessionState((), (), Ledger(laws), "", None, timedelta(), False)

    @property
    def ledger(self) -> Ledger:
        """What the posts of the episode changed."""
        return self._now.ledger

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows what the last request changed."""
        return self._now.unknown

    def snapshot(self) -> Any:
        """Return the state as a value that nobody changes."""
        return self._now

    def restore(self, snapshot: Any) -> None:
        """Return to a state."""
        self._now = snapshot

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._now = self._now._replace(waited=self._now.waited + timedelta(seconds=seconds))

    def ask(self, request: PortRequest) -> PortAnswer:
        now, route = self._now, self._pages.route(request.method, request.url)
        path = route.path if route is not None else None
        if now.login is None and request.method == "GET" and path in self._access.login_pages:
            return self._answered(self._to_login(path or "", request), None, is_write=False)
        if request.method != "POST":
            return self._known(request, "", is_write=False)
        return self._posted(request, path)

    def _posted(self, request: PortRequest, path: str | None) -> PortAnswer:
        """Answer a form."""
        shown = self._shown(request)
        entity = self._pages.parameters(request.method, request.url)
        law = self._laws.law(path, request.form or ()) if path is not None else None
        act = act_of(self._laws, path, entity, request, shown) if path is not None else ""
        login = self._login(request) if path in self._access.login_routes else None
        if login is not None:
            name, is_right = login
            act = canonical({"login": name, "right": is_right})
            if not is_right:
                known = self._record.answers.get((self._now.state, question_of("POST", request.url, act)))
                return known[0] if known else self._known(request._replace(method="GET", form=None), "", is_write=False)
        answer = self._known(request, act, is_write=True)
        if path is None or not self._is_taken(request, answer):
            return answer
        if login is not None:
            self._now = self._now._replace(login=login[0], state=advanced(self._now.state, "in"))
        elif law is None or law.effect != SESSION:
            post = Post(path, entity, request.form or (), shown)
            self._now = self._now._replace(ledger=self._now.ledger.posted(post), state=advanced(self._now.state, act))
        return answer

    def _known(self, request: PortRequest, act: str, is_write: bool) -> PortAnswer:
        """Return the recorded answer in this state, else the induced one, else a page that says that nobody knows."""
        question = question_of(request.method, request.url, act)
        recorded = self._record.answers.get((self._now.state, question))
        if recorded is not None:
            return self._answered(self._delivered(recorded[0]._replace(tier="recorded"), question), recorded[1], is_write)
        user = self._access.users.get(self._now.login or "", "")
        induced = self._pages.answer(request, user, self._at, self._now.own, self._start)
        if induced is None:
            return self._answered(PortAnswer(404, "unknown", page=_page(_UNKNOWN)), None, is_write)
        return self._answered(self._delivered(induced[0], question), induced[1], is_write)

    def _answered(self, answer: PortAnswer, visit: SiteVisit | None, is_write: bool) -> PortAnswer:
        own = (*self._now.own, visit) if visit is not None else self._now.own
        pages = self._now.pages
        if answer.page is not None and visit is not None and any(
                each.tag == "form" for each in answer.page.elements()):
            pages = (*pages[-7:], (visit.url, answer.page))
        self._now = self._now._replace(own=own, pages=pages, waited=self._now.waited + _STEP,
                                       unknown=is_write and answer.tier == "unknown")
        return answer

    @property
    def _at(self) -> datetime:
        return self._start + self._now.waited

    def _delivered(self, answer: PortAnswer, question: str) -> PortAnswer:
        """Return the answer with the bytes of its file, where they are on record."""
        if answer.file is None:
            return answer
        return answer._replace(file=Delivery(answer.file.name, answer.file.type, self._files.get(question)))

    def _shown(self, request: PortRequest) -> ShownForm | None:
        names = [name for name, _ in request.form or ()]
        return next((form for url, page in reversed(self._now.pages)
                     if (form := shown_form(page, url, request.url, names)) is not None), None)

    def _login(self, request: PortRequest) -> tuple[str, bool] | None:
        """Return the login in a form, and whether the password is right; None where it names none that there is."""
        values = [value for _, value in request.form or ()]
        name = next((value for value in values if value in self._access.passwords), None)
        if name is None:
            return (values[0] if values else "", False)
        return name, self._access.passwords[name] in values

    def _is_taken(self, request: PortRequest, answer: PortAnswer) -> bool:
        if answer.status >= 400:
            return False
        if answer.location is not None:
            route = self._pages.route("GET", answer.location)
            return route is None or route.path not in self._access.login_routes
        names = [name for name, _ in request.form or ()]
        return answer.page is not None and shown_form(answer.page, request.url, request.url, names) is None

    def _to_login(self, path: str, request: PortRequest) -> PortAnswer:
        target = self._access.login_pages[path].replace("{next}", quote(urlsplit(request.url).path))
        return PortAnswer(302, "induced", location=target)


def act_of(laws: FormLaws, path: str, entity: tuple[str, ...], request: PortRequest, shown: ShownForm | None) -> str:
    """Return what a post does, as text: its route, its thing, and what counts of its fields."""
    documents = Ledger(laws).posted(Post(path, entity, request.form or (), shown)).texts()
    return canonical([[kind, key, text] for (kind, key), text in sorted(documents.items())])


def _page(text: str) -> Element:
    return Element("html", {}, [Element("head", {}, [Element("title", {}, ["Not on record"])]),
                                Element("body", {}, [Element("h1", {}, ["Not on record"]), Element("p", {}, [text])])])
