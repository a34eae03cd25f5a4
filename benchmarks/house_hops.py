#!/usr/bin/env python3
"""How many functions of ours a tool call passes, from its arrival over MCP to the program that answers it.

    benchmarks/house_hops.py ENV

ENV: OUT/environments/<name> of a run, with its rewards beside it. `traceroom serve` is started with a profiler in both
processes (the server's and the environment's), and one `tools/call` is made over HTTP. Counted are functions of `pipelines`
and `env_builder`: the ASGI applications that take the request, those on the stack when the call is handed to the channel, the
channel's own that writes it later, and in the environment from the one that reads the bytes to the one that runs the tool's
program. Functions that have returned by then (checks, parsing) are not counted, nor is the way back.
The chain goes to stderr, a hop a line; the last line on stdout is one JSON object.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = {("behaviour.py", "answer"), ("programs.py", "answer")}
"""Where a tool's program is run in an environment's runtime, today and in earlier commits."""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hops", "version": "1"}}
LOOPS = ("asyncio/base_events.py", "asyncio/runners.py", "uvicorn/server.py")
"""Files whose functions run tasks: what is below them on the stack is no part of a request."""
Chain = list[str]


def hops_a_served_call(environment: Path, root: Path = ROOT, python: str = sys.executable) -> int:
    """Return the number of hops of one call; `root`: the checkout that serves, `python`: its interpreter."""
    return len(chain(environment, root, python))


def chain(environment: Path, root: Path, python: str) -> Chain:
    """Return the functions that one call passes, as `process file:function`."""
    rewards = environment.parent.parent / "rewards" / environment.name
    with (rewards / "solutions.jsonl").open(encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        task_id, call = next((row["task_id"], step) for row in rows for step in row["steps"] if "tool" in step)
    with tempfile.TemporaryDirectory() as records:
        words = ["--server", records, "serve", str(environment.resolve()), "--port", "0"]
        command = [python, str(Path(__file__).resolve()), *words]
        process = subprocess.Popen(
            command, cwd=root, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200", "PYTHONPATH": str(root)})
        assert process.stderr is not None
        try:
            text = ""
            while not (address := re.search(r"http://\S+/mcp", text)):
                line = process.stderr.readline()
                text += line
                if not line:
                    raise SystemExit(f"the server does not start: {text[-2000:]}")
            session, _ = post(f"{address.group()}?task={task_id}", "", "initialize", HELLO)
            _, reply = post(address.group(), session, "tools/call", {"name": call["tool"], "arguments": call["arguments"]})
            if "result" not in reply:
                raise SystemExit(f"the call fails: {reply}")
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        hops: Chain = []
        for name in ("server", "relay", "environment"):
            path = Path(records, f"{name}.json")
            hops += [f"{name} {hop}" for hop in json.loads(path.read_text())] if path.exists() else []
    if not any(hop.startswith("environment") for hop in hops):
        raise SystemExit(f"no call reached the program in any of {sorted(PROGRAM)}")
    return hops


def post(url: str, session: str, method: str, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Make one request; returns the session's id and the reply."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, headers | ({"Mcp-Session-Id": session} if session else {}))
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers.get("Mcp-Session-Id") or session, json.loads(answer.read())


def stack(frame: FrameType | None, is_ours: Callable[[str], bool]) -> Chain:
    """Return our functions on the stack above the event loop, outermost first."""
    hops: Chain = []
    while frame is not None and not frame.f_code.co_filename.endswith(LOOPS):
        if is_ours(frame.f_code.co_filename):
            hops.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")
        frame = frame.f_back
    return hops[::-1]


def server(records: Path) -> None:
    """Run the command line with a profiler; its environment processes run under `environment`."""
    folders = tuple(str(Path.cwd() / folder) for folder in ("pipelines", "env_builder"))
    start = subprocess.Popen.__init__

    def started(self: Any, command: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(command, list) and "--environment" in command:
            at = next(n for n, word in enumerate(command) if str(word).endswith("runtime"))
            command = [sys.executable, "-B", __file__, "--environment", str(records), *command[at:]]
        start(self, command, *arguments, **options)

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    asgi: Chain = []
    handed: Chain = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if event != "call" or not file.startswith(folders):
            return
        is_channel = file.endswith("env_builder/channel.py")
        if is_channel and frame.f_locals.get("method") == "tools/call":
            handed[:] = stack(frame, lambda file: file.startswith(folders))
            (records / "server.json").write_text(json.dumps([*(hop for hop in asgi if hop not in handed), *handed]))
        elif is_channel and handed and name != "data_received" and not (records / "relay.json").exists():
            (records / "relay.json").write_text(json.dumps([f"channel.py:{name}"]))
        elif not handed and {"scope", "receive", "send"} <= frame.f_locals.keys():
            asgi[:] = stack(frame, lambda file: file.startswith(folders))

    sys.argv = ["traceroom", *sys.argv[3:]]
    sys.path[0] = str(Path.cwd())
    sys.setprofile(profile)
    runpy.run_module("pipelines", run_name="__main__", alter_sys=True)


def environment(records: Path) -> None:
    """Run an environment's runtime with a profiler."""
    folder, base = sys.argv[3], [0]

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call" and argument.__name__ == "read1":
            base[0] = len(stack(frame, lambda file: file.startswith(folder))) - 1
        elif event == "call" and (Path(frame.f_code.co_filename).name, frame.f_code.co_name) in PROGRAM:
            hops = stack(frame, lambda file: file.startswith(folder))[base[0]:]
            (records / "environment.json").write_text(json.dumps(hops))

    sys.argv = sys.argv[3:]
    sys.setprofile(profile)
    runpy.run_path(folder, run_name="__main__")


def main() -> int:
    """Measure, or be one of the two processes that are measured."""
    if sys.argv[1] in ("--server", "--environment"):
        {"--server": server, "--environment": environment}[sys.argv[1]](Path(sys.argv[2]))
        return 0
    hops = chain(Path(sys.argv[1]), ROOT, sys.executable)
    print("\n".join(hops), file=sys.stderr)
    print(json.dumps({"benchmark": "house_hops", "hops_a_served_call": len(hops)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
