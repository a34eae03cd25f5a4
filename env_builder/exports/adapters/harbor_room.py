"""The environment of a Harbor task: a process of its own user in the agent's container, reached by a Unix socket alone.

    python3 harbor_room.py start      as root: start the environment if none runs, and wait until it answers (the healthcheck)
    python3 harbor_room.py serve      the environment itself

In: the kit beside this module, with the one task that is played. Out: `/tools/tools.py` reaches the tools and the user; the
journal is in `/journal/journal.json`, rewritten after each step, where the environment's user alone may write. MCP and the
socket are those of the kit's own runtime. Standard library only. Only this user may read the kit: the agent has another one,
and root is Harbor's.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

try:
    from . import play
except ImportError:  # run as a file, from its own folder alone
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import play  # type: ignore[import-not-found,no-redef]

HERE = Path(__file__).resolve().parent
SOCKET = os.environ.get("TOOLS_SOCKET", "/run/room/tools.sock")
JOURNAL = Path(os.environ.get("ROOM_JOURNAL", "/journal/journal.json"))
USER = 10001
WAIT_S = 120.0


class HarborServer:
    """Answers the requests of all programs of the agent about one episode."""

    def __init__(self, directory: Path) -> None:
        self._environment = play.open(directory)
        self._mcp: Any = importlib.import_module(f"{self._environment.runtime.__name__}.mcp")
        (task,) = self._environment.tasks
        self._episode = self._environment.begin(task["task_id"])
        self._write_journal()

    def answer(self, line: bytes | None) -> Any:
        """Return the reply to a line of JSON-RPC; None to a notification."""
        message = self._mcp.parse_line(line)
        refusal = self._mcp.invalid_request(message)
        if refusal is not None or "id" not in message or "method" not in message:
            return refusal
        method, params = message["method"], message.get("params")
        try:
            result = self._result(method, params if isinstance(params, dict) else {})
        except self._mcp.RequestError as error:
            return self._mcp.error_reply(message["id"], error.code, str(error))
        if method not in ("initialize", "ping", "tools/list"):
            self._write_journal()
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _result(self, method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            return self._mcp.handshake(params)
        if method == "tools/list":
            return {"tools": self._environment.descriptors}
        if method == "tools/call":
            text, is_error = self._episode.call(str(params.get("name")), params.get("arguments", {}))
            return {"content": [{"type": "text", "text": text}], "isError": is_error}
        if method == "traceroom/say" and isinstance(params.get("text"), str):
            return {"reply": self._episode.say(params["text"]), "ended": self._episode.ended}
        if method not in ("ping", "traceroom/finish"):
            raise self._mcp.RequestError(self._mcp.METHOD_NOT_FOUND, f"no method {method!r} with these params")
        if method == "traceroom/finish":
            self._episode.finish()
        return {}

    def _write_journal(self) -> None:
        draft = JOURNAL.with_suffix(".part")
        draft.write_text(json.dumps(self._episode.journal()), "utf-8")
        draft.replace(JOURNAL)


def serve() -> int | None:
    """Play the task until the container ends."""
    server = HarborServer(HERE)
    sockets = importlib.import_module(f"{play.open(HERE).runtime.__name__}.sockets")
    sockets.listen(Path(SOCKET), lambda: server, lambda: Path(SOCKET).chmod(0o666))
    return None


def start() -> int | None:
    """Start the environment if none answers; 0 once it does."""
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
            print("the environment does not answer", file=sys.stderr)
            return 1
        time.sleep(0.05)
    return 0


def _answers() -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(SOCKET)
        return True
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(start() if sys.argv[1:] == ["start"] else serve())
