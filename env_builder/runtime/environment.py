"""The room as a Python object: load it, reset it to a task, act, fork, grade (docs/environment.md).

Loads room and grader into one process: for trusted policies only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import live
from .acts import Mark
from .bindings import Binding, binding
from .canonical import UNWRITABLE, canonical, digest
from .conditions import Conditions
from .episode import Room
from .files import TASKS, named_rows, rows_of, task_of
from .judged import Judged
from .known import Memory
from .programs import Program, Programs
from .records import Ended, Limits, Observation, Result, Task
from .talking import CHARACTERS
from .user import Said
from .world import View, World

FORMAT = "traceroom-environment/1"
_OVER = Result("the episode has ended; reset the environment to begin another", True, "unknown")


class Environment(Judged):
    """One room with many tasks; an instance plays one episode at a time."""

    def __init__(
        self, manifest: dict[str, Any], tasks: Iterable[Task], tools: list[dict[str, Any]], programs: dict[str, Program],
        world: World, rubrics: dict[str, dict[str, Any]], conditions: Conditions | None = None,
    ) -> None:
        self.manifest = manifest
        self.tasks = tuple(tasks)
        self.tools = tools
        self._by_id = {task.task_id: task for task in self.tasks}
        self._programs = Programs(programs)
        self._writes = frozenset(tool for tool, program in self._programs.items() if program.acting)
        self._world = world
        self._rubrics = rubrics
        self._read_rubrics = {}
        self._conditions = conditions or Conditions()
        self._bound: dict[str, Binding] = {}
        self._memory: Memory | None = None
        self._limits: Limits | None = None
        self._ask: Callable[[str], str] | None = None
        self._users, self._forms = {}, []
        self._ended: Ended | None = None
        self._begin(None, View(None, frozenset()))

    @classmethod
    def load(cls, path: str | Path, rewards: str | Path | None = None) -> Environment:
        """Read a room's directory; rewards from `rewards`, else from OUT/rewards/<name> where that is.

        Raises ValueError where the directory holds no environment of this format, OSError where it cannot be read.
        """
        directory = Path(path).absolute()
        beside = directory.parent.parent / "rewards" / directory.name
        grader = Path(rewards) if rewards is not None else beside
        there = rewards is not None or grader.is_dir()
        return cls._read(directory, {row["task_id"]: row for row in rows_of(grader / "rubrics.jsonl")} if there else {})

    @classmethod
    def load_room(cls, path: str | Path) -> Environment:
        """The room alone, as a process or container of its own loads it: it never looks for the grader's side."""
        return cls._read(Path(path), {})

    @classmethod
    def _read(cls, directory: Path, rubrics: dict[str, dict[str, Any]]) -> Environment:
        manifest = json.loads((directory / "manifest.json").read_text("utf-8"))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError(f"{directory} is not an environment: manifest.json has no format {FORMAT!r}")
        return cls(
            manifest,
            map(task_of, rows_of(directory / TASKS) if (directory / TASKS).exists() else ()),  # in an image there are none
            list(rows_of(directory / "tools.jsonl")),
            {row["tool"]: row for row in rows_of(directory / "behaviour.jsonl")},
            World(named_rows(directory / "world.jsonl"), named_rows(directory / "recorded.jsonl")),
            rubrics,
            Conditions(rows_of(directory / "conditions.jsonl")) if (directory / "conditions.jsonl").exists() else None,
        )

    def reset(
        self, task_id: str | Task | None, seed: int = 0, at: str | None = None, conditions: Iterable[str] = (),
        limits: Limits | None = None,
    ) -> Observation:
        """Begin an episode of a task, or with None the open room as of the ISO instant `at`.

        A `Task` in the place of an id is one that the room need not have: a host hands it to a room in a container.

        `conditions` switches on, for a task, what tools do in production beside answering, drawn by `seed`: `expiry`,
        `faults`, `fresh`, `latency`, `pages`, `rebound`, `shuffled`. Without them every seed plays exactly as recorded.
        `limits`: in the place of the task's own.
        An open room that follows an open room still knows what it was taught: of the state that every session begins
        from, or, where all work on one, of how the world was left (unless `at` goes back in time, or stays while acts were
        played that no real tool answered: what was only played begins anew).
        """
        self._conditions = self._conditions.switched(seed, () if task_id is None else conditions)
        if task_id is None:
            self._open_again(at)
            return Observation([], self.tools, None)
        task = task_id if isinstance(task_id, Task) else self._by_id.get(task_id)
        if task is None:
            there = "see Environment.tasks" if self.tasks else "in an image tasks.jsonl is mounted, or a host hands it over"
            raise KeyError(f"no task {task_id!r} in this environment; it has {len(self.tasks)}, {there}")
        self._begin(task, View(task.starts_at, frozenset(task.session_ids)))
        self._limits = limits or task.limits
        self._guise = self._conditions.guise(self._ids) if self._conditions.switches else None
        opening = [*map(dict, task.opening)]
        if self._guise:
            for message in opening:
                message["content"] = self._guise.text(message["content"])
        return Observation(opening, self.tools, self._limits)

    def bind(self, tool: str, source: str | Binding) -> None:
        """From now on let the real thing answer what is not on record: `python:module:function`, `http:ADDRESS`,
        `mcp:ADDRESS`, `mcp:COMMAND`, the name of an entry point with what it takes, or a callable (bindings.py).
        """
        if tool not in self._programs:
            raise KeyError(f"no tool {tool!r} to bind in this environment; there are: {', '.join(sorted(self._programs))}")
        self._bound = {**self._bound, tool: binding(source)}
        self._room.bind(self._bound)

    def remember(self, n_calls: int = 1_000_000) -> None:
        """From now on take what was answered in the same state before, in any episode or fork, from memory (known.py).

        The answers are the same, and faster. `n_calls`: how many are kept, a few KB each; 0: none any more.
        """
        self._memory = Memory(n_calls) if n_calls else None

    def live(self, ask: Callable[[str], str] | None) -> None:
        """From now on let a model answer what would be `unknown`: a prompt in, its text out; None: no longer.

        Such answers have the tier `model`; nothing is learnt of them, and who grades replays without one (live.py).
        """
        self._ask = ask

    def prompt(self) -> str | None:
        """What to ask a model in the place of the last call, None where that was answered or the room has no such tool."""
        row = self._journal[-1] if self._journal else {}
        descriptor = next((each for each in self.tools if each["name"] == row.get("tool")), None)
        if row.get("tier") != "unknown" or descriptor is None or not isinstance(row["arguments"], dict):
            return None
        examples = self._room.examples(row["tool"], row["arguments"])
        return live.question(descriptor, row["arguments"], examples, self._journal[:-1])

    def supply(self, reply: str) -> Result | None:
        """Put a model's reply to `prompt` in the place of the last answer; None where it is none: the call stays `unknown`."""
        result = live.answer(reply) if self.prompt() is not None else None
        if result is not None:
            self._signs += len(result.content) - len(self._journal[-1]["content"])
            self._journal[-1] = self._journal[-1] | result._asdict()
            result = result._replace(content=self._guise.text(result.content)) if self._guise else result
        return result

    def call(self, tool: str, arguments: Any) -> Result:
        """The tool's answer; arguments that are no JSON object are answered `unknown`."""
        if self._guise is not None:
            return self._in_guise(self._guise, tool, arguments)
        if not self._open():
            return _OVER
        room = self._room
        self._marks.append((room.mark, self._turn, self._signs))
        key: str | None
        try:
            key = canonical(arguments)
        except UNWRITABLE:
            key = arguments = None  # what cannot be written down is nothing that a tool was given
        drawn: dict[str, Any] | None = None
        if not isinstance(arguments, dict):
            result = Result("the arguments are no JSON object", True, "unknown")
        elif self._conditions.switches:
            result, drawn = self._conditions.answer(self._journal, tool, arguments, room.call)
        else:
            result = room.call(tool, arguments, key)
        content, is_error, tier = result
        if tier == "unknown" and self._task is None and isinstance(arguments, dict) and tool in self._programs:
            content += self._nearest(tool, arguments)  # in a task the answer would be told
            result = Result(content, is_error, tier)
        self._signs += len(tool) + len(key or "") + len(content)
        row = {
            "kind": "call", "tool": tool, "arguments": arguments, "content": content, "is_error": is_error, "tier": tier}
        self._journal.append(row | drawn if drawn else row)
        if self._ask is None:
            return result
        prompt = self.prompt()
        return (self.supply(self._ask(prompt)) if prompt else None) or result

    def learn(self, tool: str, arguments: dict[str, Any], content: str) -> None:
        """In an open room: take in what the real tool answered to a call that was just asked here."""
        if self._task is not None:
            raise ValueError("a task's room does not learn: reset(None, at=…) opens one that does")
        self._room.learn(tool, arguments, content, self._conditions.passes(tool, arguments, content))

    def fork(self) -> Environment:
        """The same state, independent from here on; the world is shared."""
        twin = object.__new__(Environment)
        twin.__dict__.update(self.__dict__)
        twin._room = self._room.fork()
        twin._journal = list(self._journal)
        twin._marks = list(self._marks)
        return twin

    def rollback(self, n_steps: int) -> None:
        """Back to where the episode stood after its first `n_steps` steps; the time that has passed stays passed.

        ValueError: it has not come so far, or the room is open (what it was taught cannot be taken back).
        """
        if self._task is None or not 0 <= n_steps <= len(self._journal):
            here = "the open room" if self._task is None else f"an episode of {len(self._journal)} steps"
            raise ValueError(f"{here} cannot be rolled back to step {n_steps}")
        if n_steps < len(self._journal):
            mark, self._turn, self._signs = self._marks[n_steps]
            self._room.back(mark)
            del self._journal[n_steps:], self._marks[n_steps:]
            self._ended = None

    def state_hash(self) -> str:
        """What the state is, as 64 hex digits: the task, what of the world has changed since it began, and how much the user
        has said. Two ways to the same state give the same; looking changes nothing.
        """
        task_id = self._task.task_id if self._task else None
        room = self.manifest.get("room_digest") or self.manifest["content_digest"]
        return digest(canonical([room, task_id, self._room.difference(), self._turn]))

    def finish(self) -> None:
        """The agent is done."""
        if self._open():
            self._ended = "terminated"
            self._mark()
            self._journal.append({"kind": "finish"})

    @property
    def ended(self) -> Ended | None:
        """None while the episode runs."""
        self._open()
        return self._ended

    def difference(self) -> dict[str, Any]:
        """What the episode changed."""
        return self._room.difference()

    def replaying(self, task_id: str, seed: int = 0, conditions: Iterable[str] = ()) -> Environment:
        """A twin at the beginning of a task, for who plays a journal again: without limits, and without a model."""
        twin = self.fork()
        twin.reset(task_id, seed, conditions=conditions)
        twin._limits = None  # the journal was written under them
        twin._ask = twin._guise = twin._reword = None  # it is in the room's own names and words
        return twin

    @property
    def writes(self) -> frozenset[str]:
        """Names of the tools that may change the world."""
        return self._writes

    @property
    def world(self) -> World:
        """What the room knows: facts and answers on record, shared by all its episodes and changed by none."""
        return self._world

    def _nearest(self, tool: str, arguments: dict[str, Any]) -> str:
        """What to add to an unknown answer for who builds: the calls on record that are most like it."""
        near = [asked for asked, _ in self._room.examples(tool, arguments)]
        return "; nearest calls on record: " + ", ".join(near) if near else "; no call of it is on record"

    def _begin(self, task: Task | None, view: View) -> None:
        self._task = task
        self._limits = task.limits if task else None
        self._room = Room(self._world, self._programs, view)
        if self._bound:
            self._room.bind(self._bound)
        drawn = self._conditions.seed if "fresh" in self._conditions.switches else None
        if drawn is not None:
            self._room.drawing(drawn)
        if self._memory is not None and task is not None and not self._bound:
            self._room.remember(self._memory, (view, drawn))
        self._guise = None
        self._talk(task)
        self._journal = []
        self._marks: list[tuple[Mark, Said, int]] = []
        """How it was before each step of the journal."""
        self._ended = None
        self._began = time.monotonic()

    def _open_again(self, at: str | None) -> None:
        """Begin in the open room: what it was taught before stays known, as it was before any act of its sessions."""
        room, was_open, before = self._room, self._task is None, self._room.view.instant
        view = View(at, frozenset())
        self._begin(None, view)
        anew = self.manifest.get("starts_from") == "reset"
        since = at is not None and before is not None and (before < at or (before == at and all(act.told for act in room.acts)))
        if was_open and (anew or since):
            self._room = room.again(view, anew)

    def _mark(self) -> None:
        """Note how it is before a step."""
        self._marks.append((self._room.mark, self._turn, self._signs))

    def _open(self) -> bool:
        """May the agent still act? A limit truncates."""
        if self._ended is not None:
            return False
        limits = self._limits
        if limits is not None and (
            len(self._journal) >= limits.steps or time.monotonic() - self._began >= limits.seconds
            or (limits.tokens is not None and self._signs > CHARACTERS * (limits.tokens - 1))
        ):
            self._ended = "truncated"
            return False
        return True
