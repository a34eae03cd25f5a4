#!/usr/bin/env python3
"""What our servers cost beside the packages that they are made of, and whether they keep a thousand episodes apart.

    benchmarks/serving_protocols.py ENV [--sessions N] [--passes N]

ENV: OUT/environments/<name> of a run, with its rewards beside it. The calls of known solutions are made over --sessions (1000)
sessions that are open at once, a step of every session before the next.
`mcp_share_of_constant`: tool calls a second through `traceroom serve` over those of the official SDK serving a constant of the
answers' median length, alternating, medians of --passes (3); the journals that the server then writes are compared with
those of the same calls made in this process one episode after the other (`journal_differences`).
`openenv_steps_s`: the same steps through `traceroom serve --openenv`, a WebSocket for each session, server and room on one core
(where the system can hold them there) and the load on another; `openenv_constant_steps_s`: the package's own server of an
environment that does nothing, in the same way. The package is installed once, in an interpreter of its own.
Tables go to stderr; the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from serving_load import CONNECTIONS, Http, WebSocket, frame_of, timed

from env_builder.runtime import Environment
from pipelines.serving import openenv_server

ROOT = Path(__file__).resolve().parent.parent
SESSIONS, PASSES = 1000, 3
Call = tuple[str, dict[str, Any]]
Plays = list[tuple[str, list[Call]]]


def main() -> int:
    """Measure one environment and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--passes", type=int, default=PASSES)
    options = parser.parse_args()
    measured = figures(options.environment.resolve(), options.sessions, options.passes)
    print(json.dumps({"benchmark": "serving_protocols", "environment": options.environment.name, "figures": measured}))
    return 0


def figures(environment: Path, sessions: int = SESSIONS, passes: int = PASSES) -> dict[str, float]:
    """Every figure of this benchmark."""
    played = plays(environment, sessions)
    lengths = sorted(len(row["content"]) for _, journal in alone(environment, played).items() for row in journal)
    text = "x" * lengths[len(lengths) // 2]
    return {**mcp_figures(environment, played, text, passes), **openenv_figures(environment, played, text, passes)}


def plays(environment: Path, sessions: int) -> Plays:
    """(task, tool calls of its known solution) for so many sessions; tasks come again where there are fewer."""
    file = environment.parent.parent / "rewards" / environment.name / "solutions.jsonl"
    with file.open(encoding="utf-8") as lines:
        rows = sorted((json.loads(line) for line in lines), key=lambda row: row["task_id"])
    played = [(row["task_id"], [(step["tool"], step["arguments"]) for step in row["steps"] if "tool" in step]) for row in rows]
    played = [play for play in played if play[1]]
    return [played[n % len(played)] for n in range(sessions)]


def alone(environment: Path, played: Plays) -> dict[str, list[dict[str, Any]]]:
    """Task -> the journal of its calls, made in this process, one episode after the other."""
    room, journals = Environment.load(environment), {}
    for task_id, calls in dict(played).items():
        room.reset(task_id)
        for tool, arguments in calls:
            room.call(tool, arguments)
        journals[task_id] = list(room.journal)
    return journals


def mcp_figures(environment: Path, played: Plays, text: str, passes: int) -> dict[str, float]:
    """Our server and the constant one, turn by turn."""
    ours, theirs, slow, differences, opened = [], [], [], 0.0, 0
    expected = alone(environment, played)
    for _ in range(passes):
        with constant("mcp", text) as port:
            rate, _ = asyncio.run(mcp_rate(port, played, constant=True))
        theirs.append(rate)
        with tempfile.TemporaryDirectory() as scratch:
            journals = Path(scratch, "journals.jsonl")
            options = ["serve", str(environment), "--port", "0", "--journals", str(journals)]
            with served([sys.executable, "-P", "-m", "pipelines", *options], r"http://\S+?:(\d+)/mcp") as port:
                rate, took = asyncio.run(mcp_rate(port, played, constant=False))
                opened = health(port)
            rows = [json.loads(line) for line in journals.read_text("utf-8").splitlines()]
        ours.append(rate)
        slow.append(sorted(took)[int(len(took) * 0.99)] * 1000)
        differences += abs(len(rows) - len(played)) + sum(row["journal"] != expected[row["task_id"]] for row in rows)
        print(f"MCP: {ours[-1]:.0f} calls/s, constant {theirs[-1]:.0f}", file=sys.stderr)
    return {
        "mcp_share_of_constant": round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 3),
        "mcp_steps_s": round(statistics.median(ours)), "constant_steps_s": round(statistics.median(theirs)),
        "mcp_p99_ms": round(statistics.median(slow), 1), "concurrent_episodes": opened, "journal_differences": differences}


def openenv_figures(environment: Path, played: Plays, text: str, passes: int) -> dict[str, float]:
    """Our OpenEnv server and the package's own of a constant, turn by turn, each on one core."""
    python = str(openenv_server.interpreter(lambda line: print(line, file=sys.stderr)))
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    ours, theirs, slow = [], [], []
    for _ in range(passes):
        with one_core(cores):
            rates = []
            with constant("openenv", text, python, set(cores[:1])) as port:
                rates.append(asyncio.run(openenv_rate(port, played, constant=True)))
            command = [sys.executable, "-P", "-m", "pipelines", "serve", str(environment), "--openenv", "--port", "0"]
            with served(command, r"http://\S+?:(\d+)", set(cores[:1])) as port:
                rates.append(asyncio.run(openenv_rate(port, played, constant=False)))
        theirs.append(rates[0][0])
        ours.append(rates[1][0])
        slow.append(sorted(rates[1][1])[int(len(rates[1][1]) * 0.99)] * 1000)
        print(f"OpenEnv: {ours[-1]:.0f} steps/s, constant {theirs[-1]:.0f}", file=sys.stderr)
    return {
        "openenv_steps_s": round(statistics.median(ours)), "openenv_constant_steps_s": round(statistics.median(theirs)),
        "openenv_share_of_constant": round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 3),
        "openenv_p99_ms": round(statistics.median(slow), 1), "openenv_sessions": len(played)}


@contextlib.contextmanager
def one_core(cores: list[int]) -> Iterator[None]:
    """Keep this process off the first core, which the servers have."""
    if len(cores) > 1:
        os.sched_setaffinity(0, set(cores[1:]))
    try:
        yield
    finally:
        if len(cores) > 1:
            os.sched_setaffinity(0, set(cores))


async def openenv_rate(port: int, played: Plays, constant: bool) -> tuple[float, list[float]]:
    """Return steps a second over WebSockets that are all open, and seconds of each step."""
    sockets, requests = [], []
    for task_id, calls in played:
        sockets.append(await WebSocket.open(port, "/ws"))
        data = {} if constant else {"task_id": task_id}
        await sockets[-1].ask(frame_of(json.dumps({"type": "reset", "data": data})))
        requests.append([frame_of(json.dumps({"type": "step", "data": {
            "type": "call_tool", "tool_name": tool, "arguments": arguments}})) for tool, arguments in calls])
    took, each = await timed(sockets, requests)
    for one in sockets:
        one.close()
    return sum(map(len, requests)) / took, each


async def mcp_rate(port: int, played: Plays, constant: bool) -> tuple[float, list[float]]:
    """Return calls a second over sessions that are all open, and seconds of each call."""
    connections = [await Http.open(port) for _ in range(min(CONNECTIONS, len(played)))]
    sessions = await asyncio.gather(*(
        opened(connections[n], n, port, played, constant) for n in range(len(connections))))
    requests = [interleaved(mine) for mine in sessions]
    took, each = await timed(connections, requests)
    for connection in connections:
        connection.close()
    return sum(map(len, requests)) / took, each


async def opened(connection: Http, place: int, port: int, played: Plays, constant: bool) -> list[list[bytes]]:
    """Open the sessions of one connection, each with its episode begun; the calls of each, as requests."""
    step = min(CONNECTIONS, len(played))
    sessions = []
    for task_id, calls in played[place::step]:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
        path = "/mcp" if constant else f"/mcp?task={task_id}"
        status, head, body = await connection.ask(
            request_of(port, path, "", {"id": 0, "method": "initialize", "params": hello}))
        if status != 200:
            raise SystemExit(f"the server opens no session ({status}): {body[:300]!r}")
        session = re.search(rb"mcp-session-id: (\S+)", head, re.I)
        name = session.group(1).decode() if session else ""
        await connection.ask(request_of(port, "/mcp", name, {"method": "notifications/initialized"}))
        await connection.ask(request_of(port, "/mcp", name, {"id": 0, "method": "tools/list", "params": {}}))
        sessions.append([
            request_of(port, "/mcp", name, {"id": n, "method": "tools/call", "params": {
                "name": "constant" if constant else tool, "arguments": arguments}})
            for n, (tool, arguments) in enumerate(calls, 1)])
    return sessions


def interleaved(sessions: list[list[bytes]]) -> list[bytes]:
    """Return the first request of every session, then the second of every session …"""
    longest = max(map(len, sessions))
    return [mine[n] for n in range(longest) for mine in sessions if n < len(mine)]


def request_of(port: int, path: str, session: str, message: dict[str, Any]) -> bytes:
    """Return a POST as it goes over the wire."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    named = f"Mcp-Session-Id: {session}\r\n" if session else ""
    head = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\n{named}Content-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


def health(port: int) -> int:
    """Episodes that the server holds now."""
    async def fetch() -> bytes:
        connection = await Http.open(port)
        _, _, body = await connection.ask(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        connection.close()
        return body

    return int(json.loads(asyncio.run(fetch()))["episodes"])


@contextlib.contextmanager
def constant(kind: str, text: str, python: str = sys.executable, cores: set[int] | None = None) -> Iterator[int]:
    """Yield a server of a constant, on a port of its own."""
    with served([python, str(ROOT / "benchmarks/serving_constant.py"), kind, text], r"http://\S+?:(\d+)", cores) as port:
        yield port


@contextlib.contextmanager
def served(command: list[str], says: str, cores: set[int] | None = None) -> Iterator[int]:
    """Yield a server as a process, once it has said its port; told to stop, and waited for, at the end. `cores`: it may use."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
                               env={**os.environ, "COLUMNS": "200"})
    assert process.stdout is not None
    if cores is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process.pid, cores)
    try:
        output = []
        for line in process.stdout:
            output.append(line)
            if match := re.search(says, line):
                yield int(match.group(1))
                break
        else:
            raise SystemExit(f"a server does not start: {''.join(output)[-2000:]}")
    finally:
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=60)
        process.kill()
        print(f"stopped after {time.monotonic() - began:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
