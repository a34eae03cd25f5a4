"""Tasks that a changed sentence of the instructions made wrong: good sessions of their family act otherwise since.

In: the tasks of a log that a session did well, with its instructions and the tools that it called; and the sentences of
instructions that came or went. Out: by family, the tools that decide. Each family's tasks are laid out in time. Where those up
to an instant call a tool and none does since, or the other way round, beyond chance, and a sentence stands in the instructions
of all on one side and of none on the other, tasks that begin before show another right outcome than today's. Sees: whole
families, ten such tasks since the change. Does not see: a sentence that decides some tasks of a family alone (a limit, a
condition); what agents say; instructions that no session shows. Such tasks keep the instructions of their own session. Whether
a tool may write, so that the outcome is another one, is for who asks to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from env_builder.runtime.records import Task

FEWEST = 10
"""Tasks of a family since the change that sessions did well, at least."""
BY_CHANCE = 1e-7


class ServedTask(NamedTuple):
    """A task that a session did well."""

    family: str
    starts_at: str
    tools: frozenset[str]
    """Tools that the session called."""
    instructions: str
    """Those that the session began with, with single spaces between words."""


class Reinstructed(NamedTuple):
    """What good sessions of a family do otherwise."""

    tool: str
    last: str
    """ISO instant at which the last of those began that do as before."""
    since: str
    """ISO instant at which the first of the others began."""
    sentence: str
    is_said: bool
    """Does the sentence stand in the instructions since? Else it did before."""
    is_called: bool
    """Do they call the tool since? Else they did before."""

    def speaks_against(self, task: Task, steps: Iterable[Mapping[str, Any]]) -> bool:
        """Return whether a known solution does what is not done since. `task`: one of the family."""
        calls = any(step.get("tool") == self.tool for step in (*task.prefix, *steps))
        return task.starts_at is not None and task.starts_at <= self.last and calls != self.is_called


def reinstructed(served: Iterable[ServedTask], sentences: Collection[str]) -> dict[str, list[Reinstructed]]:
    """Return the changes of each family. `sentences`: those that came or went, with single spaces between words."""
    families: dict[str, list[ServedTask]] = defaultdict(list)
    for one in served if sentences else ():
        families[one.family].append(one)
    changes: dict[str, list[Reinstructed]] = {}
    for family, tasks in sorted(families.items()):
        in_time = sorted(tasks, key=lambda each: each.starts_at)
        tools = sorted(frozenset[str]().union(*(each.tools for each in in_time)))
        own = [_of_tool(in_time, tool, is_called, sentences) for tool in tools for is_called in (False, True)]
        changes[family] = [each for each in own if each is not None]
    return changes


def _of_tool(in_time: list[ServedTask], tool: str, is_called: bool, sentences: Collection[str]) -> Reinstructed | None:
    """Return the change since which all call the tool (`is_called`), or none does."""
    last = last_beyond_chance([(tool in each.tools) != is_called for each in in_time], FEWEST, BY_CHANCE)
    if last is None:
        return None
    before, since = in_time[:last + 1], in_time[last + 1:]
    for sentence in sorted(sentences):
        then, now = ([sentence in each.instructions for each in part] for part in (before, since))
        if (all(now) and not any(then)) or (all(then) and not any(now)):
            return Reinstructed(tool, before[-1].starts_at, since[0].starts_at, sentence, all(now), is_called)
    return None


def last_beyond_chance(hits: Sequence[bool], fewest: int, by_chance: float) -> int | None:
    """Return the place of the last hit, where chance does not explain that so many, at least `fewest`, follow without one."""
    if True not in hits:
        return None
    last = max(place for place, hit in enumerate(hits) if hit)
    n_after = len(hits) - 1 - last
    missed = (hits[:last].count(False) + 1) / (last + 2)
    return last if n_after >= fewest and missed ** n_after < by_chance else None
