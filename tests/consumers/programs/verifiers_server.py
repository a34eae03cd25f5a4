"""The verifiers library serves the exported environment as prime-rl has it served: worker processes behind a broker, driven by
its client, which sends a task's data and the model's endpoint and gets the episode's traces."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

from endpoint import Endpoint
from moves import can_wait, moves
from packaged import installed
from telling import EXPORTS, episodes, tell

SOURCE = EXPORTS / "verifiers"
PACKAGE = next(path.name for path in SOURCE.iterdir() if (path / "kit.json").is_file())


async def main(address: str, config: Any) -> None:
    """Drive the server as prime-rl's orchestrator does, and tell."""
    import verifiers.v1 as vf
    from verifiers.v1.configs.client import EvalClientConfig
    from verifiers.v1.serve import EnvClient

    tasks = {task.key: task for task in vf.load_taskset(config.taskset)}
    play = sys.modules[f"{PACKAGE}.play"]
    kit, endpoint = play.open(SOURCE / PACKAGE), Endpoint()
    model_client = EvalClientConfig(base_url=endpoint.base_url, api_key_var="NO_KEY")
    client = EnvClient(address)
    await client.wait_for_server_startup()
    deltas: list[Any] = []

    async def rewarded(name: str, task_id: str, turns: list[Any]) -> float | None:
        model = endpoint.teach(name, kit.begin(task_id).messages, turns)
        data = tasks[task_id].data.model_dump(mode="json")
        episode = await client.run(model_client, model, vf.SamplingConfig(), data, deltas.append)
        (trace,) = episode.traces
        assert episode.ok and not trace.errors, (episode.errors, trace.errors)
        assert trace.task.data.digest == kit.digest
        return trace.rewards["rubric"].score

    known = {task_id: moves(kit, task_id, kit.solution(task_id)) for task_id in tasks if can_wait(kit, task_id)}
    heard = {task_id: turns for task_id, turns in known.items() if not any(words and calls for words, calls in turns)}
    idle = list(heard)[:2]
    scores = await asyncio.gather(*(rewarded(f"knows {task_id}", task_id, turns) for task_id, turns in heard.items()),
                                  *(rewarded(f"idle {task_id}", task_id, [("", [])]) for task_id in idle))
    assert heard and scores == [1.0] * len(heard) + [0.0] * len(idle), scores
    tried = [(each["name"], each["task_id"], moves(kit, each["task_id"], each["steps"])) for each in episodes()]
    rewards = dict(zip([name for name, *_ in tried], await asyncio.gather(*(rewarded(*each) for each in tried)), strict=True))
    await client.close()
    assert deltas
    tell(f"served by two worker processes over ZMQ, run by its client: saying nothing 0, {len(heard)} known solutions 1",
         digest=kit.digest, rewards=rewards, rows=len(tasks))


if __name__ == "__main__":
    site = installed(SOURCE)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    from verifiers.v1.serve import env_config_data, serve_env
    from verifiers.v1.utils.loaders import resolve_env_config

    config = resolve_env_config({"taskset": {"id": PACKAGE.replace("_", "-")}})
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    server = context.Process(target=serve_env, kwargs={
        "max_workers": 2, "elastic": False, "address": "tcp://127.0.0.1:0", "address_queue": queue,
        "config_data": env_config_data(config)})
    server.start()
    try:
        asyncio.run(main(queue.get(timeout=300), config))
    finally:
        server.terminate()
        server.join(30)
