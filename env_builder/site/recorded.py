"""Events of a site in (`page`, `request`), its sessions out: what was asked, by whom, and the pages that came back.

Requests without a page, a redirect or a file as answer are no part of the site: they are calls of tools. Nor are requests that
failed by themselves. The user is stated, or was typed into a form that also asks for a password. A file without ids of sessions
is cut where nothing is requested for a while, and where another user logs in. Does not see: users who take turns in one file
without ids or stated users; people who never log in (their user is unknown), but for those who do at another host.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from env_builder.runtime.site.trees import Element
from env_builder.site.parsing import parse
from env_builder.site.ports import SitePorts

_IS_TOKEN = re.compile(r"token|csrf|xsrf|nonce|sectok|viewstate|captcha", re.IGNORECASE).search
SECRET = "[secret]"
"""What stands for a password or a token that was cut."""
_PAGE = "text/html"
FAULTS = frozenset({502, 503, 504})
"""Statuses with which a request failed by itself: no answer of the site, but a fault, as perturbations have them."""


class RecordedFile(NamedTuple):
    """A file that came back instead of a page."""

    name: str
    type: str
    size: int
    """Bytes; 0: not known."""


class RecordedRequest(NamedTuple):
    """A request of a session and its answer."""

    at: datetime
    method: str
    url: str
    """Path and query."""
    form: tuple[tuple[str, str], ...] | None
    status: int
    location: str | None
    html: str | None
    file: RecordedFile | None

    @property
    def path(self) -> str:
        return urlsplit(self.url).path or "/"


GAP = timedelta(minutes=30)
"""A pause in which no user is expected to go on."""


class PageSession:
    """The requests of one person in one sitting, in order."""

    def __init__(self, session_id: str, host: str, requests: Iterable[RecordedRequest], identity: str | None = None,
                 origin: str | None = None) -> None:
        """`identity`: the user that the log states; `origin`: scheme, host and port of the requests."""
        self.session_id = session_id
        self.host = host
        self.origin = origin or f"https://{host}"
        self.requests = tuple(requests)
        self._identity = identity
        self._pages: dict[int, Element] = {}

    def page(self, index: int) -> Element | None:
        """Return the page that the request of this place got, None where it got none."""
        html = self.requests[index].html
        if html is None:
            return None
        if index not in self._pages:
            self._pages[index] = parse(html)
        return self._pages[index]

    @cached_property
    def login(self) -> str | None:
        """Return the user name of the last successful login, None without one."""
        for place in range(len(self.requests) - 1, -1, -1):
            if (typed := login_of(self.requests[place])) is not None and self.lets_in(place):
                return typed
        return None

    def lets_in(self, index: int) -> bool:
        """Return whether a login was taken: it led on, and not to a page that asks for the same again."""
        request = self.requests[index]
        later = next((place for place in range(index + 1, len(self.requests)) if self.page(place) is not None), None)
        page = self.page(later) if later is not None else None
        names = {name for name, value in request.form or () if value == SECRET}
        return bool(request.location) and not (page is not None and any(
            each.attributes.get("name") in names and is_password_field(each) for each in page.elements()))

    @property
    def user(self) -> str | None:
        """Return whose session it is: as stated, else by the login."""
        return self._identity or self.login


def password_fields(request: RecordedRequest) -> list[str]:
    """Return the names of the fields in which a password was sent; tokens that a site hides in its forms are none."""
    return [name for name, value in request.form or () if value == SECRET and not _IS_TOKEN(name)]


def login_of(request: RecordedRequest) -> str | None:
    """Return the name in a form that was posted with a password; None if it is no login, as where a password is typed twice."""
    fields = [(name, value) for name, value in request.form or () if value]
    passwords = password_fields(request)
    if request.method != "POST" or len(passwords) != 1:
        return None
    names = [value for name, value in fields[:fields.index((passwords[0], SECRET))] if value != SECRET]
    return names[-1] if names else None


def is_password_field(element: Element) -> bool:
    """Return whether an element is a field for a password."""
    return element.tag == "input" and element.attributes.get("type", "").lower() == "password"


def asks_for_login(page: Element) -> bool:
    """Return whether a page has a field for a password."""
    return any(map(is_password_field, page.elements()))


def lost_requests(session: PageSession) -> frozenset[int]:
    """Return the places of requests by which somebody met a lost session and came in again: from the first that was answered
    by the site's login to the login that was taken, if it is by the same name as before."""
    lost: set[int] = set()
    login: str | None = None
    began: int | None = None
    for place, request in enumerate(session.requests):
        typed = login_of(request)
        if typed is not None and session.lets_in(place):
            if began is not None and typed == login:
                lost.update(range(began, place + 1))
            login, began = typed, None
        elif typed is None and login is not None and request.location is None:
            page = session.page(place)
            if request.status != HTTPStatus.UNAUTHORIZED and (page is None or not asks_for_login(page)):
                began = None
            elif began is None:
                began = place
                while began and _leads_to(session.requests[began - 1], request):
                    began -= 1   # what was asked for, and led here
    return frozenset(lost)


class _SessionKey(NamedTuple):
    """What tells sessions apart before they are cut."""

    host: str
    session_id: str
    is_stated: bool
    """Whether the log states the id; else it is the file's."""
    user: str
    """The stated user of a request in a file without ids."""


def _sittings(requests: Sequence[RecordedRequest], gap: timedelta) -> Iterator[list[RecordedRequest]]:
    """Yield runs of requests without a pause and with one login; what led to the next login goes with it."""
    run: list[RecordedRequest] = []
    login: str | None = None
    for request in requests:
        typed = login_of(request) if request.location else None
        if run and request.at - run[-1].at > gap:
            yield run
            run, login = [], None
        elif typed is not None and login not in (None, typed):
            n_before = next((n for n, each in enumerate(reversed(run)) if not _is_before_login(each, request)), len(run))
            if n_before < len(run):
                yield run[:len(run) - n_before]
            run = run[len(run) - n_before:]
        run.append(request)
        login = typed or login
    if run:
        yield run


def _leads_to(request: RecordedRequest, page: RecordedRequest) -> bool:
    return urlsplit(request.location or "").path == page.path and login_of(request) is None


def _is_before_login(request: RecordedRequest, login: RecordedRequest) -> bool:
    """Return whether a request showed the form of a login, led there, or tried the login in vain."""
    return request.path == login.path or urlsplit(request.location or "").path == login.path


def page_sessions(events: Iterable[Mapping[str, Any]], gap: timedelta = GAP,
                  sites: SitePorts | None = None) -> list[PageSession]:
    """Return the sessions of events (rows of `core.events`, of the kinds `page` and `request`), by host and beginning.

    `sites`: which ports of a host are one site, where other events than these tell. A session that no id names is called by
    its file; of several in one file, the second ends in `~2`."""
    events = sorted((row for row in events if row["happened_at"] is not None), key=lambda row: row["happened_at"])
    sites = sites or SitePorts(events)
    users: dict[str, set[str]] = defaultdict(set)
    for row in events:
        if row["session_id"] is None and row["name"]:
            users[str(row["file_id"])].add(row["name"])
    grouped: dict[_SessionKey, list[RecordedRequest]] = defaultdict(list)
    identities: dict[_SessionKey, str] = {}
    origins: dict[str, Counter[str]] = defaultdict(Counter)
    elsewhere: dict[tuple[str, bool], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    """Who logged in at which host, by what names a session."""
    way = _WayThroughHosts()
    for row in events:
        request = _request(row)
        if request is not None and row["session_id"] is None:
            _note_login(elsewhere[str(row["file_id"]), False], sites.site(row), request)
        elif request is not None:
            _note_login(elsewhere[str(row["session_id"]), True], sites.site(row), request)
        if request is not None and not way.is_part(row, request):
            is_stated = row["session_id"] is not None
            host, name = sites.site(row), row["name"]
            if not name and len(of_file := users.get(str(row["file_id"]), set())) == 1 and not is_stated:
                name = next(iter(of_file))   # what somebody asked for before they said who they are
            session_id = str(row["session_id"] if is_stated else row["file_id"])
            key = _SessionKey(host, session_id, is_stated, "" if is_stated else name or "")
            grouped[key].append(request)
            if name:
                identities.setdefault(key, name)
            address = urlsplit(row["content"] or "")
            if address.hostname == row["service"]:
                origins[host][f"{address.scheme}://{address.netloc.rpartition('@')[2]}"] += 1
    sessions: list[PageSession] = []
    numbers: Counter[tuple[str, str]] = Counter()
    for key in sorted(grouped, key=lambda each: (min(request.at for request in grouped[each]), each)):
        origin = origins[key.host].most_common(1)[0][0] if origins[key.host] else None
        ordered = sorted(grouped[key], key=lambda each: each.at)
        if origin is not None:
            ordered = [_under(origin, each, sites) for each in ordered]
        for requests in [ordered] if key.is_stated else _sittings(ordered, gap):
            numbers[key.host, key.session_id] += 1
            n = numbers[key.host, key.session_id]
            session_id = key.session_id if n == 1 else f"{key.session_id}~{n}"
            others = {name for host, names in elsewhere[key.session_id, key.is_stated].items() if host != key.host
                      for name in names}
            session = PageSession(session_id, key.host, requests, identities.get(key), origin)
            if session.user is None and len(others) == 1:
                session = PageSession(session_id, key.host, requests, next(iter(others)), origin)
            sessions.append(session)
    return sorted(sessions, key=lambda each: (each.host, each.requests[0].at, each.session_id))


def _note_login(logins: dict[str, set[str]], host: str, request: RecordedRequest) -> None:
    if (login := login_of(request)) is not None and request.location:
        logins[host].add(login)


def _under(origin: str, request: RecordedRequest, sites: SitePorts) -> RecordedRequest:
    """Return a request of a site that answers on several ports, as if it did on one."""
    service = urlsplit(origin).hostname or ""
    return request._replace(
        location=sites.under(origin, service, request.location) if request.location else request.location,
        html=sites.under(origin, service, request.html) if request.html else request.html)


class _WayThroughHosts:
    """What leads from a site to another one, as where people log in, and what leads back: no part of the site itself.

    Nothing of another host is there in an environment, so the site begins where somebody has come in."""

    def __init__(self) -> None:
        self._back: set[tuple[str, str]] = set()
        """(file, address) to which another host led."""

    def is_part(self, row: Mapping[str, Any], request: RecordedRequest) -> bool:
        """Return whether a request leads to another host, or is what another host led to and leads on."""
        host = urlsplit(request.location or "").hostname
        if host is not None and host != row["service"]:
            self._back.add((str(row["file_id"]), str(request.location)))
            return request.method == "GET"
        return bool(request.location) and (str(row["file_id"]), str(row["content"])) in self._back


def _request(row: Mapping[str, Any]) -> RecordedRequest | None:
    value, arguments = json.loads(row["value"] or "{}"), json.loads(row["arguments"] or "{}")
    status, body = value.get("status"), arguments.get("body")
    is_page = value.get("type") == _PAGE or value.get("location") or row["kind"] == "page"
    if not isinstance(status, int) or status in FAULTS or row["happened_at"] is None or not is_page:
        return None
    method, _, path = str(row["tool"]).partition(" ")
    query = urlencode(list(_pairs(arguments.get("query") or {})))
    form = tuple(_pairs(body)) if isinstance(body, dict) else () if method == "POST" else None
    html = value.get("body") if value.get("type") == _PAGE and not value.get("location") else None
    file = None
    if html is None and not value.get("location") and value.get("type") not in (None, _PAGE):
        name = str(value.get("file") or path.rstrip("/").rpartition("/")[2])
        file = RecordedFile(name, value["type"], value.get("size") or 0)
    return RecordedRequest(row["happened_at"], method, f"{path}?{query}" if query else path, form, status,
                           value.get("location"), html if isinstance(html, str) else None, file)


def _pairs(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        for each in value if isinstance(value, list) else [value]:
            yield name, "" if each is None else str(each)
