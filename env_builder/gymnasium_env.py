"""An environment as a Gymnasium `Env`: text in, text out, in this process (for trusted policies only).

    from env_builder.gymnasium_env import GymnasiumEnv
    env = GymnasiumEnv("OUT/environments/NAME")
    observation, info = env.reset(seed=1, options={"task_id": …, "perturbations": […]})     # both are optional
    observation, reward, terminated, truncated, info = env.step('{"tool": "…", "arguments": {…}}')

An action is text: a JSON object with `tool` (and `arguments`) calls the tool, `{"finish": true}` ends the episode, any other
text is said to the user. An observation is text too: after a reset JSON of `messages` and `tools`, after a call the tool's
answer, byte for byte, after a message the user's reply, empty if there is none. The reward is 0 until the episode ends and then
the grader's (0 if the task is unscored: `info["scored"]`). Without a task id the seed samples one.
`gymnasium.make("env_builder.gymnasium_env:traceroom/Room-v0", environment=…)` gives the same, wrapped.

Needs `gymnasium` (the extra of that name), and nothing else that the runtime does not.
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
    hint = "install it beside Traceroom: pip install 'gymnasium>=1.4,<2', or the extra: pip install 'traceroom[gymnasium]'"
    raise Unavailable("gymnasium is not installed", hint=hint) from error

ID = "traceroom/Room-v0"
MAX_TEXT = 16 * 1024 * 1024
"""Characters of the longest action or observation."""
MAX_SAMPLE = 64
"""Characters of the longest sampled text."""


class AnyText(spaces.Text):
    """Texts of any characters; samples are short and printable."""

    def __init__(self) -> None:
        super().__init__(max_length=MAX_TEXT, min_length=0, charset="".join(map(chr, range(32, 127))))

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a short text."""
        if mask is None and probability is None:
            mask = (int(self.np_random.integers(0, MAX_SAMPLE + 1)), None)
        return str(super().sample(mask, probability))

    def contains(self, x: Any) -> bool:
        """Return whether it is a text."""
        return isinstance(x, str) and len(x) <= self.max_length


class GymnasiumEnv(gymnasium.Env[str, str]):
    """One episode at a time of the environment at a path; `rewards`: the grader's side, by default OUT/rewards/NAME."""

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  as the package has it

    def __init__(
        self, environment: str | Path | Environment, rewards: str | Path | None = None, split: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """`split`: sample tasks of one split alone."""
        played = environment if isinstance(environment, Environment) else Environment.load(environment, rewards)
        self.environment = played
        """The environment itself, for what text cannot do: fork, rollback, state_hash."""
        self.task_ids = [task.task_id for task in played.tasks if split in (None, task.split)]
        """Tasks to sample from."""
        self.observation_space = AnyText()
        self.action_space = AnyText()
        self.render_mode = render_mode
        self._task_id: str | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin `options["task_id"]`, or a sampled task, with `options["seed"]` (0) and `options["perturbations"]` (none).

        KeyError if there is no such task, ValueError if there is no task at all.
        """
        super().reset(seed=seed)
        options = options or {}
        if "task_id" in options:
            self._task_id = options["task_id"]
        elif self.task_ids:
            self._task_id = self.task_ids[int(self.np_random.integers(len(self.task_ids)))]
        else:
            raise ValueError("this environment has no task to sample: options={'task_id': None} begins without one")
        observation = self.environment.reset(
            self._task_id, options.get("seed", 0), perturbations=options.get("perturbations", ()))
        text = json.dumps({"messages": observation.messages, "tools": observation.tools}, ensure_ascii=False)
        return text, self._info()

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one step."""
        ended_before = self.environment.ended is not None
        try:
            text, info = self._act(str(action))
        except ValueError as error:  # it is longer than the environment takes: that changes nothing
            text, info = str(error), {"is_error": True}
        ended = self.environment.ended
        reward = 0.0
        if ended is not None and not ended_before and self._task_id is not None:
            graded = self.environment.grade().reward
            reward = graded or 0.0
            info["scored"] = graded is not None
        return text, reward, ended == "terminated", ended == "truncated", self._info() | info

    def render(self) -> str | None:
        """Return the journal so far, a step a line."""
        if self.render_mode != "ansi":
            return None
        return "\n".join(json.dumps(row, ensure_ascii=False, sort_keys=True) for row in self.environment.journal)

    def _act(self, action: str) -> tuple[str, dict[str, Any]]:
        try:
            parsed = json.loads(action)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, dict) and isinstance(parsed.get("tool"), str):
            result = self.environment.call(parsed["tool"], parsed.get("arguments", {}))
            return result.content, {"tier": result.tier, "is_error": result.is_error}
        if isinstance(parsed, dict) and parsed.get("finish") is True:
            self.environment.finish()
            return "", {}
        return self.environment.say(action) or "", {}

    def _info(self) -> dict[str, Any]:
        return {"task_id": self._task_id, "state_hash": self.environment.state_hash(), "ended": self.environment.ended}


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point=GymnasiumEnv)
