"""Connections of a server: how long a client may owe a request, and how long and large a body may be.

In: connections and ASGI events. Out: bodies, or why there is none. A connection whose client owes the head of a request for
`HEAD_S` seconds is closed, and the oldest of those at once where there are too many connections; so is one whose client does
not read its answer. A head has at most `MOST_HEAD` bytes, and a body comes within `BODY_S` seconds. Short bodies are always
taken; all longer ones that come in at a time share `MOST_COMING` bytes, so no number of slow clients takes the memory or the
turn of others.
Sees: what has come in and when. Does not see: how busy the application is.

Imports uvicorn and the standard library, and of ours only modules that do so too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import uvicorn

from pipelines.serving.access import ServerAccess, combined
from pipelines.serving.listening import most_open_files

HEAD_S = 10.0
"""Seconds in which the head of a request must have come."""
BODY_S = 20.0
"""Seconds in which a body must have come."""
MAX_BODY = 4 * 1024 * 1024
"""Bytes of the longest body."""
MOST_HEAD = 64 * 1024
"""Bytes of the longest head of a request, without what came with its end."""
SHORT = 64 * 1024
"""Bytes of a body that is always taken."""
MOST_COMING = 64 * 1024 * 1024
"""Bytes of longer bodies that may come in at a time."""
UNREAD_S = 60.0
"""Seconds in which a client must read some of an answer."""
MOST_DRAINED = 32 << 20
"""Bytes of a body that is refused which are read all the same, so that its client gets the answer."""
SPARE_FILES = 256
"""Open files that are no connections."""
SWEEP_TICKS = 10
"""Turns of uvicorn's clock, a tenth of a second each, between two sweeps."""

Receive = Callable[[], Awaitable[Any]]


class BodyRefused(NamedTuple):
    """Why there is no body: a status, and the reason."""

    status: int
    reason: str


class BodyReader:
    """Reads the bodies of a server's requests."""

    def __init__(self, most: int = MAX_BODY, seconds: float = BODY_S) -> None:
        self._most, self._seconds = most, seconds
        self._n_coming = 0

    async def read(self, receive: Receive) -> bytes | BodyRefused:
        """Return the body of a request, or why it is not taken; an empty one if the client is gone."""
        body, n_counted, more = bytearray(), 0, True
        try:
            async with asyncio.timeout(self._seconds):
                while more:
                    event = await receive()
                    if event["type"] == "http.disconnect":
                        return b""
                    body += event.get("body", b"")
                    more = event.get("more_body", False)
                    if len(body) > self._most:
                        body.clear()
                        await _drained(receive, more)
                        return BodyRefused(413, f"the request is longer than {self._most} bytes")
                    if more and len(body) > SHORT:
                        self._n_coming += len(body) - n_counted
                        n_counted = len(body)
                        if self._n_coming > MOST_COMING:
                            return BodyRefused(503, "too many long requests are coming in: retry later")
        except TimeoutError:
            return BodyRefused(408, f"the body did not come within {self._seconds:g} s")
        finally:
            self._n_coming -= n_counted
        return bytes(body)


async def _drained(receive: Receive, more: bool) -> None:
    """Read the rest of a body that is refused, and keep none of it: a client that still sends sees no answer, but a reset."""
    n_drained = 0
    while more and n_drained < MOST_DRAINED:
        event = await receive()
        more = event["type"] != "http.disconnect" and event.get("more_body", False)
        n_drained += len(event.get("body", b""))


class GuardedServer(uvicorn.Server):
    """A server that closes connections whose client owes a request."""

    def __init__(self, config: uvicorn.Config, head_s: float = HEAD_S) -> None:
        super().__init__(config)
        self._head_s = head_s
        self._most = most_open_files() - SPARE_FILES
        self._owing: dict[Any, tuple[Any, float]] = {}
        """Connection -> its last exchange (None: none yet), and since when it owes the next one. The oldest come first."""
        self._unread: dict[Any, tuple[int, float]] = {}
        """Connection -> how many bytes of an answer its client leaves unread, and since when it is so many."""

    async def on_tick(self, counter: int) -> bool:
        """Sweep now and then, beside what uvicorn does in each turn."""
        if counter % SWEEP_TICKS == 0 or len(self.server_state.connections) > self._most:
            self._sweep(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    def _sweep(self, now: float) -> None:
        connections = self.server_state.connections
        owing = {each: cycle for each in connections if (cycle := _last_exchange(each)) is not _BUSY}
        unread = {each: n for each in connections if each not in owing and (n := _n_unread(each))}
        _note(self._owing, owing, now)
        _note(self._unread, unread, now)
        n_too_many = len(connections) - self._most
        late = [each for number, (each, (_, since)) in enumerate(self._owing.items())
                if number < n_too_many or now - since > self._head_s]
        late += [each for each, (_, since) in self._unread.items() if now - since > UNREAD_S]
        for each in late:
            each.transport.abort()


def _note(noted: dict[Any, tuple[Any, float]], states: dict[Any, Any], now: float) -> None:
    """Keep since when each connection has been in its state."""
    for each in [each for each, (state, _) in noted.items() if each not in states or states[each] != state]:
        del noted[each]
    for each, state in states.items():
        noted.setdefault(each, (state, now))


_BUSY = object()


def _n_unread(connection: Any) -> int:
    transport = getattr(connection, "transport", None)
    return transport.get_write_buffer_size() if transport is not None else 0


def _last_exchange(connection: Any) -> Any:
    """Return a connection's last exchange of request and response, None before the first one; `_BUSY` while the server is to
    answer, and for a WebSocket."""
    cycle: Any = getattr(connection, "cycle", _BUSY)
    return _BUSY if cycle is not None and cycle is not _BUSY and not cycle.response_complete else cycle


class GuardedApp:
    """ASGI middleware: a request comes through if the rules let it, with its body read; so does a WebSocket, and a client has
    at most `most_of_one` of these."""

    def __init__(self, app: Any, access: ServerAccess, most_of_one: int) -> None:
        self._app, self._access, self._most_of_one = app, access, most_of_one
        self._bodies = BodyReader()
        self._n_open: dict[str, int] = {}

    async def __call__(self, scope: Any, receive: Receive, send: Callable[[Any], Awaitable[None]]) -> None:
        """Let a request through, or answer why not."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = combined(scope["headers"])
        denial = None if scope["path"] == "/health" else self._access.denial(headers)
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send, self._access.client(headers, scope.get("client")), denial is not None)
            return
        body = denial or await self._bodies.read(receive)
        if not isinstance(body, bytes):
            await _refuse(send, body.status, body.reason)
            return
        events = iter(({"type": "http.request", "body": body, "more_body": False},))

        async def replay() -> Any:
            return next(events, None) or await receive()

        await self._app(scope, replay, send)

    async def _socket(self, scope: Any, receive: Receive, send: Any, client: str, is_denied: bool) -> None:
        if is_denied or self._n_open.get(client, 0) >= self._most_of_one:
            await receive()
            with contextlib.suppress(RuntimeError):
                await send({"type": "websocket.close", "code": 1008 if is_denied else 1013})
            return
        self._n_open[client] = self._n_open.get(client, 0) + 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._n_open[client] -= 1
            if not self._n_open[client]:
                del self._n_open[client]


async def _refuse(send: Callable[[Any], Awaitable[None]], status: int, reason: str) -> None:
    data = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    headers += {401: [(b"www-authenticate", b"Bearer")], 503: [(b"retry-after", b"1")], 413: [(b"connection", b"close")]}.get(
        status, [])
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})


def run_guarded(app: Any, listening: socket.socket, **options: Any) -> None:
    """Serve until interrupted or terminated; `options`: of `uvicorn.Config`."""
    GuardedServer(guarded_config(app, **options)).run(sockets=[listening])


def guarded_config(app: Any, **options: Any) -> uvicorn.Config:
    """Return uvicorn's configuration of a server of ours."""
    return uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, proxy_headers=False,
                          ws_max_size=MAX_BODY, http=_protocol(), **options)


def _protocol() -> Any:
    """Return uvicorn's protocol of HTTP with a limit for heads; the one without `httptools` has one of its own."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return "auto"

    class LimitedHeads(HttpToolsProtocol):
        """Closes a connection whose head of a request is longer than `MOST_HEAD` bytes."""

        _n_head = 0

        def data_received(self, data: bytes) -> None:
            """Take in bytes of requests."""
            self._n_head += len(data)
            super().data_received(data)
            if self._n_head > MOST_HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too long.")

        def on_message_begin(self) -> None:
            """Begin a request."""
            self._n_head = min(self._n_head, MOST_HEAD)  # what came before in the same bytes is of other requests
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            """Begin the body of a request: it has limits of its own."""
            self._n_head = -sys.maxsize
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            """Expect the next head."""
            self._n_head = 0
            super().on_message_complete()

    return LimitedHeads
