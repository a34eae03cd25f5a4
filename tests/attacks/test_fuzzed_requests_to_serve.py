"""Fuzzed requests to the MCP server: no crash, no 5xx, no lost journal, no dead task."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.fuzz import Fuzz
from tests.attacks.report import Report, counted
from tests.attacks.requests import METHODS, FuzzedRequest, RawClient, Tally, fuzzed_headers, path_text
from tests.attacks.servers import HELLO, PATIENCE_S, HttpClient, command, rows
from tests.rooms import TASK, write_rewards, write_room

REQUESTS = 100_000
TOKEN = "a-token-of-the-grader"
PATHS = (b"/mcp", b"/mcp", b"/mcp", b"/episode", b"/episode/say", b"/episode/finish", b"/grade", b"/health", b"/", b"/mcp/",
         b"*", b"//mcp", b"/mcp%00", b"/episode/say/../finish")
METHOD_NAMES = (
    "initialize", "ping", "tools/list", "tools/call", "tools/call", "prompts/list", "prompts/get", "resources/list",
    "resources/read", "resources/templates/list", "notifications/initialized", "traceroom/reset", "traceroom/close",
    "traceroom/journal", "logging/setLevel")
TOOLS = ("read_sign", "open_door", "say", "finish", "grade", "episodes")


def message(fuzz: Fuzz) -> Any:
    """Return a JSON-RPC message, mostly with something hostile in it."""
    name = fuzz.choice(METHOD_NAMES)
    params: Any = {
        "tools/call": {"name": fuzz.choice(TOOLS), "arguments": fuzz.choice((
            {"at": "gate"}, {"door": "7"}, {"text": "hello"}, {"at": fuzz.value()}, fuzz.value()))},
        "prompts/get": {"name": fuzz.choice(("task", "policy", fuzz.value()))},
        "resources/read": {"uri": fuzz.choice(("traceroom://episode/task", "traceroom://episode/user", fuzz.value()))},
        "initialize": HELLO["params"]}.get(name, {})
    whole = {"jsonrpc": "2.0", "id": fuzz.choice((1, "a", 1.5)), "method": name, "params": params}
    return whole if fuzz.random() < 0.4 else fuzz.changed(whole)


def request(fuzz: Fuzz, sessions: list[bytes]) -> FuzzedRequest:
    """Return a request to a path of the server, mostly with a session."""
    path = fuzz.choice(PATHS)
    if fuzz.random() < 0.05:
        path += b"?" + fuzz.choice((b"task=", b"seed=", b"perturbations=", b"talk=", b"")) + path_text(fuzz)
    elif fuzz.random() < 0.03:
        path = b"/" + path_text(fuzz)
    if path.startswith(b"/episode"):
        body = fuzz.written(fuzz.choice(({"text": fuzz.text()}, {"text": fuzz.value()}, fuzz.value())))
    else:
        body = fuzz.written(message(fuzz))
    usual = {b"Content-Type": b"application/json", b"Accept": b"application/json", b"MCP-Protocol-Version": b"2025-06-18"}
    if sessions and fuzz.random() < 0.85:
        usual[b"Mcp-Session-Id"] = fuzz.choice(sessions)
    if path.startswith(b"/grade"):
        usual[b"Authorization"] = f"Bearer {TOKEN}".encode()
    method = b"POST" if fuzz.random() < 0.8 else fuzz.choice(METHODS)
    if method == b"DELETE" and fuzz.random() < 0.9:
        method = b"GET"
    return FuzzedRequest(method, path, fuzzed_headers(fuzz, usual), body)


def attack(folder: Path, share: float) -> Report:
    """Fuzz one server, then look at its health, its journals, and whether sessions still end."""
    room, kept = write_room(folder / "out" / "environments" / "hall"), folder / "journals.jsonl"
    write_rewards(room)
    fuzz, tally, n = Fuzz(3), Tally(), counted(REQUESTS, share, 500)
    played: set[str] = set()
    with command("serve", room, "--task", TASK, "--journals", kept, "--grade", "--idle", "8",
                 TRACEROOM_GRADE_TOKEN=TOKEN) as server:
        client, sessions = RawClient(server), list[bytes]()
        for number in range(n):
            if number % 50 == 0 or not sessions:
                opening = FuzzedRequest(b"POST", b"/mcp", ((b"Content-Type", b"application/json"),), json.dumps(HELLO).encode())
                _, headers, _ = tally.send(client, opening, server)
                sessions = [*sessions[-20:], headers.get("mcp-session-id", "").encode()]
                with HttpClient(server) as honest:
                    honest.headers["Mcp-Session-Id"] = sessions[-1].decode()
                    spoken = honest.send("POST", "/episode/say", json.dumps({"text": f"mark {number}"}))
                    if spoken.status == 200:
                        played.add(f"mark {number}")
            tally.send(client, request(fuzz, sessions), server)
        client.close()
        until = time.monotonic() + PATIENCE_S
        with HttpClient(server) as honest:
            while honest.health()["episodes"] and time.monotonic() < until:
                time.sleep(0.5)
            health = honest.health()
        if health["episodes"] or health["lost"] or health["unstored"]:
            tally.note(f"after all: {health}")
    stored = {step["content"] for row in rows(kept) for step in row["journal"] if step.get("kind") == "say"}
    for mark in sorted(played - stored):
        tally.note(f"the journal with {mark!r} is lost")
    if not all(tally.statuses[status] for status in (200, 202, 400, 404, 405)):
        tally.note(f"the requests are too much alike: {tally.statuses}")
    return Report(tally.n_sent, tuple(tally.examples.values()), {"fuzzed_requests_bad": tally.n_bad})


@pytest.mark.slow
def test_fuzzed_requests_do_not_harm_the_mcp_server(tmp_path: Path) -> None:
    report = attack(tmp_path, 0.01)
    assert report.problems == () and report.n_tried >= 1000
