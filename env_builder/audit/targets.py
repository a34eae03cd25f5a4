"""What the battery aims at in a task: texts and tools that its rubric ignores, presumed reads, its family's usual write calls.

In: the environment, all known solutions and recorded sessions, a rubric's document. Out: `Targets`.
Sees: effects and what is presumed of them, names and descriptions that speak of a change, which calls come last.
Does not see: a write call that is always followed by another call: it counts as a presumed read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from env_builder.runtime import Environment
from env_builder.runtime.apps.records import RecordsApp
from env_builder.runtime.apps.worlds import WorldsApp
from env_builder.world.effects import tells_of_a_change

USUAL = 2
"""Tools with which a family usually writes that are taken."""
FEWEST = 5
"""Trajectories with a tool from which they tell whether it prepares others."""
LAST = 0.1
"""Share of its trajectories in which a tool that prepares others makes the last call, at most."""
Steps = Sequence[Mapping[str, Any]]


class Targets(NamedTuple):
    """What the attacks on a task aim at."""

    ignored_arguments: Mapping[str, Sequence[str]] = {}
    """Tool -> arguments that its rubric ignores."""
    ignored_tools: Sequence[str] = ()
    """Tools whose calls its rubric ignores: notes and hand-overs."""
    usual_writes: Sequence[str] = ()
    """Tools with which its family usually writes, the most frequent first; none if the solution writes itself."""
    presumed_reads: frozenset[str] = frozenset()
    """Tools that may write as far as is proven, but look like reads, or prepare other calls."""


def ignored_by(document: Any) -> Targets:
    """Return what a rubric's document ignores, in any of its checks."""
    arguments: dict[str, set[str]] = {}
    tools: set[str] = set()
    todo = [document]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            for tool, names in (value.get("ignored_arguments") or {}).items():
                arguments.setdefault(tool, set()).update(names)
            tools.update(value.get("ignored_tools") or ())
        if isinstance(value, dict | list):
            todo += value.values() if isinstance(value, dict) else value
    return Targets({tool: sorted(names) for tool, names in sorted(arguments.items())}, sorted(tools))


class ServiceTargets(NamedTuple):
    """What the attacks on all tasks of an environment aim at."""

    presumed_reads: frozenset[str]
    usual_writes: Mapping[str, Sequence[str]]
    """Task id -> `Targets.usual_writes`."""

    def of(self, task_id: str, document: Any) -> Targets:
        """Return the targets of a task. `document`: its rubric."""
        usual = self.usual_writes.get(task_id, ())
        return ignored_by(document)._replace(usual_writes=usual, presumed_reads=self.presumed_reads)


def service_targets(
    environment: Environment, trajectories: Mapping[str, Sequence[Steps]], families: Mapping[str, str] | None = None,
) -> ServiceTargets:
    """Return what all tasks share. `trajectories`: task id -> its known solution, then its recorded sessions; `families`: task
    id -> family, by default of the environment's tasks."""
    families = {task.task_id: task.family for task in environment.tasks} if families is None else families
    presumed = presumed_reads(environment, [steps for several in trajectories.values() for steps in several])
    writing = environment.writes - presumed
    by_family: dict[str, Counter[str]] = defaultdict(Counter)
    for task_id, family in families.items():
        for steps in trajectories.get(task_id, ()):
            by_family[family].update({step["tool"] for step in steps if step.get("tool") in writing})
    usual = {family: [tool for tool, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))][:USUAL]
             for family, counts in by_family.items()}
    return ServiceTargets(presumed, {
        task_id: usual.get(family, []) for task_id, family in families.items()
        if not any(step.get("tool") in writing for steps in trajectories.get(task_id, ())[:1] for step in steps)})


def presumed_reads(environment: Environment, trajectories: Iterable[Steps]) -> frozenset[str]:
    """Return the tools of unknown effect that look like reads, or that prepare others: almost never the last call."""
    records = [app.common if isinstance(app, WorldsApp) else app for app in environment.apps]
    programs = {tool: program for app in records if isinstance(app, RecordsApp)
                for tool, program in app.programs.items() if program["effect"] == "unknown"}
    descriptions = {tool["name"]: str(tool.get("description") or "") for tool in environment.tools}
    n_with, n_last = Counter[str](), Counter[str]()
    for steps in trajectories:
        tools = [str(step["tool"]) for step in steps if "tool" in step]
        n_with.update(set(tools))
        n_last.update(tools[-1:])
    return frozenset(
        tool for tool, program in programs.items()
        if program.get("harmless")
        or (program.get("presumed") == "read" and not tells_of_a_change(tool, descriptions.get(tool, "")))
        or (n_with[tool] >= FEWEST and n_last[tool] <= LAST * n_with[tool]))
