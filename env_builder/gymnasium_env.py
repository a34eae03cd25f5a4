"""An environment as a Gymnasium `Env`: texts in, texts out, in this process (so for policies that are trusted).

    from env_builder.gymnasium_env import RoomEnv
    env = RoomEnv("OUT/environments/NAME")
    observation, info = env.reset(seed=1, options={"task_id": …, "conditions": […]})     # both may be left out
    observation, reward, terminated, truncated, info = env.step('{"tool": "…", "arguments": {…}}')

An action is a text: a JSON object with `tool` (and `arguments`) calls it, `{"finish": true}` ends the episode, any other text
is said to the user. What is observed is a text too: as an episode begins, JSON of `messages` and `tools`; after a call the
tool's answer, byte for byte; after a word the user's reply, empty where there is none. The reward is 0 until the episode ends
and then what the grader gives (0 where the task is unscored: `info["scored"]`). A seed draws the task where none is named.
`gymnasium.make("env_builder.gymnasium_env:traceroom/Room-v0", environment=…)` gives the same, wrapped.

Needs `gymnasium` (the extra of that name); imports nothing else that the room does not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, SupportsFloat

from env_builder.runtime import Environment
from warehouse.errors import Unavailable

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    mend = "install it beside Traceroom: pip install 'gymnasium>=1.4,<2', or the extra: pip install 'traceroom[gymnasium]'"
    raise Unavailable("gymnasium is not installed", mend=mend) from error

ID = "traceroom/Room-v0"
LONGEST = 16 * 1024 * 1024
"""Characters of the longest text that is an action or an observation."""
SAMPLED = 64
"""Characters of the longest text that is drawn as a sample."""


class AnyText(spaces.Text):
    """Texts of any characters; samples are short and printable."""

    def __init__(self) -> None:
        super().__init__(max_length=LONGEST, min_length=0, charset="".join(map(chr, range(32, 127))))

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short text."""
        if mask is None and probability is None:
            mask = (int(self.np_random.integers(0, SAMPLED + 1)), None)
        return str(super().sample(mask, probability))

    def contains(self, x: Any) -> bool:
        """Is it a text?"""
        return isinstance(x, str) and len(x) <= self.max_length


class RoomEnv(gymnasium.Env[str, str]):
    """One episode at a time of the room at `environment`; `rewards`: the grader's side, by default beside it."""

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  as the package has it

    def __init__(
        self, environment: str | Path | Environment, rewards: str | Path | None = None, split: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        room = environment if isinstance(environment, Environment) else Environment.load(environment, rewards)
        self.room = room
        """The room itself, for what texts do not say: fork, rollback, state_hash."""
        self.task_ids = [task.task_id for task in room.tasks if split in (None, task.split)]
        """Tasks that are drawn from where none is named; `split`: one side's alone."""
        self.observation_space = AnyText()
        self.action_space = AnyText()
        self.render_mode = render_mode
        self._task_id: str | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin `options["task_id"]`, or a drawn task; `options["seed"]` and `["conditions"]` go to the room (0, none).

        KeyError where there is no such task, ValueError where there is no task at all.
        """
        super().reset(seed=seed)
        told = options or {}
        if "task_id" not in told and not self.task_ids:
            raise ValueError("this environment has no task to draw: options={'task_id': None} opens the room without one")
        drawn = self.task_ids[int(self.np_random.integers(len(self.task_ids)))] if "task_id" not in told else told["task_id"]
        self._task_id = drawn
        seen = self.room.reset(drawn, told.get("seed", 0), conditions=told.get("conditions", ()))
        shown = json.dumps({"messages": seen.messages, "tools": seen.tools}, ensure_ascii=False)
        return shown, self._info()

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Do one thing."""
        was_over = self.room.ended is not None
        seen, info = self._done(str(action))
        ended = self.room.ended
        reward = 0.0
        if ended is not None and not was_over and self._task_id is not None:
            graded = self.room.grade().reward
            reward = graded or 0.0
            info["scored"] = graded is not None
        return seen, reward, ended == "terminated", ended == "truncated", self._info() | info

    def render(self) -> str | None:
        """The journal so far, a step a line."""
        if self.render_mode != "ansi":
            return None
        return "\n".join(json.dumps(row, ensure_ascii=False, sort_keys=True) for row in self.room.journal)

    def _done(self, action: str) -> tuple[str, dict[str, Any]]:
        try:
            asked = json.loads(action)
        except (ValueError, RecursionError):
            asked = None
        if isinstance(asked, dict) and isinstance(asked.get("tool"), str):
            result = self.room.call(asked["tool"], asked.get("arguments", {}))
            return result.content, {"tier": result.tier, "is_error": result.is_error}
        if isinstance(asked, dict) and asked.get("finish") is True:
            self.room.finish()
            return "", {}
        return self.room.say(action) or "", {}

    def _info(self) -> dict[str, Any]:
        return {"task_id": self._task_id, "state_hash": self.room.state_hash(), "ended": self.room.ended}


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point=RoomEnv)
