"""What stands before a server of episodes: who is let in, who is told to come again, and when a session's episode ends.

A server answers one request after the other as fast as it can; what comes faster waits, but never more than `MAX_WAITING`
requests, nor `MAX_OF_ONE` of one session: whoever comes beyond that is told so at once (503, 429, with Retry-After), so that
those who wait are answered in bounded time. As many episodes as were asked for run at once; the next is told to come again.
Sees: headers and the URL. Does not see: who sends them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.serving.episodes import Episode, Episodes
from pipelines.serving.rollouts import Rollout
from warehouse.errors import TraceroomError

MAX_WAITING = 2048
"""Requests that may wait at once."""
MAX_OF_ONE = 16
"""Requests of one session that may wait at once."""
RETRY_S = 1
SESSION_ID = "traceroom.session_id"
"""Where a request's scope has its session, for who answers it."""
SESSION, VERSION = b"mcp-session-id", b"mcp-protocol-version"


class Gate:
    """ASGI middleware around `/mcp` and `/episode`."""

    def __init__(self, app: ASGIApp, episodes: Episodes, rollout: Rollout, task_ids: Sequence[str]) -> None:
        self._app = app
        self._episodes = episodes
        self._rollout = rollout
        self._task_ids = task_ids
        self._n_waiting = 0
        self._n_opening = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(("/mcp", "/episode")):
            await self._app(scope, receive, send)
            return
        session_id = version = None
        for name, value in scope["headers"]:
            if name == SESSION:
                scope[SESSION_ID] = session_id = value.decode("latin-1")
            elif name == VERSION:
                version = value.decode("latin-1")
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await _refuse_version(version, scope, receive, send)
        elif scope["method"] == "POST" and session_id is not None:
            await self._pass(self._episodes.known(session_id), scope, receive, send)
        elif scope["method"] == "POST" and scope["path"] == "/mcp":
            await self._open(scope, receive, send)
        elif scope["method"] == "DELETE":
            await self._app(scope, receive, self._closing(session_id or "", send))
        else:
            await self._app(scope, receive, send)

    async def _pass(self, episode: Episode | None, scope: Scope, receive: Receive, send: Send) -> None:
        """A request of a session that is open."""
        if self._n_waiting >= MAX_WAITING:
            await _later(503, f"{MAX_WAITING} requests wait already", scope, receive, send)
            return
        if episode is not None and episode.n_waiting >= MAX_OF_ONE:
            await _later(429, f"{MAX_OF_ONE} requests of this session wait already", scope, receive, send)
            return
        self._n_waiting += 1
        if episode is not None:
            episode.n_waiting += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._n_waiting -= 1
            if episode is not None:
                episode.n_waiting -= 1

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request that opens a session, if it is `initialize`."""
        full = len(self._episodes) + self._n_opening >= self._episodes.limit
        if full or self._n_waiting >= MAX_WAITING:
            why = f"{self._episodes.limit} episodes run already" if full else f"{MAX_WAITING} requests wait already"
            await _later(503, why, scope, receive, send)
            return
        try:
            rollout = self._rollout.asked(scope["query_string"].decode("latin-1"), self._task_ids)
        except TraceroomError as error:
            await JSONResponse(_error(types.INVALID_PARAMS, str(error)), 400)(scope, receive, send)
            return

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                begun = dict(message.get("headers", ())).get(SESSION)
                if begun:
                    self._episodes.admit(begun.decode("latin-1"), rollout)
            await send(message)

        self._n_opening += 1
        self._n_waiting += 1
        try:
            await self._app(scope, receive, watched)
        finally:
            self._n_opening -= 1
            self._n_waiting -= 1

    def _closing(self, session_id: str, send: Send) -> Send:
        """The journal is kept before the end of a session is confirmed."""
        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                await self._episodes.end(session_id)
            await send(message)

        return watched


async def leave(app: ASGIApp, session_id: str) -> None:
    """End a session from this side, as its client would."""
    headers = [(b"host", b"127.0.0.1:0"), (SESSION, session_id.encode("latin-1")), (b"accept", b"*/*")]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "DELETE", "scheme": "http",
             "path": "/mcp", "raw_path": b"/mcp", "query_string": b"", "root_path": "", "headers": headers,
             "client": None, "server": None}

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        """Nobody waits for it."""

    await app(scope, receive, send)


def _error(code: int, message: str, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": None, "error": error}


async def _later(status: int, why: str, scope: Scope, receive: Receive, send: Send) -> None:
    answer = JSONResponse(_error(types.INTERNAL_ERROR, f"{why}: come again later"), status, {"Retry-After": str(RETRY_S)})
    await answer(scope, receive, send)


async def _refuse_version(version: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Name the revisions of MCP that have sessions."""
    data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version}
    try:
        asked = json.loads(await Request(scope, receive).body())
    except ValueError:
        asked = None
    reply = _error(types.UNSUPPORTED_PROTOCOL_VERSION, "episodes need sessions", data)
    await JSONResponse({**reply, "id": asked.get("id") if isinstance(asked, dict) else None}, 400)(scope, receive, send)
