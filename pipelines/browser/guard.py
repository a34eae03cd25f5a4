"""Decide who may read and write, and what a browser may do with a page.

Bound to this machine, reading needs nothing and writing needs the token; bound elsewhere, both need it. A token opens a
session: a cookie that only this server can make. A write needs that cookie, the form's own token (made from the cookie), and an
origin equal to the host. A server for this machine answers only to names of this machine (DNS rebinding). Does not see who a
person is."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.serving.access import host_in, is_of_this_machine
from pipelines.serving.connections import BodyReader, BodyRefused

COOKIE = "traceroom"
FIELD = "form_token"
ENTER = "/enter"
STYLE = "/style.css"
MOST_BYTES = 1 << 16
"""Of a form."""
LEAST_TOKEN = 16
"""Characters of a token that somebody chose."""
POLICY = ("default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
          "frame-ancestors 'none'")


def policy(styles: Iterable[str] = ()) -> str:
    """Return what a page may do. `styles`: of its frames, whose `<style>` is allowed by its hash and none else."""
    hashes = (base64.b64encode(hashlib.sha256(style.encode("utf-8", "replace")).digest()).decode() for style in styles)
    return POLICY.replace("style-src 'self'", " ".join(["style-src 'self'", *(f"'sha256-{each}'" for each in hashes)]))


HEADERS = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "x-frame-options": "DENY",
    "referrer-policy": "same-origin", "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin", "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store"}
_FORM = "application/x-www-form-urlencoded"


class AccessGuard:
    """The rules for one server."""

    def __init__(self, token: str, exposed: bool = False) -> None:
        self._key = hashlib.sha256(token.encode()).digest()
        self.exposed = exposed

    def opens(self, token: str) -> bool:
        """Tell whether this is the token."""
        return hmac.compare_digest(hashlib.sha256(token.encode("utf-8", "replace")).digest(), self._key)

    def session(self) -> str:
        """Return the value of a new session's cookie."""
        nonce = secrets.token_urlsafe(18)
        return f"{nonce}.{self._sign('session', nonce)}"

    def holds(self, cookies: Mapping[str, str]) -> bool:
        """Tell whether this server made the cookie."""
        nonce, _, signed = cookies.get(COOKIE, "").partition(".")
        return hmac.compare_digest(signed.encode("utf-8", "replace"), self._sign("session", nonce).encode())

    def form_token(self, cookies: Mapping[str, str]) -> str:
        """Return what a form of this session must hold."""
        return self._sign("form", cookies.get(COOKIE, ""))

    def _sign(self, what: str, value: str) -> str:
        return hmac.new(self._key, f"{what}\0{value}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


class Guarded:
    """ASGI middleware: a request comes through where the guard lets it, and every answer has the headers."""

    def __init__(self, app: ASGIApp, guard: AccessGuard) -> None:
        self._app = app
        self._guard = guard
        self._bodies = BodyReader(MOST_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer why not."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope, receive)
        refused = self._refused(request) or await self._form_refused(request)
        await (refused or self._app)(scope, receive, headed)

    def _refused(self, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD", "POST"):
            return _no(405, "pages are read with GET, and forms sent with POST")
        if not self._guard.exposed and not is_of_this_machine(host_of(request.headers)):
            return _no(421, "this server answers to the names of this machine alone; open http://127.0.0.1 with its port")
        if request.url.path in (ENTER, STYLE) or not self._guard.exposed or self._guard.holds(request.cookies):
            return None
        return RedirectResponse(ENTER, 303) if request.method == "GET" else _no(401, "give the token first")

    async def _form_refused(self, request: Request) -> Response | None:
        """Read the form into `request.state.form`, or say what is wrong with it."""
        if request.method != "POST":
            return None
        origin = request.headers.get("origin", "")
        if not origin or urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower():
            return _no(403, "a form counts only from a page of this server")
        if request.headers.get("content-type", "").split(";")[0].strip().lower() != _FORM:
            return _no(415, f"a form is sent as {_FORM}")
        body = await self._bodies.read(request.receive)
        if isinstance(body, BodyRefused):
            return _no(body.status, body.reason)
        try:
            fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=100)
        except ValueError:
            return _no(400, "this is no form")
        form: dict[str, Any] = {name: values[-1] for name, values in fields.items()}
        request.state.form = form
        if request.url.path == ENTER:
            return None
        given = str(form.get(FIELD, "")).encode("utf-8", "replace")
        if not self._guard.holds(request.cookies) or not hmac.compare_digest(
                given, self._guard.form_token(request.cookies).encode()):
            return _no(403, "this form has no token, or one of another session: give the token that was printed, and try again")
        return None


def host_of(headers: Headers) -> str:
    """Return the name that a server was asked for under, without a port; empty if there is not one name."""
    names = headers.getlist("host")
    return host_in(names[0]) if len(names) == 1 else ""


def _no(status: int, why: str) -> Response:
    return PlainTextResponse(f"{why[0].upper()}{why[1:]}.\n", status)
