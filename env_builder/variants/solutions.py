"""Failures that need not be solved again: a solution is remembered with all that it was made from, and counts while that stays.

In: the model of a service, and tasks without a known success. Out: of each its solution, or why there is none. What a solution
reads is noted as it is made: parts of the model (the moves and goals of sessions, how a tool is used, where an argument comes
from, whether a way is proven), and what its plays ask of the world and the programs (`audit/kept.py`). It is made again where
one of these is another today. How many sessions bear a way out is counted each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from env_builder.audit.kept import Notes, PlaySources, Watch, WatchedPrograms, WatchedWorld, stands
from env_builder.audit.values import Plausible
from env_builder.rewards.witness import ends_alike
from env_builder.runtime.canonical import digest
from env_builder.runtime.user import ScriptedUser
from env_builder.runtime.world import World
from env_builder.variants.failures import Derived, ServiceModel, Solution, Unbound, end_of, rated, solve, worded
from env_builder.variants.moves import Move, ToolUse
from warehouse.records import Memoize

PARTS = ("effects", "uses", "sources", "reads", "is_proven", "routine", "goals", "moves", "goal_messages")
"""Parts of a model that a solution reads, each key by key."""
Part = tuple[str, Any]
"""(name of a mapping of the model, key)."""
K = TypeVar("K")
V = TypeVar("V")


class FailedTask(NamedTuple):
    """A task without a known success."""

    task_id: str
    family: str
    starts_at: str | None
    session_ids: list[str]
    """The likeliest to have succeeded first."""
    bad: list[str]
    """Those that are known to have failed."""


class Solver:
    """Solves the failed tasks of one service, or remembers how they were solved."""

    def __init__(self, model: ServiceModel, memoize: Memoize) -> None:
        self._model, self._memoize = model, memoize
        self._watch = Watch(model.world)
        self._sources = PlaySources(
            model.world, model.programs, Plausible(World([], []), []), {}, ScriptedUser({"turns": []}))
        self._given = digest(" ".join(sorted(model.programs)))
        """Which tools there are: no play notes that it asks."""
        self._texts: dict[Part, str] = {}
        """Part -> digest of what it says."""

    def outcome(self, task: FailedTask) -> Derived | Unbound:
        """Return the solution of a task, or why there is none."""
        _, text = self._memoize(["solution", self._given, *task], partial(self._made, task), self._holds)
        kept = json.loads(text)
        if len(kept) == len(("reason", "detail")):
            return worded(self._model, Unbound(*kept))
        moves, *rest = kept
        return rated(self._model, Solution([Move(*move) for move in moves], *rest))

    def _made(self, task: FailedTask) -> list[str]:
        """Solve a task: what was read, and the outcome, both as JSON texts: numbers of any size, and order, stay."""
        parts: dict[Part, None] = {}
        notes = self._watch.notes = Notes()
        mappings = {name: NotedMapping(name, getattr(self._model, name), parts) for name in PARTS}
        watched = self._model._replace(
            world=WatchedWorld(self._watch), programs=WatchedPrograms(self._model.programs, self._watch), **mappings)
        outcome = _first_solution(watched, task)
        reading = {"parts": list(parts), "answers": self._digest(parts), "plays": notes.written(self._sources)}
        return [json.dumps(reading), json.dumps(outcome if isinstance(outcome, Solution) else [outcome.reason, outcome.detail])]

    def _holds(self, value: list[str]) -> bool:
        """Whether all that was read is the same today."""
        reading = json.loads(value[0])
        parts = ((name, tuple(key) if isinstance(key, list) else key) for name, key in reading["parts"])
        return self._digest(dict.fromkeys(parts)) == reading["answers"] and stands(reading["plays"], self._sources)

    def _digest(self, parts: Mapping[Part, None]) -> str:
        for part in parts:
            if part not in self._texts:
                name, key = part
                self._texts[part] = digest(_text(getattr(self._model, name).get(key)))
        return digest(" ".join(self._texts[part] for part in parts))


def _first_solution(model: ServiceModel, task: FailedTask) -> Solution | Unbound:
    """Return the solution of the first session that has one, and does not end as one that failed; else why the first has
    none."""
    begun = model.begun(task.starts_at, frozenset(task.session_ids))
    first: Unbound | None = None
    for session_id in task.session_ids:
        try:
            solution = solve(model, task.family, session_id, begun)
        except Unbound as unbound:
            first = first or Unbound(unbound.reason, unbound.detail)   # without the frames that it passed
            continue
        ends = (end_of(model, model.moves.get(name, []), begun) for name in task.bad)
        if not any(ends_alike(solution.difference, end, {}) for end in ends):
            return solution
        first = first or Unbound("ends_as_it_failed", "A session that ended so is known to have failed.")
    return first or Unbound("nothing_to_change", "No session of it has a goal.")


def _text(value: Any) -> str:
    """Return a part of a model as a text that is the same for equal ones."""
    if isinstance(value, ToolUse):
        touches = sorted([*kind, sorted(fields)] for kind, fields in value.touches.items())
        value = [value.forms, touches, sorted(value.always)]
    return json.dumps(value, default=sorted)


class NotedMapping(Mapping[K, V]):
    """A part of a model that notes of which keys it was asked. It is not read whole."""

    def __init__(self, name: str, values: Mapping[K, V], parts: dict[Part, None]) -> None:
        self._name, self._values, self._parts = name, values, parts

    def __getitem__(self, key: K) -> V:
        self._parts[self._name, key] = None
        return self._values[key]

    def __iter__(self) -> Iterator[K]:
        raise LookupError(f"{self._name} is read key by key")

    def __len__(self) -> int:
        raise LookupError(f"{self._name} is read key by key")
