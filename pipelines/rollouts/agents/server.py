"""Episodes that agents play, over HTTP on loopback: the model, the tools over MCP, and what adapters call.

Each episode has a secret path, which only its own agent is given:

    POST SECRET/v1/chat/completions   POST SECRET/v1/responses   POST SECRET/v1/messages   the model, whole or as a stream
    POST SECRET/v1/messages/count_tokens   GET SECRET/v1/models
    POST SECRET/mcp                   the tools over MCP (streamable HTTP)
    GET  SECRET/tools                 {"tools": descriptors}
    POST SECRET/tools/call            {"tool", "arguments", "call_id"} -> {"content", "is_error"}

A path that is no episode's, or of one that is over, gets 404. A request over `MAX_BODY` bytes gets 413.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from env_builder.runtime import mcp, pacing
from pipelines.rollouts.agents import chat_api, messages_api, tool_api
from pipelines.rollouts.agents.responses_api import ResponsesMemory, as_json
from pipelines.rollouts.agents.responses_api import error as responses_error
from pipelines.rollouts.agents.talks import AgentTalk, failed
from warehouse.errors import PolicyFailed, Refused

MAX_BODY = 64 * 1024 * 1024
"""Bytes of the longest request."""
ERRORS: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "v1/chat/completions": chat_api.error, "v1/responses": responses_error, "v1/messages": messages_api.error}
Row = dict[str, Any]


class SeatServer(ThreadingHTTPServer):
    """The server of a rollout's episodes."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.talks: dict[str, tuple[AgentTalk, ResponsesMemory]] = {}
        threading.Thread(target=self.serve_forever, name="agents", daemon=True).start()

    @contextlib.contextmanager
    def seated(self, talk: AgentTalk) -> Iterator[str]:
        """Serve an episode; yields the URL that only its agent is given."""
        secret = secrets.token_urlsafe(24)
        self.talks[secret] = (talk, ResponsesMemory())
        try:
            yield f"http://127.0.0.1:{self.server_port}/{secret}"
        finally:
            del self.talks[secret]

    def close(self) -> None:
        """Serve nothing more."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: SeatServer

    def do_GET(self) -> None:
        """Answer what changes nothing."""
        talk, _, path = self._place()
        if talk is None:
            self._reply(404, {"error": "no such episode, or it is over"})
        elif path == "tools":
            self._reply(200, {"tools": list(talk.tools.values())})
        elif path == "v1/models":
            model = {"id": "model", "object": "model", "created": 0, "owned_by": "episode"}
            self._reply(200, {"object": "list", "data": [model]})
        else:
            self._reply(405 if path == "mcp" else 404, {"error": f"nothing is at {path!r}"})

    def do_DELETE(self) -> None:
        """End an MCP session, of which there is none."""
        self._reply(200, {})

    def do_POST(self) -> None:
        """Answer the model's requests and the tools'."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            self.close_connection = True
            self._reply(413 if length.isdigit() else 411, {"error": f"a request needs a length up to {MAX_BODY} bytes"})
            return
        data = self.rfile.read(int(length))
        began = time.perf_counter()
        talk, responses, path = self._place()
        if talk is None or responses is None:
            self._reply(404, {"error": "no such episode, or it is over"})
            return
        if path == "mcp":
            reply = tool_api.reply(talk, mcp.parse_line(data))
            pacing.wait_until(pacing.due(began))
            self._reply(202 if reply is None else 200, reply)
            return
        try:
            body = json.loads(data)
            if not isinstance(body, dict):
                raise ValueError("the body is no JSON object")
            if path == "tools/call":
                answer = tool_api.call(talk, body["tool"], body["arguments"], body.get("call_id"))
                pacing.wait_until(pacing.due(began))
                self._reply(200, answer)
            else:
                self._answer(talk, responses, path, body)
        except (Refused, PolicyFailed) as error:
            self._fail(path, failed(error), str(error))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._fail(path, 400, f"the request cannot be read ({type(error).__name__}: {error})")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: paths are secrets."""

    def _answer(self, talk: AgentTalk, responses: ResponsesMemory, path: str, body: Row) -> None:
        if path == "v1/messages/count_tokens":
            self._reply(200, messages_api.count(body))
            return
        protocols: dict[str, Any] = {"v1/chat/completions": chat_api, "v1/responses": responses, "v1/messages": messages_api}
        protocol = protocols.get(path)
        if protocol is None:
            self._reply(404, {"error": f"nothing is at {path!r}"})
            return
        is_retry = self.headers.get("x-stainless-retry-count", "0") != "0"
        completion = talk.ask(protocol.read(body), is_retry)
        if body.get("stream"):
            self._stream(protocol.stream(completion, body))
        else:
            self._reply(200, protocol.answer(completion, body))

    def _place(self) -> tuple[AgentTalk | None, ResponsesMemory | None, str]:
        secret, _, path = self.path.partition("?")[0].strip("/").partition("/")
        while path.startswith("v1/v1/"):
            path = path.removeprefix("v1/")
        return *self.server.talks.get(secret, (None, None)), path

    def _fail(self, path: str, status: int, message: str) -> None:
        write = ERRORS.get(path)
        body = {"error": message} if write is None else write(message, status)
        self._reply(status, body, (("x-should-retry", "false"),))

    def _stream(self, events: Iterable[tuple[str | None, Any]]) -> None:
        data = "".join((f"event: {name}\n" if name else "") + f"data: {as_json(event)}\n\n" for name, event in events)
        self._send(200, "text/event-stream", data.encode("utf-8", "surrogatepass"))

    def _reply(self, status: int, body: Any, headers: Iterable[tuple[str, str]] = ()) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self._send(status, "application/json", data, headers)

    def _send(self, status: int, kind: str, data: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
        with contextlib.suppress(OSError):  # the agent may be gone
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
