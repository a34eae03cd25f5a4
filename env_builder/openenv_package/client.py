"""The client of an environment's server: a WebSocket session is an episode at a time."""

from __future__ import annotations

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult

from .models import OpenEnvAction, OpenEnvObservation, OpenEnvState


class OpenEnvClient(EnvClient[OpenEnvAction, OpenEnvObservation, OpenEnvState]):
    """`with OpenEnvClient(base_url=…).sync() as env: env.reset(task_id=…); env.step(OpenEnvAction(tool_name=…))`"""

    def _step_payload(self, action: OpenEnvAction) -> dict[str, Any]:
        return action.model_dump(exclude={"metadata"})

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[OpenEnvObservation]:
        done, reward = payload.get("done", False), payload.get("reward")
        fields = {**payload.get("observation", {}), "done": done, "reward": reward}
        return StepResult(observation=OpenEnvObservation.model_validate(fields), reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> OpenEnvState:
        return OpenEnvState.model_validate(payload)
