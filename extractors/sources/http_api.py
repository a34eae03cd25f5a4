"""A platform's documented HTTP API by the standard library, where its own client has no pages or is much too heavy.

In: a method, a path, values. Out: what the platform answers, whole: an answer that ends early is a fault. Follows no redirect,
so that a key goes to one host alone.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson

from extractors.sources.faults import StatusFault, translated
from extractors.sources.platform import Account
from warehouse.errors import InputError


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: one would turn a POST into a GET, and send the key to another host."""

    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        """Return no request: the redirect is an error with its status."""


class HttpApi:
    """Requests to one platform."""

    def __init__(self, account: Account, headers: Mapping[str, str]) -> None:
        if urlsplit(account.url).scheme not in ("http", "https"):
            raise InputError(f"invalid address {account.url!r}", f"source {account.source!r}", "write it as https://HOST")
        self._account = account
        self._headers = {"Accept": "application/json", "User-Agent": "traceroom", **headers}
        self._opener = urllib.request.build_opener(NoRedirect)

    def get(self, path: str, values: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON value at a path; a list among the values is repeated, and None left out."""
        given = {name: value for name, value in (values or {}).items() if value is not None}
        return orjson.loads(self._content("GET", f"{path}?{urlencode(given, doseq=True)}" if given else path, None))

    def post(self, path: str, body: Any) -> bytes:
        """Return the answer to a JSON document."""
        return self._content("POST", path, orjson.dumps(body))

    def _content(self, method: str, path: str, content: bytes | None) -> bytes:
        headers = {**self._headers, **({"Content-Type": "application/json"} if content is not None else {})}
        request = urllib.request.Request(f"{self._account.url.rstrip('/')}/{path}", content, headers, method=method)
        with translated(self._account, StatusFault, OSError, http.client.HTTPException, ValueError):
            try:
                with self._opener.open(request, timeout=self._account.timeout_s) as answer:
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                body = error.read(2000).decode("utf-8", "replace")
                raise StatusFault(body, error.code, dict(error.headers.items())) from None
