"""A room that listens on a Unix socket: each connection is a client of its own, all are answered by one thread.

In: a path, and how a connection's server is begun. Out: a line for each request (mcp.py), in the order of the connection's.
A connection that does not read what it is told is not read from any longer; one that ends takes its episodes with it.
Sees: bytes of who may open the socket (mode 600: this user). Does not see: how many they are; the system's limit holds.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

CHUNK = 64 * 1024
"""Bytes that are read at a time."""
FULL_S = 0.01
"""What is waited where nobody can be let in, since the system gives no more open files."""
STDIN = 0
UNREAD = 1024 * 1024
"""Bytes of answers that may wait for a client that does not read."""


class Answering(Protocol):
    """Takes bytes as they come and gives those to send back."""

    def take(self, data: bytes) -> bytes:
        """Answers to the lines that are whole now."""


class _Client:
    """One connection."""

    def __init__(self, stream: socket.socket, answering: Answering) -> None:
        self.stream = stream
        self._answering = answering
        self._unsent = b""
        self._heard = True
        """Does it say more?"""

    def ready(self, events: int) -> bool:
        """Read and answer, or send what is left; False once it is over."""
        try:
            if events & selectors.EVENT_READ:
                data = self.stream.recv(CHUNK)
                self._heard = bool(data)
                self._unsent += self._answering.take(data or b"\n")
            if self._unsent:
                self._unsent = self._unsent[self.stream.send(self._unsent):]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return self._heard or bool(self._unsent)

    @property
    def wanted(self) -> int:
        """Events to wait for."""
        reading = selectors.EVENT_READ if self._heard and len(self._unsent) < UNREAD else 0
        return reading | (selectors.EVENT_WRITE if self._unsent else 0)


def listen(path: Path, begin: Callable[[], Answering], ready: Callable[[], None]) -> None:
    """Answer everybody who connects until stdin ends, where that can be waited for. `ready`: called once it listens.

    OSError where the path cannot be listened at. What stands there as a socket is replaced.
    """
    if path.is_socket():
        path.unlink()
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as waiting:
        mask = os.umask(0o177)
        try:
            listening.bind(str(path))
        finally:
            os.umask(mask)
        try:
            listening.listen(1024)
            listening.setblocking(False)
            waiting.register(listening, selectors.EVENT_READ, None)
            with contextlib.suppress(OSError, ValueError):  # a file, or nothing: it never ends
                waiting.register(STDIN, selectors.EVENT_READ, STDIN)
            ready()
            _answer_all(listening, waiting, begin)
        finally:
            path.unlink(missing_ok=True)


def _answer_all(listening: socket.socket, waiting: selectors.BaseSelector, begin: Callable[[], Answering]) -> None:
    while True:
        for key, events in waiting.select():
            client = key.data
            if isinstance(client, int):
                if not os.read(client, CHUNK):
                    return
            elif client is None:
                try:
                    stream, _ = listening.accept()
                except OSError:
                    time.sleep(FULL_S)
                    continue
                stream.setblocking(False)
                waiting.register(stream, selectors.EVENT_READ, _Client(stream, begin()))
            elif client.ready(events):
                if key.events != client.wanted:
                    waiting.modify(client.stream, client.wanted, client)
            else:
                waiting.unregister(client.stream)
                client.stream.close()
