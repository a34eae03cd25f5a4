"""Addresses of pages: relative ones resolved and spelled as browsers do (the URL standard, for http and https)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, quote_plus, urljoin, urlsplit

_PATH = "!$%&'()*+,-./:;=@_~[]|\\^"
_QUERY = "!$%&()*+,-./:;=?@_~[]|\\^`{}"
BLANK = "about:blank"


class PageAddress(NamedTuple):
    """An address in its parts."""

    origin: str
    """Scheme and host."""
    target: str
    """Path and query."""
    fragment: str | None

    @property
    def text(self) -> str:
        """Return the whole address."""
        return self.origin + self.target + (f"#{self.fragment}" if self.fragment is not None else "")

    @property
    def host(self) -> str:
        """Return the host, a port of its scheme's own left out."""
        scheme, _, host = self.origin.partition("://")
        return host.removesuffix({"http": ":80", "https": ":443"}.get(scheme, ""))


def resolve(base: str, reference: str) -> PageAddress | None:
    """Return where a reference on a page leads; None: not to a page (mailto:, javascript:, what makes no sense)."""
    cleaned = re.sub(r"[\t\r\n]", "", reference.strip("".join(map(chr, range(33)))))
    try:
        joined = urljoin(base, cleaned) if cleaned else base.partition("#")[0]
        has_query = "?" in (cleaned or joined).partition("#")[0] or "?" in joined.partition("#")[0]
        parts = urlsplit(joined)
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    target = quote(parts.path.replace("\\", "/") or "/", safe=_PATH, errors="replace")
    query = f"?{quote(parts.query, safe=_QUERY, errors='replace')}" if has_query else ""
    fragment = cleaned.partition("#")[2] if "#" in cleaned else None
    return PageAddress(f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}", target + query,
                       None if fragment is None else quote(fragment, safe=_QUERY + "'#", errors="replace"))


def urlencoded(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and values as a form writes them into an address."""
    return "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in pairs)


def _encoded(text: str) -> str:
    return quote_plus(text, safe="*", errors="replace").replace("~", "%7E")


def typed_address(text: str, site: PageAddress) -> str:
    """Return an address as somebody types it, without a scheme if it begins with the site's host."""
    text = text.strip()
    host = text.partition("/")[0].partition("?")[0].lower()
    return f"{site.origin.partition('://')[0]}://{text}" if host == site.host else text
