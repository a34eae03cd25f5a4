"""OpenEnv clients that step after the end, with odd types and numbers that are none: one episode has one reward."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.attacks.report import Report
from tests.attacks.servers import command, rows
from tests.peers import with_openenv
from tests.rooms import TASK, write_rewards, write_room

CLIENT = """
import asyncio, json, sys, websockets
task = sys.argv[2]
solve = [{"type": "call_tool", "tool_name": "open_door", "arguments": {"door": "7"}}, {"type": "finish"}]
odd = [None, 5, "x", [], {}, {"type": "grade"}, {"type": "reset"}, {"type": "call_tool"}, {"type": "call_tool",
    "tool_name": 5}, {"type": "say"}, {"type": "say", "text": 5},
       {"type": "finish", "reward": 1.0}, {"type": "call_tool", "tool_name": "open_door", "arguments": "7"},
       {"type": "call_tool", "tool_name": "read_sign", "arguments": {"at": 1e308}},
       {"type": "call_tool", "tool_name": "traceroom/journal", "arguments": {}}, {"type": "state", "done": True, "reward": 1.0}]
async def main():
    problems = []
    async def ask(socket, kind, data):
        await socket.send(json.dumps({"type": kind, "data": data}))
        return json.loads(await asyncio.wait_for(socket.recv(), 60))
    def reward(answer):
        data = answer.get("data") or {}
        return data.get("reward") if isinstance(data, dict) else None
    async with websockets.connect(sys.argv[1], max_size=None) as socket:
        await ask(socket, "reset", {"task_id": task})
        early = [reward(await ask(socket, "step", each)) for each in odd[:11] + odd[12:]]
        problems += [f"odd steps earn {early}"] if any(early) else []
    async with websockets.connect(sys.argv[1], max_size=None) as socket:
        await ask(socket, "reset", {"task_id": task})
        rewards = [reward(await ask(socket, "step", each)) for each in [*solve, solve[1], solve[0], solve[1]]]
        problems += [] if rewards[1] == 1.0 and not rewards[0] else [f"the honest way earns {rewards}"]
        problems += [f"steps after the end earn {rewards}"] if any(each not in (None, 0, 0.0, 1.0) for each in rewards) else []
        for data in ({"task_id": "../x"}, {"task_id": task, "seed": "x"}, {"task_id": task, "perturbations": ["x"]},
            {"split": 5}, {"index": -1, "split": "train"}, {"index": 10 ** 30, "split": "train"}):
            answer = await ask(socket, "reset", data)
            problems += [f"reset with {data} earns {reward(answer)}"] if reward(answer) else []
        await ask(socket, "reset", {"task_id": task})
        lazy = reward(await ask(socket, "step", {"type": "finish"}))
        problems += [f"doing nothing earns {lazy}"] if lazy else []
    print(json.dumps(problems))
asyncio.run(main())
"""


def attack(folder: Path, share: float) -> Report:
    """Play by WebSocket, and count the journals."""
    python, kept = with_openenv(), folder / "journals.jsonl"
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    with command("serve", room, "--openenv", "--journals", kept, TRACEROOM_OPENENV_PYTHON=str(python)) as server:
        done = subprocess.run(
            [python, "-c", CLIENT, f"ws://{server.host}:{server.port}/ws", TASK],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    problems = json.loads(done.stdout) if done.returncode == 0 else [done.stderr[-600:]]
    problems += [] if rows(kept) else ["no journal is kept"]
    return Report(40, tuple(problems))


@pytest.mark.slow
def test_one_openenv_episode_has_one_reward(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
