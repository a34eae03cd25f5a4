"""An environment as an OpenEnv server, outside the environment process: the exported package's server on a channel.

    python openenv_app.py      in an interpreter that has `openenv`; started by openenv_server.py, with its settings on stdin

A WebSocket session is an episode; one process plays many, over a connection that is inherited. The reward is that of the
environment's own grader, which replays the journal here, on the grader's side.

Imports `openenv` and the standard library, and of ours only modules that do so too.
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
import gc
import itertools
import os
import socket
import time
import uuid
from collections.abc import Sequence
from typing import Any

import uvicorn
from openenv.core.env_server.types import ConcurrencyConfig
from starlette.responses import JSONResponse

from env_builder.channel import Channel
from env_builder.openenv_package.models import OpenEnvObservation
from env_builder.openenv_package.server.session import create_app
from env_builder.process import SocketTransport, parse_call_result
from env_builder.runtime import Environment
from env_builder.runtime.admission import FAILURES
from env_builder.runtime.files import rows_of
from pipelines.serving.access import ServerAccess
from pipelines.serving.connections import GuardedApp, GuardedServer, guarded_config
from pipelines.serving.journal_file import JournalFile
from pipelines.serving.listening import BACKLOG, allow_open_files
from pipelines.serving.pacing import Pacing
from warehouse.errors import InputError, TraceroomError, Unavailable


class ChannelHost:
    """Plays episodes over a channel, grades them, and appends their journals to the file for the grader."""

    readme: str | None = None

    def __init__(self, channel: Channel, settings: dict[str, Any]) -> None:
        self.channel = channel
        self.name = str(settings["name"])
        self.loop = asyncio.get_running_loop()
        self.pacing = Pacing()
        self.closing: set[asyncio.Task[None]] = set()
        """Episodes whose journals are still to be stored."""
        directory = Path(settings["environment"])
        self.digest: str = json.loads((directory / "manifest.json").read_text("utf-8"))["content_digest"]
        self._rows = {row["task_id"]: row for row in rows_of(directory / "tasks.jsonl")}
        self.tasks = [{"task_id": task_id, "split": row["split"]} for task_id, row in self._rows.items()]
        self._settings = settings
        task_id = settings["task_id"]
        self._turn = itertools.cycle(self._rows) if self._rows and task_id is None else itertools.repeat(task_id)
        self.journals = JournalFile(Path(settings["journals"]) if settings["journals"] else None)
        self.n_lost = 0
        """Episodes whose journal is lost."""
        self._grader = Environment.load(directory) if settings["graded"] else None
        if self._grader is not None:
            for tool, source in settings["bindings"].items():
                self._grader.bind(tool, source)

    async def begin(self, task_id: str | None, seed: int | None, perturbations: Sequence[str] | None) -> ChannelEpisode:
        """Begin an episode; by default with the server's options, the tasks in turn. InputError: none can be stored now."""
        self.journals.write()
        if self.journals.n_waiting:
            raise InputError(f"journals cannot be stored ({self.journals.problem})", self.name, "retry later")
        params = {
            "task_id": task_id if task_id is not None else next(self._turn),
            "seed": self._settings["seed"] if seed is None else seed,
            "perturbations": self._settings["perturbations"] if perturbations is None else list(perturbations)}
        row = self._rows.get(params["task_id"]) if self._settings["framed"] else None  # a container has no tasks of its own
        name = str(uuid.uuid4())
        observation = await self.channel.request("traceroom/reset", params | ({"task": row} if row else {}), name)
        return ChannelEpisode(self, name, params, observation)

    def reward(self, params: dict[str, Any], journal: list[dict[str, Any]]) -> float | None:
        """Grade a journal; None if the task has no verified reward."""
        if self._grader is None or params["task_id"] is None:
            return None
        return self._grader.grade_journal(params["task_id"], journal, params["seed"], params["perturbations"]).reward

    async def store(self, name: str, params: dict[str, Any]) -> None:
        """End an episode and append it to the file for the grader; count it as lost if that is not possible."""
        try:
            closed = await self.channel.request("traceroom/close", None, name)
            self.journals.add({"environment": self.name, "content_digest": self.digest, "ask": False, **params,
                               "bindings": self._settings["bindings"], "journal": closed["journal"]})
        except (TraceroomError, *FAILURES):
            self.n_lost += 1


class ChannelEpisode:
    """An episode of the environment process."""

    def __init__(self, host: ChannelHost, name: str, params: dict[str, Any], observation: dict[str, Any]) -> None:
        self._host = host
        self._name = name
        self._params = params
        self._ended: str | None = None
        self.task_id: str | None = params["task_id"]
        self.messages: list[dict[str, Any]] = observation["messages"]
        self.tools: list[dict[str, Any]] = observation["tools"]

    async def call(self, tool: str, arguments: dict[str, Any]) -> OpenEnvObservation:
        """Call a tool."""
        began = time.perf_counter()
        try:
            reply = parse_call_result(await self._request("tools/call", {"name": tool, "arguments": arguments}))
        except InputError as error:
            return OpenEnvObservation(content=error.what, is_error=True, ended=self._ended)
        self._ended = reply.ended
        await self._host.pacing.pause(began)
        return OpenEnvObservation(content=reply.content, is_error=reply.is_error, ended=reply.ended)

    async def say(self, text: str) -> OpenEnvObservation:
        """Say something to the user."""
        result = await self._request("traceroom/say", {"text": text})
        self._ended = result["ended"]
        return OpenEnvObservation(content=result["reply"], ended=self._ended)

    async def finish(self) -> OpenEnvObservation:
        """End the episode."""
        self._ended = (await self._request("traceroom/finish"))["ended"]
        return OpenEnvObservation(ended=self._ended)

    async def reward(self) -> float | None:
        """Return the grader's reward."""
        return self._host.reward(self._params, (await self._request("traceroom/journal"))["journal"])

    def close(self) -> None:
        """Store the journal, on the channel's loop."""
        def start() -> None:
            task = self._host.loop.create_task(self._host.store(self._name, self._params))
            self._host.closing.add(task)
            task.add_done_callback(self._host.closing.discard)

        self._host.loop.call_soon_threadsafe(start)

    async def _request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return await self._host.channel.request(method, params, self._name)


async def _refused(request: Any, error: Exception) -> JSONResponse:
    """Say why an episode cannot go on: the request (400), or something that is gone (503)."""
    is_gone = isinstance(error, Unavailable)
    return JSONResponse({"detail": str(error)}, 503 if is_gone else 400, {"Retry-After": "1"} if is_gone else None)


async def _stop_when_alone(server: uvicorn.Server, channel: Channel) -> None:
    """Stop after the environment process, or the process that started this one, has ended."""
    parent = os.getppid()
    while not channel.gone and os.getppid() == parent:
        await asyncio.sleep(1)
    server.should_exit = True


async def serve(settings: dict[str, Any]) -> str | None:
    """Serve until asked to stop, then store every journal; return what went wrong, None if nothing did."""
    inherited = socket.socket(fileno=settings["process_fd"])
    channel = await Channel.over(SocketTransport(inherited, settings["framed"]), settings["name"])
    host = ChannelHost(channel, settings)
    limits = ConcurrencyConfig(max_concurrent_envs=settings["episodes"], session_timeout=settings["idle_s"])
    access = ServerAccess.of_settings(settings)
    served = create_app(host, limits)
    served.add_exception_handler(TraceroomError, _refused)
    app = GuardedApp(served, access, settings["most_of_one"])
    listening = socket.socket(fileno=settings["listen_fd"])
    gc.freeze()
    print("ready", flush=True)
    config = guarded_config(app, backlog=BACKLOG, timeout_graceful_shutdown=5, ws_per_message_deflate=False)
    server = GuardedServer(config)
    watching = asyncio.create_task(_stop_when_alone(server, channel))
    with contextlib.suppress(KeyboardInterrupt):
        await server.serve(sockets=[listening])
    watching.cancel()
    await asyncio.sleep(0)
    while host.closing:
        await asyncio.gather(*host.closing, return_exceptions=True)
    is_gone = channel.gone
    await channel.close()
    host.journals.write()
    n_lost = host.n_lost + host.journals.n_waiting
    if is_gone:
        return "the environment process is gone; start the server again"
    return f"{n_lost} episodes are lost ({host.journals.problem or 'their journals could not be read'})" if n_lost else None


if __name__ == "__main__":
    allow_open_files()
    sys.exit(asyncio.run(serve(json.load(sys.stdin))))
