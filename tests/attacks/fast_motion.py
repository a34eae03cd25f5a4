"""Many quick episodes of a server over connections that stay open, and what its processes hold before and after."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Self

import psutil

from tests.attacks.servers import HELLO, Server

CONNECTIONS = 32
PER_CONNECTION = 100
"""Episodes over a connection before the client opens another one, from another address of this machine."""
_QUICK = ("plain",) * 45 + ("other call", "no tool", "speak", "finish twice", "no JSON", "left open", "cut off", "unused")
"""Kinds of episodes; most are plain."""
CALLS = {"plain": {"name": "read_sign", "arguments": {"at": "gate"}}, "no tool": {"name": "nothing", "arguments": {}},
         "other call": {"name": "open_door", "arguments": {"door": "8", "note": "x" * 3000}}}


class Holdings(NamedTuple):
    """What the processes of a server hold."""

    n_bytes: int
    handles: Counter[str]
    """Open files, sockets, threads and processes."""

    @classmethod
    def of(cls, pid: int) -> Self:
        """Look at a process and all below it."""
        own = psutil.Process(pid)
        every, handles = [own, *own.children(recursive=True)], Counter[str]()
        for each in every:
            handles += Counter({
                "files and sockets": each.num_fds(), "threads": each.num_threads(), "connections": len(each.net_connections())})
        handles["processes"] = len(every)
        return cls(sum(each.memory_full_info().uss for each in every), handles)

    def growth(self, later: Holdings) -> float:
        """Return how much more memory is held later, as a share."""
        return max(0.0, later.n_bytes / self.n_bytes - 1)

    def n_left(self, later: Holdings) -> int:
        """Count the handles that are held later and were not before."""
        return (later.handles - self.handles).total()


class Player:
    """Plays episodes over raw HTTP/1.1, each in a few requests."""

    def __init__(self, server: Server, choose: random.Random, tokens: tuple[str, ...] = ()) -> None:
        self._server, self._choose, self._tokens = server, choose, tokens
        self._n_open = 0
        self.n_episodes = self.n_journals = self.n_bad = 0
        """Episodes; those that leave a journal; answers that no server should give."""

    async def play(self, n_episodes: int) -> None:
        """Play so many, over many connections at once."""
        waiting = iter(range(n_episodes))
        await asyncio.gather(*(self._over_connections(waiting.__next__) for _ in range(CONNECTIONS)))

    async def _over_connections(self, begin: Callable[[], int]) -> None:
        try:
            while True:
                await self._over_one(begin)
        except StopIteration:
            return
        except RuntimeError as error:   # what a coroutine makes of a StopIteration
            if not isinstance(error.__cause__, StopIteration):
                raise

    async def _over_one(self, begin: Callable[[], int]) -> None:
        self._n_open += 1
        source = f"127.{self._n_open >> 16 & 127}.{self._n_open >> 8 & 255}.{self._n_open % 254 + 1}"
        reader, writer = await asyncio.open_connection(self._server.host, self._server.port, local_addr=(source, 0))
        token = f"Authorization: Bearer {self._choose.choice(self._tokens)}\r\n" if self._tokens else ""
        try:
            for _ in range(PER_CONNECTION):
                begin()
                kind = self._choose.choice(_QUICK)
                if not await self._episode(_Line(reader, writer, token), kind):
                    return
        finally:
            writer.close()

    async def _episode(self, line: _Line, kind: str) -> bool:
        """Play one; return whether its connection can be used again."""
        self.n_episodes += 1
        opened = await line.ask("POST", "/mcp", HELLO)
        self.n_bad += opened.status != 200
        line.session = opened.session
        if kind == "unused":
            return True
        self.n_journals += 1
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": CALLS.get(kind, CALLS["plain"])}
        if kind == "cut off":
            line.send("POST", "/mcp", call)
            await line.writer.drain()
            line.writer.transport.abort()
            self.n_journals -= 1   # the server may not have read it
            return False
        self.n_bad += (await line.ask("POST", "/mcp", call)).status != 200
        if kind == "speak":
            self.n_bad += (await line.ask("POST", "/episode/say", {"text": "the seventh"})).status != 200
        if kind == "finish twice":
            for _ in range(2):
                self.n_bad += (await line.ask("POST", "/episode/finish", {})).status >= 500
        if kind == "no JSON":
            self.n_bad += (await line.ask("POST", "/mcp", "{")).status not in (200, 400)
        if kind != "left open":
            self.n_bad += (await line.ask("DELETE", "/mcp", None)).status != 200
        return True


class _Answer(NamedTuple):
    status: int
    session: str


class _Line:
    """A connection, with the session that its requests belong to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader, self.writer, self._token = reader, writer, token
        self.session = ""

    def send(self, method: str, path: str, body: object) -> None:
        """Send a request."""
        data = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        session = f"Mcp-Session-Id: {self.session}\r\n" if self.session else ""
        head = (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{self._token}{session}"
                f"Content-Length: {len(data)}\r\n\r\n")
        self.writer.write(head.encode() + data)

    async def ask(self, method: str, path: str, body: object) -> _Answer:
        """Send a request, and read its answer."""
        self.send(method, path, body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        await self._reader.readexactly(int(fields.get("content-length", 0)))
        return _Answer(int(head.split(" ", 2)[1]), fields.get("mcp-session-id", ""))
