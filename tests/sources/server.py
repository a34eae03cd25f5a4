"""A platform on loopback: it replays recorded pages over HTTP, limits the rate, and hangs in the middle of a page."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    query: dict[str, list[str]]
    body: Any
    headers: dict[str, str]

    def first(self, name: str, default: str = "") -> str:
        return self.query.get(name, [default])[0]


@dataclass(frozen=True)
class Reply:
    """What the platform answers."""

    body: Any
    status: int = 200
    is_page: bool = False
    """Whether it is a page of records: rate limits and hanging concern these."""


@dataclass
class PlatformServer:
    """The server, and what it is told to do wrong."""

    respond: Callable[[Request], Reply]
    url: str = ""
    n_pages: int = 0
    n_limited: int = 0
    limit_pages: set[int] = field(default_factory=set)
    """Numbers of pages (from 1) that are answered with 429 first."""
    fail_pages: set[int] = field(default_factory=set)
    """Numbers of pages that are answered with 503 first."""
    hang_at: int | None = None
    """Number of the page that is sent half, and never ended."""
    is_hanging: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)
    requests: list[Request] = field(default_factory=list)


@contextmanager
def serving(respond: Callable[[Request], Reply]) -> Iterator[PlatformServer]:
    """Run a platform until the block ends."""
    state = PlatformServer(respond)
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    http.daemon_threads = True
    state.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.is_over.set()
        http.shutdown()
        http.server_close()


def _handler(state: PlatformServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, method: str) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            body = json.loads(content) if content[:1] in (b"{", b"[") else None
            headers = {name.casefold(): value for name, value in self.headers.items()}
            request = Request(method, parts.path, parse_qs(parts.query), body, headers)
            state.requests.append(request)
            reply = state.respond(request)
            if reply.is_page and reply.status == 200:
                for pages, status in ((state.limit_pages, 429), (state.fail_pages, 503)):
                    if state.n_pages + 1 in pages:
                        pages.remove(state.n_pages + 1)
                        state.n_limited += 1
                        self._send({"detail": "later"}, status, {"Retry-After": "0"})
                        return
                state.n_pages += 1
                if state.hang_at == state.n_pages:
                    self._hang(reply)
                    return
            self._send(reply.body, reply.status)

        def _send(self, body: Any, status: int, headers: dict[str, str] | None = None) -> None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _hang(self, reply: Reply) -> None:
            content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:len(content) // 2])
            self.wfile.flush()
            state.is_hanging.set()
            state.is_over.wait(120)
            self.close_connection = True

        def log_message(self, *arguments: Any) -> None:
            """Keep silent."""

    return Handler
