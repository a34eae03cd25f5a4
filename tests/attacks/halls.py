"""One server of a room with its grader, started once a process, which attacks over HTTP share; and raw exchanges with it."""

from __future__ import annotations

import atexit
import contextlib
import json
import shutil
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.attacks.servers import Answer, HttpClient, Server, command, rows
from tests.rooms import TASK, write_rewards, write_room

GROUP = "hall"
"""Of tests that share the server: one worker starts it."""
GRADER = "the-token-of-the-grader-alone"
SOLVED = (("open_door", '{"door": "7"}'),)


class Hall(NamedTuple):
    """The server, and what it keeps."""

    server: Server
    room: Path
    kept: Path
    """Its file of journals."""

    def client(self, **headers: str) -> HttpClient:
        """Return a connection to it."""
        return HttpClient(self.server, **headers)

    def agent(self, query: str = f"?task={TASK}") -> HttpClient:
        """Return a connection with a session of its own."""
        client = self.client()
        client.open_session(query)
        return client

    def journals(self) -> list[dict[str, Any]]:
        """Return the journals of episodes that have ended."""
        return rows(self.kept)

    def grade(self, episode: str) -> Any:
        """Return what the grader says of an episode."""
        with self.client(Authorization=f"Bearer {GRADER}") as grader:
            answer = grader.send("POST", "/grade", rpc("tools/call", {"name": "grade", "arguments": {"episode": episode}}))
        return answer.json["result"]["structuredContent"] if "result" in (answer.json or {}) else answer

    def steps(self, episode: str) -> int:
        """Return how many steps the journal of an episode has."""
        with self.client(Authorization=f"Bearer {GRADER}") as grader:
            listed = grader.send("POST", "/grade", rpc("tools/call", {"name": "episodes", "arguments": {}})).json
        episodes = listed["result"]["structuredContent"]["episodes"]
        return next((each["steps"] for each in episodes if each["episode"] == episode), 0)  # not listed before its first step

    def trouble(self) -> list[str]:
        """Return what of the server is broken: it must answer, and have lost nothing."""
        if self.server.process.poll() is not None:
            return ["the server is gone"]
        with self.client() as client:
            health = client.health()
        is_well = health["status"] == "ok" and not health["lost"] and not health["unstored"]
        return [] if is_well else [f"the server is ill: {health}"]


@cache
def hall() -> Hall:
    """Return the server."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    stack = contextlib.ExitStack()
    server = stack.enter_context(command(
        "serve", room, "--grade", "--journals", folder / "journals.jsonl", TRACEROOM_GRADE_TOKEN=GRADER))
    atexit.register(stack.close)
    return Hall(server, room, folder / "journals.jsonl")


def rpc(method: str, params: Any = None, identity: Any = 7) -> str:
    """Return a JSON-RPC request."""
    return json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, **({} if params is None else {"params": params})})


def spoken(server: Server, data: bytes, timeout_s: float = 2.0) -> bytes:
    """Send bytes over a connection of their own; return all that comes until it is quiet or closed."""
    received = b""
    with contextlib.suppress(OSError), socket.create_connection((server.host, server.port), timeout=30) as stream:
        stream.settimeout(timeout_s)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stream.sendall(data)
        while chunk := stream.recv(65536):
            received += chunk
    return received


def is_refused(answer: Answer) -> bool:
    """Return whether an answer gives nothing: an error by status, or by JSON-RPC."""
    return 400 <= answer.status < 500 or (isinstance(answer.json, dict) and "error" in answer.json)
