"""One session of a site in an episode: behind the port, what was recorded in this state, else what is induced.

A request in the same state as a recorded one of the task's own session (the same posts taken so far, logged in or not) gets the
recorded answer; any other gets what sources learnt from all sessions before the start. A post that is taken changes the state
and the ledger. A login is right with the password that the task gives, as no log's password is stored; a wrong one is
answered as wrong ones were, or with the form again. Pages that the log shows to people alone who are logged in lead to the
login. Where the episode lets logins run out (`expiry.py`), such a page leads there too, until the same person logs in again:
then the episode goes on where it was. What a form gets that is sent without a login is unknown, unless the log shows it.
Sees: posts and downloads of the episode. Does not see: what others do meanwhile, what a site forgets with a login.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ..canonical import canonical, digest
from .expiry import SiteExpiry
from .form_ledger import SESSION, FormLaws, FormLedger, Post, ShownForm, changed_fields, forms_on, shown_form, with_values
from .model import InducedPages
from .port import Delivery, PortAnswer, PortRequest, SitePort
from .trees import Element
from .visits import SiteVisit

__all__ = ["SiteAccess", "SiteSession", "advanced", "login_text", "question_of", "write_text"]

_STEP = timedelta(seconds=1)
_UNKNOWN = "This page is not on record: it was never requested before."
_LOST = "The login has run out, and it is not on record what this form gets then. Nothing was changed."


class SiteAccess(NamedTuple):
    """Who may come in, and where."""

    passwords: Mapping[str, str]
    """Login -> the password of the environment."""
    users: Mapping[str, str]
    """Login -> user, as recorded visits name people."""
    login_pages: Mapping[str, str]
    """Template of a page's path that only people who are logged in see -> where it leads others; `{next}` is the address that
    was asked for, `{path}` its path."""
    login_routes: frozenset[str]
    """Templates of paths at which people log in."""
    login_fields: frozenset[str] = frozenset()
    """Names of fields of passwords, one of which is in a form that logs in."""
    login_only: frozenset[str] = frozenset()
    """Templates of paths whose every page asks for a login: who is led there was refused."""
    login_posts: Mapping[str, str] = {}
    """As `login_pages`, of forms that were sent by people whose login had run out."""
    refusals: Mapping[str, tuple[int, Element]] = {}
    """Template of a page's path -> status and page that others got at once."""

    def is_closed(self, path: str) -> bool:
        """Return whether only people who are logged in see the pages of a path."""
        return path in self.login_pages or path in self.refusals


class _SessionState(NamedTuple):
    """All that an episode changed; never changed itself."""

    own: tuple[SiteVisit, ...]
    pages: tuple[tuple[str, Element], ...]
    """(url, page) of the last pages with forms."""
    ledger: FormLedger
    state: str
    login: str | None
    waited: timedelta
    unknown: bool
    """Whether the last answer to a post is unknown."""
    lost: int | None = None
    """Number of visits when the login ran out; None: it has not. `login` is who was logged in."""
    n_asked: int = 0
    last_asked: timedelta = timedelta()
    """`waited` at the last answer."""

    @property
    def user(self) -> str | None:
        """The login of who is logged in now."""
        return self.login if self.lost is None else None

    @property
    def visits(self) -> tuple[SiteVisit, ...]:
        """The visits that the site knows to be of this session."""
        return self.own if self.lost is None else self.own[self.lost:]


def question_of(method: str, url: str, write: str = "") -> str:
    """Return what is asked: by that text recorded answers are looked up."""
    return f"{method} {one_form(url)} {write}".rstrip()


def one_form(url: str) -> str:
    """Return path and query of an address, the query encoded in one way."""
    address = urlsplit(url)
    query = urlencode(parse_qsl(address.query, keep_blank_values=True))
    return f"{address.path or '/'}?{query}" if query else address.path or "/"


def advanced(state: str, write: str) -> str:
    """Return the state after an accepted post. `write`: its text."""
    return digest(f"{state} {write}")[:16]


class SiteSession(SitePort):
    """What a browser asks."""

    def __init__(self, pages: InducedPages, laws: FormLaws, access: SiteAccess, recorded: Mapping[tuple[str, str], int],
                 start: datetime, files: Callable[[str], bytes | None], application: SitePort | None = None,
                 expiry: SiteExpiry | None = None) -> None:
        """Begin in the state in which the task's session began.

        `recorded`: (state, question) -> number of the visit of that session; `files`: url -> what is downloaded there;
        `application`: what answers instead of all that was recorded and induced; it cannot be forked nor go back; `expiry`:
        how logins run out."""
        self._application = application
        self._expiry = expiry
        self._pages = pages
        self._laws = laws
        self._access = access
        self._recorded = recorded
        self._start = start
        self._files = files
        self._now = _SessionState((), (), FormLedger(laws), "", None, timedelta(), False)

    @property
    def ledger(self) -> FormLedger:
        """What the posts of the episode changed."""
        return self._now.ledger

    @property
    def is_unknown(self) -> bool:
        """Whether the effect of the last request is unknown."""
        return self._now.unknown

    def snapshot(self) -> Any:
        """Return the state as an immutable value."""
        return self._now

    def restore(self, snapshot: Any) -> None:
        """Return to a state."""
        self._now = snapshot

    def fork(self) -> SiteSession:
        """Return the same state, independent from here on."""
        fork = SiteSession.__new__(SiteSession)
        fork.__dict__.update(self.__dict__)
        return fork

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._now = self._now._replace(waited=self._now.waited + timedelta(seconds=seconds))

    def ask(self, request: PortRequest) -> PortAnswer:
        if self._application is not None:
            return self._asked_for_real(request, self._application)
        request = request._replace(url=one_form(request.url))
        route = self._pages.path_of(request.method, request.url)
        if request.method == "POST" and route is not None:
            return self._posted(request, *route)
        is_closed = route is not None and self._access.is_closed(route[0])
        if is_closed and self._runs_out(request):
            self._now = self._now._replace(lost=len(self._now.own))
        if route is not None and is_closed and self._now.user is None and self._number(request, "") is None:
            return self._answered(self._to_login(route[0], request), None, is_write=False)
        return self._reply(request, "", is_write=request.method != "GET")

    def _runs_out(self, request: PortRequest) -> bool:
        """Return whether the login runs out at this request."""
        now, question = self._now, question_of(request.method, request.url)
        return self._expiry is not None and now.user is not None and self._expiry.has_run_out(
            now.n_asked, question, now.waited - now.last_asked)

    def _posted(self, request: PortRequest, path: str, entity: tuple[str, ...]) -> PortAnswer:
        """Answer a form."""
        post = Post(path, entity, request.form or (), self._shown(request))
        request = request._replace(changed=changed_fields(post.shown, post.form))
        law = self._laws.law(path, post.form)
        is_login = self._is_login(path, post.form)
        if self._now.lost is not None and not is_login:
            target = self._access.login_posts.get(path)
            answer = PortAnswer(404, "unknown", page=_page(_LOST)) if target is None else _led(target, request)
            return self._answered(answer, None, is_write=True)
        write = self._login_text(request) if is_login else write_text(self._laws, post)
        if is_login and not self._is_right(request) and self._number(request, write) is None:
            return self._refused(request)
        answer = self._reply(request, write, is_write=not is_login)
        if not self._is_taken(request, answer) or (is_login and not self._is_right(request)):
            return answer
        if is_login and self._login(request) != self._now.login:
            self._now = self._now._replace(login=self._login(request), state=advanced(self._now.state, "in"), lost=None)
        elif is_login:
            self._now = self._now._replace(lost=None)
        elif law is None or law.effect != SESSION:
            self._now = self._now._replace(ledger=self._now.ledger.posted(post), state=advanced(self._now.state, write))
        return answer

    def _refused(self, request: PortRequest) -> PortAnswer:
        """Answer a wrong password as such ones were answered; where none is on record, with the form again."""
        shown, login = self._shown(request), self._login(request)
        typed = next((value for name, value in request.form or () if shown is not None and name in shown.visible), "")
        user = self._access.users.get(login or "", typed)   # recordings take the name that was typed for the user, too
        answered = self._pages.refused(request, user, self._at, self._now.visits, self._start)
        if answered is not None and not self._is_taken(request, answered[0]):
            return self._answered(*answered, is_write=False)
        return self._reply(request._replace(method="GET", form=None), "", is_write=False)

    def _asked_for_real(self, request: PortRequest, application: SitePort) -> PortAnswer:
        """Let the application answer, and keep the ledger as for any other host."""
        shown, answer = self._shown(request), application.ask(request)
        url = one_form(request.url)
        if answer.page is not None:
            self._now = self._now._replace(pages=(*self._now.pages[-7:], (url, answer.page)))
        route = self._pages.path_of(request.method, url)
        if request.method == "POST" and route is not None and self._is_taken(request, answer):
            post = Post(route[0], route[1], request.form or (), shown)
            law = self._laws.law(route[0], post.form)
            if not self._is_login(route[0], post.form) and (law is None or law.effect != SESSION):
                self._now = self._now._replace(ledger=self._now.ledger.posted(post))
        return answer

    def _reply(self, request: PortRequest, write: str, is_write: bool) -> PortAnswer:
        """Return the recorded answer in this state, else the induced one, else a page that says that the answer is unknown."""
        user, number = self._access.users.get(self._now.user or "", ""), self._number(request, write)
        answered = self._pages.recorded(number, request, user, self._at, self._start) if number is not None else None
        if answered is None:
            answered = self._pages.answer(request, user, self._at, self._now.visits, self._start)
        if answered is None:
            return self._answered(PortAnswer(404, "unknown", page=_page(_UNKNOWN)), None, is_write)
        answer, visit = answered
        if answer.file is not None:
            answer = answer._replace(file=Delivery(answer.file.name, answer.file.type, self._files(visit.url)))
        return self._answered(answer, visit, is_write)

    def _number(self, request: PortRequest, write: str) -> int | None:
        """Return the visit that is on record in this state; the state is that of somebody who is logged in."""
        key = self._now.state, question_of(request.method, request.url, write)
        return self._recorded.get(key) if self._now.lost is None else None

    def _answered(self, answer: PortAnswer, visit: SiteVisit | None, is_write: bool) -> PortAnswer:
        if answer.tier == "induced" and answer.page is not None and visit is not None and not self._now.ledger.is_empty:
            answer = answer._replace(page=self._updated(answer.page, visit.url))
        own = (*self._now.own, visit) if visit is not None else self._now.own
        pages = self._now.pages
        if answer.page is not None and visit is not None and any(
                each.tag == "form" for each in answer.page.elements()):
            pages = (*pages[-7:], (visit.url, answer.page))
        waited = self._now.waited + _STEP
        self._now = self._now._replace(own=own, pages=pages, waited=waited, last_asked=waited, n_asked=self._now.n_asked + 1,
                                       unknown=is_write and answer.tier == "unknown")
        return answer

    def _updated(self, element: Element, url: str) -> Element:
        """Return a page whose forms show what this episode posted to them, as forms do that update."""
        if element.tag != "form" or element.attributes.get("method", "").lower() != "post":
            children = [self._updated(child, url) if isinstance(child, Element) else child for child in element.children]
            is_same = all(one is other for one, other in zip(children, element.children, strict=True))
            return element if is_same else Element(element.tag, element.attributes, children)
        form = forms_on(element, url)[0]
        route = self._pages.path_of("POST", form.url)
        return element if route is None else with_values(element, self._now.ledger.updated(
            *route, [(name, value) for name, values in form.values.items() for value in values]))

    @property
    def _at(self) -> datetime:
        return self._start + self._now.waited

    def _shown(self, request: PortRequest) -> ShownForm | None:
        names = [name for name, _ in request.form or ()]
        return next((form for url, page in reversed(self._now.pages)
                     if (form := shown_form(page, url, request.url, names)) is not None), None)

    def _is_login(self, path: str, form: Sequence[tuple[str, str]]) -> bool:
        """Return whether a form logs in: one path may take forms that do other things."""
        return path in self._access.login_routes and any(name in self._access.login_fields for name, _ in form)

    def _login(self, request: PortRequest) -> str | None:
        """Return the login in a form; None where it names none that there is."""
        return next((value for _, value in request.form or () if value in self._access.passwords), None)

    def _is_right(self, request: PortRequest) -> bool:
        login = self._login(request)
        return login is not None and any(value == self._access.passwords[login] for _, value in request.form or ())

    def _login_text(self, request: PortRequest) -> str:
        return login_text(self._login(request), self._is_right(request))

    def _is_taken(self, request: PortRequest, answer: PortAnswer) -> bool:
        if answer.status >= 400:
            return False
        if answer.location is not None:
            route = self._pages.path_of("GET", answer.location)
            return route is None or route[0] not in self._access.login_only
        names = [name for name, _ in request.form or ()]
        return answer.page is not None and shown_form(answer.page, request.url, request.url, names) is None

    def _to_login(self, path: str, request: PortRequest) -> PortAnswer:
        """Return what somebody gets who is not logged in."""
        if path in self._access.refusals:
            status, page = self._access.refusals[path]
            return PortAnswer(status, "induced", page=page)
        return _led(self._access.login_pages[path], request)


def _led(target: str, request: PortRequest) -> PortAnswer:
    """Return the way to the login, from where it leads back to what was asked for."""
    location = target.replace("{next}", quote(request.url)).replace("{path}", quote(urlsplit(request.url).path))
    return PortAnswer(302, "induced", location=location)


def write_text(laws: FormLaws, post: Post) -> str:
    """Return what a post does, as text: its entity, and what counts of its fields."""
    documents = FormLedger(laws).posted(post).texts()
    return canonical([[kind, key, text] for (kind, key), text in sorted(documents.items())])


def login_text(login: str | None, is_right: bool) -> str:
    """Return what a login does, as text."""
    return canonical({"login": login, "right": is_right})


def _page(text: str) -> Element:
    return Element("html", {}, [Element("head", {}, [Element("title", {}, ["Not on record"])]),
                                Element("body", {}, [Element("h1", {}, ["Not on record"]), Element("p", {}, [text])])])
