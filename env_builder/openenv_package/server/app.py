"""An exported environment's OpenEnv server: `uvicorn server.app:app` in the package's folder (session.py).

Agents reach this server alone: anyone who can read the package's folder can read the solutions.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openenv.core.env_server.types import ConcurrencyConfig

HERE = Path(__file__).resolve().parent.parent
sys.path.append(str(HERE))  # `play` is in the package's folder, under any name of the package
play = importlib.import_module("play")

from .session import OpenEnvObservation, create_app  # noqa: E402

SESSIONS = 256
"""Episodes at a time."""


class LocalEpisode:
    """An episode in this process."""

    def __init__(self, episode: Any, tools: list[dict[str, Any]]) -> None:
        self._episode = episode
        self.task_id: str | None = episode.task_id
        self.messages: list[dict[str, Any]] = episode.messages
        self.tools = tools

    async def call(self, tool: str, arguments: dict[str, Any]) -> OpenEnvObservation:
        """Call a tool."""
        content, is_error = self._episode.call(tool, arguments)
        return OpenEnvObservation(content=content, is_error=is_error, ended=self._episode.ended)

    async def say(self, text: str) -> OpenEnvObservation:
        """Send a message to the user."""
        return OpenEnvObservation(content=self._episode.say(text), ended=self._episode.ended)

    async def finish(self) -> OpenEnvObservation:
        """End the episode."""
        self._episode.finish()
        return OpenEnvObservation(ended=self._episode.ended)

    async def reward(self) -> float | None:
        """Return the grader's reward."""
        return self._episode.reward()

    def close(self) -> None:
        """Do nothing: no process waits for it."""


class LocalHost:
    """Plays episodes of the exported environment in this process."""

    def __init__(self, directory: Path) -> None:
        self._environment = play.open(directory)
        self.name: str = self._environment.name
        self.digest: str = self._environment.digest
        self.readme: str | None = (directory / "README.md").read_text("utf-8")
        self.tasks: list[dict[str, Any]] = self._environment.tasks
        self._turn = itertools.cycle([row["task_id"] for row in self.tasks])

    async def begin(self, task_id: str | None, seed: int | None, perturbations: Sequence[str] | None) -> LocalEpisode:
        """Begin an episode; ValueError if there is no such task."""
        if task_id is None:
            task_id = next(self._turn)
        if task_id not in self._environment.by_id:
            raise ValueError(f"no task {task_id!r}; the task API lists them")
        episode = self._environment.begin(task_id, seed or 0, perturbations or ())
        return LocalEpisode(episode, self._environment.descriptors)


app = create_app(LocalHost(HERE), ConcurrencyConfig(max_concurrent_envs=SESSIONS))


def main() -> None:
    """Serve on the port that openenv.yaml names."""
    import uvicorn

    uvicorn.run(app, host="0.0.0.0", port=8000)


if __name__ == "__main__":
    main()
