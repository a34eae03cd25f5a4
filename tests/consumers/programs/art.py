"""ART gathers groups of trajectories of every task from a model behind a loopback endpoint: a known solution and an agent that
says nothing, side by side."""

from __future__ import annotations

import asyncio
import importlib
import sys
from typing import Any

import art
from endpoint import Endpoint
from moves import can_wait, moves
from telling import EXPORTS, WORK, episodes, tell

FOLDER = EXPORTS / "art"
sys.path.insert(0, str(FOLDER))
room = importlib.import_module(f"{next(FOLDER.glob('traceroom_*')).name}.art_room")
endpoint = Endpoint()


def model(name: str, task_id: str, turns: list[Any]) -> art.Model:
    """Return a model of the endpoint that takes these turns."""
    known = endpoint.teach(name, room.KIT.begin(task_id).messages, turns)
    return art.Model(name=known, project="tests", inference_api_key="none", inference_base_url=endpoint.base_url,
                     base_path=str(WORK))


async def both(task_id: str) -> art.TrajectoryGroup:
    """Gather a group of two: the known solution, and nothing."""
    solution = moves(room.KIT, task_id, room.KIT.solution(task_id))
    return await art.TrajectoryGroup([room.rollout(model(f"knows {task_id}", task_id, solution), task_id),
                                      room.rollout(model(f"idle {task_id}", task_id, [("", [])]), task_id)])


async def main() -> None:
    """Gather, and tell."""
    tasks = [each["task_id"] for each in room.scenarios() if can_wait(room.KIT, each["task_id"])]
    groups = await art.gather_trajectory_groups(map(both, tasks), pbar_desc=None)
    assert len(groups) == len(tasks) > 0 and not any(group.exceptions for group in groups)
    for group in groups:
        assert sorted(each.reward for each in group) == [0.0, 1.0], group
        best = max(group, key=lambda each: each.reward)
        assert best.tools == room.KIT.tools and [message["role"] for message in best.messages()].count("assistant") > 1
    tried = episodes()
    same = tried[0]["task_id"]
    (repeated,) = await art.gather_trajectory_groups(
        [room.group(model("again", same, moves(room.KIT, same, tried[0]["steps"])), same, n=4)], pbar_desc=None)
    assert [each.reward for each in repeated] == [1.0] * 4
    rewards = {}
    for each in tried:
        turns = moves(room.KIT, each["task_id"], each["steps"])
        rewards[each["name"]] = (await room.rollout(model(each["name"], each["task_id"], turns), each["task_id"])).reward
    tell(f"{len(groups)} groups gathered from a loopback endpoint: saying nothing 0, {len(groups)} known solutions 1",
         digest=room.KIT.digest, rewards=rewards, requests=len(endpoint.requests))


asyncio.run(main())
