"""Many episodes in one room: each as if it were alone, over lines and over a Unix socket."""

from __future__ import annotations

import json
import random
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from env_builder.process import episode_options, runtime_command
from env_builder.runtime import Environment, mcp
from tests.rooms import TASK, write_room

N_EPISODES = 1000
STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tools/call", {"name": "read_sign", "arguments": {"at": "gate"}}),
    ("tools/call", {"name": "open_door", "arguments": {"door": "7"}}),
    ("tools/call", {"name": "open_door", "arguments": {"door": "8"}}),
    ("traceroom/say", {"text": "Which one?"}),
    ("traceroom/finish", {}),
)
Steps = list[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_room(tmp_path_factory.mktemp("rooms") / "hall")


def line(name: str | None, method: str, params: dict[str, Any] | None = None) -> bytes:
    meta = {} if name is None else {"_meta": {"traceroom/episode": name}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), **meta}}).encode() + b"\n"


def alone(room: Path, steps: Steps) -> tuple[list[str], list[dict[str, Any]]]:
    """State hash after each step, and the journal, of an episode that has a room for itself."""
    environment = Environment.load(room)
    environment.reset(TASK)
    hashes = []
    for method, params in steps:
        if method == "tools/call":
            environment.call(params["name"], params["arguments"])
        elif method == "traceroom/say":
            environment.say(params["text"])
        else:
            environment.finish()
        hashes.append(environment.state_hash())
    return hashes, list(environment.journal)


def test_a_thousand_interleaved_episodes_are_each_as_if_alone(room: Path) -> None:
    draw = random.Random(7)
    scripts = [[draw.choice(STEPS) for _ in range(4)] for _ in range(40)]
    plans = [scripts[n % len(scripts)] for n in range(N_EPISODES)]
    server = mcp.McpServer(Environment.load(room), control=True)

    def ask(name: str, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = server.answer(line(name, method, params))["result"]
        return result

    for n in range(N_EPISODES):
        ask(f"e{n}", "traceroom/reset", {"task_id": TASK})
    hashes: list[list[str]] = [[] for _ in plans]
    waiting = [(n, k) for n in range(N_EPISODES) for k in range(4)]
    draw.shuffle(waiting)
    for n, _ in waiting:  # the next step of an episode drawn at random
        method, params = plans[n][len(hashes[n])]
        ask(f"e{n}", method, params)
        hashes[n].append(ask(f"e{n}", "traceroom/state")["state_hash"])
    expected = [alone(room, script) for script in scripts]
    assert len({tuple(hashes_alone) for hashes_alone, _ in expected}) >= 8
    for n in range(N_EPISODES):
        assert (hashes[n], ask(f"e{n}", "traceroom/close")["journal"]) == expected[n % len(scripts)]
    assert "no episode 'e0' here" in str(server.answer(line("e0", "traceroom/state")))


def test_an_episode_is_begun_by_control_alone_and_kept_only_once_it_has_begun(room: Path) -> None:
    server = mcp.McpServer(Environment.load(room), control=True)

    def refused(name: Any, method: str, params: dict[str, Any] | None = None) -> str:
        message: str = server.answer(line(name, method, params))["error"]["message"]
        return message

    assert refused("a", "traceroom/reset", {"task_id": "none of ours"}).startswith("no task")
    assert "no episode 'a' here; traceroom/reset begins one" in refused("a", "tools/list")
    assert "no episode ['a'] here" in refused(["a"], "traceroom/reset", {"task_id": TASK})
    assert "result" in server.answer(line("a", "traceroom/reset", {"task_id": TASK}))
    agent = mcp.McpServer(Environment.load(room))
    assert "no method 'traceroom/reset'" in agent.answer(line("a", "traceroom/reset"))["error"]["message"]
    assert "no episode 'a' here" in agent.answer(line("a", "tools/list"))["error"]["message"]


@pytest.mark.parametrize(("version", "structured"), [("2025-03-26", False), ("2025-06-18", True), ("2025-11-25", True)])
def test_an_answer_that_is_a_json_object_is_structured_where_the_revision_knows_that(
    room: Path, version: str, structured: bool,
) -> None:
    server = mcp.McpServer(Environment.load(room))
    server.begin(TASK)
    server.answer(line(None, "initialize", {"protocolVersion": version}))
    door = server.answer(line(None, "tools/call", {"name": "open_door", "arguments": {"door": "7"}}))["result"]
    assert door.get("structuredContent") == ({"door": "7", "state": "open"} if structured else None)
    sign = server.answer(line(None, "tools/call", {"name": "read_sign", "arguments": {"at": "gate"}}))["result"]
    assert "structuredContent" not in sign and door["content"][0]["type"] == "text"


@pytest.fixture
def listening(room: Path, tmp_path: Path) -> Iterator[Path]:
    """Yield a room with control that listens at a Unix socket."""
    path = tmp_path / "room.sock"
    process = subprocess.Popen(
        [*runtime_command(room), *episode_options(TASK), "--socket", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={})
    assert process.stdin and process.stdout
    assert process.stdout.readline() == b"listening\n"
    yield path
    process.stdin.close()
    assert process.wait(timeout=200) == 0
    process.stdout.close()
    assert not path.exists()


class Client:
    """One connection to a room that listens."""

    def __init__(self, path: Path) -> None:
        self.stream = socket.socket(socket.AF_UNIX)
        self.stream.settimeout(200)
        self.stream.connect(str(path))
        self._lines = self.stream.makefile("rb")

    def ask(self, name: str | None, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.stream.sendall(line(name, method, params))
        reply: dict[str, Any] = json.loads(self._lines.readline())
        return reply

    def close(self) -> None:
        self._lines.close()
        self.stream.close()


def test_each_connection_has_episodes_of_its_own(listening: Path) -> None:
    assert listening.stat().st_mode & 0o777 == 0o600
    one, other = Client(listening), Client(listening)
    one.ask("a", "traceroom/reset", {"task_id": TASK})
    one.ask("a", *STEPS[1])
    assert "no episode 'a' here" in other.ask("a", "traceroom/state")["error"]["message"]
    one.ask(None, *STEPS[1])
    begun = other.ask(None, "traceroom/state")["result"]["state_hash"]
    assert one.ask(None, "traceroom/state")["result"]["state_hash"] != begun
    assert len(one.ask("a", "traceroom/journal")["result"]["journal"]) == 1
    one.close()
    wrong = other.ask(None, "traceroom/reset", {"task": {}})
    assert "the task is not a row of tasks.jsonl" in wrong["error"]["message"]
    again = Client(listening)
    assert "error" in again.ask("a", "traceroom/state")
    again.close()
    other.close()


def test_who_says_no_more_hears_the_rest(listening: Path) -> None:
    client = Client(listening)
    client.stream.sendall(line(None, "tools/list") * 2000 + line(None, "ping").rstrip())
    client.stream.shutdown(socket.SHUT_WR)
    heard = client._lines.read().splitlines()
    assert len(heard) == 2001 and json.loads(heard[-1])["result"] == {}
    client.close()


def test_who_does_not_read_holds_up_nobody(listening: Path) -> None:
    deaf, other = Client(listening), Client(listening)
    deaf.stream.setblocking(False)
    sent, requests = 0, line(None, "tools/list") * 200
    with pytest.raises(BlockingIOError):  # the room stops reading what it cannot answer
        while sent < 64 * 2**20:
            sent += deaf.stream.send(requests)
    for _ in range(50):
        assert "result" in other.ask(None, "ping")
    deaf.close()
    assert "result" in other.ask(None, "ping")
    other.close()
