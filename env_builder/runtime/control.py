"""What the host of a room asks it beside what agents ask: to begin episodes, to speak for the agent, to give the journal.

In: an episode and a request's params. Out: the result as JSON. Every method has the prefix `traceroom/`; a room answers
them only where it was started for a host (docs/containers.md), and whoever can call them can end or read any episode that the
same server holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .environment import Environment
from .files import task_of
from .records import Observation, Task

INVALID_PARAMS = -32602
RESET, CLOSE = "traceroom/reset", "traceroom/close"


class Refused(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Played:
    """An episode that a server holds."""

    __slots__ = ("room", "tools")

    def __init__(self, room: Environment) -> None:
        self.room = room
        self.tools: dict[str, dict[str, Any]] = {}
        """Name -> descriptor of the tools that the agent sees, none before it has begun."""

    def begin(self, task_id: str | Task | None, seed: int, at: str | None, conditions: Sequence[str]) -> Observation:
        """Reset to a task, or with None to the room without one; KeyError or ValueError where that cannot be."""
        room = self.room
        observation = room.reset(None, at=at) if task_id is None else room.reset(task_id, seed=seed, conditions=conditions)
        self.tools = {tool["name"]: tool for tool in observation.tools}
        return observation


Handler = Callable[[Played, dict[str, Any]], dict[str, Any]]


def list_tasks(played: Played, params: dict[str, Any]) -> dict[str, Any]:
    """The room's tasks."""
    return {"tasks": [{"task_id": task.task_id, "split": task.split} for task in played.room.tasks]}


def state(played: Played, params: dict[str, Any]) -> dict[str, Any]:
    """Whether the episode has ended, and what the state is."""
    return {"ended": played.room.ended, "state_hash": played.room.state_hash()}


def reset(played: Played, params: dict[str, Any]) -> dict[str, Any]:
    """Begin the episode anew; what the agent sees first."""
    task_id, task, seed, at = params.get("task_id"), params.get("task"), params.get("seed", 0), params.get("at")
    on = params.get("conditions", [])
    texts = isinstance(on, list) and all(isinstance(name, str) for name in on)
    if not (isinstance(task_id, str | None) and isinstance(task, dict | None) and isinstance(seed, int)
            and isinstance(at, str | None) and texts):
        raise Refused(INVALID_PARAMS, "reset takes task_id (text or null), task (a row of tasks.jsonl or null), seed "
                                      "(whole number), at (text or null), conditions (a list of texts)")
    observation = played.begin(task_id if task is None else _task(task), seed, at, on)
    limits = observation.limits
    shown = {name: value for name, value in limits._asdict().items() if value is not None} if limits else None
    return {"messages": observation.messages, "tools": observation.tools, "limits": shown}


def _task(row: dict[str, Any]) -> Task:
    try:
        return task_of(row)
    except (KeyError, TypeError, AttributeError) as error:
        raise Refused(INVALID_PARAMS, f"the task is no row of tasks.jsonl ({error})") from error


def say(played: Played, params: dict[str, Any]) -> dict[str, Any]:
    """The user's reply; null where the user waits, has no more to say, or has left."""
    if not isinstance(params.get("text"), str):
        raise Refused(INVALID_PARAMS, "say takes text")
    reply = played.room.say(params["text"])
    return {"reply": reply, "ended": played.room.ended, "user_left": played.room.user_left}


def learn(played: Played, params: dict[str, Any]) -> dict[str, Any]:
    """Take in what the real tool answered."""
    name, arguments, content = params.get("name"), params.get("arguments"), params.get("content")
    if not (isinstance(name, str) and isinstance(arguments, dict) and isinstance(content, str)):
        raise Refused(INVALID_PARAMS, "learn takes name, arguments (an object) and content (text)")
    played.room.learn(name, arguments, content)
    return {}


def finish(played: Played, params: dict[str, Any]) -> dict[str, Any]:
    """The agent is done."""
    played.room.finish()
    return {"ended": played.room.ended}


def journal(played: Played, params: dict[str, Any]) -> dict[str, Any]:
    """All that a grader gets."""
    return {"journal": list(played.room.journal), "ended": played.room.ended}


def prompt(played: Played, params: dict[str, Any]) -> dict[str, Any]:
    """What to ask a model in the place of the last call."""
    return {"prompt": played.room.prompt()}


HANDLERS: dict[str, Handler] = {
    RESET: reset, CLOSE: journal, "traceroom/tasks": list_tasks, "traceroom/say": say, "traceroom/learn": learn,
    "traceroom/prompt": prompt, "traceroom/finish": finish, "traceroom/state": state, "traceroom/journal": journal,
}
