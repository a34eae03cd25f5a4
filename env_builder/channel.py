"""An environment process that plays many episodes at once for one event loop: requests go out as they come.

In: a transport (`env_builder.process`), or the path of a Unix socket that an environment listens on. Out: replies to requests,
each about the episode that it names (docs/containers.md). Only the caller waits for its answer: no thread, no lock.

Imports the standard library, and of ours only modules that do so too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from pathlib import Path
from typing import Any

from env_builder.process import ANSWER_S, HELLO, SocketTransport, Transport
from env_builder.runtime.mcp import EPISODE_KEY, MAX_LINE
from env_builder.runtime.mcp_client import McpError, result_of
from warehouse.errors import InputError, Unavailable

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_WATCH_S = 5.0
Reply = dict[str, Any]


class Channel(asyncio.Protocol):
    """The host's end of an environment process, for any number of episodes; belongs to one event loop."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._process = transport
        self._name = name
        self._rest: list[bytes] = []
        self._unsent: list[str] = []
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._n_sent = 1_000_000  # above the ids that an `EnvironmentProcess` used on the same transport
        self._received_at = 0.0
        self._gone: Unavailable | None = None
        self._loop = asyncio.get_running_loop()
        self._stream: asyncio.Transport | None = None
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    async def over(cls, transport: Transport, name: str) -> Channel:
        """Continue with a process that has been opened over this transport."""
        channel = cls(transport, name)
        transport.socket.setblocking(False)
        is_unix = transport.socket.family == socket.AF_UNIX
        connect = channel._loop.create_unix_connection if is_unix else channel._loop.create_connection
        channel._stream, _ = await connect(lambda: channel, sock=transport.socket)
        channel._watch = asyncio.create_task(channel._close_if_silent())
        return channel

    @classmethod
    async def connect(cls, path: Path) -> Channel:
        """Open a connection to an environment with control that listens on `path`; Unavailable if none does."""
        channel = await cls.over(SocketTransport.to(path), str(path))
        await channel.request("initialize", HELLO)
        return channel

    @property
    def gone(self) -> bool:
        """Return whether the process, and with it all its episodes, has ended."""
        return self._gone is not None

    @property
    def n_waiting(self) -> int:
        return len(self._waiting)

    async def request(self, method: str, params: dict[str, Any] | None = None, episode: str | None = None) -> dict[str, Any]:
        """Return the result; InputError if the environment rejects the request, Unavailable if the process is gone."""
        reply = await self.send(method, params, episode)
        try:
            return result_of(reply, f"the environment rejects {method}")
        except McpError as error:
            raise InputError(str(error), self._name) from error

    def send(self, method: str, params: dict[str, Any] | None = None, episode: str | None = None) -> asyncio.Future[Reply]:
        """Return the JSON-RPC reply, to be awaited: also an error is a reply; Unavailable if the process is gone.

        Requests are answered in the order in which they are sent.
        """
        replied: asyncio.Future[Reply] = self._loop.create_future()
        if self._gone is not None or self._stream is None:
            replied.set_exception(self._gone or Unavailable("the environment process has no connection", self._name))
            return replied
        self._n_sent += 1
        if episode is not None:
            params = {**(params or {}), "_meta": {EPISODE_KEY: episode}}
        try:
            line = _ENCODER.encode({"jsonrpc": "2.0", "id": self._n_sent, "method": method, "params": params or {}})
        except (ValueError, RecursionError) as error:
            replied.set_exception(InputError(f"the request cannot be written as JSON ({error})", self._name))
            return replied
        if len(line) >= MAX_LINE - 1:
            replied.set_exception(InputError(f"the request is longer than {MAX_LINE - 1} characters", self._name))
            return replied
        if not self._waiting:
            self._received_at = self._loop.time()
        self._waiting[self._n_sent] = replied
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(line)
        return replied

    def _flush(self) -> None:
        """Write what was sent since the loop's last turn in one piece."""
        lines, self._unsent = self._unsent, []
        if self._stream is not None and lines:
            self._stream.write(("\n".join(lines) + "\n").encode())

    async def close(self) -> None:
        self._fail(Unavailable("the environment process was closed", self._name))
        if self._watch is not None:
            self._watch.cancel()
        if self._stream is not None:
            self._stream.close()
        await asyncio.to_thread(self._process.close)

    def data_received(self, data: bytes) -> None:
        """Give each reply to its caller."""
        self._received_at = self._loop.time()
        *ends, rest = self._process.decode(data).split(b"\n")
        for end in ends:
            line, self._rest = b"".join((*self._rest, end)) if self._rest else end, []
            with contextlib.suppress(ValueError):
                reply = json.loads(line)
                replied = self._waiting.pop(reply.get("id") or 0, None)
                if replied is not None and not replied.done():  # else its caller has gone
                    replied.set_result(reply)
        if rest:
            self._rest.append(rest)

    def connection_lost(self, error: Exception | None) -> None:
        """Fail all requests: the process has ended, and with it its episodes."""
        if self._gone is None:
            self._gone = Unavailable("the environment process is gone", self._name, "begin another episode")
            self._ending = self._loop.create_task(self._fail_with_reason(error))

    async def _fail_with_reason(self, error: Exception | None) -> None:
        reason = await asyncio.to_thread(self._process.last_error_line) or error or "it ended"
        self._fail(Unavailable(f"the environment process is gone ({reason})", self._name, "begin another episode"))

    def _fail(self, error: Unavailable) -> None:
        self._gone = error
        waiting, self._waiting = self._waiting, {}
        for replied in waiting.values():
            if not replied.done():
                replied.set_exception(error)

    async def _close_if_silent(self) -> None:
        """Give up a process that has owed an answer for too long."""
        while self._gone is None:
            await asyncio.sleep(_WATCH_S)
            if self._waiting and self._loop.time() - self._received_at > ANSWER_S and self._stream is not None:
                self._fail(Unavailable(f"the environment process is gone (no answer within {ANSWER_S:.0f} s)", self._name))
                self._stream.abort()
                await asyncio.to_thread(self._process.close)
