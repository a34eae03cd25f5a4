"""Real servers that attacks are run against, and clients that say just what they are to say."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from tests.conftest import ROOT

PATIENCE_S = 120.0
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "attacker", "version": "1"}}}


class Server(NamedTuple):
    """A server that answers."""

    process: subprocess.Popen[str]
    host: str
    port: int
    lines: deque[str]
    """The latest that it wrote to stderr."""

    @contextlib.contextmanager
    def stopping(self) -> Iterator[None]:
        """Stop it at the end; AssertionError if it dies before."""
        try:
            yield
            assert self.process.poll() is None, "the server is gone"
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def command(*arguments: str | Path, **variables: str) -> Iterator[Server]:
    """Run a command of ours that serves; yields where it answers, and stops it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pipelines", *map(str, arguments), "--port", "0"], cwd="/", text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "400", **variables}, stderr=subprocess.PIPE)
    assert process.stderr
    lines: deque[str] = deque(maxlen=200)
    for line in process.stderr:
        lines.append(line)
        if match := re.search(r"http://\S+", line):
            url = urlsplit(match.group())
            server = Server(process, str(url.hostname), int(url.port or 0), lines)
            reading = threading.Thread(target=lines.extend, args=(process.stderr,), daemon=True)  # it must never wait for us
            reading.start()
            with server.stopping():
                yield server
            return
    raise AssertionError(f"it ended with {process.wait()} and never answered: {''.join(lines)}")


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body's JSON value, None if it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


class HttpClient:
    """A connection to a server. Bodies are bytes, sent as they are."""

    def __init__(self, server: Server, source: str = "127.0.0.1", **headers: str) -> None:
        self.headers = {"Accept": "application/json, text/event-stream", **headers}
        self._http = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S, source_address=(source, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def send(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> Answer:
        """Return the answer to a request; one more try where the server has closed an idle connection."""
        data = body.encode("ascii") if isinstance(body, str) else body
        kind = {"Content-Type": "application/json"} if body is not None else {}
        for is_last in (False, True):
            try:
                self._http.request(method, path, data, {**self.headers, **kind, **headers})
                response = self._http.getresponse()
                return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self._http.close()
                if is_last:
                    raise
        raise AssertionError("unreachable")

    def open_session(self, query: str = "") -> str:
        """Open a session, and return its id; AssertionError if the server refuses."""
        answer = self.send("POST", f"/mcp{query}", json.dumps(HELLO))
        assert answer.status == 200, answer
        self.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        return self.headers["Mcp-Session-Id"]

    def call(self, tool: str, arguments: str) -> Answer:
        """Call a tool; the arguments are JSON text, sent as it is."""
        return self.send("POST", "/mcp", (
            f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}'))

    def health(self) -> Any:
        """Return what the server says of itself."""
        return self.send("GET", "/health").json


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of journals, none if there is no file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
