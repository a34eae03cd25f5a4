"""The client of an exported environment's server: a WebSocket session is an episode at a time."""

from __future__ import annotations

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult

from .models import RoomAction, RoomObservation, RoomState


class RoomClient(EnvClient[RoomAction, RoomObservation, RoomState]):
    """`with RoomClient(base_url=…).sync() as room: room.reset(task_id=…); room.step(RoomAction(tool_name=…, arguments=…))`"""

    def _step_payload(self, action: RoomAction) -> dict[str, Any]:
        payload: dict[str, Any] = action.model_dump(exclude={"metadata"})
        return payload

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[RoomObservation]:
        done, reward = payload.get("done", False), payload.get("reward")
        seen = {**payload.get("observation", {}), "done": done, "reward": reward}
        return StepResult(observation=RoomObservation.model_validate(seen), reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> RoomState:
        state: RoomState = RoomState.model_validate(payload)
        return state
