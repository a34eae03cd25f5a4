"""The sessions of a server: how each one's episode begins, which process plays it, and how it ends.

An episode begins with the first request that needs it, in one of the server's environment processes. It ends with its session,
after `idle_s` seconds without a request, or with the server; its journal is then appended to the file for the grader.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from env_builder import image
from env_builder.channel import Channel
from env_builder.process import EnvironmentProcess, start_process
from env_builder.runtime.admission import FAILURES
from pipelines.resources import Ask
from pipelines.serving.journal_file import JournalFile
from warehouse.errors import InputError, Missing, TraceroomError

BOUND_PROCESSES = 8
"""Number of processes if real tools are bound: a process waits while one of them answers."""
CONTAINER_LIMITS = image.ContainerLimits(memory_mb=2048, seconds=10 * 365 * 86400.0)
"""Limits of a container that plays many episodes, for as long as the server runs."""
MOST_ENDED = 1024
"""Episodes that are remembered for a grader after they ended."""
UNUSED_S = 30.0
"""Seconds after which a session that was opened and never used makes way for another client's in a full server."""
SWEEP_S = 1.0
"""Seconds between two searches for idle sessions."""


CHOICES = ("task", "seed", "perturbations", "talk")
"""What a session's URL may choose."""
_NAME = re.compile(r"[\w.-]{1,128}")
TALK = {"auto": None, "on": True, "off": False}
"""Values of `talk` in options and URLs."""


class Rollout(NamedTuple):
    """What an episode begins with."""

    task_id: str | None = None
    seed: int = 0
    perturbations: tuple[str, ...] = ()
    bindings: Mapping[str, str] = MappingProxyType({})
    """Tool -> source of the real tool that answers calls without a recorded answer."""
    ask: Ask | None = None
    """The model that answers what would be `unknown`."""
    talk: bool | None = None
    """Does the agent get tools to speak to the user and to end? None: where somebody speaks to it."""

    def row(self) -> dict[str, Any]:
        """Return what a grader needs beside the episode's journal and its environment."""
        return {"task_id": self.task_id, "seed": self.seed,
                "perturbations": list(self.perturbations), "bindings": dict(self.bindings), "ask": self.ask is not None}

    def for_query(self, query: str, task_ids: Sequence[str]) -> Rollout:
        """Return this rollout with a URL's choices: `task` (an id or its beginning), `seed`, `perturbations` (comma-separated),
        `talk` (auto, on, off).

        InputError if the server was started for one task, or a value is invalid; Missing if no task has that id."""
        chosen = {name: values[-1] for name, values in parse_qs(query).items() if name in CHOICES}
        if not chosen:
            return self
        if self.task_id is not None and chosen.keys() != {"talk"}:
            raise InputError("this server plays one task", self.task_id, "start it without --task to let sessions choose")
        matches = [each for each in task_ids if each.startswith(chosen["task"])] if "task" in chosen else [self.task_id]
        if len(matches) != 1:
            raise Missing.named("task", chosen["task"], task_ids)
        seed = chosen.get("seed", str(self.seed))
        if not seed.isdecimal():
            raise InputError(f"invalid seed {seed!r} (expected a whole number)")
        names = chosen["perturbations"].split(",") if "perturbations" in chosen else self.perturbations
        talk = chosen.get("talk")
        if talk is not None and talk not in TALK:
            raise InputError(f"invalid talk {talk!r} (expected {', '.join(TALK)})")
        return self._replace(task_id=matches[0], seed=int(seed), perturbations=tuple(filter(None, names)),
                             talk=self.talk if talk is None else TALK[talk])


def episode_name(query: str) -> str | None:
    """Return the name that a URL gives the episode, so that other sessions of the client join it; None: it has none.

    InputError if it is no name."""
    names = parse_qs(query, keep_blank_values=True).get("episode")
    if names and not _NAME.fullmatch(names[-1]):
        raise InputError(f"invalid name of an episode {names[-1]!r} (expected up to 128 letters, digits, '.', '-', '_')")
    return names[-1] if names else None


def process_starter(environment: Path, container: bool, bindings: Mapping[str, str]) -> Callable[[], EnvironmentProcess]:
    """Return a function that starts a process of this environment; InputError if that is not possible."""
    if not container:
        return lambda: start_process(environment, bindings=bindings)
    if bindings:
        raise InputError(
            "an environment in a container cannot reach bound tools", ", ".join(bindings), "serve without --container")
    image.image_of(environment)
    return lambda: image.start(environment, limits=CONTAINER_LIMITS)


class ServingProcesses:
    """A fixed number of environment processes for many episodes, each started when it is first needed."""

    def __init__(self, start: Callable[[], EnvironmentProcess], name: str, n_processes: int, rollout: Rollout) -> None:
        """Start the first one; InputError if it rejects the rollout, Unavailable if it does not start."""
        self._start = start
        self._name = name
        self._first: EnvironmentProcess | None = start()
        try:
            self._first.reset(rollout.task_id, rollout.seed, rollout.perturbations)
        except TraceroomError:
            self._first.close()
            raise
        self.reset_params = self._first.reset_params
        """Returns the parameters of `traceroom/reset`."""
        self._channels: list[Channel | None] = [None] * n_processes
        self._locks = [asyncio.Lock() for _ in range(n_processes)]
        self._n_used = 0

    async def next(self) -> Channel:
        """Return the next episode's process, in turn; Unavailable if it does not start."""
        number = self._n_used % len(self._channels)
        self._n_used += 1
        async with self._locks[number]:
            channel = self._channels[number]
            if channel is None or channel.gone:
                if channel is not None:
                    await channel.close()
                process = self._first if self._first is not None else await asyncio.to_thread(self._start)
                self._first = None
                channel = self._channels[number] = await Channel.over(process.transport, self._name)
            return channel

    async def close(self) -> None:
        """End all processes."""
        if self._first is not None:
            self._first.close()
        for channel in self._channels:
            if channel is not None:
                await channel.close()


class AgentSession:
    """A client's session: one episode."""

    def __init__(self, session_id: str, rollout: Rollout, client: str = "") -> None:
        self.session_id = session_id
        self.rollout = rollout
        self.client = client
        """Who opened it."""
        self.name: str | None = None
        """What the client calls the episode."""
        self.connections = {session_id}
        """Ids of the sessions of MCP that play the episode."""
        self.channel: Channel | None = None
        """The process that plays the episode, None before it has begun."""
        self.beginning: dict[str, Any] = {}
        """`messages` and `limits` of the reset; not the tools, since there are thousands of sessions."""
        self.instructions = ""
        """What the agent is to do, as one text; empty without a task."""
        self.is_played = False
        """Has the client asked for anything since the handshake?"""
        self.touched_at = time.monotonic()
        self.n_waiting = 0
        """Requests without an answer."""
        self._is_closed = False
        self._begun: asyncio.Task[Channel] | None = None
        self._turn = asyncio.Lock()

    async def begin(self, processes: ServingProcesses) -> Channel:
        """Return the channel of the episode, which begins now if it has not yet. InputError: the session has ended."""
        if self._is_closed:
            raise InputError("the session has ended", self.session_id, "begin another one")
        if self._begun is None or (self._begun.done() and self._begun.exception() is not None):
            self._begun = asyncio.create_task(self._begin(processes))
        return await asyncio.shield(self._begun)

    async def _begin(self, processes: ServingProcesses) -> Channel:
        channel = await processes.next()
        params = processes.reset_params(self.rollout.task_id, self.rollout.seed, self.rollout.perturbations)
        needs_tiers = self.rollout.ask is not None
        observation = await channel.request(
            "traceroom/reset", {**params, "talk": self.rollout.talk, "tiers": needs_tiers}, self.session_id)
        self.instructions = observation.get("instructions", "")  # a room of an older run gives none
        self.beginning = {"messages": observation["messages"], "limits": observation["limits"]}
        self.channel = channel
        return channel

    async def call_with_model(self, channel: Channel, ask: Ask, params: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to `tools/call`; the model's if that is `unknown` and the model's is valid."""
        async with self._turn:  # the model's answer must replace the last one
            reply = await channel.send("tools/call", params, self.session_id)
            if reply.get("result", {}).get("_meta", {}).get("traceroom/tier") != "unknown":
                return reply
            prompt = (await channel.request("traceroom/prompt", None, self.session_id))["prompt"]
            if prompt is None:
                return reply
            answer = {"reply": await asyncio.to_thread(ask, prompt)}
            supplied = await channel.send("traceroom/supply", answer, self.session_id)
            return supplied if "result" in supplied else reply

    async def close(self) -> dict[str, Any] | None:
        """End the episode and return its `journal`, and how it `ended`; None if the client never asked for anything."""
        self._is_closed = True
        if self._begun is not None:
            await asyncio.wait([self._begun])
        if self.channel is None:
            return None
        closed: dict[str, Any] = await self.channel.request("traceroom/close", None, self.session_id)
        return closed if self.is_played else None


class SessionLimits(NamedTuple):
    """How many sessions a server has, and how long."""

    most: int
    """Sessions at once."""
    idle_s: float
    """Seconds after which a session without a request is ended."""
    most_of_one: int | None = None
    """Sessions of one client at once; None: as many as there are."""


class AgentSessions:
    """All sessions of a server."""

    def __init__(
        self, processes: ServingProcesses, about: Mapping[str, str], journals: JournalFile, limits: SessionLimits,
    ) -> None:
        """`about`: `environment` and `content_digest`, which each episode's row states."""
        self.limits = limits
        self.is_graded = False
        """Are episodes that ended kept for a grader?"""
        self.n_lost = 0
        """Episodes whose journal is lost: with their process, or because it can never be written."""
        self.processes = processes
        self.journals = journals
        self._about = about
        self._by_id: dict[str, AgentSession] = {}
        """By the id of the session that began the episode."""
        self._joined: dict[str, AgentSession] = {}
        """By the ids of other sessions that play it."""
        self._named: dict[tuple[str, str], AgentSession] = {}
        """By the client and what it calls the episode."""
        self._of_client: Counter[str] = Counter()
        self._ended: dict[str, dict[str, Any]] = {}
        self._ending: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, session_id: str, rollout: Rollout, client: str = "", name: str | None = None) -> AgentSession:
        """Open a session; its episode begins with the first request that needs it. `name`: what the client calls it."""
        session = self._by_id[session_id] = AgentSession(session_id, rollout, client)
        session.name = name
        if name is not None:
            self._named[client, name] = session
        self._of_client[client] += 1
        return session

    def join(self, session_id: str, name: str | None, client: str) -> AgentSession | None:
        """Let another session of the client play the episode that it calls so; None if there is none."""
        session = None if name is None else self._named.get((client, name))
        if session is not None:
            session.connections.add(session_id)
            self._joined[session_id] = session
        return session

    def get(self, session_id: str) -> AgentSession | None:
        """Return the session, None if there is none."""
        session = self._by_id.get(session_id) or self._joined.get(session_id)
        return session if session is not None and session_id in session.connections else None

    def rejection(self, client: str) -> str | None:
        """Return why this client cannot open a session now, None if it can. In a full server, an unused session makes
        way if its client has more of them than this one."""
        own, most_of_one = self._of_client[client], self.limits.most_of_one
        if self.journals.n_waiting:
            return f"journals cannot be stored ({self.journals.problem})"
        if most_of_one is not None and own >= most_of_one:
            return f"{own} episodes of this client run already"
        if len(self) < self.limits.most:
            return None
        unused = self._unused(own)
        if unused is None:
            return f"{self.limits.most} episodes run already"
        ending = asyncio.ensure_future(self._end_episode(unused))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return None

    def _unused(self, n_own: int) -> AgentSession | None:
        """Return a session without a request since it was opened, of the client that has the most, above `n_own`."""
        before = time.monotonic() - UNUSED_S
        unused = [each for each in self._by_id.values() if not each.is_played and not each.n_waiting
                  and each.touched_at < before and self._of_client[each.client] > n_own + 1]
        return max(unused, key=lambda each: self._of_client[each.client], default=None)

    async def end(self, session_id: str) -> None:
        """Close the session; with the last one of its episode, append the journal to the file."""
        session = self.get(session_id)
        if session is not None:
            session.connections.discard(session_id)
            self._joined.pop(session_id, None)
            if not session.connections:
                await self._end_episode(session)

    async def _end_episode(self, session: AgentSession) -> None:
        """End an episode with all its sessions; count its journal as lost if it cannot be stored."""
        if self._by_id.pop(session.session_id, None) is None:
            return
        for joined in session.connections:
            self._joined.pop(joined, None)
        session.connections = set()
        if session.name is not None:
            self._named.pop((session.client, session.name), None)
        self._of_client[session.client] -= 1
        if not self._of_client[session.client]:
            del self._of_client[session.client]
        closing = asyncio.shield(asyncio.ensure_future(session.close()))
        closed: Any = (await asyncio.gather(closing, return_exceptions=True))[0]
        if isinstance(closed, BaseException):
            self.n_lost += 1
        elif closed is not None:
            self._store(session, closed)

    def _store(self, session: AgentSession, closed: dict[str, Any]) -> None:
        row = {**self._about, **session.rollout.row(), "journal": closed["journal"]}
        try:
            self.journals.add(row)
        except FAILURES:
            self.n_lost += 1
        if self.is_graded:
            self._ended[session.session_id] = {**row, "ended": closed["ended"]}
            for old in list(self._ended)[:-MOST_ENDED]:
                del self._ended[old]

    async def episodes(self, only: str | None = None) -> dict[str, dict[str, Any]]:
        """Return the rows of the episodes that were played here, by session, the ended ones first. `only`: of this one."""
        rows = {name: row for name, row in self._ended.items() if only in (None, name)}
        for name, session in list(self._by_id.items()):
            if only in (None, name) and session.channel is not None and session.is_played:
                result = await session.channel.request("traceroom/journal", None, name)
                rows[name] = {**self._about, **session.rollout.row(), "journal": result["journal"], "ended": result["ended"]}
        return rows

    async def close(self) -> None:
        """End every session, then the processes; journals that cannot be written even now are lost."""
        await asyncio.gather(*map(self._end_episode, list(self._by_id.values())), *self._ending, return_exceptions=True)
        self.journals.write()
        self.n_lost += self.journals.n_waiting
        await self.processes.close()

    async def sweep(self) -> None:
        """End idle sessions and write what could not be written before, until this is cancelled. No episode ends the sweep."""
        while True:
            await asyncio.sleep(min(SWEEP_S, self.limits.idle_s / 2))
            self.journals.write()
            oldest = time.monotonic() - self.limits.idle_s
            idle = [each for each in self._by_id.values() if each.touched_at < oldest and not each.n_waiting]
            await asyncio.gather(*map(self._end_episode, idle), return_exceptions=True)
