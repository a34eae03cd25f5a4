"""Who may use a server: names and origins that it answers to, tokens, and which client a request is of.

A server on this machine's own address answers to the names of this machine, so that no web page elsewhere can call it. One on
any other address answers to the names that `--allow-host` lists, and each request has a token: `Authorization: Bearer TOKEN`. A
client is a token, or without one an address. Does not see: who a person is; the paths that need nothing (`/health`).

Imports the standard library, and of ours only modules that do so too.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from pipelines.serving.tokens import ClientTokens
from warehouse.errors import InputError

_ADDRESS = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//"
                      r"\[?(?P<name>(?<=\[)[0-9a-fA-F:.]+(?=\])|(?<!\[)[^\s:@/?#\[\],]+)\]?(?::\d{1,5})?")
"""`scheme://name:port`, and nothing else in it."""


class AccessDenied(NamedTuple):
    """Why a request is refused."""

    status: int
    reason: str


class ServerAccess(NamedTuple):
    """The rules of one server."""

    hosts: tuple[str, ...] = ()
    """Names and addresses that it answers to besides, where it is exposed, those of this machine; lower case."""
    tokens: ClientTokens = ClientTokens()
    """None: a request needs no token."""
    exposed: bool = False
    """Does it listen on an address that is not this machine's own?"""

    @classmethod
    def of(cls, host: str, allowed_hosts: Iterable[str] = (), tokens: ClientTokens | None = None) -> Self:
        """Return the rules of a server on this address. `tokens`: by default those of the environment; an exposed server
        without any makes one. InputError if an exposed server has no names, or a token is too short."""
        if tokens is None:
            tokens = ClientTokens.of_environment()
        hosts = tuple(sorted({_bare(name) for name in allowed_hosts}))
        if is_of_this_machine(host):
            return cls(hosts, tokens, False)
        if not hosts:
            raise InputError("a server that others can reach needs the names that they use for it", f"--host {host}",
                             "name each with --allow-host")
        return cls(hosts, tokens if len(tokens) else ClientTokens.drawn(), True)

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Return what `settings` gave to another process."""
        file = settings["tokens_file"]
        return cls(tuple(settings["hosts"]), ClientTokens(() if file else settings["tokens"], file), settings["exposed"])

    def settings(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {"hosts": self.hosts, "tokens": self.tokens.values, "tokens_file": self.tokens.file, "exposed": self.exposed}

    def denial(self, headers: dict[bytes, bytes], needs_token: bool = True) -> AccessDenied | None:
        """Return why a request with these headers is refused, None if it is not."""
        host, origin = (headers.get(name, b"").decode("latin-1") for name in (b"host", b"origin"))
        if not self._answers_to(_host_of(f"//{host}")):
            return AccessDenied(421, "invalid Host header")
        if origin and not self._answers_to(_host_of(origin)):
            return AccessDenied(403, "invalid Origin header")
        if needs_token and len(self.tokens) and self._token(headers) is None:
            return AccessDenied(401, "the request needs a token: Authorization: Bearer TOKEN")
        return None

    def client(self, headers: dict[bytes, bytes], address: Any) -> str:
        """Return which client the request is of."""
        number = self._token(headers) if len(self.tokens) else None
        return f"token {number}" if number is not None else str(address[0]) if address else ""

    def _answers_to(self, name: str) -> bool:
        return name in self.hosts or (not self.exposed and is_of_this_machine(name))

    def _token(self, headers: dict[bytes, bytes]) -> int | None:
        """Return the number of the client whose token the request has."""
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        number = self.tokens.client(token.strip())
        return number if kind.lower() == b"bearer" else None


def is_of_this_machine(host: str) -> bool:
    """Tell whether a name or address means this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _bare(name: str) -> str:
    return name.strip().strip("[]").rstrip(".").lower()


def _host_of(address: str) -> str:
    """Return the name in an origin, or in a Host header after `//`; empty if it cannot be parsed."""
    match = _ADDRESS.fullmatch(address)
    return match["name"].rstrip(".").lower() if match else ""


def host_in(header: str) -> str:
    """Return the name in a Host header, without its port; empty if it cannot be parsed."""
    return _host_of(f"//{header}")


def combined(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return headers by name; values of one that comes twice follow each other with a comma (RFC 9110, 5.3), so that no reader
    takes the first and another the last."""
    values: dict[bytes, bytes] = {}
    for name, value in headers:
        values[name] = values[name] + b", " + value if name in values else value
    return values
