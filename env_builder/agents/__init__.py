"""The agent's side: a container in which an agent runs programs of its own, and the one way from there to its room.

In: a room, and what carries lines to and from the agent's container (`image.agent`). Out: `Agent`: programs run in there, and
their requests answered. The two containers share nothing: no folder, no network, no socket. A program's line goes through the
container's stdio to the host, which passes on what an agent may ask (`METHODS`) and refuses the rest, so that the journal, the
tasks and a reset stay the host's, and takes out of it which episode it is about.

Sees: whole lines of up to `tools.MAX_LINE` bytes, one after the other. Does not see: what programs do inside, which is
bounded by the container alone (docs/containers.md); which program of the container asks.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from env_builder.agents.tools import MAX_LINE
from env_builder.carriers import Carrier
from env_builder.room import Closing, Room
from warehouse.errors import Unavailable

METHODS = frozenset({"initialize", "ping", "tools/list", "tools/call", "traceroom/say", "traceroom/finish"})
"""What an agent may ask of its room."""
_WRITE = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read(int(sys.argv[2])))"


class Ran(NamedTuple):
    """What became of a program."""

    exit_code: int | None
    """None: it was ended because its time, or the container's, was over."""
    stdout: bytes
    stderr: bytes
    """Each cut to `containers.MOST_OUTPUT` bytes."""


Run = Callable[[Sequence[str], bytes, float], Ran]
"""Runs a program in the container: words, stdin, seconds."""


class Agent(Closing):
    """An agent's container, connected to its room until it is closed."""

    def __init__(self, carrier: Carrier, run: Run, room: Room) -> None:
        self._carrier = carrier
        self._run = run
        self._room = room
        self._ready = threading.Event()
        self._connected = False
        self._lost: str | None = None
        """Why nothing is carried any longer."""
        self._carrying = threading.Thread(target=self._carry, name="agent", daemon=True)
        self._carrying.start()

    def begun(self, timeout_s: float = 60.0) -> Self:
        """The agent, once programs may ask; Unavailable where that does not come about."""
        self._ready.wait(timeout_s)
        if not self._connected:
            said = self._carrier.last_words()
            self.close()
            raise Unavailable(f"the agent's container does not begin ({said})", mend="its image needs python3 3.11 or newer")
        return self

    def run(self, program: Sequence[str], stdin: bytes = b"", timeout_s: float = 600.0) -> Ran:
        """Run a program in the container and wait for its end; after `timeout_s` the whole container is ended."""
        try:
            if self._lost is None:
                return self._run(program, stdin, timeout_s)
        except Unavailable:
            if self._lost is None:
                raise
        raise Unavailable(f"the agent's container has ended with its room ({self._lost})")

    def put(self, path: str, data: bytes) -> None:
        """Write a file in the container, where its programs may write; Unavailable where it cannot be."""
        done = self.run(["python3", "-I", "-S", "-c", _WRITE, path, str(len(data))], data, 60.0)
        if done.exit_code != 0:
            said = (done.stderr.decode(errors="replace").strip().splitlines() or ["its time is over"])[-1]
            raise Unavailable(f"the file cannot be written in the agent's container ({said})", path)

    def close(self) -> None:
        """End the container and all its programs; the room stays."""
        self._carrier.close()
        self._carrying.join(timeout=10)

    def _carry(self) -> None:
        """Answer line after line, each with one line under its number (empty where nothing is to be said), until the end."""
        pending = b""
        try:
            while data := self._carrier.receive(float("inf")):
                *lines, pending = (pending + data).split(b"\n")
                for number, _, line in (each.partition(b" ") for each in lines if each):
                    reply = answer(line, self._room)
                    self._carrier.send(number + b" " + (json.dumps(reply).encode() if reply else b"") + b"\n")
                    self._connected = True
                    self._ready.set()
                if len(pending) > MAX_LINE:
                    break
        except (OSError, Unavailable) as error:
            self._lost = str(error)
        finally:
            self._ready.set()
            if self._connected:  # who runs programs in there is told so
                self._carrier.close()


def answer(line: bytes, room: Room) -> dict[str, Any] | None:
    """What an agent's line is answered with; None where nothing is."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return _refused(None, -32700, "the line is not JSON")
    if not isinstance(message, dict):
        return _refused(None, -32600, "not a JSON-RPC 2.0 object")
    if "id" not in message:
        return None  # no notification changes anything in a room
    method = message.get("method")
    if not isinstance(method, str) or method not in METHODS:
        return _refused(message["id"], -32601, f"no method {method!r}; there are: {', '.join(sorted(METHODS))}")
    params = message.get("params")
    if isinstance(params, dict) and isinstance(params.get("_meta"), dict):  # whose episode it is, is not the agent's to say
        own = {name: value for name, value in params["_meta"].items() if not name.startswith("traceroom/")}
        message = {**message, "params": {**params, "_meta": own}}
    try:
        return room.pass_on(message)
    except RecursionError:
        return _refused(message["id"], -32700, "the line goes too deep")


def _refused(identity: Any, code: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": text}}
