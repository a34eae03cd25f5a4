"""The episodes that run on a server now, by session: begun when something is first asked of them, ended once.

An episode ends with its session, when nobody has touched it for too long, or with the server; its journal is then added to
the file for the grader, a line each.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from env_builder.channel import Channel
from pipelines.resources import Ask
from pipelines.serving.rollouts import Rollout
from pipelines.serving.rooms import Rooms
from warehouse.errors import InputError, TraceroomError

SWEEP_S = 1.0
"""Seconds between two looks for episodes that nobody touches."""

LONGEST_S = 600.0
"""Seconds that an answer may take before its session counts as idle all the same: where a client gave two requests one id, the
SDK answers one of them never."""


class Episode:
    """One session's episode."""

    def __init__(self, session_id: str, rollout: Rollout) -> None:
        self.session_id = session_id
        self.rollout = rollout
        self.beginning: dict[str, Any] = {}
        """`messages` and `limits`, as its reset gave them; thousands of sessions do not each keep a list of tools."""
        self.touched_at = time.monotonic()
        self.n_waiting = 0
        """Requests that wait for an answer."""
        self.begun: asyncio.Task[None] | None = None
        self._channel: Channel | None = None
        self._turn = asyncio.Lock()

    @property
    def running(self) -> bool:
        """Has it begun?"""
        return self._channel is not None

    async def begin(self, rooms: Rooms) -> None:
        """Reset a room to it."""
        channel = await rooms.next()
        asked = rooms.asked(self.rollout.task_id, self.rollout.seed, self.rollout.conditions)
        begun = await channel.request("traceroom/reset", asked, self.session_id)
        self.beginning = {"messages": begun["messages"], "limits": begun["limits"]}
        self._channel = channel

    def request(self, method: str, params: dict[str, Any] | None = None) -> Awaitable[dict[str, Any]]:
        """What the room answers; requests of one episode are answered in the order in which they come."""
        assert self._channel is not None
        return self._channel.request(method, params, self.session_id)

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The room's result of `tools/call`; where it is `unknown`, and a model may answer and does, the model's."""
        ask, params = self.rollout.ask, {"name": tool, "arguments": arguments}
        if ask is None:
            return await self.request("tools/call", params)
        async with self._turn:  # what is put in the place of an answer must be the last one
            result = await self.request("tools/call", params)
            return await self._asked(ask, result) or result

    async def _asked(self, ask: Ask, result: dict[str, Any]) -> dict[str, Any] | None:
        unknown = result["_meta"].get("traceroom/tier") == "unknown"
        prompt = (await self.request("traceroom/prompt"))["prompt"] if unknown else None
        if prompt is None:
            return None
        try:
            return await self.request("traceroom/supply", {"reply": await asyncio.to_thread(ask, prompt)})
        except InputError:  # the reply is no answer
            return None

    async def close(self) -> list[dict[str, Any]] | None:
        """Its journal, and the end of it; None where it never began."""
        if self.begun is not None:
            with contextlib.suppress(TraceroomError):
                await self.begun
        return None if self._channel is None else (await self.request("traceroom/close"))["journal"]


class Episodes:
    """All of them, `limit` at most."""

    def __init__(self, rooms: Rooms, name: str, journals: Path | None, limit: int, idle_s: float) -> None:
        self.limit = limit
        self.n_lost = 0
        """Episodes that went with their room: their journals could not be had."""
        self._rooms = rooms
        self._name = name
        self._journals = journals
        self._idle_s = idle_s
        self._running: dict[str, Episode] = {}

    def __len__(self) -> int:
        return len(self._running)

    def admit(self, session_id: str, rollout: Rollout) -> None:
        """A session has begun; its episode begins with the first thing that is asked of it."""
        self._running[session_id] = Episode(session_id, rollout)

    def known(self, session_id: str) -> Episode | None:
        """The session's episode, whether it has begun or not; None where there is no such session."""
        return self._running.get(session_id)

    async def of(self, session_id: str) -> Episode:
        """The session's episode, begun where it has not yet; InputError where there is no such session."""
        episode = self._running.get(session_id)
        if episode is None:
            raise InputError("no such session, or its episode has expired", session_id, "begin one with initialize")
        episode.touched_at = time.monotonic()
        if episode.running:
            return episode
        if episode.begun is None:
            episode.begun = asyncio.create_task(episode.begin(self._rooms))
        if not episode.begun.done():
            await asyncio.shield(episode.begun)
        elif episode.begun.exception() is not None:
            episode.begun = asyncio.create_task(episode.begin(self._rooms))
            await asyncio.shield(episode.begun)
        return episode

    async def end(self, session_id: str) -> None:
        """Keep the journal and forget the episode."""
        episode = self._running.pop(session_id, None)
        if episode is None:
            return
        try:
            journal = await asyncio.shield(asyncio.ensure_future(episode.close()))
        except TraceroomError:
            self.n_lost += 1
            return
        if journal is not None and self._journals is not None:
            row = {**episode.rollout.about(self._name), "journal": journal}
            with self._journals.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n")

    async def end_all(self) -> None:
        """End every episode."""
        await asyncio.gather(*(self.end(session_id) for session_id in list(self._running)))

    async def sweep(self, leave: Callable[[str], Awaitable[None]]) -> None:
        """End what nobody touches, for as long as this runs; `leave` ends the session around it."""
        while True:
            await asyncio.sleep(min(SWEEP_S, self._idle_s / 2))
            now = time.monotonic()
            idle = [each.session_id for each in self._running.values()
                    if now - each.touched_at > self._idle_s + (LONGEST_S if each.n_waiting else 0.0)]
            for session_id in idle:
                await self.end(session_id)
                await leave(session_id)
