"""Tasks of an environment as scenarios of ART (openpipe-art): rollouts by the model's own client, gathered in groups.

    from traceroom_NAME import art_room
    groups = await art.gather_trajectory_groups(
        (art_room.group(model, scenario["task_id"], n=8) for scenario in art_room.scenarios("train")), max_exceptions=0.1)
    await backend.train(model, groups)

The model is anything that ART calls one: trainable and registered, or an endpoint to compare with. An unscored episode raises
`Unscored`: ART leaves it out of its group and counts it among the exceptions, as many as `max_exceptions` allows.
"""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import art

from . import chat_room, play

KIT = play.open(Path(__file__).parent)


def scenarios(split: str | None = None) -> list[dict[str, Any]]:
    """Return {"task_id", "family", "split"} of each task, of one split if it is named."""
    tasks = [task for task in KIT.tasks if split in (None, task["split"])]
    return [{name: task[name] for name in ("task_id", "family", "split")} for task in tasks]


async def rollout(model: art.Model, task_id: str, seed: int = 0, **sampling: Any) -> art.Trajectory:
    """Play a task with the model; `sampling`: what else its endpoint takes (temperature, max_tokens, logprobs …)."""
    episode = KIT.begin(task_id, seed)
    client = model.openai_client()

    async def ask(messages: list[dict[str, Any]]) -> Any:
        completion: Any = await client.chat.completions.create(
            model=model.get_inference_name(), messages=messages, tools=KIT.tools, **sampling)
        return completion.choices[0]

    turns = await chat_room.converse(episode, ask)
    task = KIT.by_id[task_id]
    return art.Trajectory(
        messages_and_choices=turns, tools=KIT.tools, reward=chat_room.scored(episode),
        metrics={"steps": len(episode.journal()), "truncated": episode.ended == "truncated"},
        metadata={"task_id": task_id, "family": task["family"], "split": task["split"], "digest": KIT.digest})


def group(model: art.Model, task_id: str, n: int = 4, seed: int = 0, **sampling: Any) -> Awaitable[art.TrajectoryGroup]:
    """Return `n` rollouts of one task, for `art.gather_trajectory_groups`; all begin in the same world."""
    return art.TrajectoryGroup([rollout(model, task_id, seed, **sampling) for _ in range(n)], metadata={"task_id": task_id})
