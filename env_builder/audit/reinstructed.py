"""Tasks that a changed sentence of the instructions made wrong: good sessions of their family act otherwise since.

In: an environment, its tasks with their known solutions, and the sentences of instructions that came or went. Out: by task, the
tool that decides. Of each family, the known solutions are laid out in time. Where those up to an instant call a tool that may
write and none does since, or the other way round, beyond chance, and a sentence stands in the instructions of all on one side
and of none on the other, tasks that begin before show another right outcome than today's. Sees: whole families, ten known
solutions since the change. Does not see: a sentence that decides some tasks of a family alone (a limit, a condition); what
agents say; instructions that no session shows. Such tasks keep the instructions of their own session.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from env_builder.runtime import Environment
from env_builder.runtime.records import Task

FEWEST = 10
"""Known solutions of a family since the change, at least."""
BY_CHANCE = 1e-7


class Reinstructed(NamedTuple):
    """What good sessions of a family do otherwise."""

    tool: str
    since: str
    """ISO instant at which the first of them began."""
    sentence: str
    is_said: bool
    """Does the sentence stand in the instructions since? Else it did before."""
    is_called: bool
    """Do they call the tool since? Else they did before."""


class _Known(NamedTuple):
    task: Task
    tools: frozenset[str]
    instructions: str


def reinstructed(
    environment: Environment, solutions: Mapping[str, Sequence[Mapping[str, Any]]], sentences: Collection[str]
) -> dict[str, Reinstructed]:
    """Return the tasks of before a change of instructions since which their family is served otherwise. `sentences`: those that
    came or went, with single spaces between words."""
    families: dict[str, list[_Known]] = defaultdict(list)
    for task in environment.tasks if sentences else ():
        steps = solutions.get(task.task_id)
        if task.starts_at is not None and steps is not None and task.derived_from is None:
            tools = frozenset(step["tool"] for step in (*task.prefix, *steps) if "tool" in step)
            families[task.family].append(_Known(task, tools & environment.writes, _instructions(task)))
    changes: dict[str, Reinstructed] = {}
    for known in families.values():
        in_time = sorted(known, key=lambda each: (each.task.starts_at or "", each.task.task_id))
        for tool in sorted(frozenset[str]().union(*(each.tools for each in in_time))):
            for is_called in (False, True):
                changes = _of_tool(in_time, tool, is_called, sentences) | changes
    return changes


def _instructions(task: Task) -> str:
    return " ".join(" ".join(message["content"].split()) for message in task.opening if message["role"] == "system")


def _of_tool(in_time: list[_Known], tool: str, is_called: bool, sentences: Collection[str]) -> dict[str, Reinstructed]:
    """Return the tasks up to the last solution that is not like all since: those call the tool (`is_called`), or none does."""
    last = last_beyond_chance([(tool in each.tools) != is_called for each in in_time], FEWEST, BY_CHANCE)
    if last is None:
        return {}
    before, since = in_time[:last + 1], in_time[last + 1:]
    for sentence in sorted(sentences):
        said = [sentence in each.instructions for each in before], [sentence in each.instructions for each in since]
        if (all(said[1]) and not any(said[0])) or (all(said[0]) and not any(said[1])):
            change = Reinstructed(tool, since[0].task.starts_at or "", sentence, all(said[1]), is_called)
            return {each.task.task_id: change for each in before if (tool in each.tools) != is_called}
    return {}


def last_beyond_chance(hits: Sequence[bool], fewest: int, by_chance: float) -> int | None:
    """Return the place of the last hit, where chance does not explain that so many, at least `fewest`, follow without one."""
    if True not in hits:
        return None
    last = max(place for place, hit in enumerate(hits) if hit)
    n_after = len(hits) - 1 - last
    missed = (hits[:last].count(False) + 1) / (last + 2)
    return last if n_after >= fewest and missed ** n_after < by_chance else None
