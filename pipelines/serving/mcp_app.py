"""An environment's tools for an agent elsewhere: MCP over streamable HTTP, with the official SDK, outside the room.

One MCP session is one episode. A room holds many of them (`env_builder.channel`: a local process, or a container), and of
what that room speaks only `tools/list` and `tools/call` are passed on. Beside `/mcp` there is, for the same session
(header `Mcp-Session-Id`), what an agent does that is not a tool:

    GET  /episode            {"messages", "limits", "ended"}: the messages that the episode begins with
    POST /episode/say        {"text"} -> {"reply", "ended", "user_left"}: speak to the user
    POST /episode/finish     -> {"ended"}

and for whoever runs the server `GET /health`. An episode's journal is not handed out: it goes to the `journals` file, for
the grader. The revision of MCP without sessions (2026-07-28) cannot carry episodes over HTTP: the server names the older
ones, and clients go on with those.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import orjson
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from env_builder.runtime.files import rows_of
from pipelines.serving.episodes import Episode, Episodes
from pipelines.serving.gate import SESSION_ID, Gate, leave
from pipelines.serving.listening import BACKLOG, allow_open_files, listen
from pipelines.serving.rollouts import Rollout
from pipelines.serving.rooms import BOUND_ROOMS, Rooms, beginner
from warehouse.errors import InputError, TraceroomError

IDLE_S = 1800.0
"""Seconds after which an episode that nobody touches is ended."""
LIMIT = 2048
"""Episodes at once."""
STOP_S = 5
"""Seconds that calls which are under way have to end once the server is told to stop."""


def application(
    environment: Path, rollout: Rollout, *, container: bool = False, journals: Path | None = None,
    host: str = "127.0.0.1", limit: int = LIMIT, idle_s: float = IDLE_S,
) -> Starlette:
    """The web application; `environment` is OUT/environments/<name>. Raises TraceroomError where no room can begin."""
    begin = beginner(environment, container, rollout.bindings)
    first = begin()
    try:  # a task or a condition that is not there is refused now, not at the first agent
        first.reset(rollout.task_id, rollout.seed, rollout.conditions)
    except TraceroomError:
        first.close()
        raise
    task_ids = [task["task_id"] for task in rows_of(environment / "tasks.jsonl")]
    rooms = Rooms(begin, str(environment), BOUND_ROOMS if rollout.bindings else 1, first)
    episodes = Episodes(rooms, environment.name, journals, limit, idle_s)

    @contextlib.asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        sweeping = asyncio.create_task(episodes.sweep(lambda session_id: leave(app, session_id)))
        try:
            yield {}
        finally:
            sweeping.cancel()
            await _whole(_ended(episodes, rooms))

    server: Server[Any] = Server(environment.name, version="1", lifespan=lifespan, **_handlers(episodes))
    app = server.streamable_http_app(
        host=host, json_response=True, session_idle_timeout=None, max_sessions=None,
        custom_starlette_routes=[*_episode_routes(episodes), Route("/health", _health(episodes))])
    app.add_middleware(Gate, episodes=episodes, rollout=rollout, task_ids=task_ids)
    return app


def serve(
    environment: Path, rollout: Rollout, host: str = "127.0.0.1", port: int = 8765, *,
    container: bool = False, journals: Path | None = None, limit: int = LIMIT, idle_s: float = IDLE_S,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted or terminated; `ready` is told the URL of the MCP endpoint. InputError: the port is taken."""
    with listen(host, port) as listening:
        allow_open_files()
        app = application(
            environment, rollout, container=container, journals=journals, host=host, limit=limit, idle_s=idle_s)
        gc.freeze()  # what was loaded is never garbage, and what thousands of sessions hold seldom is
        gc.set_threshold(50_000, 20, 50)
        ready(f"http://{host}:{listening.getsockname()[1]}/mcp")
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, backlog=BACKLOG, timeout_graceful_shutdown=STOP_S)
        uvicorn.Server(config).run(sockets=[listening])


async def _ended(episodes: Episodes, rooms: Rooms) -> None:
    await episodes.end_all()
    await rooms.close()


async def _whole(work: Awaitable[None]) -> None:
    """Let work come to its end, whoever is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()


def _handlers(episodes: Episodes) -> dict[str, Any]:
    """What answers `tools/list` and `tools/call`."""
    async def list_tools(context: ServerRequestContext, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        try:
            return await (await _episode(episodes, context)).request("tools/list")
        except TraceroomError as error:
            raise _refusal(error) from error

    async def call_tool(context: ServerRequestContext, params: types.CallToolRequestParams) -> dict[str, Any]:
        try:
            return structured(await (await _episode(episodes, context)).call(params.name, params.arguments or {}))
        except TraceroomError as error:
            raise _refusal(error) from error

    return {"on_list_tools": list_tools, "on_call_tool": call_tool}


def structured(result: dict[str, Any]) -> dict[str, Any]:
    """A room's result, structured too where its text is a JSON object."""
    text: str = result["content"][0]["text"]
    if text[:1] == "{":
        with contextlib.suppress(orjson.JSONDecodeError):
            result["structuredContent"] = orjson.loads(text)
    return result


async def _episode(episodes: Episodes, context: ServerRequestContext) -> Episode:
    session_id = None if context.request is None else context.request.scope.get(SESSION_ID)
    if session_id is None:
        raise MCPError(code=types.INVALID_REQUEST, message="an episode needs a session: begin with initialize")
    return await episodes.of(session_id)


def _refusal(error: TraceroomError) -> MCPError:
    """What the room refuses, as MCP has it."""
    if isinstance(error, InputError):
        return MCPError(code=types.INVALID_PARAMS, message=error.what)
    return MCPError(code=types.INTERNAL_ERROR, message=str(error))


def _health(episodes: Episodes) -> Callable[[Request], Awaitable[Response]]:
    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "episodes": len(episodes), "limit": episodes.limit, "lost": episodes.n_lost})

    return health


def _episode_routes(episodes: Episodes) -> list[Route]:
    def route(path: str, method: str, answer: Callable[[Episode, Request], Awaitable[dict[str, Any]]]) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                episode = await episodes.of(request.scope.get(SESSION_ID) or "")
                return JSONResponse(await answer(episode, request))
            except (TraceroomError, ValueError, KeyError) as error:
                return JSONResponse({"error": str(error)}, 400)

        return Route(path, endpoint, methods=[method])

    async def begin(episode: Episode, request: Request) -> dict[str, Any]:
        ended = (await episode.request("traceroom/state"))["ended"]
        return {"messages": episode.beginning["messages"], "limits": episode.beginning["limits"], "ended": ended}

    async def say(episode: Episode, request: Request) -> dict[str, Any]:
        return await episode.request("traceroom/say", {"text": (await request.json())["text"]})

    async def finish(episode: Episode, request: Request) -> dict[str, Any]:
        return await episode.request("traceroom/finish")

    return [
        route("/episode", "GET", begin), route("/episode/say", "POST", say), route("/episode/finish", "POST", finish),
    ]
