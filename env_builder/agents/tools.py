"""The connection from an agent's container to the environment's tools: a Unix socket inside, the container's stdio outside.

    python3 /tools/tools.py serve                       the container's first process: carries lines, starts nothing
    python3 /tools/tools.py list                        the tools, a JSON object a line
    python3 /tools/tools.py call NAME '{"a": 1}'        the answer's text; exit code 1 where it is an error
    python3 /tools/tools.py say TEXT                    the user's reply
    python3 /tools/tools.py mcp                         MCP over stdio, for any client of the protocol
    from tools import request, call, say                the same from Python, with /tools on sys.path

Ships inside every agent's container: standard library only. In: lines of JSON-RPC on the socket (TOOLS_SOCKET, by default
/tmp/tools.sock). Out: one numbered line on stdout for each, and the host's line on stdin under that number, which goes back to
who asked. An answer to words that came past the socket is dropped.
Sees: one line at a time of up to `MAX_LINE` bytes. Does not see: whose program asks; all programs in here are one agent.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

MAX_LINE = 1 << 20
MOST = 32
"""Programs that may be connected at a time."""
PATIENCE_S = 5.0
"""How long a program may take to receive its answer."""
PLACE = os.environ.get("TOOLS_SOCKET", "/tmp/tools.sock")


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
        while True:
            for key, _ in ready.select():
                if key.fileobj is listening:
                    _accept(listening, ready, clients)
                elif not isinstance(key.fileobj, socket.socket):  # asked past the socket; or the host is gone
                    if not sys.stdin.buffer.readline():
                        return
                elif not _forward(key.fileobj, clients, numbers):
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


def _forward(one: socket.socket, clients: dict[socket.socket, bytes], numbers: Iterator[int]) -> bool:
    """Forward what a program sent; False once it cannot send more."""
    try:
        data = one.recv(65536)
        *lines, rest = (clients[one] + data).split(b"\n")
        if not data or len(rest) > MAX_LINE:
            return False
        clients[one] = rest
        for line in lines:
            answer = _exchange(line, next(numbers))
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
