"""The port of a site: a request in, an answer out. Whoever shows pages (a browser without a window, Chromium) is its client.

What answers behind it says by `tier` how far it can be relied on: `real` (the company's own application), `recorded`,
`induced`, `unknown` (a page that says so).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from .trees import Element

__all__ = ["Delivery", "PortAnswer", "PortRequest", "SitePort"]


class PortRequest(NamedTuple):
    """A request as a browser makes it."""

    method: str
    """GET or POST."""
    url: str
    """Path and query, from the first slash on; the host is the site's."""
    form: tuple[tuple[str, str], ...] | None = None
    """Names and values of a posted form, in the form's order; of a file its name. None: nothing was posted."""
    changed: tuple[str, ...] = ()
    """Of a posted form: the fields whose values people changed, as far as the page with the form is known."""


class Delivery(NamedTuple):
    """A file that a site delivers instead of a page."""

    name: str
    type: str
    content: bytes | None
    """None: the logs do not hold what was delivered."""


class PortAnswer(NamedTuple):
    """What a site answers; with a location, a page or a file."""

    status: int
    tier: str
    location: str | None = None
    """Where a redirect leads, as the site states it."""
    page: Element | None = None
    """The page's tree, shared and immutable."""
    file: Delivery | None = None
    headers: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    """Places of an induced page of which nothing reliable is known; the page marks them."""


class SitePort(Protocol):
    """One session of a site, as it stands in an episode."""

    def ask(self, request: PortRequest) -> PortAnswer:
        """Answer a request and change the site's state; garbage gives a page with a status of 400 or more."""
