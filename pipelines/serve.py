"""An environment's tools for an agent elsewhere: MCP over streamable HTTP, with the official SDK, outside the room.

One MCP session is one episode. Each gets a room of its own (`env_builder.room`: a local process, or a container), and
of what that room speaks only `tools/list` and `tools/call` are passed on. Beside `/mcp` there is, for the same session
(header `Mcp-Session-Id`), what an agent does that is not a tool:

    GET  /episode            {"messages", "limits", "ended"}: the messages that the episode begins with
    POST /episode/say        {"text"} -> {"reply", "ended"}: speak to the user
    POST /episode/finish     -> {"ended"}

An episode's journal is not handed out: it goes to the `journals` file, for the grader. The revision of MCP without
sessions (2026-07-28) cannot carry episodes over HTTP: the server names the older ones, and clients go on with those.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
import mcp_types as types
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from env_builder import image
from env_builder.room import Answer, Room, start_process
from pipelines.resources import Ask
from warehouse.errors import InputError, TraceroomError, Unavailable

IDLE_S = 1800.0
"""Seconds after which an episode that nobody touches is ended."""
MAX_EPISODES = 64
"""Episodes at once; each is a process or a container."""
_SESSION = "mcp-session-id"


class Rollout(NamedTuple):
    """What every episode of a server begins with."""

    task_id: str | None = None
    seed: int = 0
    conditions: tuple[str, ...] = ()
    bindings: Mapping[str, str] = MappingProxyType({})
    """Tool -> source of the real thing that answers what is not on record."""
    ask: Ask | None = None
    """The model that answers what would be `unknown`."""

    def about(self, environment: str) -> dict[str, Any]:
        """What a grader must know of it, beside the journal."""
        return {"environment": environment, "task_id": self.task_id, "seed": self.seed, "conditions": list(self.conditions),
                "bindings": dict(self.bindings), "ask": self.ask is not None}


class Episode:
    """One session's room; its requests go one after the other."""

    def __init__(self, room: Room, beginning: dict[str, Any]) -> None:
        self.room = room
        self.beginning = beginning
        self.turn = anyio.Lock()
        self.touched_at = time.monotonic()

    async def ask(self, what: Callable[[], Any]) -> Any:
        """Result of a blocking call of the room, off the event loop."""
        async with self.turn:
            self.touched_at = time.monotonic()
            return await anyio.to_thread.run_sync(what)


class Episodes:
    """The episodes that run now, by MCP session id."""

    def __init__(self, begin: Callable[[], Room], rollout: Rollout, name: str, journals: Path | None) -> None:
        self._begin = begin
        self._rollout = rollout
        self._name = name
        self._journals = journals
        self._sessions: set[str] = set()
        self._running: dict[str, Episode] = {}
        self._beginning = anyio.Lock()

    def admit(self, session_id: str) -> None:
        """A session has begun; its episode begins with the first thing that is asked of it."""
        self._sessions.add(session_id)

    async def of(self, session_id: str) -> Episode:
        """The session's episode, begun where it has none yet; InputError where there is no such session."""
        async with self._beginning:
            if session_id not in self._sessions:
                raise InputError("no such session", session_id, "begin one with initialize")
            if session_id not in self._running:
                await self._make_space()
                room = await anyio.to_thread.run_sync(self._begin)
                self._running[session_id] = Episode(room, await anyio.to_thread.run_sync(self._reset, room))
            return self._running[session_id]

    async def end(self, session_id: str) -> None:
        """Keep the journal and close the room; the session has no other."""
        self._sessions.discard(session_id)
        episode = self._running.pop(session_id, None)
        if episode is not None:
            with anyio.CancelScope(shield=True):
                await episode.ask(lambda: self._close(episode.room))

    async def end_all(self) -> None:
        """End every episode."""
        for session_id in list(self._running):
            await self.end(session_id)

    async def _make_space(self) -> None:
        now = time.monotonic()
        for session_id, episode in list(self._running.items()):
            if now - episode.touched_at > IDLE_S:
                await self.end(session_id)
        if len(self._running) >= MAX_EPISODES:
            raise Unavailable(f"{MAX_EPISODES} episodes run already", mend="end one of them first")

    def _reset(self, room: Room) -> dict[str, Any]:
        return room.reset(self._rollout.task_id, self._rollout.seed, self._rollout.conditions)

    def _close(self, room: Room) -> None:
        try:
            if self._journals is not None:
                row = {**self._rollout.about(self._name), "journal": room.journal()}
                with self._journals.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n")
        finally:
            room.close()


def application(
    environment: Path, rollout: Rollout, *, container: bool = False, journals: Path | None = None,
    host: str = "127.0.0.1",
) -> Starlette:
    """The web application; `environment` is OUT/environments/<name>. Raises TraceroomError where no room can begin."""
    begin = _beginner(environment, container, rollout.bindings)
    with begin() as room:  # a task or a condition that is not there is refused now, not at the first agent
        room.reset(rollout.task_id, rollout.seed, rollout.conditions)
    episodes = Episodes(begin, rollout, environment.name, journals)

    @contextlib.asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        try:
            yield {}
        finally:
            with anyio.CancelScope(shield=True):
                await episodes.end_all()

    async def list_tools(
        context: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = await _of(episodes, context, lambda room: room.tools())
        return types.ListToolsResult.model_validate({"tools": tools})

    async def call_tool(context: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await _of(episodes, context, lambda room: _call(room, params.name, params.arguments or {}, rollout.ask))
        marks = {"tier": answer.tier, "ended": answer.ended}
        marks |= {} if answer.latency_ms is None else {"latency_ms": answer.latency_ms}
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.content)], is_error=answer.is_error,
            _meta={f"traceroom/{name}": mark for name, mark in marks.items()})

    server: Server[Any] = Server(
        environment.name, version="1", lifespan=lifespan, on_list_tools=list_tools, on_call_tool=call_tool)
    app = server.streamable_http_app(
        host=host, json_response=True, session_idle_timeout=IDLE_S, max_sessions=MAX_EPISODES,
        custom_starlette_routes=_episode_routes(episodes))
    app.add_middleware(_Sessions, episodes=episodes)
    return app


def serve(
    environment: Path, rollout: Rollout, host: str = "127.0.0.1", port: int = 8765, *,
    container: bool = False, journals: Path | None = None, ready: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted; `ready` is told the URL of the MCP endpoint. InputError where the port is taken."""
    app = application(environment, rollout, container=container, journals=journals, host=host)
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise InputError(f"cannot listen there ({error.strerror})", f"{host}:{port}", "choose another --port") from error
    with listening:
        ready(f"http://{host}:{listening.getsockname()[1]}/mcp")
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
        uvicorn.Server(config).run(sockets=[listening])


def _beginner(environment: Path, container: bool, bindings: Mapping[str, str]) -> Callable[[], Room]:
    if not container:
        return lambda: start_process(environment, bindings=bindings)
    if bindings:
        what = "a room in a container reaches nothing that is bound"
        raise InputError(what, ", ".join(bindings), "serve without --container")
    image.image_of(environment)
    return lambda: image.start(environment)


def _call(room: Room, tool: str, arguments: dict[str, Any], ask: Ask | None) -> Answer:
    """The room's answer; where it is `unknown`, and a model may answer and does, the model's."""
    answer = room.call(tool, arguments)
    prompt = room.prompt() if ask is not None and answer.tier == "unknown" else None
    if ask is None or prompt is None:
        return answer
    try:
        return room.supply(ask(prompt))
    except InputError:  # the reply is no answer
        return answer


async def _of(episodes: Episodes, context: ServerRequestContext, what: Callable[[Room], Any]) -> Any:
    """What the session's room answers; its refusals become MCP errors."""
    session_id = context.request.headers.get(_SESSION) if context.request is not None else None
    if session_id is None:
        raise MCPError(code=types.INVALID_REQUEST, message="an episode needs a session: begin with initialize")
    try:
        episode = await episodes.of(session_id)
        return await episode.ask(lambda: what(episode.room))
    except InputError as error:
        raise MCPError(code=types.INVALID_PARAMS, message=error.what) from error
    except TraceroomError as error:
        raise MCPError(code=types.INTERNAL_ERROR, message=str(error)) from error


def _episode_routes(episodes: Episodes) -> list[Route]:
    def route(path: str, method: str, answer: Callable[[Episode, Request], Awaitable[dict[str, Any]]]) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                episode = await episodes.of(request.headers.get(_SESSION, ""))
                return JSONResponse(await answer(episode, request))
            except (TraceroomError, ValueError, KeyError) as error:
                return JSONResponse({"error": str(error)}, 400)

        return Route(path, endpoint, methods=[method])

    async def begin(episode: Episode, request: Request) -> dict[str, Any]:
        state = await episode.ask(lambda: episode.room.request("traceroom/state"))
        return {"messages": episode.beginning["messages"], "limits": episode.beginning["limits"], **state}

    async def say(episode: Episode, request: Request) -> dict[str, Any]:
        text = (await request.json())["text"]
        spoken: dict[str, Any] = await episode.ask(lambda: episode.room.request("traceroom/say", {"text": text}))
        return spoken

    async def finish(episode: Episode, request: Request) -> dict[str, Any]:
        return {"ended": await episode.ask(episode.room.finish)}

    return [
        route("/episode", "GET", begin), route("/episode/say", "POST", say), route("/episode/finish", "POST", finish),
    ]


class _Sessions:
    """Refuses revisions of MCP that have no sessions, and ends an episode with its session."""

    def __init__(self, app: ASGIApp, episodes: Episodes) -> None:
        self._app = app
        self._episodes = episodes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/mcp":
            await self._app(scope, receive, send)
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        version = headers.get("mcp-protocol-version")
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version}
            error = {"code": types.UNSUPPORTED_PROTOCOL_VERSION, "message": "episodes need sessions", "data": data}
            asked = await Request(scope, receive).body()
            reply = {"jsonrpc": "2.0", "id": _identity(asked), "error": error}
            await JSONResponse(reply, 400)(scope, receive, send)
            return

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                begun = dict(message.get("headers", ())).get(_SESSION.encode())
                if begun and _SESSION not in headers:
                    self._episodes.admit(begun.decode("latin-1"))
                if scope["method"] == "DELETE":  # the journal is kept before the end is confirmed
                    await self._episodes.end(headers.get(_SESSION, ""))
            await send(message)

        await self._app(scope, receive, watched)


def _identity(body: bytes) -> Any:
    try:
        message = json.loads(body)
    except ValueError:
        return None
    return message.get("id") if isinstance(message, dict) else None
