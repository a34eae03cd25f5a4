"""How logins of a site run out, and what people get who are not logged in: the site's part of the perturbation `expiry`.

In: recorded sessions, the templates of paths, and where pages lead people who are not logged in. Out: the row `expiry` of
access.json: at what share of requests a login had run out, or after which pause; or why the perturbation is not offered.
Sees: somebody who comes in again by the same name. Does not see: a lost login that nobody renewed, a session that another login
ended, ends at a time of day. Where no login was lost, but the answer to people without one is on record, the share is that of a
site whose next request is the first to meet a lost login: an assumption, which `n_lost` shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote

from env_builder.runtime.site.trees import encode
from env_builder.site.parsing import collapse
from env_builder.site.recorded import PageSession, login_of, lost_requests

LEAST_PAUSES = 2
"""Lost logins below which nothing is said of the pause that they need."""
PathOf = Callable[[str, str], "str | None"]


class _LoggedInRequest(NamedTuple):
    """A request for a page that only people see who are logged in."""

    pause_s: float
    """Since the request before it."""
    is_lost: bool


def learn_expiry(sessions: Sequence[PageSession], path_of: PathOf, closed: Container[str]) -> dict[str, Any]:
    """Return {"rate", "idle_s", "n_lost", "n_requests"}, or {"why_not"}. `closed`: paths that only people see who are
    logged in, for which the answer to others is known."""
    requests = [each for session in sessions for each in _requests(session, path_of, closed)]
    if not any(login_of(request) is not None for session in sessions for request in session.requests):
        return {"why_not": "no session logs in"}
    if not requests:
        return {"why_not": "no request of somebody who was not logged in is on record for a page that people saw later"}
    lost = [each.pause_s for each in requests if each.is_lost]
    survived = max((each.pause_s for each in requests if not each.is_lost), default=0.0)
    idle = min(lost) if len(lost) >= LEAST_PAUSES and min(lost) > survived else None
    rate = 0.0 if idle is not None else max(1, len(lost)) / (len(requests) + (not lost))
    return {"rate": round(rate, 6), "idle_s": idle, "n_lost": len(lost), "n_requests": len(requests)}


def _requests(session: PageSession, path_of: PathOf, closed: Container[str]) -> Iterator[_LoggedInRequest]:
    """Yield the requests of somebody who was logged in; of a way back in only the first, at which the login was lost."""
    lost = lost_requests(session)
    is_in = False
    for place, request in enumerate(session.requests):
        if login_of(request) is not None:
            is_in = is_in or session.lets_in(place)
        elif is_in and request.method == "GET" and path_of("GET", request.url) in closed and (
                place not in lost or place - 1 not in lost):
            pause = (request.at - session.requests[place - 1].at).total_seconds()
            yield _LoggedInRequest(pause, place in lost)


class LoginTarget(NamedTuple):
    """Where somebody was led who was not logged in."""

    pattern: str
    """`{next}`: the address that was asked for; `{path}`: its path alone."""
    tells_them_apart: bool
    """The address had a query, so both differ."""


def login_target(url: str, location: str) -> LoginTarget:
    """Return where a redirect leads, in terms of the address that was asked for; without a query it counts as whole."""
    path, _, query = url.partition("?")
    address, mark, back = location.partition("?")
    for text, name in ((quote(url), "{next}"), (url, "{next}"), (path, "{path}")):
        if text in back:
            return LoginTarget(f"{address}{mark}{back.replace(text, name)}", bool(query))
    return LoginTarget(location, bool(query))


def usual_target(targets: Sequence[LoginTarget]) -> str:
    """Return the pattern that most redirects have; of those whose address had a query, if there are any."""
    telling = [each.pattern for each in targets if each.tells_them_apart] or [each.pattern for each in targets]
    return Counter(telling).most_common(1)[0][0]


def refusals_of(sessions: Iterable[PageSession], path_of: PathOf) -> dict[str, list[Any]]:
    """Return path -> [status, page] of pages that people got at once, with 401, who were not logged in."""
    refusals: dict[str, list[Any]] = {}
    for session in sessions:
        for place, request in enumerate(session.requests):
            path, page = path_of("GET", request.url), session.page(place)
            if request.status == HTTPStatus.UNAUTHORIZED and request.method == "GET" and path is not None and page is not None:
                refusals[path] = [request.status, encode([collapse(page)])]
    return dict(sorted(refusals.items()))
