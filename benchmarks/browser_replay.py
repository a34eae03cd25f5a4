"""What recorded requests alone can answer: HAR replay as Playwright matches, and cassettes that know of time and user.

In: requests of sessions that replay may use, and one that it may not. Out: the recorded request that answers it, or None.
Nothing here is ours to improve: these are the floors that an induced site is measured against.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from browser_pages import SiteAnswer, mask_text

from env_builder.site.learning import RecordedAnswer


@dataclass(frozen=True)
class SiteRequest:
    """A request of a session, with what the site answered."""

    session: str
    user: str
    at: datetime
    method: str
    url: str
    posted: str
    """Digest of what was posted, byte for byte as recorded."""
    form: Any
    """What was posted, read; credentials masked."""
    headers: frozenset[tuple[str, str]]
    answer: SiteAnswer
    recorded: RecordedAnswer
    """The same as the site's learner takes it; nothing in it is masked but secrets."""

    @property
    def is_page(self) -> bool:
        """Whether a page came back."""
        return self.answer.page is not None

    @property
    def key(self) -> tuple[str, str, str]:
        """Method, url and form, volatile parts masked: requests with the same key ask for the same."""
        form = orjson.dumps(self.form, option=orjson.OPT_SORT_KEYS).decode()
        return self.method, mask_text(self.url), mask_text(form)


class HarReplay:
    """Answers as Playwright's `routeFromHAR` does: method, url and posted bytes must be equal; of several the one with most
    headers in common, of these the first recorded. Redirects are answered as such, for each of their requests is judged."""

    def __init__(self, requests: Iterable[SiteRequest]) -> None:
        """Take the recorded requests."""
        self._recorded: dict[tuple[str, str, str], list[SiteRequest]] = defaultdict(list)
        for request in sorted(requests, key=lambda each: each.at):
            self._recorded[request.method, request.url, request.posted].append(request)

    def answer(self, request: SiteRequest) -> SiteRequest | None:
        """Return the recorded request that answers this one."""
        recorded = self._recorded.get((request.method, request.url, request.posted), ())
        return max(recorded, key=lambda each: len(each.headers & request.headers), default=None)


class Cassette:
    """Answers with the last recorded request of the same key before the instant: of the own session, else of anybody."""

    def __init__(self, requests: Iterable[SiteRequest], *, same_user_first: bool) -> None:
        """Take the recorded requests; `same_user_first`: what the same user got goes before what anybody got later."""
        self._same_user_first = same_user_first
        self._recorded: dict[tuple[str, str, str], list[SiteRequest]] = defaultdict(list)
        for request in sorted(requests, key=lambda each: each.at):
            self._recorded[request.key].append(request)

    def answer(self, request: SiteRequest, earlier: Iterable[SiteRequest] = ()) -> SiteRequest | None:
        """Return the recorded request that answers this one; `earlier` are those before it in its own session."""
        if own := [each for each in earlier if each.key == request.key]:
            return own[-1]
        before = [each for each in self._recorded.get(request.key, ()) if each.at < request.at]
        same_user = [each for each in before if each.user == request.user] if self._same_user_first else []
        return (same_user or before or [None])[-1]
