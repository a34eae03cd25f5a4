"""An environment of SkyRL-Gym: a message of the model in, tools' answers and the user's words out.

    from traceroom_NAME import skyrl_room
    skyrl_room.register()                                     # once a process; rows of train.parquet name it as `env_class`

The reward is 0 until the episode ends and then the grader's; 0 where nobody can say (`metadata["scored"]`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import skyrl_gym
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
from skyrl_gym.envs.registration import registry

from . import play

KIT = play.open(Path(__file__).parent)
ID = __name__.partition(".")[0]


def register() -> None:
    """Make the environment known to SkyRL-Gym under `ID`."""
    if ID not in registry:
        skyrl_gym.register(id=ID, entry_point=f"{__name__}:SkyRlEnvironment")


class SkyRlEnvironment(BaseTextEnv):
    """One episode; which task stands in the row (`reward_spec.ground_truth`)."""

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        super().__init__()
        accepted = extras or {}
        info = accepted.get("extra_info") or {}
        self._episode = KIT.begin(accepted["reward_spec"]["ground_truth"], int(info.get("seed") or 0))
        self.max_turns = accepted.get("max_turns") or KIT.by_id[self._episode.task_id]["limits"]["steps"]
        self._reward: float | None = None

    def init(self, prompt: list[dict[str, str]]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Return the row's prompt, with the tools described in its system message."""
        how = play.guide(KIT.tools)
        if prompt and prompt[0]["role"] == "system":
            first = {"role": "system", "content": f"{prompt[0]['content']}\n\n{how}"}
            return [first, *prompt[1:]], {"digest": KIT.digest}
        return [{"role": "system", "content": how}, *prompt], {"digest": KIT.digest}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        self.turns += 1
        taken = self._episode.take(play.words_of(action), play.calls_of(action))
        if taken.over or self.turns >= self.max_turns:
            self._episode.finish()
            self._reward = self._episode.reward()
            return BaseTextEnvStepOutput(
                observations=[], reward=self._reward or 0.0, done=True, metadata={"scored": self._reward is not None})
        shown = [f"<tool_response>\n{answer}\n</tool_response>" for answer in taken.answers]
        text = "\n".join(shown if taken.reply is None else [*shown, taken.reply])
        return BaseTextEnvStepOutput(observations=[{"role": "user", "content": text}], reward=0.0, done=False, metadata={})

    def get_metrics(self) -> dict[str, Any]:
        """Return the number of steps, and whether the episode could be scored."""
        return {"steps": len(self._episode.journal()), "scored": float(self._reward is not None)}
