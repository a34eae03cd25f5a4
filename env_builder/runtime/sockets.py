"""An environment that listens on a Unix socket: each connection is a client of its own, one thread answers all.

In: a path, and how a connection's server begins. Out: a reply to each request (mcp.py), in the order of the connection's
requests. A connection that does not read its replies is not read from any longer; its end ends its episodes.
Sees: bytes of this user's processes (the socket has mode 600). Does not limit their number; the system does.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path

from .mcp import CHUNK, LineReader, McpServer, encode

FULL_S = 0.01
"""Seconds to wait before accepting again when the system has no more open files."""
STDIN = 0
UNREAD = 1024 * 1024
"""Bytes of replies that may wait for a client that does not read."""


class _SocketClient:
    """One connection."""

    def __init__(self, stream: socket.socket, server: McpServer) -> None:
        self.stream = stream
        self._server = server
        self._reader = LineReader()
        self._unsent = b""
        self._readable = True
        """False after the client has closed its side."""

    def handle(self, events: int) -> bool:
        """Read and answer, or send the rest; False once the connection is over."""
        try:
            if events & selectors.EVENT_READ:
                data = self.stream.recv(CHUNK)
                self._readable = bool(data)
                for line in self._reader.split(data or b"\n"):
                    reply = self._server.answer(line)
                    self._unsent += b"" if reply is None else encode(reply)
            if self._unsent:
                self._unsent = self._unsent[self.stream.send(self._unsent):]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return self._readable or bool(self._unsent)

    @property
    def events(self) -> int:
        reading = selectors.EVENT_READ if self._readable and len(self._unsent) < UNREAD else 0
        return reading | (selectors.EVENT_WRITE if self._unsent else 0)


def listen(path: Path, begin: Callable[[], McpServer], ready: Callable[[], None]) -> None:
    """Answer all clients until stdin ends, if stdin can be waited for. Calls `ready` once the socket listens.

    OSError if the path cannot be listened on. An existing socket is replaced.
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


def _answer_all(listening: socket.socket, waiting: selectors.BaseSelector, begin: Callable[[], McpServer]) -> None:
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
                waiting.register(stream, selectors.EVENT_READ, _SocketClient(stream, begin()))
            elif client.handle(events):
                if key.events != client.events:
                    waiting.modify(client.stream, client.events, client)
            else:
                waiting.unregister(client.stream)
                client.stream.close()
