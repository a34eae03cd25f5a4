"""Episodes at a real service: every call goes to it, the user is the environment's, the verdict is the reward's or its own.

In: a job, orders, and a `RealService`: what answers each tool, what brings it to the state a task begins in, and what judges an
episode at its end. Out: trajectories, as of a rollout, with the service's answers. Reset and verdict are asked like tools
(docs/transfer.md). One episode at a time, each with connections of its own. Sees: answers. Does not see: what a write call
changed at the service, except by its answer: where that is not the environment's and shows no record, the reward is not known;
whether a reset did what it should.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.runtime import Environment
from env_builder.runtime.answers import failed, parse
from env_builder.runtime.bindings import Ask, Binding, FirstBinding, Reply, binding, reply_of
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.records import Result, Task
from pipelines import playing
from pipelines.rollouts import policies
from pipelines.rollouts.agents.agent_player import AgentPlayer
from pipelines.rollouts.agents.server import SeatServer
from pipelines.rollouts.orders import Job, Order
from pipelines.rollouts.player import Conversation, Grader, Player, Seat
from pipelines.rollouts.results import is_good
from pipelines.rollouts.transfer import PlacedResult
from warehouse.errors import EpisodeFailed, InputError

Row = dict[str, Any]
RESET, VERDICT = "reset", "verdict"
"""As what they are asked."""


class RealService(NamedTuple):
    """What stands for the tools: plain values."""

    tools: Mapping[str, str]
    """Tool -> source of its binding."""
    reset: str | None = None
    """Source that is asked before each episode; None: an episode begins in whatever state the service is."""
    verdict: str | None = None
    """Source that is asked after each episode; None: the environment's reward judges it."""

    @property
    def service_id(self) -> str:
        """Return what tells services apart without naming addresses."""
        return digest(canonical([dict(self.tools), self.reset, self.verdict]))[:12]


class RealSession:
    """What one episode asks of the service, and later the same answers in the same order, for the grader's replays."""

    def __init__(self, service: RealService) -> None:
        self._service = service
        self._sources: dict[str, Binding] = {}
        """Connected once per episode, whatever is asked of it."""
        self._replies: list[tuple[str, str, Reply]] = []
        self._in_step: dict[tuple[str, str], Reply] = {}
        self._n_replayed: int | None = None
        self.n_unseen_writes = 0
        """Write calls that worked, of which nothing shows what they changed."""

    @property
    def is_live(self) -> bool:
        """Return whether the service itself is asked."""
        return self._n_replayed is None

    @property
    def first_reply(self) -> Reply | None:
        """Return the answer to the first call of the step, which is the agent's; None: the call never reached the service."""
        return next(iter(self._in_step.values()), None)

    def begin_step(self) -> None:
        """Let the same call be a call of its own from here on: within a step several worlds may ask it."""
        self._in_step = {}

    def replay(self) -> None:
        """Answer from memory from now on, from the first answer, over and over."""
        self._n_replayed = 0
        self.begin_step()

    def __call__(self, ask: Ask) -> Reply:
        key = ask.tool, canonical(ask.arguments)
        if key not in self._in_step:
            self._in_step[key] = self._next(key, ask)
        return self._in_step[key]

    def ask(self, source: str, what: str, arguments: Row) -> Reply:
        """Ask something of the service that is no call of the agent."""
        reply = self._reply(source, Ask(what, arguments, lambda *_: None, (), None))
        if reply.is_error:
            raise EpisodeFailed(f"the service fails at {what}: {reply.content[:200]}", source)
        return reply

    def _next(self, key: tuple[str, str], ask: Ask) -> Reply:
        if self._n_replayed is None:
            reply = self._reply(self._service.tools[ask.tool], ask)
            self._replies.append((*key, reply))
            return reply
        *expected, reply = self._replies[self._n_replayed % len(self._replies)]
        if expected != [*key]:
            raise EpisodeFailed(f"the replay of the episode calls {ask.tool}, not {expected[0]}", ask.tool)
        self._n_replayed += 1
        return reply

    def _reply(self, source: str, ask: Ask) -> Reply:
        if source not in self._sources:
            try:
                self._sources[source] = binding(source)
            except (OSError, ValueError, ImportError, AttributeError) as error:
                raise InputError(f"the source cannot be used ({error})", source, "see docs/environment.md") from error
        try:
            reply = reply_of(self._sources[source](ask))
        except OSError as error:
            raise EpisodeFailed(f"the service does not answer ({error})", source, "start it, then run the command again"
                                ) from error
        if reply is None:
            raise EpisodeFailed(f"the service has no answer to {ask.tool}", source)
        return reply


class RealEnvironment(Environment):
    """An environment all of whose tools a real service answers."""

    _session: RealSession

    def connect(self, session: RealSession) -> None:
        """From the next reset on, let this session answer. Raises InputError."""
        self._session = session
        for tool in self.tools:
            try:
                self.bind(tool["name"], FirstBinding(session))
            except (KeyError, ValueError) as error:
                raise InputError(f"the tool {tool['name']!r} cannot be bound", self.manifest["name"],
                                 "compare recorded results: --matrix") from error

    def say(self, text: str) -> str | None:
        """Say something to the user, in whose turn other people may make calls."""
        self._session.begin_step()
        return super().say(text)

    def _call(self, tool: str, arguments: Any, journaled: Mapping[str, Any] | None = None) -> Result:
        """Answer with the service's words, byte for byte."""
        session, before = self._session, self.difference()["documents"]
        session.begin_step()
        result = super()._call(tool, arguments, journaled)
        row, reply = self._journal[-1], session.first_reply
        if reply is None:
            return result
        is_error = reply.is_error or failed(reply.content, parse(reply.content))
        worked = not is_error and result.tier in ("bound", "unknown") and tool in self.writes
        if worked and session.is_live and self.difference()["documents"] == before:
            session.n_unseen_writes += 1
        row |= {"content": reply.content, "is_error": is_error}
        return result._replace(content=reply.content, is_error=is_error)


class RealPlayer(Player):
    """Plays one order at a time, at the real service."""

    def __init__(self, service: RealService, job: Job, *further: Any) -> None:
        """`further`: as the player takes it after its grader."""
        super().__init__(job, Grader(job, RealEnvironment), *further)
        self._service = service
        self._session = RealSession(service)
        self._verdict: bool | None = None
        self._connect()

    def _seat(self, order: Order) -> Seat:
        """Bring the service to the state the task begins in, and begin."""
        self._session, self._verdict = RealSession(self._service), None
        if self._service.reset is not None:
            self._session.ask(self._service.reset, RESET, self._about(order))
        self._connect()
        return Seat(self._grader, self._job, order, None)

    def _connect(self) -> None:
        environment = self._grader.environment
        assert isinstance(environment, RealEnvironment)
        environment.connect(self._session)

    def _take_turns(self, order: Order, seat: Seat, conversation: Conversation) -> tuple[str | None, str | None]:
        """Play, then let the service judge, and let the grader's replays answer from memory."""
        end = super()._take_turns(order, seat, conversation)
        if self._service.verdict is not None:
            journal = list(seat.recorder.witness.journal)
            reply = self._session.ask(self._service.verdict, VERDICT, {**self._about(order), "journal": journal})
            self._verdict = parse_verdict(reply.content, self._service.verdict)
        self._session.replay()
        return end

    def _further(self) -> Row:
        """Return what the service says of the episode."""
        judged = {} if self._service.verdict is None else {"verdict": self._verdict}
        return {**super()._further(), "service_id": self._service.service_id,
                "n_unseen_writes": self._session.n_unseen_writes, **judged}

    def _about(self, order: Order) -> Row:
        task: Task = self._grader.tasks[order.task_id]
        return {"task_id": task.task_id, "session_ids": list(task.session_ids), "starts_at": task.starts_at, "seed": order.seed,
                "attempt": order.attempt}


class RealAgentPlayer(RealPlayer, AgentPlayer):
    """Lets an agent play one order at a time, at the real service."""


class RealSeats:
    """The one place where a policy can act on a real service: a thread of this process."""

    n_seats = 1

    def __init__(self, job: Job, service: RealService) -> None:
        self._server = SeatServer() if job.agent is not None else None
        self._player = (RealPlayer(service, job) if self._server is None
                        else RealAgentPlayer(service, job, policies.named(job), None, True, self._server))
        self._thread = ThreadPoolExecutor(1, "real")

    async def play(self, order: Order) -> Row:
        """Return the episode's trajectory. Raises EpisodeFailed if the service does not answer."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._player.play, order)

    def close(self) -> None:
        """Stop at the end of the turn."""
        self._player.stop()
        self._thread.shutdown(cancel_futures=True)
        if self._server is not None:
            self._server.close()


def parse_verdict(content: str, source: str) -> bool | None:
    """Return the success that a service states: true, false, 1, 0 or null (not judged), alone or as `success` of an object.
    Raises EpisodeFailed."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = content
    value = value.get("success", content) if isinstance(value, dict) else value
    if value is not None and value not in (0, 1):
        raise EpisodeFailed(f"this is no verdict: {content[:200]!r}", source, 'answer true, false, null or {"success": …}')
    return None if value is None else bool(value)


def real_results(episodes: list[Row]) -> list[PlacedResult]:
    """Return the results of episodes at a real service: its own verdict where it gives one, else the reward's."""
    rows = []
    for row in episodes:
        is_known = row["reward"] is not None and not row["n_unseen_writes"]
        rewarded = is_good(row["reward"]) if is_known else None
        rows.append(PlacedResult(
            row["policy"], row["task_id"], row["seed"], "real", row.get("verdict", rewarded), None, 0,
            tuple(row["perturbations"]), row["attempt"], row["journal"], rewarded))
    return rows


def service_of(environment: Path, options: list[str], reset: str | None, verdict: str | None) -> RealService:
    """Return the service of a command's options: SOURCE for all tools, TOOL=SOURCE for one. Raises InputError, Missing."""
    names = playing.tool_names(environment)
    tools = playing.bindings_of_all(names, options)
    if missing := sorted(names - tools.keys()):
        raise InputError(f"tools without a real service: {', '.join(missing)}", str(environment),
                         "bind every tool: --bind SOURCE for all, --bind TOOL=SOURCE for one")
    for source in filter(None, (reset, verdict)):
        playing.check_source(source, source)
    return RealService(tools, reset, verdict)
