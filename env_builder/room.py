"""A room apart from this process: what is sent to it and what comes back, as a local process or a container.

`Room` is the host's end: it speaks JSON-RPC lines (docs/containers.md) over anything that carries bytes; `channel.py` is the
same for a host that asks for many episodes at once.
`start_process` starts the environment's own runtime as a process of this user: it keeps the room's mistakes apart, not
its files. Against an agent that may run programs of its own as this user, use a container (`image.start`).
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from env_builder.carriers import ANSWER_S, Carrier, Process
from env_builder.layers import read_manifest
from warehouse.errors import InputError, Unavailable

HELLO = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "traceroom", "version": "1"}}
"""How a host shakes hands: as an MCP client of a revision that knows texts alone, since it reads structures out of them."""

class Answer(NamedTuple):
    """A tool's answer as it came over the protocol."""

    content: str
    is_error: bool
    tier: str | None
    """None where the episode had ended."""
    ended: str | None
    latency_ms: float | None = None
    """How long the tool takes, where the episode draws it."""


def answer_of(result: dict[str, Any]) -> Answer:
    """A tool's answer out of the result of `tools/call`."""
    marks = result["_meta"]
    return Answer(
        result["content"][0]["text"], result["isError"], marks.get("traceroom/tier"), marks["traceroom/ended"],
        marks.get("traceroom/latency_ms"))


Tasks = Callable[[str], dict[str, Any]]
"""A task's id -> its row of tasks.jsonl; InputError where there is none."""


class Closing(ABC):
    """Is closed where its `with` ends."""

    @abstractmethod
    def close(self) -> None:
        """End it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Room(Closing):
    """The host's end of one room; of several callers one after the other."""

    def __init__(self, carrier: Carrier, name: str, tasks: Tasks | None = None) -> None:
        """`tasks`: where the room has none of its own (in an image), those that it is handed as its episodes begin."""
        self.carrier = carrier
        """What its bytes go over."""
        self._name = name
        self._tasks = tasks
        self._alone = threading.Lock()
        self._pending = b""
        self._n_sent = 0

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Result of one request; InputError where the room refuses it, Unavailable where the room is gone."""
        self._n_sent += 1
        reply = self._exchange({"jsonrpc": "2.0", "id": self._n_sent, "method": method, "params": params or {}})
        if "error" in reply:
            raise InputError(f"the room refuses {method}: {reply['error']['message']}", self._name)
        result: dict[str, Any] = reply["result"]
        return result

    def open(self) -> None:
        """Shake hands, as an MCP client does."""
        self.request("initialize", HELLO)

    def tools(self) -> list[dict[str, Any]]:
        """MCP descriptors of the tools."""
        tools: list[dict[str, Any]] = self.request("tools/list")["tools"]
        return tools

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """A tool's answer."""
        return answer_of(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def prompt(self) -> str | None:
        """What to ask a model where the last call was answered `unknown`; needs a room with control."""
        prompt: str | None = self.request("traceroom/prompt")["prompt"]
        return prompt

    def supply(self, reply: str) -> Answer:
        """Put a model's reply in the place of the last answer; InputError where it is none; needs a room with control."""
        return answer_of(self.request("traceroom/supply", {"reply": reply}))

    def reset(self, task_id: str | None, seed: int = 0, conditions: Sequence[str] = ()) -> dict[str, Any]:
        """Begin an episode: {"messages", "tools", "limits"}; needs a room with control."""
        return self.request("traceroom/reset", self.asked(task_id, seed, conditions))

    def asked(self, task_id: str | None, seed: int = 0, conditions: Sequence[str] = ()) -> dict[str, Any]:
        """What `traceroom/reset` takes for such an episode; InputError where there is no such task to hand it."""
        handed = {} if self._tasks is None or task_id is None else {"task": self._tasks(task_id)}
        return {"task_id": task_id, **handed, "seed": seed, "conditions": list(conditions)}

    def pass_on(self, message: dict[str, Any]) -> dict[str, Any]:
        """The room's reply to an agent's own request, as it stands; Unavailable where the room is gone. What an agent may ask
        at all is for the caller to say."""
        return self._exchange(message)

    def say(self, text: str) -> str | None:
        """The user's answer, or None when the user has nothing more to say; needs a room with control."""
        reply: str | None = self.request("traceroom/say", {"text": text})["reply"]
        return reply

    def finish(self) -> str | None:
        """End the episode; needs a room with control."""
        ended: str | None = self.request("traceroom/finish")["ended"]
        return ended

    def journal(self) -> list[dict[str, Any]]:
        """The episode's steps so far: all that a grader gets; needs a room with control."""
        rows: list[dict[str, Any]] = self.request("traceroom/journal")["journal"]
        return rows

    def close(self) -> None:
        """End the room."""
        self.carrier.close()

    def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request; who asks from another thread waits."""
        try:
            with self._alone:
                self.carrier.send(json.dumps(message).encode() + b"\n")
                reply: dict[str, Any] = json.loads(self._line())
        except (OSError, ValueError) as error:
            said = self.carrier.last_words()
            raise Unavailable(f"the room is gone ({said or error})", self._name, "start it again") from error
        return reply

    def _line(self) -> bytes:
        ends = time.monotonic() + ANSWER_S
        parts = [self._pending]
        while b"\n" not in parts[-1]:
            data = self.carrier.receive(max(0.0, ends - time.monotonic()))
            if not data:
                raise OSError("it ended")
            parts.append(data)
        line, _, self._pending = b"".join(parts).partition(b"\n")
        return line


def arguments(task_id: str | None, seed: int = 0, control: bool = True) -> list[str]:
    """Command line of a room that begins with a task; what a container and a process share."""
    task = ["--task", task_id] if task_id is not None else []
    return [*task, "--seed", str(seed), *(["--control"] if control else [])]


def begun(room: Room) -> Room:
    """The room, opened; ended again where it does not begin: Unavailable."""
    try:
        room.open()
    except Unavailable:
        room.close()
        raise
    return room


def command(directory: Path, bindings: Mapping[str, str] | None = None) -> list[str]:
    """How an environment's own runtime is started on this machine: isolated from this process's packages and paths, but
    where something is bound (`bindings`: tool -> source), which is its user's own code."""
    read_manifest(directory)
    bound = [f"--bind={tool}={source}" for tool, source in sorted((bindings or {}).items())]
    apart = [] if bound else ["-I", "-S"]
    return [sys.executable, *apart, "-B", str(directory / "runtime"), "--environment", str(directory), *bound]


def start_process(
    directory: Path, task_id: str | None = None, seed: int = 0, bindings: Mapping[str, str] | None = None
) -> Room:
    """A room with control, as a local process; Unavailable where it does not begin (a task that it does not have …)."""
    line = command(directory.resolve(), bindings) + arguments(task_id, seed)
    return begun(Room(Process(line, os.environ if bindings else None), str(directory)))
