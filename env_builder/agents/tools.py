"""The way from an agent's container to the tools of its room: a Unix socket inside, the container's own stdio outside.

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


class Refused(Exception):
    """What the room refuses, in its words."""


def request(method: str, params: dict[str, Any] | None = None, place: str = PLACE) -> dict[str, Any]:
    """Result of one request; Refused where there is none, OSError where the way is closed."""
    with socket.socket(socket.AF_UNIX) as way, way.makefile("rb") as answers:
        way.connect(place)
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        way.sendall(json.dumps(message).encode() + b"\n")
        reply = json.loads(answers.readline() or b'{"error": {"message": "the room is gone"}}')
    if "error" in reply:
        raise Refused(reply["error"]["message"])
    result: dict[str, Any] = reply["result"]
    return result


def call(tool: str, arguments: dict[str, Any] | None = None) -> tuple[str, bool]:
    """A tool's answer as text, and whether it is an error."""
    result = request("tools/call", {"name": tool, "arguments": arguments or {}})
    return "".join(part.get("text", "") for part in result["content"]), bool(result["isError"])


def say(text: str) -> str | None:
    """What the user replies, None where they have nothing more to say."""
    reply: str | None = request("traceroom/say", {"text": text})["reply"]
    return reply


def serve(place: str = PLACE) -> None:
    """Carry lines until stdin ends; one thread and no child, so that it goes on where the container has no process left."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the first process of a container inherits orphans
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as ready:
        with contextlib.suppress(FileNotFoundError):
            Path(place).unlink()
        listening.bind(place)
        listening.listen(MOST)
        ready.register(listening, selectors.EVENT_READ)
        ready.register(sys.stdin.buffer, selectors.EVENT_READ)
        open_ones: dict[socket.socket, bytes] = {}
        numbers = itertools.count()
        _carried(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', next(numbers))
        while True:
            for key, _ in ready.select():
                if key.fileobj is listening:
                    _welcome(listening, ready, open_ones)
                elif not isinstance(key.fileobj, socket.socket):  # asked past the socket; or the host is gone
                    if not sys.stdin.buffer.readline():
                        return
                elif not _heard(key.fileobj, open_ones, numbers):
                    ready.unregister(key.fileobj)
                    del open_ones[key.fileobj]
                    key.fileobj.close()


def _welcome(listening: socket.socket, ready: selectors.BaseSelector, open_ones: dict[socket.socket, bytes]) -> None:
    with contextlib.suppress(OSError):
        one, _ = listening.accept()
        if len(open_ones) >= MOST:
            one.close()
            return
        one.settimeout(PATIENCE_S)
        ready.register(one, selectors.EVENT_READ)
        open_ones[one] = b""


def _carried(line: bytes, number: int) -> bytes:
    """The host's answer to a line, empty where it has none; EOFError once the host is gone."""
    sys.stdout.buffer.write(b"\n%d %s\n" % (number, line))  # whatever else stands there unfinished, this is a line of its own
    sys.stdout.buffer.flush()
    mark = b"%d " % number
    while answer := sys.stdin.buffer.readline():
        if answer.startswith(mark):
            return answer[len(mark):].rstrip(b"\n")
    raise EOFError


def _heard(one: socket.socket, open_ones: dict[socket.socket, bytes], numbers: Iterator[int]) -> bool:
    """Carry what a program has said; whether it may say more."""
    try:
        data = one.recv(65536)
        *lines, rest = (open_ones[one] + data).split(b"\n")
        if not data or len(rest) > MAX_LINE:
            return False
        open_ones[one] = rest
        for line in lines:
            answer = _carried(line, next(numbers))
            if answer:
                one.sendall(answer + b"\n")
    except (OSError, EOFError):
        return False
    return True


def _bridge(source: BinaryIO, sink: BinaryIO, place: str = PLACE) -> None:
    """MCP over stdio: lines in and out, as they stand."""
    with socket.socket(socket.AF_UNIX) as way, way.makefile("rb") as answers:
        way.connect(place)
        for line in source:
            way.sendall(line)
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict) and "id" not in message:
                    continue  # a notification is not answered
            sink.write(answers.readline())
            sink.flush()


def main(words: list[str]) -> int:
    """What the first word says."""
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
    except (Refused, OSError, EOFError, ValueError) as error:
        print(f"tools: {error}", file=sys.stderr)
        sys.exit(2)
