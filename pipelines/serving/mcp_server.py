"""An environment's tools for an agent elsewhere: MCP over streamable HTTP, outside the environment process.

One MCP session is one episode. A process plays many of them (`env_builder.channel`: a local process or a container). This
server has only the HTTP side: sessions, limits, headers. It answers `initialize`, with the task as `instructions`, and `ping`;
`tools/*`, `prompts/*` and `resources/*` go to the process, whose reply (`env_builder/runtime/mcp.py`) is the client's. With
MCP alone an agent gets the task, speaks and ends by tools (`env_builder/runtime/briefing.py`). The same session (header
`Mcp-Session-Id`) also has paths:

    GET  /episode            {"messages", "limits", "ended"}: the messages that the episode begins with
    POST /episode/say        {"text"} -> {"reply", "ended", "user_left"}: speak to the user
    POST /episode/finish     -> {"ended"}

    GET  /episode/files      {"folders", "files": [{"path", "size", "sha256"}]}: files of apps, such as a drive's workbooks
    POST /episode/file       {"path"} -> {"content"} in base64
    POST /episode/save       {"path", "content"}: an act of the agent, answered as a tool's call

and for the server's operator `GET /health`. Where the manifest names them, apps have endpoints of their own (`/mcp/NAME`,
endpoints.py). Sessions that were opened with one `?episode=NAME` play one episode, until the last of them ends.
An episode's journal is never handed out: it goes to the `journals` file, for the grader. The revision of MCP without sessions
(2026-07-28) cannot carry episodes over HTTP: the server names the older ones, and clients continue with those. The server opens
no event stream (`GET /mcp` is 405): it has nothing to send unasked.

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
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from env_builder.layers import read_manifest
from env_builder.runtime import mcp
from env_builder.runtime.files import rows_of
from pipelines.serving.access import ServerAccess, combined
from pipelines.serving.connections import BodyReader, BodyRefused, run_guarded
from pipelines.serving.endpoints import McpEndpoints
from pipelines.serving.fair_turns import FairTurns
from pipelines.serving.grader_endpoint import GraderEndpoint
from pipelines.serving.journal_file import JournalFile
from pipelines.serving.listening import BACKLOG, allow_open_files, listen
from pipelines.serving.pacing import Pacing
from pipelines.serving.sessions import (
    BOUND_PROCESSES,
    AgentSession,
    AgentSessions,
    Rollout,
    ServingProcesses,
    SessionLimits,
    episode_name,
    process_starter,
)
from warehouse.errors import InputError, TraceroomError, Unavailable

IDLE_S = 1800.0
"""Seconds after which an episode without a request is ended."""
LIMIT = 2048
"""Episodes at once."""
LIMITS = SessionLimits(LIMIT, IDLE_S)
STOP_S = 5
"""Seconds that calls have to end after the server is asked to stop."""
MAX_WAITING = 2048
"""Requests that may wait at once."""
MAX_OF_ONE = 16
"""Requests of one session that may wait at once."""
FORWARDED = frozenset({"tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read",
                       "resources/templates/list"})
"""Methods that the environment process answers."""
EPISODE_METHODS = {"/episode": "traceroom/state", "/episode/say": "traceroom/say", "/episode/finish": "traceroom/finish",
                   "/episode/files": "traceroom/files", "/episode/file": "traceroom/file", "/episode/save": "traceroom/save"}
"""Paths of an agent's other actions, and the methods that the environment process answers."""
LOOPBACK_ACCESS = ServerAccess()
RETRY = (("Retry-After", "1"),)
Reply = dict[str, Any]
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


def _session_id(headers: dict[bytes, bytes]) -> str:
    return headers.get(SESSION, b"").decode("latin-1")


def _error(status: int, code: int, message: str) -> HttpReply:
    return HttpReply(status, mcp.error_reply(None, code, message, None))


def _busy(status: int, reason: str) -> HttpReply:
    return _error(status, mcp.INTERNAL_ERROR, f"{reason}: retry later")._replace(headers=RETRY)


NO_SESSION = _error(404, mcp.INVALID_REQUEST, "no such session, or it has expired; begin one with initialize")


class McpApplication:
    """The ASGI application."""

    def __init__(
        self, sessions: AgentSessions, rollout: Rollout, task_ids: Sequence[str], name: str,
        access: ServerAccess = LOOPBACK_ACCESS, grader: GraderEndpoint | None = None, endpoints: McpEndpoints | None = None,
    ) -> None:
        self.sessions = sessions
        self.endpoints = endpoints or McpEndpoints()
        self._grader = grader
        self._rollout = rollout
        self._task_ids = task_ids
        self._name = name
        self._access = access
        self._bodies = BodyReader()
        self._pacing = Pacing()
        self._turns = FairTurns(MAX_WAITING)
        self._routes = Starlette(lifespan=self._lifespan, routes=[Route("/health", self._health)])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] == "/health":
            await self._routes(scope, receive, send)
            return
        headers = combined(scope["headers"])
        client = self._access.client(headers, scope.get("client"))
        session = self._session(headers, client)
        reply = self._rejection(scope, headers, session, client)
        if reply is None:
            body = await self._bodies.read(receive) if scope["method"] == "POST" else b""
            if isinstance(body, BodyRefused):
                reply = _error(body.status, mcp.INVALID_REQUEST, body.reason)
                reply = reply._replace(headers={503: RETRY, 413: (("Connection", "close"),)}.get(body.status, ()))
            elif scope["path"] in EPISODE_METHODS:
                reply = await self._episode(scope, headers, client, body)
            elif scope["path"] not in self.endpoints or scope["method"] != "POST" or session is None:
                reply = await self._answer_other(scope, headers, session, body)
            else:
                reply = await self._answer(scope["path"], headers, client, body)
        await reply(scope, receive, send)

    async def _answer(self, path: str, headers: dict[bytes, bytes], client: str, body: bytes) -> HttpReply:
        """Answer a request of an open session to an endpoint; the way of a tool call is all in here."""
        began, message = time.perf_counter(), mcp.parse_line(body)
        refusal = _refusal(message, headers)
        if refusal is not None or "id" not in message or "method" not in message:
            return refusal or HttpReply(202, None)
        method, params = message["method"], message.get("params") or {}
        session = self._session(headers, client)  # it may have ended while the body came
        if session is None:
            return NO_SESSION
        here = self.endpoints.refusal(path, method, params)
        if here is not None:
            reply = here
        elif method not in FORWARDED:
            session.touched_at = time.monotonic()
            reply = self._answer_here(method, params)
        elif (busy := self._busy(session, client)) is not None:
            return busy
        else:
            reply = self.endpoints.shown(path, method, await self._at_the_process(
                session, client, self._forward, method, params))
            await self._pacing.pause(began)
        reply["id"] = message["id"]
        return HttpReply(200, reply)

    async def _at_the_process(
        self, session: AgentSession, client: str, work: Callable[..., Awaitable[Reply]], *arguments: Any,
    ) -> Reply:
        """Return what `work` of a session gives, when it is the client's turn; an error reply if it fails."""
        session.touched_at = time.monotonic()
        session.is_played = True
        session.n_waiting += 1
        waits_for_model = session.rollout.ask is not None
        try:
            if not waits_for_model:
                await self._turns.take(client)
            try:
                return await work(session, *arguments)
            finally:
                if not waits_for_model:
                    self._turns.give(client)
        except InputError as error:
            return mcp.error_reply(None, mcp.INVALID_PARAMS, error.what)
        except TraceroomError as error:
            return mcp.error_reply(None, mcp.INTERNAL_ERROR, str(error))
        finally:
            session.n_waiting -= 1

    async def _forward(self, session: AgentSession, method: str, params: dict[str, Any]) -> Reply:
        channel = session.channel or await session.begin(self.sessions.processes)
        if session.rollout.ask is None or method != "tools/call":
            reply = await channel.send(method, params, session.session_id)
        else:
            reply = await session.call_with_model(channel, session.rollout.ask, params)
        if method == "tools/call" and "result" in reply:
            mcp.add_structure(reply["result"])
            reply["result"]["_meta"].pop("traceroom/tier", None)
        return reply

    def _session(self, headers: dict[bytes, bytes], client: str) -> AgentSession | None:
        """Return the client's session that the headers name, None if there is none."""
        session = self.sessions.get(_session_id(headers))
        return session if session is None or not len(self._access.tokens) or session.client == client else None

    def _busy(self, session: AgentSession, client: str) -> HttpReply | None:
        if not self._turns.admits(client):
            return _busy(503, f"{MAX_WAITING} requests wait already")
        return _busy(429, f"{MAX_OF_ONE} requests of this session wait already") if session.n_waiting >= MAX_OF_ONE else None

    def _rejection(
        self, scope: Scope, headers: dict[bytes, bytes], session: AgentSession | None, client: str,
    ) -> HttpReply | None:
        """Return the reply to a request whose headers already rule it out."""
        denial = self._access.denial(headers, needs_token=scope["path"] != "/grade" or self._grader is None)
        if denial is not None:
            reply = _error(denial.status, mcp.INVALID_REQUEST, denial.reason)
            return reply._replace(headers=(("WWW-Authenticate", "Bearer"),)) if denial.status == 401 else reply
        if scope["method"] != "POST" or scope["path"] not in self.endpoints:
            return None
        if not headers.get(b"content-type", b"").lower().startswith(b"application/json"):
            return _error(415, mcp.INVALID_REQUEST, "the Content-Type is not application/json")
        if not any(kind in headers.get(b"accept", b"*/*") for kind in (b"application/json", b"application/*", b"*/*")):
            return _error(406, mcp.INVALID_REQUEST, "the client must accept application/json")
        if session is None and SESSION in headers:
            return NO_SESSION
        return None if session is None else self._busy(session, client)

    async def _answer_other(
        self, scope: Scope, headers: dict[bytes, bytes], session: AgentSession | None, body: bytes,
    ) -> HttpReply:
        """Answer what is no request of an open session to `/mcp`."""
        if scope["path"] == "/grade" and self._grader is not None:
            return await self._grade(scope, headers, self._grader, body)
        if scope["path"] not in self.endpoints:
            return _error(404, mcp.INVALID_REQUEST, "there is nothing at this address; agents use /mcp")
        if scope["method"] == "POST":
            message = mcp.parse_line(body)
            return _refusal(message, headers) or await self._open(scope, headers, message)
        if scope["method"] != "DELETE":
            return HttpReply(405, None, (("Allow", "POST, DELETE"),))
        if session is None:
            return _error(404, mcp.INVALID_REQUEST, "no such session")
        await self.sessions.end(_session_id(headers))  # the journal is stored before the end is confirmed
        journals = self.sessions.journals
        if journals.n_waiting:
            return _error(507, mcp.INTERNAL_ERROR, f"the journal is not stored yet ({journals.problem}); the server keeps it")
        return HttpReply(200, None)

    async def _grade(self, scope: Scope, headers: dict[bytes, bytes], grader: GraderEndpoint, body: bytes) -> HttpReply:
        """Answer a grader."""
        if not grader.admits(headers.get(b"authorization", b"").decode("latin-1")):
            refused = _error(401, mcp.INVALID_REQUEST, "a grader needs the token")
            return refused._replace(headers=(("WWW-Authenticate", "Bearer"),))
        if scope["method"] != "POST":
            return HttpReply(405, None, (("Allow", "POST"),))
        message = mcp.parse_line(body)
        refusal = _refusal(message, headers)
        if refusal is not None or "id" not in message or "method" not in message:
            return refusal or HttpReply(202, None)
        return HttpReply(200, await grader.reply(message))

    async def _open(self, scope: Scope, headers: dict[bytes, bytes], message: dict[str, Any]) -> HttpReply:
        """Open a session, if the message is `initialize`; with a task, its episode begins."""
        if message.get("method") != "initialize" or "id" not in message:
            return _error(400, mcp.INVALID_REQUEST, "an episode needs a session: begin with initialize")
        query = scope["query_string"].decode("latin-1")
        try:
            rollout, name = self._rollout.for_query(query, self._task_ids), episode_name(query)
        except (TraceroomError, ValueError) as error:
            return _error(400, mcp.INVALID_PARAMS, str(error))
        reply = self._answer_here("initialize", message.get("params") or {})
        reply["id"] = message["id"]
        if "error" in reply:
            return HttpReply(400, reply)
        client, session_id = self._access.client(headers, scope.get("client")), uuid.uuid4().hex
        session = self.sessions.join(session_id, name, client)
        if session is not None and session.rollout != rollout:
            await self.sessions.end(session_id)
            return _error(400, mcp.INVALID_PARAMS, "this episode was begun with other choices")
        rejection = None if session is not None else self.sessions.rejection(client)
        if rejection is not None:
            return _busy(503, rejection)
        session = session or self.sessions.add(session_id, rollout, client, name)
        if rollout.task_id is not None:
            try:
                await session.begin(self.sessions.processes)
            except TraceroomError as error:
                await self.sessions.end(session_id)
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
        sweeping = asyncio.create_task(self.sessions.sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            closing = asyncio.ensure_future(self.sessions.close())
            while not closing.done():  # also if this task is cancelled meanwhile
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(closing)
            closing.result()

    async def _health(self, _: Request) -> Response:
        sessions = self.sessions
        problem = sessions.journals.problem
        return JSONResponse({
            "status": "ok" if problem is None else f"journals cannot be stored ({problem})", "episodes": len(sessions),
            "limit": sessions.limits.most, "lost": sessions.n_lost, "unstored": sessions.journals.n_waiting,
            **({"endpoints": self.endpoints.paths} if len(self.endpoints.paths) > 1 else {})})

    async def _episode(self, scope: Scope, headers: dict[bytes, bytes], client: str, body: bytes) -> HttpReply:
        """Answer what an agent does besides tool calls."""
        path = scope["path"]
        allowed = "GET" if path in ("/episode", "/episode/files") else "POST"
        if scope["method"] not in (allowed, "HEAD" if allowed == "GET" else allowed):
            return HttpReply(405, None, (("Allow", allowed),))
        session = self._session(headers, client)
        if session is None:
            return HttpReply(400, {"error": "no such session, or it has expired; begin one with initialize"})
        busy = self._busy(session, client)
        if busy is not None:
            return busy
        params = None
        if EPISODE_METHODS[path] == "traceroom/say":
            message = mcp.parse_line(body)
            if not isinstance(message, dict) or not isinstance(message.get("text"), str):
                return HttpReply(400, {"error": 'say takes a JSON object with a text: {"text": "…"}'})
            params = {"text": message["text"]}
        elif path in ("/episode/file", "/episode/save"):
            message = mcp.parse_line(body)
            params = message if isinstance(message, dict) else {}
        reply = await self._at_the_process(session, client, self._act, EPISODE_METHODS[path], params)
        if "error" in reply:
            return HttpReply(400, {"error": reply["error"]["message"]})
        result = reply["result"]
        return HttpReply(200, {**session.beginning, "ended": result["ended"]} if path == "/episode" else result)

    async def _act(self, session: AgentSession, method: str, params: dict[str, Any] | None) -> Reply:
        channel = await session.begin(self.sessions.processes)
        return await channel.send(method, params, session.session_id)


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
    access: ServerAccess = LOOPBACK_ACCESS, limits: SessionLimits = LIMITS, grader_token: str | None = None,
) -> McpApplication:
    """Return the web application; `environment` is OUT/environments/<name>. With `grader_token`, a client that has it grades at
    `/grade`. TraceroomError if no process can start, InputError where there are no rewards to grade with."""
    if grader_token is not None and (rollout.bindings or rollout.ask is not None):
        raise InputError("episodes with real tools or a model cannot be graded while they are served", "--grade",
                         "write their journals with --journals, and grade these with: traceroom grade")
    start = process_starter(environment, container, rollout.bindings)
    processes = ServingProcesses(start, str(environment), BOUND_PROCESSES if rollout.bindings else 1, rollout)
    task_ids = [task["task_id"] for task in rows_of(environment / "tasks.jsonl")]
    manifest = read_manifest(environment)
    about = {"environment": environment.name, "content_digest": str(manifest["content_digest"])}
    sessions = AgentSessions(processes, about, JournalFile(journals), limits)
    sessions.is_graded = grader_token is not None
    grader = None if grader_token is None else GraderEndpoint(environment, sessions, grader_token)
    return McpApplication(sessions, rollout, task_ids, environment.name, access, grader, McpEndpoints(manifest["apps"]))


def serve(
    environment: Path, rollout: Rollout, address: tuple[str, int], access: ServerAccess = LOOPBACK_ACCESS, *,
    container: bool = False, journals: Path | None = None, limits: SessionLimits = LIMITS,
    grader_token: str | None = None, ready: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted or terminated; calls `ready` with the URL of the MCP endpoint. InputError: the port is taken;
    Unavailable: journals could not be stored."""
    host, port = address
    with listen(host, port) as listening:
        allow_open_files()
        app = application(environment, rollout, container=container, journals=journals, access=access, limits=limits,
                          grader_token=grader_token)
        gc.freeze()  # what was loaded is never garbage, and what thousands of sessions hold seldom is
        gc.set_threshold(50_000, 20, 50)
        ready(f"http://{host}:{listening.getsockname()[1]}/mcp")
        run_guarded(app, listening, backlog=BACKLOG, timeout_graceful_shutdown=STOP_S)
        unstored = app.sessions.journals
        if unstored.n_waiting:
            raise Unavailable(f"{unstored.n_waiting} episodes could not be stored ({unstored.problem})", str(journals),
                              "make room, and serve again: these episodes are lost")
