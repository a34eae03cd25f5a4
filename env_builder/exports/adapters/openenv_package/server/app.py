"""An exported environment's OpenEnv server (HTTP and WebSocket): `uvicorn server.app:app` in the package's folder.

An action is `{"type": "call_tool", "tool_name", "arguments"}`, `{"type": "say", "text"}`, `{"type": "finish"}` or
`{"type": "list_tools"}`. `reset` takes `task_id`, or `split` and `index`, and `seed`; without a task the tasks come in turn. A
step is done when the episode has ended, by `finish` or by its limits, and then has the reward of the environment's own
grader; none where nobody can say. Agents reach this server alone: whoever reads the package's folder reads the solutions.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata

HERE = Path(__file__).resolve().parent.parent
sys.path.append(str(HERE))  # `play` lies in the package's folder, by whichever name that is loaded
try:
    from ..models import RoomAction, RoomObservation, RoomState
except ImportError:
    from models import RoomAction, RoomObservation, RoomState  # type: ignore[import-not-found,no-redef]
import play  # type: ignore[import-not-found] # noqa: E402

SESSIONS = 256
"""Episodes at a time."""
ROOM = play.open(HERE)
TURN = itertools.cycle([row["task_id"] for row in ROOM.tasks])
"""Whose turn it is where nobody names a task."""


class RoomEnvironment(Environment[RoomAction, RoomObservation, RoomState]):
    """One session: an episode at a time."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._episode: Any = None
        self._state = RoomState(digest=ROOM.digest)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, task_id: str | None = None, split: str | None = None,
        index: int | None = None, **others: Any,
    ) -> RoomObservation:
        """Begin an episode."""
        if task_id is None:
            task_id = next(TURN) if split is None else self.get_task(split, index or 0)["task_id"]
        if task_id not in ROOM.by_id:
            raise ValueError(f"no task {task_id!r}; the task API lists them")
        self._episode = ROOM.begin(task_id, seed or 0)
        self._state = RoomState(episode_id=episode_id or task_id, task_id=task_id, digest=ROOM.digest)
        return RoomObservation(messages=self._episode.messages, tools=ROOM.descriptors)

    def step(self, action: RoomAction, timeout_s: float | None = None, **others: Any) -> RoomObservation:
        """Do one thing; an episode that has not begun begins."""
        if self._episode is None:
            self.reset()
        if action.type == "list_tools":
            return RoomObservation(tools=ROOM.descriptors, ended=self._state.ended)
        was_over = self._state.ended is not None
        self._state.step_count += 1
        content, is_error = self._done(action)
        ended = self._state.ended = self._episode.ended
        reward = self._episode.reward() if ended is not None and not was_over else None
        return RoomObservation(content=content, is_error=is_error, ended=ended, done=ended is not None, reward=reward)

    def _done(self, action: RoomAction) -> tuple[str | None, bool]:
        if action.type == "call_tool":
            answer: tuple[str, bool] = self._episode.call(action.tool_name, action.arguments)
            return answer
        if action.type == "say":
            return self._episode.say(action.text), False
        self._episode.finish()
        return None, False

    @property
    def state(self) -> RoomState:
        """Where the episode is."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """What this environment is."""
        about = f"The service {ROOM.name}, as it was found in logs: {len(ROOM.tasks)} tasks, digest {ROOM.digest}."
        readme = (HERE / "README.md").read_text("utf-8")
        return EnvironmentMetadata(name=ROOM.name, description=about, version="0.1.0", readme_content=readme)

    def list_splits(self) -> list[str]:
        """Sides of the split."""
        return sorted({row["split"] for row in ROOM.tasks})

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Its tasks."""
        rows = [row for row in ROOM.tasks if row["split"] == split]
        return [{"index": n, "task_id": row["task_id"], "split": split} for n, row in enumerate(rows)]

    def num_tasks(self, split: str) -> int:
        """How many."""
        return len(self.list_tasks(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """One of them; IndexError where there is none."""
        if index < 0:
            raise IndexError(index)
        return self.list_tasks(split)[index]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        """Some of them."""
        return self.list_tasks(split)[start:stop]


app = create_fastapi_app(
    RoomEnvironment, RoomAction, RoomObservation, env_name=ROOM.name, max_concurrent_envs=SESSIONS, state_cls=RoomState)


def main() -> None:
    """Serve on the port that openenv.yaml names."""
    import uvicorn

    uvicorn.run(app, host="0.0.0.0", port=8000)


if __name__ == "__main__":
    main()
