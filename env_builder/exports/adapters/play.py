"""An exported environment, opened and played: what all consumers' adapters share, so that one episode has one reward.

In: a folder with `room/`, `grader/` and `kit.json` (docs/consumers.md). Out: episodes. Standard library only, Python 3.11+:
the room's own runtime answers, and its grader replays the journal. Loads room and grader into one process: for trusted
policies alone, or behind a server.
Sees: calls, words and the end of the episode. Does not see: what a model thought; a judge's criteria without `ask`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

Row = dict[str, Any]
Ask = Callable[[str], str]
"""A model: a prompt in, its text out."""
OVER = "the episode has ended"
_opened: dict[Path, Room] = {}
_opening = threading.Lock()


def open(directory: str | Path) -> Room:
    """The environment in `directory`; the same object for the same folder. OSError, ValueError where there is none."""
    place = Path(directory).resolve()
    with _opening:
        if place not in _opened:
            _opened[place] = Room(place)
        return _opened[place]


class Room:
    """An environment with its tasks; any number of its episodes run side by side."""

    def __init__(self, directory: Path) -> None:
        about: Row = json.loads((directory / "kit.json").read_text("utf-8"))
        self.name: str = about["name"]
        self.digest: str = about["digest"]
        """Content digest of what was exported, the same in every consumer's export of it."""
        self.figures: Row = about["figures"]
        """What the published environment says of its fidelity and audit."""
        runtime = _runtime(directory / "room" / "runtime", self.digest)
        self._grader = directory / "grader"
        graded = self._grader.is_dir()
        place, room = directory / "room", runtime.Environment
        self._environment: Any = room.load(place, self._grader) if graded else room.load_room(place)
        self.descriptors: list[Row] = shown(self._environment.tools)
        """The tools as MCP descriptors, under names that every model's API takes."""
        self.tools: list[Row] = functions(self._environment.tools)
        """The same as OpenAI function tools."""
        self.own: dict[str, str] = {name: own for own, name in callable_names(
            tool["name"] for tool in self._environment.tools).items()}
        """A tool's own name by the one it is shown under."""
        self.tasks: list[Row] = list(_rows(directory / "room" / "tasks.jsonl"))
        """Rows of tasks.jsonl, by task_id."""
        self.by_id: dict[str, Row] = {row["task_id"]: row for row in self.tasks}
        self._solutions: dict[str, list[Row]] | None = None

    def begin(self, task_id: str, seed: int = 0, conditions: Iterable[str] = ()) -> Episode:
        """Begin an episode; KeyError where there is no such task."""
        return Episode(self, self._environment.fork(), task_id, seed, tuple(conditions))

    def solution(self, task_id: str) -> list[Row]:
        """The known solution's steps: {"tool", "arguments"} | {"say"}; for tests, never for a policy."""
        if self._solutions is None:
            self._solutions = {row["task_id"]: row["steps"] for row in _rows(self._grader / "solutions.jsonl")}
        return self._solutions[task_id]

    def grade(
        self, task_id: str, journal: Iterable[Row], seed: int = 0, conditions: Iterable[str] = (), mode: str = "eval",
        ask: Ask | None = None,
    ) -> Any:
        """The grade of a journal, replayed on a world of the grader's own."""
        return self._environment.fork().grade_journal(task_id, journal, seed, conditions, mode, ask)


class Episode:
    """One episode of one task."""

    def __init__(self, room: Room, environment: Any, task_id: str, seed: int, conditions: tuple[str, ...]) -> None:
        self._room = room
        self._environment = environment
        self.task_id = task_id
        self.seed = seed
        self.conditions = conditions
        self.digest = room.digest
        self.tools = room.tools
        observation = environment.reset(task_id, seed, conditions=conditions)
        self.messages: list[Row] = [dict(message) for message in observation.messages]
        """The conversation before the agent's first move: {"role", "content"}."""
        if not any(message["role"] == "user" for message in self.messages):  # where nobody speaks, what is to be done is said
            self.messages.append({"role": "user", "content": room.by_id[task_id]["goal"]})
        self.n_refused = 0
        """Calls that never reached the room: of tools that are not there, or without an object of arguments."""
        self._known = frozenset(room.own.values())

    def call(self, name: str, arguments: Any) -> tuple[str, bool]:
        """A tool's answer, and whether it is an error. `name`: its own, or as it is shown; `arguments`: an object, or the text
        of one."""
        if self.ended is not None:
            return OVER, True
        name = self._room.own.get(name, name)
        if isinstance(arguments, str):
            arguments = _parsed(arguments)
        if name not in self._known or not isinstance(arguments, dict):
            self.n_refused += 1
            return (f"no tool {name!r}; there are: {', '.join(sorted(self._room.own))}" if name not in self._known
                    else "the arguments are no JSON object"), True
        result = self._environment.call(name, arguments)
        return result.content, result.is_error

    def say(self, text: str) -> str | None:
        """The user's answer; None: the user waits, has nothing more to say, or has left."""
        return None if self.ended is not None else self._environment.say(text)

    def finish(self) -> None:
        """The agent is done."""
        self._environment.finish()

    @property
    def ended(self) -> str | None:
        """None while it runs, then "terminated" or "truncated"."""
        ended: str | None = self._environment.ended
        return ended or ("truncated" if self.n_refused > self._room.by_id[self.task_id]["limits"]["steps"] else None)

    def play(self, steps: Iterable[Row]) -> Episode:
        """Make known steps, {"tool", "arguments"} | {"say"}, and finish."""
        for step in steps:
            if "say" in step:
                self.say(step["say"])
            else:
                self.call(step["tool"], step["arguments"])
        self.finish()
        return self

    def reward(self, mode: str = "eval", ask: Ask | None = None) -> float | None:
        """What the episode is worth so far, in [0, 1] (mode "train": [-1, 1]); None: nobody can say."""
        reward: float | None = self._graded(mode, ask).reward
        return reward

    def findings(self, mode: str = "eval", ask: Ask | None = None) -> list[Row]:
        """What each check says: check_id, kind, role, weight, passed (None: nobody can say), says, evidence."""
        return [check._asdict() for check in self._graded(mode, ask).checks]

    def journal(self) -> list[Row]:
        """Everything that happened, all that a grader gets."""
        return list(self._environment.journal)

    def _graded(self, mode: str, ask: Ask | None) -> Any:
        return self._room.grade(self.task_id, self.journal(), self.seed, self.conditions, mode, ask)


def callable_names(tools: Iterable[str]) -> dict[str, str]:
    """Names that every model's API takes (64 letters, digits, `_` and `-`), by the tools' own; what is such a name stays."""
    every = sorted(set(tools))
    found = {own: own for own in every if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", own)}
    taken = set(found)
    for own in every:
        if own not in found:
            short = re.sub(r"[^A-Za-z0-9_-]+", "_", own).strip("_")[:56] or "tool"
            choices = (short, *(f"{short}_{n}" for n in range(2, len(every) + 2)))
            found[own] = next(name for name in choices if name not in taken)
            taken.add(found[own])
    return found


def shown(descriptors: Iterable[Row]) -> list[Row]:
    """MCP descriptors under names that every model's API takes; a tool that goes by another says its own first."""
    tools = list(descriptors)
    names = callable_names(tool["name"] for tool in tools)
    return [tool if names[tool["name"]] == tool["name"] else {
        **tool, "name": names[tool["name"]], "description": ": ".join(filter(None, (tool["name"], tool.get("description"))))}
        for tool in tools]


def functions(descriptors: Iterable[Row]) -> list[Row]:
    """MCP descriptors as OpenAI function tools, as they are shown."""
    return [{"type": "function", "function": {
        "name": tool["name"], "description": tool.get("description") or "",
        "parameters": tool.get("inputSchema") or {"type": "object", "properties": {}}}} for tool in shown(descriptors)]


def _runtime(folder: Path, digest: str) -> ModuleType:
    """The room's own runtime, under a name of its own: other rooms of this process keep theirs."""
    name = f"traceroom_runtime_{digest[:16]}"
    if name not in sys.modules:
        found = importlib.util.spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
        if found is None or found.loader is None:
            raise ValueError(f"{folder} holds no runtime: export the environment again")
        module = sys.modules[name] = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
    return sys.modules[name]


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield json.loads(line)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
