"""Hostile connections that hold on: half-sent heads and bodies, long bodies, answers that nobody reads."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator

from tests.attacks.servers import HttpClient, Server

_POST = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "
KINDS: dict[str, bytes] = {
    "half a head": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", "nothing at all": b"",
    "half a body": _POST + b'500\r\n\r\n{"jsonrpc":', "half a long body": _POST + b"4000000\r\n\r\n" + b" " * 100_000,
    "half a body elsewhere": b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\nx"}


@contextlib.contextmanager
def held(server: Server, n: int, kind: bytes) -> Iterator[list[socket.socket]]:
    """Hold `n` connections that have sent these bytes."""
    sockets: list[socket.socket] = []
    try:
        for _ in range(n):
            sockets.append(socket.create_connection((server.host, server.port), timeout=30))
            with contextlib.suppress(OSError):
                sockets[-1].sendall(kind)
        yield sockets
    finally:
        for each in sockets:
            each.close()


def trickle(sockets: list[socket.socket]) -> None:
    """Send a byte over each connection that is still open."""
    for each in sockets:
        with contextlib.suppress(OSError):
            each.setblocking(False)
            each.send(b" ")


class Trickling:
    """Connections that send a byte each second."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        self._sockets = sockets
        self._sent_at = 0.0

    def send(self) -> None:
        """Send a byte over each if a second has passed."""
        if time.monotonic() - self._sent_at > 1:
            self._sent_at = time.monotonic()
            trickle(self._sockets)


def open_ones(sockets: list[socket.socket]) -> list[socket.socket]:
    """Return the connections that the server has not closed."""
    remaining = []
    for each in sockets:
        each.setblocking(False)
        try:
            while each.recv(65536):
                pass
        except BlockingIOError:
            remaining.append(each)
        except OSError:
            pass
    return remaining


class Served:
    """What honest clients got."""

    def __init__(self) -> None:
        self.n_asked = self.n_served = 0
        self.seconds = 0.0

    @property
    def share(self) -> float:
        """Requests that were served."""
        return self.n_served / max(1, self.n_asked)


def honest(server: Server, n_sessions: int, n_calls: int, meanwhile: Callable[[], None] = lambda: None) -> Served:
    """Play sessions of `n_calls` calls one after the other, and time them."""
    served, begun = Served(), time.monotonic()
    for _ in range(n_sessions):
        meanwhile()
        served.n_asked += n_calls + 2
        with contextlib.suppress(OSError, AssertionError), HttpClient(server) as client:
            client.open_session()
            served.n_served += 1
            for _ in range(n_calls):
                served.n_served += client.call("read_sign", '{"at": "gate"}').status == 200
            served.n_served += client.send("DELETE", "/mcp").status == 200
    served.seconds = time.monotonic() - begun
    return served
