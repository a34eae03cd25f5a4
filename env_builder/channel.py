"""A room that many episodes are asked of at once, from one event loop: requests go out as they come, answers find their asker.

In: a carrier of bytes (`env_builder.room`), or the path of a Unix socket that a room listens at. Out: results of requests, each
about the episode that it names (docs/containers.md). Nothing waits for an answer but who asked: no thread, no lock.

Imports the standard library, and of ours what does too: it also runs where nothing else of ours is installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from pathlib import Path
from typing import Any

from env_builder.carriers import ANSWER_S, Carrier, Connection
from env_builder.room import HELLO
from env_builder.runtime.mcp import EPISODE_KEY, MAX_LINE
from warehouse.errors import InputError, Unavailable

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_WATCH_S = 5.0


class Channel(asyncio.Protocol):
    """The host's end of a room, for any number of episodes; to be used within one event loop."""

    def __init__(self, carrier: Carrier, name: str) -> None:
        self._carrier = carrier
        self._name = name
        self._rest: list[bytes] = []
        self._unsent: list[str] = []
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._n_sent = 1_000_000  # above what a `Room` may have asked over the same carrier
        self._heard_at = 0.0
        self._gone: Unavailable | None = None
        self._transport: asyncio.Transport | None = None
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    async def over(cls, carrier: Carrier, name: str) -> Channel:
        """Go on with a room that has been opened over this carrier."""
        loop = asyncio.get_running_loop()
        channel = cls(carrier, name)
        carrier.socket.setblocking(False)
        if carrier.socket.family == socket.AF_UNIX:
            channel._transport, _ = await loop.create_unix_connection(lambda: channel, sock=carrier.socket)
        else:
            channel._transport, _ = await loop.create_connection(lambda: channel, sock=carrier.socket)
        channel._watch = asyncio.create_task(channel._watched())
        return channel

    @classmethod
    async def connect(cls, path: Path) -> Channel:
        """A connection of its own to a room with control that listens at `path`; Unavailable where none does."""
        channel = await cls.over(Connection.to(path), str(path))
        await channel.request("initialize", HELLO)
        return channel

    @property
    def gone(self) -> bool:
        """Has the room ended? Then all its episodes have."""
        return self._gone is not None

    @property
    def n_waiting(self) -> int:
        """Requests that are not answered yet."""
        return len(self._waiting)

    def request(
        self, method: str, params: dict[str, Any] | None = None, episode: str | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        """Result of one request, to be awaited; InputError where the room refuses it, Unavailable where the room is gone.

        Requests are answered in the order in which they are made.
        """
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[dict[str, Any]] = loop.create_future()
        if self._gone is not None or self._transport is None:
            answered.set_exception(self._gone or Unavailable("the room has no connection", self._name))
            return answered
        self._n_sent += 1
        told = params if episode is None else {**(params or {}), "_meta": {EPISODE_KEY: episode}}
        message = {"jsonrpc": "2.0", "id": self._n_sent, "method": method, "params": told or {}}
        try:
            line = _ENCODER.encode(message)
        except (ValueError, RecursionError) as error:
            answered.set_exception(InputError(f"what is asked cannot be written as JSON ({error})", self._name))
            return answered
        if len(line) >= MAX_LINE - 1:
            answered.set_exception(InputError(f"what is asked is longer than {MAX_LINE - 1} characters", self._name))
            return answered
        if not self._waiting:
            self._heard_at = loop.time()
        self._waiting[self._n_sent] = answered
        if not self._unsent:
            loop.call_soon(self._send)
        self._unsent.append(line)
        return answered

    def _send(self) -> None:
        """What was asked since the loop last came round, at once."""
        asked, self._unsent = self._unsent, []
        if self._transport is not None and asked:
            self._transport.write(("\n".join(asked) + "\n").encode())

    async def close(self) -> None:
        """End the room."""
        self._lose(Unavailable("the room was closed", self._name))
        if self._watch is not None:
            self._watch.cancel()
        if self._transport is not None:
            self._transport.close()
        await asyncio.to_thread(self._carrier.close)

    def data_received(self, data: bytes) -> None:
        """Hand answers to who asked."""
        self._heard_at = asyncio.get_running_loop().time()
        *ends, rest = self._carrier.unframed(data).split(b"\n")
        for end in ends:
            line, self._rest = b"".join((*self._rest, end)) if self._rest else end, []
            with contextlib.suppress(ValueError):
                self._answer(json.loads(line))
        if rest:
            self._rest.append(rest)

    def connection_lost(self, error: Exception | None) -> None:
        """The room has ended, and with it its episodes."""
        if self._gone is None:
            self._gone = Unavailable("the room is gone", self._name, "begin another episode")
            self._parting = asyncio.get_running_loop().create_task(self._part(error))

    async def _part(self, error: Exception | None) -> None:
        said = await asyncio.to_thread(self._carrier.last_words)
        self._lose(Unavailable(f"the room is gone ({said or error or 'it ended'})", self._name, "begin another episode"))

    def _answer(self, reply: dict[str, Any]) -> None:
        answered = self._waiting.pop(reply.get("id") or 0, None)
        if answered is None or answered.done():  # who asked has gone
            return
        if "error" in reply:
            answered.set_exception(InputError(f"the room refuses it: {reply['error']['message']}", self._name))
        else:
            answered.set_result(reply["result"])

    def _lose(self, why: Unavailable) -> None:
        self._gone = why
        waiting, self._waiting = self._waiting, {}
        for answered in waiting.values():
            if not answered.done():
                answered.set_exception(why)

    async def _watched(self) -> None:
        """Give up a room that has owed an answer for too long."""
        loop = asyncio.get_running_loop()
        while self._gone is None:
            await asyncio.sleep(_WATCH_S)
            if self._waiting and loop.time() - self._heard_at > ANSWER_S and self._transport is not None:
                self._lose(Unavailable(f"the room is gone (no answer within {ANSWER_S:.0f} s)", self._name))
                self._transport.abort()
                await asyncio.to_thread(self._carrier.close)
