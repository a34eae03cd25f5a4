"""A user binds the real thing to a tool: a function, an HTTP service, an MCP server, or an entry point of a package."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from env_builder.runtime import Environment
from env_builder.runtime.bindings import Ask, FirstBinding, Reply
from tests.rooms import CLOSED, OPEN, TASK, write_room


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    environment = Environment.load_room(write_room(tmp_path / "house"))
    environment.reset(TASK)
    return environment


class _Sign(BaseHTTPRequestHandler):
    """A service that reads signs; as an MCP server it answers in events."""

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/mcp":
            self._mcp(told)
        else:
            self._answer(404 if told["arguments"]["at"] == "moon" else 200, f"{told['tool']}: {told['arguments']['at']}")

    def _mcp(self, told: dict[str, object]) -> None:
        if "id" not in told:
            return self._answer(202, "")
        if told["method"] == "tools/call" and self.headers["Mcp-Session-Id"] != "s-1":
            return self._answer(400, "")
        result = {"content": [{"type": "text", "text": "wet"}, {"type": "text", "text": " paint"}], "isError": False}
        notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
        reply = {"jsonrpc": "2.0", "id": told["id"], "result": result if told["method"] == "tools/call" else {}}
        events = "".join(f"event: message\r\ndata: {json.dumps(each)}\r\n\r\n" for each in (notice, reply))
        return self._answer(200, events, "text/event-stream")

    def _answer(self, status: int, text: str, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Mcp-Session-Id", "s-1")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Sign)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_what_is_on_record_comes_first_and_then_the_real_thing(env: Environment) -> None:
    asked: list[Ask] = []

    def sign(ask: Ask) -> Reply | None:
        asked.append(ask)
        seen = f"seen after {len(ask.write_calls)}: {ask.look('door', '7')['state']}"
        return Reply(seen) if ask.arguments["at"] == "roof" else None

    env.bind("read_sign", sign)
    assert env.call("read_sign", {"at": "gate"}).tier == "recorded" and not asked
    env.call("open_door", {"door": "7"})
    assert env.call("read_sign", {"at": "roof"}) == ("seen after 1: open", False, "bound")
    assert env.fork().call("read_sign", {"at": "roof"}).tier == "bound"
    assert env.call("read_sign", {"at": "hall"}).tier == "unknown", "it does not know either"
    env.reset(TASK)
    assert env.call("read_sign", {"at": "roof"}).content == "seen after 0: closed"
    with pytest.raises(KeyError, match="open_door, read_sign"):
        env.bind("fly", sign)


def test_a_first_binding_is_asked_whatever_is_on_record(env: Environment) -> None:
    replies = iter(["Mind the gap\n — 雨", "closed", '{"state": "open", "door": "7"}', "open already"])
    asked: list[Ask] = []

    def answer(ask: Ask) -> Reply:
        asked.append(ask)
        return Reply(next(replies), len(asked) == 4)

    for tool in ("read_sign", "open_door"):
        env.bind(tool, FirstBinding(answer))
    assert env.call("read_sign", {"at": "gate"}).tier == "recorded", "it says what is on record"
    assert env.call("read_sign", {"at": "gate"}) == ("closed", False, "bound")
    assert env.call("open_door", {"door": "7"}) == (OPEN, False, "recorded"), "the same as JSON: its change is on record"
    assert env.difference()["documents"] == {"door/7": OPEN}
    assert env.call("open_door", {"door": "7"}) == ("open already", True, "bound")
    env.reset(TASK)
    replies = iter(["Error: it is jammed"])
    assert env.call("open_door", {"door": "7"}) == ("Error: it is jammed", True, "bound"), "it says so, whatever its flag"
    assert env.difference()["documents"] == {}
    env.reset(TASK)
    replies = iter([OPEN])
    assert env.call("open_door", {"door": "7"}).tier == "recorded" and env.fork().difference()["documents"] == {"door/7": OPEN}
    env.bind("read_sign", lambda ask: Reply("seldom"))
    assert env.call("read_sign", {"at": "gate"}).content != "seldom", "a plain binding comes after the record"


def test_a_bound_write_changes_the_world(env: Environment) -> None:
    env.bind("open_door", lambda ask: Reply("ok", False, ((("door", ask.arguments["door"]), OPEN),)))
    assert env.call("open_door", {"door": "7", "wide": True}) == ("ok", False, "bound")
    assert env.difference()["documents"] == {"door/7": OPEN} and CLOSED != OPEN
    assert env.replay(TASK, env.journal).difference == env.difference()


def test_a_python_function_says_and_fails(env: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "signs_of_mine.py").write_text(
        "def read(at):\n    if at == 'moon':\n        raise LookupError('no moon')\n    return {'at': at}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    env.bind("read_sign", "python:signs_of_mine:read")
    assert env.call("read_sign", {"at": "roof"}) == ('{"at": "roof"}', False, "bound")
    assert env.call("read_sign", {"at": "moon"}) == ("no moon", True, "bound")
    assert env.call("read_sign", {"under": "moon"}) == ("missing a required argument: 'at'", True, "bound")


def test_services_over_http_and_mcp(env: Environment, service: str) -> None:
    env.bind("read_sign", f"http:{service}/signs")
    assert env.call("read_sign", {"at": "roof"}) == ("read_sign: roof", False, "bound")
    assert env.call("read_sign", {"at": "moon"}) == ("read_sign: moon", True, "bound")
    env.bind("read_sign", f"mcp:{service}/mcp")
    assert env.call("read_sign", {"at": "roof"}) == ("wet paint", False, "bound")
    env.bind("read_sign", "http:http://127.0.0.1:1/gone")
    with pytest.raises(OSError, match="refused"):
        env.call("read_sign", {"at": "roof"})


def test_another_room_is_a_server_over_stdio(env: Environment, tmp_path: Path) -> None:
    other = write_room(tmp_path / "other")
    env.bind("read_sign", f"mcp:{sys.executable} {other / 'runtime'} --environment {other} --task {TASK}")
    assert env.call("read_sign", {"at": "gate", "by": "night"}).is_error, "the other room does not know that"
    assert env.call("read_sign", {"at": "gate"}).tier == "recorded"


def test_an_entry_point_of_a_package_is_a_kind(env: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "signs_elsewhere.py").write_text("def made(what):\n    return lambda ask: what + ask.arguments['at']\n")
    package = tmp_path / "signs-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: signs\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[traceroom.bindings]\nsigns = signs_elsewhere:made\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    env.bind("read_sign", "signs:at the ")
    assert env.call("read_sign", {"at": "roof"}) == ("at the roof", False, "bound")
    with pytest.raises(ValueError, match=r"'magic'.*http, mcp, python, signs"):
        env.bind("read_sign", "magic:x")
