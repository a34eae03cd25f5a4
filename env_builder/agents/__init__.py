"""The agent's side: a container in which an agent runs programs of its own, and its only connection to the environment.

In: an environment process, and the transport to the agent's container (`image.agent`). Out: `AgentContainer`: it runs programs
in there, and answers their requests. The two containers share nothing: no folder, no network, no socket. A program's line goes
through the container's stdio to the host, which forwards what an agent may request (`METHODS`) and rejects the rest: the
journal, the tasks and a reset stay the host's. The host also removes the name of an episode from a request.

Sees: whole lines of up to `tools.MAX_LINE` bytes, one after the other. Does not see: what programs do inside, which only the
container bounds (docs/containers.md); which program of the container made a request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from env_builder.agents.tools import MAX_LINE
from env_builder.process import EnvironmentProcess, Transport
from env_builder.runtime import mcp
from warehouse.errors import Unavailable

METHODS = frozenset({"initialize", "ping", "tools/list", "tools/call", "traceroom/say", "traceroom/finish", "traceroom/files",
                     "traceroom/file", "traceroom/save"})
"""Requests that an agent may make."""
SYNCHRONISE = ("python3", "-I", "-S", "/tools/tools.py", "sync")
_WRITE = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read(int(sys.argv[2])))"


class ProgramResult(NamedTuple):
    """How a program ended."""

    exit_code: int | None
    """None: its time, or the container's, was over."""
    stdout: bytes
    stderr: bytes
    """Each cut to `containers.MAX_OUTPUT` bytes."""


RunProgram = Callable[[Sequence[str], bytes, float], ProgramResult]
"""Runs a program in the container: words, stdin, seconds."""


class AgentContainer:
    """An agent's container, connected to an environment until it is closed."""

    def __init__(self, transport: Transport, run: RunProgram, process: EnvironmentProcess) -> None:
        self._transport = transport
        self._run = run
        self._process = process
        self._has_folder = has_files(process)
        self._ready = threading.Event()
        self._connected = False
        self._lost: str | None = None
        """Why the connection has ended."""
        self._carrying = threading.Thread(target=self._carry, name="agent", daemon=True)
        self._carrying.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def wait_until_ready(self, timeout_s: float = 60.0) -> Self:
        """Return this container once programs can make requests; Unavailable if that does not happen."""
        self._ready.wait(timeout_s)
        if not self._connected:
            reason = self._transport.last_error_line()
            self.close()
            raise Unavailable(f"the agent's container does not start ({reason})", hint="its image needs python3 3.11 or newer")
        return self

    def run(self, program: Sequence[str], stdin: bytes = b"", timeout_s: float = 600.0) -> ProgramResult:
        """Run a program in the container and wait for its end; after `timeout_s` the whole container is ended. What it saved in
        the working folder is saved in the environment then."""
        try:
            if self._lost is None:
                done = self._run(program, stdin, timeout_s)
                if self._has_folder and done.exit_code is not None:
                    self._run(SYNCHRONISE, b"", timeout_s)
                return done
        except Unavailable:
            if self._lost is None:
                raise
        raise Unavailable(f"the agent's container has ended with its environment ({self._lost})")

    def put(self, path: str, data: bytes) -> None:
        """Write a file in the container, where its programs may write; Unavailable if that fails."""
        done = self.run(["python3", "-I", "-S", "-c", _WRITE, path, str(len(data))], data, 60.0)
        if done.exit_code != 0:
            reason = (done.stderr.decode(errors="replace").strip().splitlines() or ["its time is over"])[-1]
            raise Unavailable(f"the file cannot be written in the agent's container ({reason})", path)

    def close(self) -> None:
        """End the container and all its programs; the environment process stays."""
        self._transport.close()
        self._carrying.join(timeout=10)

    def _carry(self) -> None:
        """Answer each line with one line under its number (empty if there is no reply), until the end."""
        pending = b""
        try:
            while data := self._transport.receive(float("inf")):
                *lines, pending = (pending + data).split(b"\n")
                for number, _, line in (each.partition(b" ") for each in lines if each):
                    reply = answer(line, self._process)
                    self._transport.send(number + b" " + (json.dumps(reply).encode() if reply else b"") + b"\n")
                    self._connected = True
                    self._ready.set()
                if len(pending) > MAX_LINE:
                    break
        except (OSError, Unavailable) as error:
            self._lost = str(error)
        finally:
            self._ready.set()
            if self._connected:
                self._transport.close()


def has_files(process: EnvironmentProcess) -> bool:
    """Return whether apps have files in the working folder; they have none where the environment's runtime is too old."""
    reply = process.forward({"jsonrpc": "2.0", "id": 0, "method": "traceroom/files"})
    return bool(reply.get("result", {}).get("folders"))


def answer(line: bytes, process: EnvironmentProcess) -> dict[str, Any] | None:
    """Return the reply to an agent's line; None if there is none."""
    message = mcp.parse_line(line)
    refusal = mcp.invalid_request(message)
    if refusal is not None or "id" not in message:
        return refusal
    method = message.get("method")
    if method not in METHODS:
        what = f"no method {method!r}; there are: {', '.join(sorted(METHODS))}"
        return mcp.error_reply(message["id"], mcp.METHOD_NOT_FOUND, what)
    params = message.get("params")
    if isinstance(params, dict) and isinstance(params.get("_meta"), dict):  # an agent cannot name another episode
        own = {name: value for name, value in params["_meta"].items() if not name.startswith("traceroom/")}
        message = {**message, "params": {**params, "_meta": own}}
    try:
        return process.forward(message)
    except RecursionError:
        return mcp.error_reply(message["id"], mcp.PARSE_ERROR, "the line is nested too deep")
