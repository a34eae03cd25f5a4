"""The room of a Harbor task: a process of a user of its own in the agent's container, and the one way to it, a Unix socket.

    python3 harbor_room.py start      as root: begin the room where none runs, and wait until it answers; the task's healthcheck
    python3 harbor_room.py serve      the room itself

In: the kit beside this module, with the one task that is played. Out: `/tools/tools.py` reaches the tools and the user; the
journal stands in `/journal/journal.json`, rewritten after each move, where the room's user alone may write. Standard library
only. Only this user may read the kit: the agent has another one, and root is Harbor's.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import Any

try:
    from . import play
except ImportError:  # run as a file, from its own folder alone
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import play  # type: ignore[import-not-found,no-redef]

HERE = Path(__file__).resolve().parent
PLACE = os.environ.get("TOOLS_SOCKET", "/run/room/tools.sock")
JOURNAL = Path(os.environ.get("ROOM_JOURNAL", "/journal/journal.json"))
USER = 10001
MAX_LINE = 1 << 20
WAIT_S = 120.0
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions of MCP that are spoken."""


class Table:
    """The episode that all programs of the agent share."""

    def __init__(self, directory: Path) -> None:
        self._room = play.open(directory)
        (task,) = self._room.tasks
        self._episode = self._room.begin(task["task_id"])
        self._alone = threading.Lock()
        self._keep()

    def answer(self, line: bytes) -> dict[str, Any] | None:
        """The reply to a line of JSON-RPC; None to a notification."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return _refused(None, -32700, "the line is not JSON")
        if not isinstance(message, dict):
            return _refused(None, -32600, "not a JSON-RPC 2.0 object")
        if "id" not in message:
            return None
        params = message.get("params")
        with self._alone:
            return self._done(message["id"], message.get("method"), params if isinstance(params, dict) else {})

    def _done(self, identity: Any, method: Any, params: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        if method == "initialize":
            asked = params.get("protocolVersion")
            result = {"protocolVersion": asked if asked in VERSIONS else VERSIONS[-1], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "room", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": self._room.descriptors}
        elif method == "tools/call":
            text, is_error = self._episode.call(str(params.get("name")), params.get("arguments", {}))
            result = {"content": [{"type": "text", "text": text}], "isError": is_error}
        elif method == "traceroom/say" and isinstance(params.get("text"), str):
            result = {"reply": self._episode.say(params["text"]), "ended": self._episode.ended}
        elif method == "traceroom/finish":
            self._episode.finish()
        elif method != "ping":
            return _refused(identity, -32601, f"no method {method!r} with these params")
        if method not in ("initialize", "ping", "tools/list"):
            self._keep()
        return {"jsonrpc": "2.0", "id": identity, "result": result}

    def _keep(self) -> None:
        beside = JOURNAL.with_suffix(".part")
        beside.write_text(json.dumps(self._episode.journal()), "utf-8")
        beside.replace(JOURNAL)


class Connection(socketserver.StreamRequestHandler):
    """A program of the agent: line after line until it goes."""

    server: Server

    def handle(self) -> None:
        """Answer."""
        while (line := self.rfile.readline(MAX_LINE + 1)) and len(line) <= MAX_LINE:
            reply = self.server.table.answer(line)
            if reply is not None:
                self.wfile.write(json.dumps(reply).encode() + b"\n")


class Server(socketserver.ThreadingUnixStreamServer):
    """Listens at the socket."""

    daemon_threads = True

    def __init__(self, place: str, table: Table) -> None:
        self.table = table
        super().__init__(place, Connection)
        Path(place).chmod(0o666)


def serve() -> int | None:
    """Play the task until the container ends."""
    table = Table(HERE)
    Path(PLACE).unlink(missing_ok=True)
    with Server(PLACE, table) as server:
        server.serve_forever()
    return None


def start() -> int | None:
    """Begin the room where none answers; 0 once it does."""
    if _answers():
        return 0
    if os.fork() == 0:
        os.setsid()
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(quiet, stream)
        os.umask(0o077)
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-B", str(HERE / "harbor_room.py"), "serve"])
    ends = time.monotonic() + WAIT_S
    while not _answers():
        if time.monotonic() > ends:
            print("the room does not answer", file=sys.stderr)
            return 1
        time.sleep(0.05)
    return 0


def _answers() -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as way:
            way.connect(PLACE)
        return True
    except OSError:
        return False


def _refused(identity: Any, code: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": text}}


if __name__ == "__main__":
    sys.exit(start() if sys.argv[1:] == ["start"] else serve())
