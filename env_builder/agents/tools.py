"""The connection from an agent's container to the environment's tools: a Unix socket inside, the container's stdio outside.

    python3 /tools/tools.py serve                       the container's first process: carries lines, starts nothing
    python3 /tools/tools.py list                        the tools, a JSON object a line
    python3 /tools/tools.py call NAME '{"a": 1}'        the answer's text; exit code 1 where it is an error
    python3 /tools/tools.py say TEXT                    the user's reply
    python3 /tools/tools.py sync                        save what changed in the working folder, fetch the rest
    python3 /tools/tools.py mcp                         MCP over stdio, for any client of the protocol
    from tools import request, call, say                the same from Python, with /tools on sys.path

Where apps have files (a drive's workbooks), they lie in TOOLS_FOLDER, by default /work. What was saved there is sent before
each call of a tool, and what the call changed is fetched after it, so that files and tools show the same.

Ships inside every agent's container: standard library only. In: lines of JSON-RPC on the socket (TOOLS_SOCKET, by default
/tmp/tools.sock). Out: one numbered line on stdout for each, and the host's line on stdin under that number, which goes back to
who asked. An answer to words that came past the socket is dropped.
Sees: one line at a time of up to `MAX_LINE` bytes. Does not see: whose program asks; all programs in here are one agent.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

MAX_LINE = 1 << 20
MOST = 32
"""Programs that may be connected at a time."""
PATIENCE_S = 5.0
"""How long a program may take to receive its answer."""
PLACE = os.environ.get("TOOLS_SOCKET", "/tmp/tools.sock")
FOLDER = os.environ.get("TOOLS_FOLDER", "/work")
SYNCHRONISE = "tools/sync"
"""A request that is answered here: send what was saved, fetch what changed."""
_LARGEST = 700_000


Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Makes a request: method, params -> result. ToolsError, OSError, EOFError."""


class WorkingFolder:
    """Files of the environment's apps in a folder of this machine."""

    def __init__(self, ask: Ask, root: Path) -> None:
        self._ask, self._root = ask, root
        self._hashes: dict[str, tuple[str, str]] = {}
        """Path -> hash of the file here, and of the file there when they were the same last."""
        self._folders: list[str] | None = None
        """Where files of apps may lie; empty: no app has any; None: nobody has asked."""

    def begin(self) -> None:
        """Fetch all files; from then on do nothing where the environment has none."""
        try:
            self.fetch()
        except (ToolsError, OSError):
            self._folders = []

    def fetch(self) -> None:
        """Write the files that changed in the environment since they were fetched."""
        if self._folders == []:
            return
        listed = self._ask("traceroom/files", {})
        self._folders = listed["folders"]
        for folder in self._folders or ():
            (self._root / folder).mkdir(parents=True, exist_ok=True)
        for row in listed["files"]:
            path, there = row["path"], row["sha256"]
            place = self._root / path
            if self._hashes.get(path, ("", ""))[1] == there and place.is_file():
                continue
            content = base64.b64decode(self._ask("traceroom/file", {"path": path})["content"])
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            self._hashes[path] = there, there

    def send(self) -> list[str]:
        """Save the files that changed here; return what became of each, a sentence a file."""
        answers = []
        for folder in self._folders or ():
            for place in sorted((self._root / folder).glob("*")):
                path = place.relative_to(self._root).as_posix()
                if place.name.startswith((".", "~")) or place.is_symlink() or not place.is_file():
                    continue   # programs' own, such as locks
                if place.stat().st_size > _LARGEST:
                    continue
                content = place.read_bytes()
                here = hashlib.sha256(content).hexdigest()
                if self._hashes.get(path, ("",))[0] != here:
                    given = {"path": path, "content": base64.b64encode(content).decode()}
                    result = self._ask("traceroom/save", given)
                    answers.append("".join(part.get("text", "") for part in result["content"]))
                    self._hashes[path] = here, self._hashes.get(path, ("", ""))[1]
        if answers:
            listed = {row["path"]: row["sha256"] for row in self._ask("traceroom/files", {})["files"]}
            self._hashes = {path: (here, listed.get(path, "")) for path, (here, _) in self._hashes.items()}
        return answers


class ToolsError(Exception):
    """A request that the environment rejects, in its words."""


def request(method: str, params: dict[str, Any] | None = None, place: str = PLACE) -> dict[str, Any]:
    """Return the result of one request; ToolsError if it is rejected, OSError if the connection is closed."""
    with socket.socket(socket.AF_UNIX) as stream, stream.makefile("rb") as answers:
        stream.connect(place)
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        stream.sendall(json.dumps(message).encode() + b"\n")
        reply = json.loads(answers.readline() or b'{"error": {"message": "the environment process is gone"}}')
    if "error" in reply:
        raise ToolsError(reply["error"]["message"])
    result: dict[str, Any] = reply["result"]
    return result


def call(tool: str, arguments: dict[str, Any] | None = None) -> tuple[str, bool]:
    """Return a tool's answer as text, and whether it is an error."""
    result = request("tools/call", {"name": tool, "arguments": arguments or {}})
    return "".join(part.get("text", "") for part in result["content"]), bool(result["isError"])


def say(text: str) -> str | None:
    """Return the user's reply, None if they have nothing more to say."""
    reply: str | None = request("traceroom/say", {"text": text})["reply"]
    return reply


def serve(place: str = PLACE) -> None:
    """Forward lines until stdin ends; one thread and no child, so that it also works if the container may start no process."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the first process of a container inherits orphans
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as ready:
        with contextlib.suppress(FileNotFoundError):
            Path(place).unlink()
        listening.bind(place)
        listening.listen(MOST)
        ready.register(listening, selectors.EVENT_READ)
        ready.register(sys.stdin.buffer, selectors.EVENT_READ)
        clients: dict[socket.socket, bytes] = {}
        numbers = itertools.count()
        _exchange(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', next(numbers))
        folder = WorkingFolder(partial(_ask, numbers), Path(FOLDER))
        folder.begin()
        while True:
            for key, _ in ready.select():
                if key.fileobj is listening:
                    _accept(listening, ready, clients)
                elif not isinstance(key.fileobj, socket.socket):  # asked past the socket; or the host is gone
                    if not sys.stdin.buffer.readline():
                        return
                elif not _forward(key.fileobj, clients, numbers, folder):
                    ready.unregister(key.fileobj)
                    del clients[key.fileobj]
                    key.fileobj.close()


def _accept(listening: socket.socket, ready: selectors.BaseSelector, clients: dict[socket.socket, bytes]) -> None:
    with contextlib.suppress(OSError):
        one, _ = listening.accept()
        if len(clients) >= MOST:
            one.close()
            return
        one.settimeout(PATIENCE_S)
        ready.register(one, selectors.EVENT_READ)
        clients[one] = b""


def _exchange(line: bytes, number: int) -> bytes:
    """Return the host's answer to a line, empty if there is none; EOFError once the host is gone."""
    sys.stdout.buffer.write(b"\n%d %s\n" % (number, line))  # whatever else stands there unfinished, this is a line of its own
    sys.stdout.buffer.flush()
    mark = b"%d " % number
    while answer := sys.stdin.buffer.readline():
        if answer.startswith(mark):
            return answer[len(mark):].rstrip(b"\n")
    raise EOFError


def _ask(numbers: Iterator[int], method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Make a request of this process's own. Errors: ToolsError, EOFError."""
    line = json.dumps({"jsonrpc": "2.0", "id": "folder", "method": method, "params": params}).encode()
    reply = json.loads(_exchange(line, next(numbers)) or b'{"error": {"message": "no reply"}}')
    if "error" in reply:
        raise ToolsError(reply["error"]["message"])
    result: dict[str, Any] = reply["result"]
    return result


def _in_step(line: bytes, numbers: Iterator[int], folder: WorkingFolder) -> bytes:
    """Return the answer to a program's line, the working folder being the same as the environment's before and after it."""
    message: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        message = json.loads(line)
    method = message.get("method") if isinstance(message, dict) else None
    if method not in ("tools/call", "traceroom/finish", SYNCHRONISE):
        return _exchange(line, next(numbers))
    answers: list[str] = []
    with contextlib.suppress(ToolsError, OSError):
        answers = folder.send()
    own = {"jsonrpc": "2.0", "id": message.get("id"), "result": {"answers": answers}}
    answer = json.dumps(own).encode() if method == SYNCHRONISE else _exchange(line, next(numbers))
    with contextlib.suppress(ToolsError, OSError):
        folder.fetch()
    return answer


def _forward(
    one: socket.socket, clients: dict[socket.socket, bytes], numbers: Iterator[int], folder: WorkingFolder,
) -> bool:
    """Forward what a program sent; False once it cannot send more."""
    try:
        data = one.recv(65536)
        *lines, rest = (clients[one] + data).split(b"\n")
        if not data or len(rest) > MAX_LINE:
            return False
        clients[one] = rest
        for line in lines:
            answer = _in_step(line, numbers, folder)
            if answer:
                one.sendall(answer + b"\n")
    except (OSError, EOFError):
        return False
    return True


def _bridge(source: BinaryIO, sink: BinaryIO, place: str = PLACE) -> None:
    """Connect MCP over stdio to the socket: lines in and out, unchanged."""
    with socket.socket(socket.AF_UNIX) as stream, stream.makefile("rb") as answers:
        stream.connect(place)
        for line in source:
            stream.sendall(line)
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict) and "id" not in message:
                    continue  # a notification is not answered
            sink.write(answers.readline())
            sink.flush()


def main(words: list[str]) -> int:
    """Run the command that the first word names."""
    match words:
        case ["serve"]:
            serve()
        case ["mcp"]:
            _bridge(sys.stdin.buffer, sys.stdout.buffer)
        case ["list"]:
            for tool in request("tools/list")["tools"]:
                print(json.dumps(tool))
        case ["call", name, *rest]:
            text, is_error = call(name, json.loads(rest[0]) if rest else {})
            print(text)
            return int(is_error)
        case ["sync"]:
            for answer in request(SYNCHRONISE)["answers"]:
                print(answer)
        case ["say", text]:
            print(say(text) or "")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (ToolsError, OSError, EOFError, ValueError) as error:
        print(f"tools: {error}", file=sys.stderr)
        sys.exit(2)
