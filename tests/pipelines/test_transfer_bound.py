"""Policies play in an environment and on a real service on loopback, over HTTP and MCP, and both are compared."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pipelines.cli import app
from pipelines.rollouts.real import parse_verdict
from tests.conftest import ROOT
from tests.endpoint import chatting
from tests.manual import blocks
from tests.rooms import TASK, write_rewards, write_room
from warehouse.errors import EpisodeFailed

OPENING = [{"tool": "open_door", "arguments": {"door": "7"}}]
CAREFUL = """
def policy(observation):
    last = observation.messages[-1]
    if not observation.n_turns:
        return {"tool": "read_sign", "arguments": {"at": "gate"}}
    if observation.n_turns == 1 and "gap" in last["content"]:
        return [{"tool": "open_door", "arguments": {"door": "7"}}]
    return "It is open." if observation.n_turns == 2 else None
"""
AGENT = """
import json, os, urllib.request
def rpc(method, **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    request = urllib.request.Request(os.environ["TRACEROOM_MCP_URL"], json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request))["result"]
rpc("initialize", protocolVersion="2025-06-18")
rpc("tools/call", name="read_sign", arguments={"at": "gate"})
rpc("tools/call", name="open_door", arguments={"door": "7"})
rpc("tools/call", name="say", arguments={"text": "It is open."})
rpc("tools/call", name="finish", arguments={})
"""
TOOLS = """
state = {"door": "7", "state": "closed"}

def reset(**about):
    state["state"] = "closed"
    return ""

def verdict(journal, **about):
    return state["state"] == "open"

def open_door(door):
    if state["state"] == "open":
        raise ValueError("open already")
    state["state"] = "open"
    return state

TOOLS = {"open_door": open_door, "read_sign": lambda at: "Mind the gap"}
"""


class Door(HTTPServer):
    """A door that opens once, and a sign; it can be closed again, and says whether it was opened as it should be."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.is_open = False
        self.sign, self.answer_to_opening = "Closed today", '{"state":"open","door":"7"}'
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def answer(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Return the answer, and whether it is an error."""
        self.asked.append((tool, arguments))
        if tool == "reset":
            self.is_open = False
            return "", False
        if tool == "verdict":
            spoken = any(row["kind"] == "say" for row in arguments["journal"])
            return json.dumps({"success": self.is_open and spoken}), False
        if tool == "read_sign":
            return self.sign, False
        was_open, self.is_open = self.is_open, True
        return ("the door is open already", True) if was_open else (self.answer_to_opening, False)


class _Handler(BaseHTTPRequestHandler):
    server: Door

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/mcp":
            content, is_error = self.server.answer(asked["tool"], asked["arguments"])
            return self._send(409 if is_error else 200, content)
        result: dict[str, Any] = {}
        if asked["method"] == "tools/call":
            content, is_error = self.server.answer(asked["params"]["name"], asked["params"]["arguments"])
            result = {"content": [{"type": "text", "text": content}], "isError": is_error}
        return self._send(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) if "id" in asked else "")

    def _send(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def door() -> Iterator[Door]:
    server = Door()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def room(tmp_path: Path) -> Path:
    made = write_room(tmp_path / "environments" / "house")
    write_rewards(made)
    for name, moves in (("talking", [*OPENING, {"say": "It is open."}]), ("silent", OPENING), ("idle", [{"say": "No."}])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(move) + "\n" for move in moves))
    (tmp_path / "careful.py").write_text(CAREFUL)
    return made


def _transfer(room: Path, *options: str, policies: tuple[str, ...] = ("talking.jsonl", "idle.jsonl")) -> Result:
    folder = room.parent.parent
    return CliRunner().invoke(app, ["transfer", str(room), "--json", *options, *(
        part for name in policies for part in ("--policy", f"script:{folder / name}"))])


def test_each_disagreement_has_its_cause(room: Path, door: Door) -> None:
    url = f"http:http://127.0.0.1:{door.server_port}/"
    done = _transfer(room, "--bind", url, "--reset", url, "--verdict", url,
                     policies=("talking.jsonl", "idle.jsonl", "silent.jsonl", "careful.py"))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    rates = {row["policy"].split()[0].removeprefix("script:"): (row["environment"], row["real"]) for row in found["policies"]}
    assert rates == {"talking.jsonl": (1, 1), "idle.jsonl": (0, 0), "silent.jsonl": (1, 0), "careful.py": (1, 0)}
    shares = {row["cause"]: (row["n"], row["share"], row["tools"], row["tasks"]) for row in found["cause_shares"]}
    assert shares == {"reward_wrong": (1, 0.5, {}, [TASK]), "answer_wrong": (1, 0.5, {"read_sign": 1}, [TASK])}
    about = {"task_id": TASK, "session_ids": ["s1"], "starts_at": None, "seed": 0, "attempt": 0}
    assert door.asked[:2] == [("reset", about), ("open_door", {"door": "7"})]
    assert [tool for tool, _ in door.asked].count("open_door") == 2, "the grader asks nothing again"
    n_asked = len(door.asked)
    again = _transfer(room, "--bind", url, "--reset", url, "--verdict", url, policies=("careful.py",))
    assert json.loads(again.stdout)["causes"] == found["causes"] and len(door.asked) == n_asked, "nothing is played twice"


def test_the_reward_judges_by_the_answers_of_a_service_over_mcp(room: Path, door: Door) -> None:
    url = f"http://127.0.0.1:{door.server_port}"
    done = _transfer(room, "--bind", f"mcp:{url}/mcp", "--bind", f"read_sign=http:{url}/", "--group", "2")
    assert done.exit_code == 0 and "Without --reset" in done.stderr, done.output
    found = json.loads(done.stdout)
    assert [(row["environment"], row["real"], row["n"]) for row in found["policies"]] == [(1, 0.5, 2), (0, 0, 2)]
    assert found["causes"] == {"answer_wrong": 1}, "the second attempt finds the door open"
    fresh = json.loads(_transfer(room, "--bind", f"mcp:{url}/mcp", "--reset", f"http:{url}/", "--group", "2").stdout)
    assert fresh["causes"] == {} and fresh["policies"][0]["real"] == 1


def test_an_agent_plays_in_both_places(room: Path, door: Door) -> None:
    folder, url = room.parent.parent, f"http:http://127.0.0.1:{door.server_port}/"
    (folder / "agent.py").write_text(AGENT)
    agent = f"{sys.executable} {folder / 'agent.py'}"
    options = ("--bind", url, "--reset", url, "--verdict", url, "--agent", agent, "--group", "2")
    found = json.loads(_transfer(room, *options, policies=()).stdout)
    assert [(row["policy"], row["n"], row["environment"], row["real"]) for row in found["policies"]] == [
        (f"none by {agent}", 2, 1, 1)]
    assert [tool for tool, _ in door.asked] == ["reset", "read_sign", "open_door", "verdict"] * 2
    with chatting(lambda asked: {"content": "No."}) as endpoint:
        talking = f"{sys.executable} {ROOT / 'tests' / 'pipelines' / 'agents' / 'loop.py'} chat"
        done = _transfer(room, *options[:6], "--agent", talking, "--policy", f"openai:m@{endpoint.url}", policies=())
    assert [(row["environment"], row["real"]) for row in json.loads(done.stdout)["policies"]] == [(1, 1), (0, 0)]


def test_a_service_that_a_command_starts_is_fresh_in_each_episode(room: Path, tmp_path: Path) -> None:
    other = write_room(tmp_path / "other")
    command = f"mcp:{sys.executable} {other / 'runtime'} --environment {other} --task {TASK}"
    found = json.loads(_transfer(room, "--bind", command, "--group", "2", policies=("talking.jsonl",)).stdout)
    assert [(row["n"], row["environment"], row["real"]) for row in found["policies"]] == [(2, 1, 1)]


def test_a_write_that_shows_nothing_leaves_the_episode_unscored(room: Path, door: Door) -> None:
    door.answer_to_opening = "done"
    url = f"http:http://127.0.0.1:{door.server_port}/"
    options = ("--bind", url, "--reset", url)
    assert _transfer(room, *options, policies=("talking.jsonl",)).exit_code == 1, "its only pair is not scored"
    judged = json.loads(_transfer(room, *options, "--verdict", url, policies=("talking.jsonl",)).stdout)
    assert [(row["environment"], row["real"]) for row in judged["policies"]] == [(1, 1)]


def test_the_page_of_how_to_is_a_service(room: Path, tmp_path: Path) -> None:
    (service,) = (block for block in blocks(ROOT / "docs" / "howto" / "transfer.md") if block.file == "my_service.py")
    (tmp_path / "my_service.py").write_text(service.text)
    (tmp_path / "my_tools.py").write_text(TOOLS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http:http://127.0.0.1:{port}"
    process = subprocess.Popen([sys.executable, "my_service.py", str(port)], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        _wait(port)
        found = json.loads(_transfer(room, "--bind", url, "--reset", url, "--verdict", url, "--group", "2").stdout)
    finally:
        process.kill()
        process.wait()
    assert [(row["n"], row["environment"], row["real"]) for row in found["policies"]] == [(2, 1, 1), (2, 0, 0)]


def _wait(port: int) -> None:
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the service does not start")


@pytest.mark.parametrize(("options", "reason"), [
    (["--bind", "open_door=http:http://127.0.0.1:1/"], "tools without a real service: read_sign"),
    (["--bind", "http:http://a/", "--bind", "http:http://b/"], "two sources for all tools"),
    (["--bind", "magic:a"], "invalid source 'magic:a'"),
    (["--bind", "http:http://a/", "--reset", "now"], "invalid source 'now'"),
    ([], "nothing to compare with")])
def test_what_cannot_be_bound_is_one_sentence(room: Path, options: list[str], reason: str) -> None:
    done = _transfer(room, *options)
    assert done.exit_code != 0 and reason in f"{done.stderr} {done.exception}"


def test_a_service_that_is_gone_fails_the_episode(room: Path) -> None:
    done = _transfer(room, "--bind", "http:http://127.0.0.1:1/")
    assert done.exit_code != 0 and "does not answer" in f"{done.stderr} {done.exception}"
    assert not (room.parent.parent / "transfer" / "house.json").exists()


def test_a_verdict_is_a_truth_value_or_nothing() -> None:
    assert [parse_verdict(text, "s") for text in ("true", "0", "null", '{"success": 1}')] == [True, False, None, True]
    for text in ("yes", "2", "[]", "{}"):
        with pytest.raises(EpisodeFailed, match="no verdict"):
            parse_verdict(text, "s")
