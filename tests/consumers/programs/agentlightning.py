"""Agent Lightning's store queues every task, its runner rolls out the exported agent against a loopback endpoint, and the
reward is the last span of the rollout."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from typing import Any

import agentlightning as agl
from endpoint import Endpoint
from moves import can_wait, moves
from telling import EXPORTS, episodes, tell

FOLDER = EXPORTS / "agentlightning"
sys.path.insert(0, str(FOLDER))
room = importlib.import_module(f"{next(FOLDER.glob('traceroom_*')).name}.lightning_room")
rows = {row["task_id"]: row for path in sorted(FOLDER.glob("*.jsonl")) for row in map(json.loads, path.open(encoding="utf-8"))}
endpoint = Endpoint()


async def queued(store: agl.LightningStore, name: str, task_id: str, turns: list[Any]) -> str:
    """Queue a rollout of a task by a model that takes these turns; return its id."""
    model = endpoint.teach(name, room.KIT.begin(task_id).messages, turns)
    update = await store.add_resources({"main_llm": agl.LLM(endpoint=endpoint.base_url, model=model)})
    return (await store.enqueue_rollout(rows[task_id], mode="train", resources_id=update.resources_id)).rollout_id


async def main() -> None:
    """Queue, run, and tell."""
    store = agl.InMemoryLightningStore()
    wanted: dict[str, tuple[str, float | None]] = {}
    for task_id in rows:
        wanted[await queued(store, f"idle {task_id}", task_id, [("", [])])] = (f"idle {task_id}", 0.0)
        if can_wait(room.KIT, task_id):
            solution = moves(room.KIT, task_id, room.KIT.solution(task_id))
            wanted[await queued(store, f"knows {task_id}", task_id, solution)] = (f"knows {task_id}", 1.0)
    tried = {await queued(store, each["name"], each["task_id"], moves(room.KIT, each["task_id"], each["steps"])): each["name"]
             for each in episodes()}
    runner = agl.LitAgentRunner(tracer=agl.OtelTracer(), max_rollouts=len(wanted) + len(tried))
    with runner.run_context(agent=room.KitAgent(), store=store):
        await runner.iter()
    rewards: dict[str, float | None] = {}
    for rollout in await store.query_rollouts():
        assert rollout.status == "succeeded", rollout
        rewards[rollout.rollout_id] = agl.find_final_reward(await store.query_spans(rollout.rollout_id))
    assert {each: rewards[each] for each in wanted} == {each: reward for each, (_, reward) in wanted.items()}
    n_solved = sum(reward == 1.0 for _, reward in wanted.values())
    assert n_solved
    tell(f"{len(rewards)} rollouts queued in its store and run by its runner, rewards emitted: saying nothing 0, {n_solved} "
         "known solutions 1", digest=room.KIT.digest, rows=len(rows),
         rewards={name: rewards[each] for each, name in tried.items()})


asyncio.run(main())
