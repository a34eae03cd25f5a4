"""Fuzzed requests to the OpenEnv server, over HTTP and WebSocket: no crash, no 5xx, no lost journal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.fuzz import Fuzz
from tests.attacks.report import Report, counted
from tests.attacks.requests import METHODS, FuzzedRequest, RawClient, Tally, fuzzed_headers, path_text
from tests.attacks.servers import HttpClient, command, rows
from tests.peers import with_openenv
from tests.rooms import TASK, write_rewards, write_room

REQUESTS = 100_000
PATHS = (b"/reset", b"/step", b"/step", b"/state", b"/schema", b"/metadata", b"/health", b"/mcp", b"/mcp", b"/hall/splits",
         b"/hall/tasks", b"/hall/task", b"/hall/num_tasks", b"/hall/task_range", b"/", b"/openapi.json")
SOCKET = """
import asyncio, json, sys, websockets
async def main():
    url, texts = sys.argv[1], json.load(sys.stdin)
    n_answers = n_closed = 0
    socket = await websockets.connect(url, max_size=None)
    for text in texts:
        try:
            await socket.send(bytes.fromhex(text[4:]) if text.startswith("hex:") else text)
            await asyncio.wait_for(socket.recv(), 60)
            n_answers += 1
        except websockets.ConnectionClosed as error:
            if error.rcvd is None or error.rcvd.code in (1006, 1011):
                n_closed += 1
                print("closed", error, text[:300], file=sys.stderr)
            socket = await websockets.connect(url, max_size=None)
    await socket.close()
    print(json.dumps([n_answers, n_closed]))
asyncio.run(main())
"""


def action(fuzz: Fuzz) -> Any:
    """Return an action, mostly with something hostile in it."""
    tool = fuzz.choice(("read_sign", "open_door", fuzz.text()))
    whole: Any = fuzz.choice((
        {"type": "call_tool", "tool_name": tool, "arguments": {"at": fuzz.value()}}, {"type": "say", "text": fuzz.text()},
        {"type": "list_tools"}, {"type": "finish"}))
    return whole if fuzz.random() < 0.5 else fuzz.changed(whole)


def http_body(fuzz: Fuzz, path: bytes) -> Any:
    """Return a body for a path."""
    if path == b"/mcp":
        return fuzz.changed({"jsonrpc": "2.0", "id": 1, "method": fuzz.choice((
            "tools/list", "tools/call", "openenv/session/create", "openenv/session/close")), "params": {
                "name": "read_sign", "arguments": {"at": fuzz.value()}}})
    if path.startswith(b"/hall"):
        return fuzz.changed({"split": "train", "index": fuzz.choice((0, -1, 10 ** 30)), "start": 0, "stop": 1})
    begin = {"seed": fuzz.choice((0, 1, fuzz.value())), "task_id": fuzz.choice((TASK, None, fuzz.value())),
             "perturbations": fuzz.choice(([], ["latency"], fuzz.value()))}
    return fuzz.changed(begin if path == b"/reset" else {"action": action(fuzz)})


def socket_text(fuzz: Fuzz) -> str:
    """Return a WebSocket message: text that can go over the wire, else `hex:` and bytes."""
    kind = fuzz.choice(("reset", "step", "step", "step", "state", "mcp", "close" if fuzz.random() < 0.05 else "step"))
    data: Any = action(fuzz) if kind == "step" else http_body(fuzz, b"/reset") if kind == "reset" else http_body(fuzz, b"/mcp")
    data = fuzz.written({"type": kind, "data": data} if fuzz.random() < 0.8 else fuzz.changed({"type": kind, "data": data}))
    try:
        return data.decode()
    except UnicodeDecodeError:
        return json.dumps(action(fuzz))


def attack(folder: Path, share: float) -> Report:
    """Fuzz one server by HTTP, then by WebSocket, then play honestly."""
    python, kept = with_openenv(), folder / "journals.jsonl"
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    fuzz, tally, n = Fuzz(11), Tally(), counted(REQUESTS, share, 500)
    with command("serve", room, "--openenv", "--journals", kept, TRACEROOM_OPENENV_PYTHON=str(python)) as server:
        client = RawClient(server)
        for _ in range(n // 2):
            path = fuzz.choice(PATHS) if fuzz.random() < 0.95 else b"/" + path_text(fuzz)
            method = b"POST" if fuzz.random() < 0.8 else fuzz.choice(METHODS)
            usual = {b"Content-Type": b"application/json", b"Accept": b"application/json"}
            body = fuzz.written(http_body(fuzz, path))
            tally.send(client, FuzzedRequest(method, path, fuzzed_headers(fuzz, usual), body), server)
        client.close()
        texts = [socket_text(fuzz) for _ in range(n - n // 2)]
        done = subprocess.run(
            [python, "-c", SOCKET, f"ws://{server.host}:{server.port}/ws"], input=json.dumps(texts), capture_output=True,
            text=True, check=False)
        tally.n_sent += len(texts)
        n_answers, n_closed = json.loads(done.stdout) if done.returncode == 0 else (0, 1)
        for _ in range(n_closed):
            tally.note(f"a WebSocket was closed after an error: {done.stderr[-600:]}")
        with HttpClient(server) as honest:
            health = honest.send("GET", "/health")
            if health.status != 200:
                tally.note(f"/health gives {health.status}")
    for line in server.lines:
        if line.startswith(("Traceback", "ERROR")):
            tally.examples.setdefault(line, "".join(server.lines)[-3000:])
    if not n_answers or len(rows(kept)) == 0:
        tally.note(f"{n_answers} answers, {len(rows(kept))} journals")
    return Report(tally.n_sent, tuple(tally.examples.values()), {"fuzzed_requests_bad": tally.n_bad})


@pytest.mark.slow
def test_fuzzed_requests_do_not_harm_the_openenv_server(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
