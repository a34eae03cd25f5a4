"""An environment in a process of its own, and the transports to it: a local process, a socket (a container: `image`).

`EnvironmentProcess` is the host's end: it sends JSON-RPC lines (docs/containers.md) over any transport, one at a time.
`channel.py` does the same for a host that plays many episodes at once. `start_process` starts the environment's own runtime as
a process of this user: its failures stay apart, its files do not. Use a container (`image.start`) against an agent that may run
programs of its own as this user.

Imports the standard library, and of ours only modules that do so too.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from env_builder.layers import read_manifest
from env_builder.runtime.mcp_client import McpClient, McpError
from warehouse.errors import InputError, Unavailable

ANSWER_S = 60.0
"""Seconds that an answer may take before the process counts as gone."""
HELLO = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "traceroom", "version": "1"}}
"""How a host shakes hands: with a revision of MCP whose results are text, since the host parses structures itself."""


class Transport(Protocol):
    """Moves bytes to and from an environment process."""

    @property
    def socket(self) -> socket.socket:
        """Return the socket that is read and written, for an event loop."""

    def decode(self, data: bytes) -> bytes:
        """Return the process's stdout among bytes that were read from the socket, in order."""

    def send(self, data: bytes) -> None:
        """Write all bytes; OSError if the other end is gone."""

    def receive(self, timeout_s: float) -> bytes:
        """Return some bytes; empty at the end; TimeoutError after `timeout_s`."""

    def last_error_line(self) -> str:
        """Return the last line on stderr after the process ended, for an error message."""

    def close(self) -> None:
        """End the process; a second call does nothing."""


class FrameDecoder:
    """Splits the stream of an attached container: before each chunk come 8 bytes, which output and how long."""

    def __init__(self) -> None:
        self._rest = b""

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """Return (stdout, stderr) of the chunks that are complete now."""
        rest, at, streams = self._rest + data, 0, ([], [])  # type: bytes, int, tuple[list[bytes], list[bytes]]
        while len(rest) >= (begin := at + 8) and len(rest) >= (end := begin + int.from_bytes(rest[at + 4:begin], "big")):
            streams[rest[at] != 1].append(rest[begin:end])
            at = end
        self._rest = rest[at:]
        return b"".join(streams[0]), b"".join(streams[1])


class SocketTransport:
    """A connected socket; the caller that started the process behind it ends it. `framed`: it is a container's."""

    def __init__(self, stream: socket.socket, framed: bool = False) -> None:
        self.socket = stream
        self._frames = FrameDecoder() if framed else None

    @classmethod
    def to(cls, path: Path) -> SocketTransport:
        """Connect to an environment that listens on a Unix socket; Unavailable if none does."""
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.connect(str(path))
        except OSError as error:
            stream.close()
            raise Unavailable(f"cannot connect to an environment ({error.strerror})", str(path),
                              "start it with --socket") from error
        return cls(stream)

    def send(self, data: bytes) -> None:
        self.socket.settimeout(ANSWER_S)
        self.socket.sendall(data)

    def receive(self, timeout_s: float) -> bytes:
        self.socket.settimeout(timeout_s)
        try:
            return self.socket.recv(65536)
        except TimeoutError as error:
            raise TimeoutError(f"no answer within {timeout_s:.0f} s") from error

    def decode(self, data: bytes) -> bytes:
        return data if self._frames is None else self._frames.split(data)[0]

    def last_error_line(self) -> str:
        """Return nothing: stderr goes elsewhere."""
        return ""

    def close(self) -> None:
        self.socket.close()


class LocalProcess(SocketTransport):
    """A process of this user, whose stdin and stdout are one socket."""

    def __init__(self, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        own, its = socket.socketpair()
        super().__init__(own)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  it is open as long as the process runs
        with its:
            end = its.fileno()
            self._process = subprocess.Popen(command, stdin=end, stdout=end, stderr=self._stderr, env=environment or {})

    @property
    def process_id(self) -> int:
        return self._process.pid

    def last_error_line(self) -> str:
        """Return the last line on stderr, after a moment for a process that is ending."""
        if self._stderr.closed:
            return ""
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return ""
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 4096))
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"

    def close(self) -> None:
        """Close its stdin, and kill it if that does not end it."""
        super().close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()


class CallReply(NamedTuple):
    """A tool's answer as it came over the protocol."""

    content: str
    is_error: bool
    tier: str | None
    """None if the episode had ended, or its reset did not ask for tiers."""
    ended: str | None
    latency_ms: float | None = None
    """How long the tool takes, if the episode samples latencies."""


def parse_call_result(result: dict[str, Any]) -> CallReply:
    """Parse the result of `tools/call`."""
    meta = result["_meta"]
    return CallReply(
        result["content"][0]["text"], result["isError"], meta.get("traceroom/tier"), meta["traceroom/ended"],
        meta.get("traceroom/latency_ms"))


TaskLookup = Callable[[str], dict[str, Any]]
"""A task's id -> its row of tasks.jsonl; InputError if there is none."""


class EnvironmentProcess:
    """The host's end of an environment process; callers in several threads take turns."""

    def __init__(self, transport: Transport, name: str, tasks: TaskLookup | None = None) -> None:
        """`tasks`: rows to pass with each reset, if the process has no tasks of its own (in an image)."""
        self.transport = transport
        self._name = name
        self._tasks = tasks
        self._lock = threading.Lock()
        self._pending = b""
        self._client = McpClient(self._replies, "the environment")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result; InputError if the environment rejects the request, Unavailable if the process is gone."""
        try:
            return self._client.request(method, params or {})
        except McpError as error:
            raise InputError(str(error), self._name) from error
        except OSError as error:
            raise Unavailable(str(error), self._name, "start it again") from error

    def open(self) -> Self:
        """Shake hands as an MCP client; if the process does not start, end it and raise Unavailable."""
        try:
            self.request("initialize", HELLO)
        except Unavailable:
            self.close()
            raise
        return self

    def tools(self) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = self.request("tools/list")["tools"]
        return tools

    def call(self, tool: str, arguments: dict[str, Any]) -> CallReply:
        return parse_call_result(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def prompt(self) -> str | None:
        """Return the question for a model if the last answer is `unknown` (this and the methods below need `--control`)."""
        prompt: str | None = self.request("traceroom/prompt")["prompt"]
        return prompt

    def supply(self, reply: str) -> CallReply:
        """Replace the last answer by a model's reply; InputError if the reply is no answer."""
        return parse_call_result(self.request("traceroom/supply", {"reply": reply}))

    def reset(self, task_id: str | None, seed: int = 0, perturbations: Sequence[str] = ()) -> dict[str, Any]:
        """Begin an episode: {"messages", "tools", "limits"}."""
        return self.request("traceroom/reset", {**self.reset_params(task_id, seed, perturbations), "tiers": True})

    def reset_params(self, task_id: str | None, seed: int = 0, perturbations: Sequence[str] = ()) -> dict[str, Any]:
        """Return the parameters of `traceroom/reset` for an agent's episode; InputError if there is no such task to pass."""
        row = {} if self._tasks is None or task_id is None else {"task": self._tasks(task_id)}
        return {"task_id": task_id, **row, "seed": seed, "perturbations": list(perturbations)}

    def forward(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to an agent's own request unchanged; the caller decides which requests an agent may make."""
        (reply,) = self._replies(message)
        return reply

    def say(self, text: str) -> str | None:
        """Return the user's reply, None if the user has nothing more to say."""
        reply: str | None = self.request("traceroom/say", {"text": text})["reply"]
        return reply

    def finish(self) -> str | None:
        ended: str | None = self.request("traceroom/finish")["ended"]
        return ended

    def journal(self) -> list[dict[str, Any]]:
        """Return the episode's steps so far: all that a grader gets."""
        rows: list[dict[str, Any]] = self.request("traceroom/journal")["journal"]
        return rows

    def close(self) -> None:
        self.transport.close()

    def _replies(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        try:
            with self._lock:
                self.transport.send(json.dumps(message).encode() + b"\n")
                ends = time.monotonic() + ANSWER_S
                chunks = [self._pending]
                while b"\n" not in chunks[-1]:
                    data = self.transport.receive(max(0.0, ends - time.monotonic()))
                    if not data:
                        raise OSError("it ended")
                    chunks.append(data)
                line, _, self._pending = b"".join(chunks).partition(b"\n")
                reply: dict[str, Any] = json.loads(line)
        except (OSError, ValueError) as error:
            reason = self.transport.last_error_line()
            raise Unavailable(f"the environment process is gone ({reason or error})", self._name, "start it again") from error
        yield reply


def episode_options(task_id: str | None, seed: int = 0, control: bool = True) -> list[str]:
    """Return the runtime's command-line options for an episode; containers and local processes share them."""
    task = ["--task", task_id] if task_id is not None else []
    return [*task, "--seed", str(seed), *(["--control"] if control else [])]


def runtime_command(directory: Path, bindings: Mapping[str, str] | None = None) -> list[str]:
    """Return the command that starts an environment's own runtime, isolated from this process's packages and paths unless
    `bindings` (tool -> source) name its user's own code."""
    read_manifest(directory)
    bound = [f"--bind={tool}={source}" for tool, source in sorted((bindings or {}).items())]
    isolated = [] if bound else ["-I", "-S"]
    return [sys.executable, *isolated, "-B", str(directory / "runtime"), "--environment", str(directory), *bound]


def start_process(
    directory: Path, task_id: str | None = None, seed: int = 0, bindings: Mapping[str, str] | None = None
) -> EnvironmentProcess:
    """Start a local process with control; Unavailable if it does not start (an unknown task …)."""
    command = runtime_command(directory.resolve(), bindings) + episode_options(task_id, seed)
    return EnvironmentProcess(LocalProcess(command, os.environ if bindings else None), str(directory)).open()
