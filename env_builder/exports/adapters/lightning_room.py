"""Tasks of an environment for Agent Lightning: an agent that its runners roll out, with the reward as the rollout's result.

    from traceroom_NAME.lightning_room import KitAgent
    rows = [json.loads(line) for line in open("train.jsonl")]
    agl.Trainer(algorithm=…, n_runners=8).fit(KitAgent(), train_dataset=rows)

The model is the resource `main_llm` (an LLM or a ProxyLLM, or the only one there is). The runner emits the reward as the last
span of the rollout. An unscored episode emits none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agentlightning as agl
from openai import AsyncOpenAI

from . import chat_room, play

KIT = play.open(Path(__file__).parent)


class KitAgent(agl.LitAgent[dict[str, Any]]):
    """Plays a row of train.jsonl: `task_id`, and `seed`."""

    def __init__(self, resource: str = "main_llm") -> None:
        super().__init__()
        self.resource = resource
        """Name of the model among the resources."""

    async def rollout_async(self, task: dict[str, Any], resources: agl.NamedResources, rollout: agl.Rollout) -> float | None:
        """Play the task with the model; return its reward, None if it is unknown."""
        llm = self._model(resources)
        attempt = getattr(rollout, "attempt", None)
        at = llm.get_base_url(rollout.rollout_id, attempt.attempt_id if attempt is not None else None) if isinstance(
            llm, agl.ProxyLLM) else llm.get_base_url()
        episode = KIT.begin(task["task_id"], int(task.get("seed") or 0))
        async with AsyncOpenAI(base_url=at, api_key=llm.api_key or "none") as client:

            async def ask(messages: list[dict[str, Any]]) -> Any:
                create: Any = client.chat.completions.create
                completion = await create(model=llm.model, messages=messages, tools=KIT.tools, **llm.sampling_parameters)
                return completion.choices[0]

            await chat_room.converse(episode, ask)
        return episode.reward()

    def _model(self, resources: agl.NamedResources) -> agl.LLM:
        models = {name: each for name, each in resources.items() if isinstance(each, agl.LLM)}
        if self.resource in models:
            return models[self.resource]
        if len(models) == 1:
            return next(iter(models.values()))
        raise ValueError(f"no model {self.resource!r} among the resources {sorted(resources)}")
