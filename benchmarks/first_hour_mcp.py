"""How many published tasks an unmodified MCP client carries out with what the server gives it.

In: an environment with its rewards (of a run of the sample's logs, if none is named). A server of it is started; for each task
the official SDK's client opens a session, and must be given the policy and what the user says first as instructions. It then
makes the calls of the task's known solution, and says its words with the tool that the session offers; a second client grades.
A task is solved if its reward is 1.
Does not see: whether a model would find the solution.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from env_builder.runtime.files import rows_of

ROOT = Path(__file__).resolve().parent.parent
TOKEN = "first-hour"


def measure(environment: Path) -> dict[str, Any]:
    """Return {"mcp_solved", "n_mcp_tasks"}."""
    rewards = environment.parent.parent / "rewards" / environment.name
    solved = {row["task_id"]: row["steps"] for row in rows_of(rewards / "solutions.jsonl")}
    openings = {row["task_id"]: row["opening"] for row in rows_of(environment / "tasks.jsonl")}
    with served(environment) as url:
        results = asyncio.run(_played(url, solved, openings))
    return {"mcp_solved": round(sum(results) / len(results), 4), "n_mcp_tasks": len(results)}


def from_sample(scratch: Path) -> Path:
    """Return the environment that a run of the sample publishes."""
    subprocess.run([sys.executable, "-m", "pipelines", "run", str(ROOT / "tests/logs/airline"), "--out", str(scratch / "out"),
                    "--no-image", "--json"], stdout=subprocess.DEVNULL, cwd=ROOT, check=True)
    return min((scratch / "out" / "environments").iterdir())


@contextmanager
def served(environment: Path) -> Iterator[str]:
    """Serve the environment on loopback; yields the URL of its MCP endpoint."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pipelines", "serve", str(environment), "--port", "0", "--grade"], cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "TRACEROOM_GRADE_TOKEN": TOKEN},
        stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        match = next(found for line in process.stderr if (found := re.search(r"http://\S+/mcp", line)))
        yield match.group()
    finally:
        process.terminate()
        process.communicate()


async def _played(url: str, solved: dict[str, list[dict[str, Any]]], openings: dict[str, list[dict[str, str]]]) -> list[bool]:
    grade_url = url.removesuffix("mcp") + "grade"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers, timeout=120) as http, streamable_http_client(
            grade_url, http_client=http) as streams, ClientSession(*streams) as grader:
        await grader.initialize()
        for task_id, steps in sorted(solved.items()):
            await _play(f"{url}?task={task_id}", steps, openings[task_id])
        listed = (await grader.call_tool("episodes", {})).structured_content
        grades = [await grader.call_tool("grade", {"episode": each["episode"]}) for each in (listed or {})["episodes"]]
    return [(grade.structured_content or {})["reward"] == 1.0 for grade in grades]


async def _play(url: str, steps: list[dict[str, Any]], opening: list[dict[str, str]]) -> None:
    """Carry out a known solution in a session of its own, with what that gives."""
    async with streamable_http_client(url) as streams, ClientSession(*streams) as session:
        hello = await session.initialize()
        missing = [message["content"][:60] for message in opening if message["content"] not in (hello.instructions or "")]
        if missing:
            raise SystemExit(f"{url} does not give the client {json.dumps(missing)}")
        offered = {tool.name for tool in (await session.list_tools()).tools}
        for step in steps:
            name, arguments = ("say", {"text": step["say"]}) if "say" in step else (step["tool"], step["arguments"])
            if name not in offered:
                raise SystemExit(f"{url} does not offer the tool {name}")
            await session.call_tool(name, arguments)
        await session.call_tool("finish", {})
