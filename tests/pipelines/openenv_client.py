"""Run in an interpreter with `openenv`: plays episodes with the package's own client, and says what came of them as JSON.

    openenv_client.py URL PLAYS      PLAYS: {"task_id": …, "steps": […]} and how many sessions to open
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from openenv.core.generic_client import GenericEnvClient


async def played(url: str, task_id: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """One session: the steps of a solution, then finish; twice, as a session may."""
    rewards = []
    async with GenericEnvClient(base_url=url) as env:
        for _ in range(2):
            result = await env.reset(task_id=task_id)
            begun = result.observation
            for step in steps:
                action = {"type": "say", "text": step["say"]} if "say" in step else {
                    "type": "call_tool", "tool_name": step["tool"], "arguments": step["arguments"]}
                result = await env.step(action)
                if result.done or result.reward is not None:
                    raise SystemExit(f"it is over already: {result}")
            wrong = await env.step({"type": "call_tool", "tool_name": "no such tool"})
            state = await env.state()
            result = await env.step({"type": "finish"})
            rewards.append(result.reward)
    return {"messages": begun["messages"], "tools": len(begun["tools"]), "done": result.done, "rewards": rewards,
            "wrong": wrong.observation["is_error"], "state": dict(state)}


async def main() -> None:
    """Play them all at once."""
    url, told = sys.argv[1], json.loads(sys.argv[2])
    sessions = [played(url, told["task_id"], told["steps"]) for _ in range(told["sessions"])]
    found = await asyncio.gather(*sessions, return_exceptions=True)
    print(json.dumps([each if isinstance(each, dict) else {"error": str(each)} for each in found]))


asyncio.run(main())
