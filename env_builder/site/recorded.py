"""Events of a site in (`page`, `request`), its sessions out: what was asked, by whom, and the pages that came back.

Requests without a page, a redirect or a file as answer are no part of the site: they are calls of tools. Nor are requests that
failed by themselves. Whose session it is is stated, or was typed into a form that also asked for a password. Does not see:
several sessions in one file without an id, and people who never log in (their user is unknown).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from env_builder.runtime.site.trees import Element
from env_builder.site.parsing import parse

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


class PageSession:
    """The requests of one person in one sitting, in order."""

    def __init__(self, session_id: str, host: str, requests: Iterable[RecordedRequest], identity: str | None = None) -> None:
        self.session_id = session_id
        self.host = host
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
        """Return what was typed beside the password that let the person in, None where nobody logged in."""
        for request in reversed(self.requests):
            typed = login_of(request)
            if typed is not None and request.location:
                return typed
        return None

    @property
    def user(self) -> str | None:
        """Return whose session it is: as stated, else by the login."""
        return self._identity or self.login


def login_of(request: RecordedRequest) -> str | None:
    """Return the name in a form that was posted with a password; None where it is no login."""
    fields = [(name, value) for name, value in request.form or () if value]
    secret = [index for index, (name, value) in enumerate(fields) if value == SECRET and "token" not in name.lower()
              and "csrf" not in name.lower()]
    names = [value for name, value in fields[:secret[0]] if value != SECRET] if secret else []
    return names[-1] if names and request.method == "POST" else None


def page_sessions(events: Iterable[Mapping[str, Any]]) -> list[PageSession]:
    """Return the sessions of events (rows of `core.events`, of the kinds `page` and `request`), by host and beginning."""
    grouped: dict[tuple[str, str], list[tuple[RecordedRequest, str | None]]] = {}
    for row in events:
        request = _request(row)
        if request is not None:
            session = str(row["session_id"] or row["file_id"])
            grouped.setdefault((str(row["service"]), session), []).append((request, row["name"]))
    sessions = []
    for (host, session_id), rows in grouped.items():
        rows.sort(key=lambda each: each[0].at)
        names = [name for _, name in rows if name]
        sessions.append(PageSession(session_id, host, [request for request, _ in rows], names[0] if names else None))
    return sorted(sessions, key=lambda each: (each.host, each.requests[0].at, each.session_id))


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
