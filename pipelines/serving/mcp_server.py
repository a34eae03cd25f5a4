"""An environment's tools for an agent elsewhere: MCP over streamable HTTP, outside the environment process.

One MCP session is one episode. A process plays many of them (`env_builder.channel`: a local process or a container). This
server has only the HTTP side: sessions, limits, headers. It answers `initialize`, with the task as `instructions`, and `ping`;
`tools/*`, `prompts/*` and `resources/*` go to the process, whose reply (`env_builder/runtime/mcp.py`) is the client's. With
MCP alone an agent gets the task, speaks and ends by tools (`env_builder/runtime/briefing.py`). The same session (header
`Mcp-Session-Id`) also has paths:

    GET  /episode            {"messages", "limits", "ended"}: the messages that the episode begins with
    POST /episode/say        {"text"} -> {"reply", "ended", "user_left"}: speak to the user
    POST /episode/finish     -> {"ended"}

and for the server's operator `GET /health`. An episode's journal is never handed out: it goes to the `journals` file, for the
grader. The revision of MCP without sessions (2026-07-28) cannot carry episodes over HTTP: the server names the older ones, and
clients continue with those. The server opens no event stream (`GET /mcp` is 405): it has nothing to send unasked.

A request waits until the process has answered. At most `MAX_WAITING` requests wait, and `MAX_OF_ONE` of one session; more get
503 or 429 with Retry-After at once, so that the others are answered in bounded time. A full server rejects new sessions too. A
server on this machine's own address accepts only that address as Host and Origin, so that no web page elsewhere can call it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from env_builder.runtime import mcp
from env_builder.runtime.files import rows_of
from pipelines.serving.grader_endpoint import GraderEndpoint
from pipelines.serving.listening import BACKLOG, allow_open_files, listen
from pipelines.serving.pacing import Pacing
from pipelines.serving.sessions import BOUND_PROCESSES, AgentSession, AgentSessions, Rollout, ServingProcesses, process_starter
from warehouse.errors import InputError, TraceroomError

IDLE_S = 1800.0
"""Seconds after which an episode without a request is ended."""
LIMIT = 2048
"""Episodes at once."""
STOP_S = 5
"""Seconds that calls have to end after the server is asked to stop."""
MAX_WAITING = 2048
"""Requests that may wait at once."""
MAX_OF_ONE = 16
"""Requests of one session that may wait at once."""
MAX_BODY = 4 * 1024 * 1024
"""Bytes of the longest request."""
FORWARDED = frozenset({"tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read",
                       "resources/templates/list"})
"""Methods that the environment process answers."""
EPISODE_METHODS = {"/episode": "traceroom/state", "/episode/say": "traceroom/say", "/episode/finish": "traceroom/finish"}
"""Paths of an agent's other actions, and the methods that the environment process answers."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SESSION, VERSION = b"mcp-session-id", b"mcp-protocol-version"


class HttpReply(NamedTuple):
    """A status, a JSON body (None: empty), and headers besides its type."""

    status: int
    body: dict[str, Any] | None
    headers: tuple[tuple[str, str], ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        data = b"" if self.body is None else mcp.encode(self.body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data)),
                   *((name.lower().encode(), value.encode("latin-1")) for name, value in self.headers)]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": data})


def _error(status: int, code: int, message: str) -> HttpReply:
    return HttpReply(status, mcp.error_reply(None, code, message, None))


def _busy(status: int, what: str, verb: str = "wait") -> HttpReply:
    return _error(status, mcp.INTERNAL_ERROR, f"{what} {verb} already: retry later")._replace(headers=(("Retry-After", "1"),))


class McpApplication:
    """The ASGI application."""

    def __init__(
        self, sessions: AgentSessions, rollout: Rollout, task_ids: Sequence[str], name: str, host: str,
        grader: GraderEndpoint | None = None,
    ) -> None:
        self._sessions = sessions
        self._grader = grader
        self._rollout = rollout
        self._task_ids = task_ids
        self._name = name
        self._hosts = LOOPBACK if host in (*LOOPBACK, "::1") else ()
        self._n_waiting = 0
        self._pacing = Pacing()
        self._routes = Starlette(lifespan=self._lifespan, routes=[
            Route("/health", self._health),
            *(Route(path, self._episode, methods=["GET" if path == "/episode" else "POST"]) for path in EPISODE_METHODS)])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the path of a tool call is all in here, the rest in methods."""
        if scope["type"] != "http" or scope["path"] == "/health":
            await self._routes(scope, receive, send)
            return
        headers = dict(scope["headers"])
        session = self._sessions.get(headers.get(SESSION, b"").decode("latin-1"))
        rejection = self._rejection(scope, headers, session)
        if rejection is not None:
            await rejection(scope, receive, send)
            return
        if session is None or scope["path"] != "/mcp" or scope["method"] != "POST":
            await self._answer_other(scope, receive, send, session)
            return
        session.touched_at = time.monotonic()
        session.n_waiting += 1
        self._n_waiting += 1
        try:
            message = await _message(receive)
            began = time.perf_counter()
            refusal = _refusal(message, headers)
            if refusal is not None or "id" not in message or "method" not in message:
                await (refusal or HttpReply(202, None))(scope, receive, send)
                return
            method, params = message["method"], message.get("params") or {}
            if method not in FORWARDED:
                reply = self._answer_here(method, params)
            else:
                session.is_played = True
                channel = session.channel or await session.begin(self._sessions.processes)
                if session.rollout.ask is None or method != "tools/call":
                    reply = await channel.send(method, params, session.session_id)
                else:
                    reply = await session.call_with_model(channel, session.rollout.ask, params)
                if method == "tools/call" and "result" in reply:
                    mcp.add_structure(reply["result"])
                    reply["result"]["_meta"].pop("traceroom/tier", None)
                await self._pacing.pause(began)
        except InputError as error:
            reply = mcp.error_reply(None, mcp.INVALID_PARAMS, error.what)
        except TraceroomError as error:
            reply = mcp.error_reply(None, mcp.INTERNAL_ERROR, str(error))
        finally:
            session.n_waiting -= 1
            self._n_waiting -= 1
        reply["id"] = message["id"]
        await HttpReply(200, reply)(scope, receive, send)

    def _rejection(self, scope: Scope, headers: dict[bytes, bytes], session: AgentSession | None) -> HttpReply | None:
        """Return the reply to a request whose headers already rule it out."""
        if self._hosts:
            host, origin = headers.get(b"host", b"").decode("latin-1"), headers.get(b"origin", b"").decode("latin-1")
            if host.rpartition(":")[0] not in self._hosts and host not in self._hosts:
                return _error(421, mcp.INVALID_REQUEST, "invalid Host header")
            if origin and origin.removeprefix("http://").rpartition(":")[0] not in self._hosts:
                return _error(403, mcp.INVALID_REQUEST, "invalid Origin header")
        if scope["method"] != "POST":
            return None
        if scope["path"] == "/mcp":
            if not headers.get(b"content-type", b"").lower().startswith(b"application/json"):
                return _error(415, mcp.INVALID_REQUEST, "the Content-Type is not application/json")
            if not any(kind in headers.get(b"accept", b"*/*") for kind in (b"application/json", b"application/*", b"*/*")):
                return _error(406, mcp.INVALID_REQUEST, "the client must accept application/json")
            if session is None and SESSION in headers:
                return _error(404, mcp.INVALID_REQUEST, "no such session, or it has expired; begin one with initialize")
            if int(headers.get(b"content-length", b"0")) > MAX_BODY:
                return _error(413, mcp.INVALID_REQUEST, f"the request is longer than {MAX_BODY} bytes")
        if self._n_waiting >= MAX_WAITING:
            return _busy(503, f"{MAX_WAITING} requests")
        if session is not None and session.n_waiting >= MAX_OF_ONE:
            return _busy(429, f"{MAX_OF_ONE} requests of this session")
        return None

    async def _answer_other(self, scope: Scope, receive: Receive, send: Send, session: AgentSession | None) -> None:
        """Answer what is no request of an open session to `/mcp`."""
        if scope["path"] == "/grade" and self._grader is not None:
            await (await self._grade(scope, self._grader, receive))(scope, receive, send)
        elif scope["path"] != "/mcp":
            scope["traceroom.session"] = session
            await self._routes(scope, receive, send)
        elif scope["method"] == "POST":
            message = await _message(receive)
            await (_refusal(message, dict(scope["headers"])) or await self._open(scope, message))(scope, receive, send)
        elif scope["method"] != "DELETE":
            await HttpReply(405, None, (("Allow", "POST, DELETE"),))(scope, receive, send)
        elif session is None:
            await _error(404, mcp.INVALID_REQUEST, "no such session")(scope, receive, send)
        else:
            await self._sessions.end(session.session_id)  # the journal is stored before the end is confirmed
            await HttpReply(200, None)(scope, receive, send)

    async def _grade(self, scope: Scope, grader: GraderEndpoint, receive: Receive) -> HttpReply:
        """Answer a grader."""
        headers = dict(scope["headers"])
        if not grader.admits(headers.get(b"authorization", b"").decode("latin-1")):
            refused = _error(401, mcp.INVALID_REQUEST, "a grader needs the token")
            return refused._replace(headers=(("WWW-Authenticate", "Bearer"),))
        if scope["method"] != "POST":
            return HttpReply(405, None, (("Allow", "POST"),))
        message = await _message(receive)
        refusal = _refusal(message, headers)
        if refusal is not None or "id" not in message or "method" not in message:
            return refusal or HttpReply(202, None)
        return HttpReply(200, await grader.reply(message))

    async def _open(self, scope: Scope, message: dict[str, Any]) -> HttpReply:
        """Open a session, if the message is `initialize`; with a task, its episode begins."""
        if message.get("method") != "initialize" or "id" not in message:
            return _error(400, mcp.INVALID_REQUEST, "an episode needs a session: begin with initialize")
        if len(self._sessions) >= self._sessions.limit:
            return _busy(503, f"{self._sessions.limit} episodes", "run")
        try:
            rollout = self._rollout.for_query(scope["query_string"].decode("latin-1"), self._task_ids)
        except TraceroomError as error:
            return _error(400, mcp.INVALID_PARAMS, str(error))
        reply = self._answer_here("initialize", message.get("params") or {})
        reply["id"] = message["id"]
        if "error" in reply:
            return HttpReply(400, reply)
        session_id = uuid.uuid4().hex
        session = self._sessions.add(session_id, rollout)
        if rollout.task_id is not None:
            try:
                await session.begin(self._sessions.processes)
            except TraceroomError as error:
                await self._sessions.end(session_id)
                return HttpReply(500, mcp.error_reply(message["id"], mcp.INTERNAL_ERROR, str(error)))
            reply["result"] |= {"instructions": session.instructions} if session.instructions else {}
        return HttpReply(200, reply, ((SESSION.decode(), session_id),))

    def _answer_here(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a request that needs no episode."""
        try:
            if method not in ("initialize", "ping"):
                raise mcp.RequestError(mcp.METHOD_NOT_FOUND, f"no method {method!r}")
            return {"jsonrpc": "2.0", "id": None, "result": mcp.handshake(params, self._name) if method == "initialize" else {}}
        except mcp.RequestError as error:
            return mcp.error_reply(None, error.code, str(error))

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(self._sessions.sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            closing = asyncio.ensure_future(self._sessions.close())
            while not closing.done():  # also if this task is cancelled meanwhile
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(closing)
            closing.result()

    async def _health(self, _: Request) -> Response:
        sessions = self._sessions
        return JSONResponse({"status": "ok", "episodes": len(sessions), "limit": sessions.limit, "lost": sessions.n_lost})

    async def _episode(self, request: Request) -> Response:
        """Answer what an agent does besides tool calls."""
        session: AgentSession | None = request.scope["traceroom.session"]
        if session is None:
            return JSONResponse({"error": "no such session, or it has expired; begin one with initialize"}, 400)
        session.touched_at = time.monotonic()
        session.is_played = True
        session.n_waiting += 1
        self._n_waiting += 1
        try:
            channel = await session.begin(self._sessions.processes)
            method = EPISODE_METHODS[request.scope["path"]]
            params = {"text": (await request.json())["text"]} if method == "traceroom/say" else None
            result = await channel.request(method, params, session.session_id)
            return JSONResponse({**session.beginning, "ended": result["ended"]} if method == "traceroom/state" else result)
        except (TraceroomError, ValueError, KeyError) as error:
            return JSONResponse({"error": str(error)}, 400)
        finally:
            session.n_waiting -= 1
            self._n_waiting -= 1


async def _message(receive: Receive) -> Any:
    """Return the request's JSON; a RequestError if it is none, or too long."""
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
        if len(body) > MAX_BODY:
            return mcp.RequestError(mcp.INVALID_REQUEST, f"the request is longer than {MAX_BODY} bytes")
    return mcp.parse_line(body)


def _refusal(message: Any, headers: dict[bytes, bytes]) -> HttpReply | None:
    """Return the reply to a message that is no JSON-RPC object of a revision with sessions, None if it is one."""
    version = headers.get(VERSION, b"").decode("latin-1")
    if version and version not in mcp.HANDSHAKE_VERSIONS:
        identity = message.get("id") if isinstance(message, dict) else None
        data = {"supported": list(mcp.HANDSHAKE_VERSIONS), "requested": version}
        return HttpReply(400, mcp.error_reply(identity, mcp.UNSUPPORTED_VERSION, "episodes need sessions", data))
    if isinstance(message, list):
        return _error(400, mcp.INVALID_REQUEST, "batches are not supported")
    refusal = mcp.invalid_request(message)
    if refusal is None and not isinstance(message.get("params") or {}, dict):
        refusal = mcp.error_reply(message.get("id"), mcp.INVALID_PARAMS, "params is not an object")
    return None if refusal is None else HttpReply(400, refusal)


def application(
    environment: Path, rollout: Rollout, *, container: bool = False, journals: Path | None = None,
    host: str = "127.0.0.1", limit: int = LIMIT, idle_s: float = IDLE_S, grader_token: str | None = None,
) -> McpApplication:
    """Return the web application; `environment` is OUT/environments/<name>. With `grader_token`, a client that has it grades at
    `/grade`. TraceroomError if no process can start, InputError where there are no rewards to grade with."""
    if grader_token is not None and (rollout.bindings or rollout.ask is not None):
        raise InputError("episodes with real tools or a model cannot be graded while they are served", "--grade",
                         "write their journals with --journals, and grade these with: traceroom grade")
    start = process_starter(environment, container, rollout.bindings)
    processes = ServingProcesses(start, str(environment), BOUND_PROCESSES if rollout.bindings else 1, rollout)
    task_ids = [task["task_id"] for task in rows_of(environment / "tasks.jsonl")]
    sessions = AgentSessions(processes, environment.name, journals, limit, idle_s)
    sessions.is_graded = grader_token is not None
    grader = None if grader_token is None else GraderEndpoint(environment, sessions, grader_token)
    return McpApplication(sessions, rollout, task_ids, environment.name, host, grader)


def serve(
    environment: Path, rollout: Rollout, host: str = "127.0.0.1", port: int = 8765, *,
    container: bool = False, journals: Path | None = None, limit: int = LIMIT, idle_s: float = IDLE_S,
    grader_token: str | None = None, ready: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted or terminated; calls `ready` with the URL of the MCP endpoint. InputError: the port is taken."""
    with listen(host, port) as listening:
        allow_open_files()
        app = application(environment, rollout, container=container, journals=journals, host=host, limit=limit, idle_s=idle_s,
                          grader_token=grader_token)
        gc.freeze()  # what was loaded is never garbage, and what thousands of sessions hold seldom is
        gc.set_threshold(50_000, 20, 50)
        ready(f"http://{host}:{listening.getsockname()[1]}/mcp")
        config = uvicorn.Config(app, log_level="warning", access_log=False, backlog=BACKLOG, timeout_graceful_shutdown=STOP_S)
        uvicorn.Server(config).run(sockets=[listening])
