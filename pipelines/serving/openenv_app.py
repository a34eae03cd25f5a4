"""An environment as an OpenEnv server (HTTP and WebSocket), with the official package, outside the room.

    python openenv_app.py SETTINGS      in an interpreter that has `openenv`; started by openenv_server.py

A WebSocket session is an episode; many of them are asked of one room, whose connection is inherited. An action is
`{"type": "call_tool", "tool_name", "arguments"}`, `{"type": "say", "text"}`, `{"type": "finish"}` or `{"type": "list_tools"}`;
a step is done when the episode has ended, by `finish` or by its limits, and only then has a reward: that of the environment's
own grader, which replays the journal here, on the grader's side. `reset` takes `task_id` (or `split` and `index`), `seed`,
`conditions`; without a task the tasks come in turn. `/mcp` lists and calls the same tools.

Imports `openenv` and the standard library, and of ours what does so too.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

if not __package__:  # in the other interpreter, by its path: its own packages come first, ours after them
    _root = Path(__file__).resolve().parent.parent.parent
    sys.path[:] = [*sys.path[1:], str(_root)]
    runpy.run_module("pipelines.serving.openenv_app", run_name="__main__", alter_sys=True)
    sys.exit()

import asyncio
import contextlib
import functools
import gc
import itertools
import os
import socket
import uuid
from collections.abc import Sequence
from typing import Any, Literal

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment as OpenEnvironment
from openenv.core.env_server.types import Action, ConcurrencyConfig, EnvironmentMetadata, Observation, State
from pydantic import Field

from env_builder.carriers import Connection
from env_builder.channel import Channel
from env_builder.room import answer_of
from env_builder.runtime import Environment
from env_builder.runtime.files import rows_of
from pipelines.serving.listening import BACKLOG, allow_open_files
from warehouse.errors import InputError


class RoomAction(Action):
    """What an agent does."""

    type: Literal["call_tool", "say", "finish", "list_tools"] = "call_tool"
    tool_name: str = Field(default="", description="Tool to call (call_tool)")
    arguments: dict[str, Any] = Field(default_factory=dict, description="Its arguments (call_tool)")
    text: str = Field(default="", description="What to tell the user (say)")


class RoomObservation(Observation):
    """What an agent sees."""

    messages: list[dict[str, Any]] = Field(default_factory=list, description="How the episode begins (reset)")
    tools: list[dict[str, Any]] = Field(default_factory=list, description="MCP descriptors (reset, list_tools)")
    content: str | None = Field(default=None, description="The tool's answer, byte for byte, or the user's (call_tool, say)")
    is_error: bool = Field(default=False, description="Whether the tool failed")
    tier: str | None = Field(default=None, description="How the answer is known (call_tool)")
    ended: str | None = Field(default=None, description="terminated: the agent is done; truncated: a limit was reached")


class RoomState(State):
    """Where an episode is."""

    task_id: str | None = Field(default=None, description="Task that is played")
    ended: str | None = Field(default=None, description="How it ended, while it runs nothing")


class Hall:
    """What all sessions of a server share: the room, the grader, the file of journals."""

    def __init__(self, channel: Channel, settings: dict[str, Any]) -> None:
        self.channel = channel
        self.name = str(settings["name"])
        self._rows = {row["task_id"]: row for row in rows_of(Path(settings["environment"], "tasks.jsonl"))}
        self.tasks = [{"task_id": task_id, "split": row["split"]} for task_id, row in self._rows.items()]
        self.loop = asyncio.get_running_loop()
        self.leaving: set[asyncio.Task[None]] = set()
        self.about = {"environment": self.name, "bindings": settings["bindings"], "ask": False}
        self._settings = settings
        only = settings["task_id"]
        self._turn = itertools.cycle(self._rows) if self._rows and only is None else itertools.repeat(only)
        self._journals = Path(settings["journals"]) if settings["journals"] else None
        self._grader = Environment.load(settings["environment"]) if settings["graded"] else None
        if self._grader is not None:
            for tool, source in settings["bindings"].items():
                self._grader.bind(tool, source)

    def begun(self, task_id: str | None, seed: int | None, conditions: Sequence[str] | None) -> dict[str, Any]:
        """What a reset asks of the room; what it leaves open is as the server was started, the tasks in turn."""
        return {"task_id": task_id if task_id is not None else next(self._turn),
                "seed": self._settings["seed"] if seed is None else seed,
                "conditions": self._settings["conditions"] if conditions is None else list(conditions)}

    async def begin(self, asked: dict[str, Any], name: str) -> dict[str, Any]:
        """Begin an episode under this name, of a task that the room is handed where it has none of its own."""
        row = self._rows.get(asked["task_id"]) if self._settings["framed"] else None
        return await self.channel.request("traceroom/reset", {**asked, **({} if row is None else {"task": row})}, name)

    def reward(self, asked: dict[str, Any], journal: list[dict[str, Any]]) -> float | None:
        """What the journal is worth; None where the task has no verified reward."""
        if self._grader is None or asked["task_id"] is None:
            return None
        return self._grader.grade_journal(asked["task_id"], journal, asked["seed"], asked["conditions"]).reward

    def keep(self, asked: dict[str, Any], journal: list[dict[str, Any]]) -> None:
        """Add an episode to the file for the grader."""
        if self._journals is not None:
            with self._journals.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**self.about, **asked, "journal": journal}, ensure_ascii=False, sort_keys=True) + "\n")


class RoomEnvironment(OpenEnvironment[Any, Any, Any]):
    """One session: an episode at a time."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    REQUIRES_SINGLE_THREAD_EXECUTOR = True  # nothing here waits in a thread: one is enough for all sessions

    def __init__(self, hall: Hall) -> None:
        super().__init__()
        self._hall = hall
        self._name: str | None = None
        self._asked: dict[str, Any] = {}
        self._state = RoomState()
        self._tools: list[dict[str, Any]] = []

    @property
    def mcp_client(self) -> RoomTools:
        """What `/mcp` asks."""
        return RoomTools(self)

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, task_id: str | None = None, split: str | None = None,
        index: int | None = None, conditions: Sequence[str] | None = None, **others: Any,
    ) -> RoomObservation:
        """Begin an episode."""
        self.close()
        if task_id is None and split is not None:
            task_id = self.get_task(split, index or 0)["task_id"]
        name = f"{uuid.uuid4()}"
        self._asked = self._hall.begun(task_id, seed, conditions)
        beginning = await self._hall.begin(self._asked, name)
        self._name, self._tools = name, beginning["tools"]
        self._state = RoomState(episode_id=episode_id or name, task_id=self._asked["task_id"])
        return RoomObservation(messages=beginning["messages"], tools=self._tools)

    async def step_async(self, action: RoomAction, timeout_s: float | None = None, **others: Any) -> RoomObservation:
        """Do one thing; an episode that has not begun begins."""
        if self._name is None:
            await self.reset_async()
        was_over = self._state.ended is not None
        observation = await self._done(action)
        if observation.ended is not None:
            reward = None
            if not was_over:
                found = await self._hall.channel.request("traceroom/journal", None, self._name)
                reward = self._hall.reward(self._asked, found["journal"])
            observation = observation.model_copy(update={"done": True, "reward": reward})
        return observation

    async def _done(self, action: RoomAction) -> RoomObservation:
        ask = functools.partial(self._hall.channel.request, episode=self._name)
        if action.type == "list_tools":
            return RoomObservation(tools=self._tools, ended=self._state.ended)
        self._state.step_count += 1
        if action.type == "call_tool":
            seen = await self._called(action)
        elif action.type == "say":
            told = await ask("traceroom/say", {"text": action.text})
            seen = RoomObservation(content=told["reply"], ended=told["ended"])
        else:
            seen = RoomObservation(ended=(await ask("traceroom/finish"))["ended"])
        self._state.ended = seen.ended
        return seen

    async def _called(self, action: RoomAction) -> RoomObservation:
        """The tool's answer; a tool that there is not is an error that the agent sees."""
        asked = {"name": action.tool_name, "arguments": action.arguments}
        try:
            answer = answer_of(await self._hall.channel.request("tools/call", asked, self._name))
        except InputError as error:
            return RoomObservation(content=error.what, is_error=True, ended=self._state.ended)
        return RoomObservation(content=answer.content, is_error=answer.is_error, tier=answer.tier, ended=answer.ended)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **others: Any) -> RoomObservation:
        """Not used: the package asks for the asynchronous one where there is one."""
        raise TypeError("this environment is asynchronous: await reset_async")

    def step(self, action: RoomAction, timeout_s: float | None = None, **others: Any) -> RoomObservation:
        """Not used, as `reset`."""
        raise TypeError("this environment is asynchronous: await step_async")

    @property
    def state(self) -> RoomState:
        """Where the episode is."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """What this environment is."""
        about = f"The service {self._hall.name}, as it was found in logs: {len(self._hall.tasks)} tasks."
        return EnvironmentMetadata(name=self._hall.name, description=about, version="1")

    def list_splits(self) -> list[str]:
        """Sides of the split."""
        return sorted({task["split"] for task in self._hall.tasks})

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Its tasks."""
        return [{"index": n, **task} for n, task in enumerate(each for each in self._hall.tasks if each["split"] == split)]

    def num_tasks(self, split: str) -> int:
        """How many."""
        return len(self.list_tasks(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """One of them; IndexError where there is none."""
        if index < 0:
            raise IndexError(index)
        return self.list_tasks(split)[index]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        """Some of them."""
        return self.list_tasks(split)[start:stop]

    def close(self) -> None:
        """End the episode, from whatever thread; its journal is kept."""
        if self._name is not None:
            name, self._name = self._name, None
            self._hall.loop.call_soon_threadsafe(self._leave, name, self._asked)

    def _leave(self, name: str, asked: dict[str, Any]) -> None:
        task = self._hall.loop.create_task(self._left(name, asked))
        self._hall.leaving.add(task)
        task.add_done_callback(self._hall.leaving.discard)

    async def _left(self, name: str, asked: dict[str, Any]) -> None:
        self._hall.keep(asked, (await self._hall.channel.request("traceroom/close", None, name))["journal"])


class RoomTools:
    """The tools as an MCP client of the package has them."""

    def __init__(self, session: RoomEnvironment) -> None:
        self._session = session

    def is_connected(self) -> bool:
        """Always: it is the session itself."""
        return True

    async def __aenter__(self) -> RoomTools:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Nothing was opened."""

    async def list_tools(self) -> list[dict[str, Any]]:
        """Descriptors."""
        if self._session._name is None:
            await self._session.reset_async()
        return self._session._tools

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer, as MCP has it."""
        seen = await self._session.step_async(RoomAction(tool_name=name, arguments=arguments))
        return {"content": [{"type": "text", "text": seen.content}], "isError": seen.is_error,
                "_meta": {"traceroom/tier": seen.tier, "traceroom/ended": seen.ended}}


async def _watched(server: uvicorn.Server, channel: Channel) -> None:
    """Stop where the room has ended, or who started this: nothing can be played any longer."""
    parent = os.getppid()
    while not channel.gone and os.getppid() == parent:
        await asyncio.sleep(1)
    server.should_exit = True


async def serve(settings: dict[str, Any]) -> bool:
    """Serve until told to stop; then every episode ends, and its journal is kept. Whether the room was lost before."""
    inherited = socket.socket(fileno=settings["room_fd"])
    channel = await Channel.over(Connection(inherited, settings["framed"]), settings["name"])
    hall = Hall(channel, settings)
    limits = ConcurrencyConfig(max_concurrent_envs=settings["episodes"], session_timeout=settings["idle_s"])
    app = create_fastapi_app(
        functools.partial(RoomEnvironment, hall), RoomAction, RoomObservation, concurrency_config=limits,
        env_name=hall.name, state_cls=RoomState)
    listening = socket.socket(fileno=settings["listen_fd"])
    gc.freeze()
    print("ready", flush=True)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, backlog=BACKLOG, timeout_graceful_shutdown=5, ws_per_message_deflate=False)
    server = uvicorn.Server(config)
    watching = asyncio.create_task(_watched(server, channel))
    with contextlib.suppress(KeyboardInterrupt):
        await server.serve(sockets=[listening])
    watching.cancel()
    await asyncio.sleep(0)
    while hall.leaving:
        await asyncio.gather(*hall.leaving, return_exceptions=True)
    lost = channel.gone
    await channel.close()
    return lost


if __name__ == "__main__":
    allow_open_files()
    if asyncio.run(serve(json.loads(sys.argv[1]))):
        sys.exit("the room is gone; start the server again")
