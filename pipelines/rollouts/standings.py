"""Where a task stands by what policies did in it: solved by all, solved by none, or open.

In: the rows of `difficulty.jsonl` (results.py). Out: a standing per task that was tried. `solved` tasks teach nothing more:
they are the regression set. `unsolved` ones are for a person: the reward may be wrong, or the task. Only scored episodes count,
of all policies together. Detects neither that a task became easier or harder when the service changed, nor that a policy solves
it by a trick. """

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipelines.rollouts.results import known_difficulty

FEWEST_SOLVED = 4
"""Scored episodes of each policy, all of them good, from which on it solves a task: of a policy that fails at one in five, four
in a row are good at .41."""
FEWEST_UNSOLVED = 8
"""Scored episodes of all policies, none of them good, from which on none solves a task."""
StandingName = Literal["open", "solved", "unsolved"]
Row = dict[str, Any]


class Standing(NamedTuple):
    """What policies made of a task."""

    task_id: str
    name: StandingName
    n: int
    """Scored episodes."""
    n_succeeded: int
    n_policies: int


def standings(rows: Iterable[Row]) -> list[Standing]:
    """Return the standing of each task, by task."""
    by_task: dict[str, list[Row]] = {}
    for row in rows:
        by_task.setdefault(row["task_id"], []).append(row)
    return [_standing(task_id, own) for task_id, own in sorted(by_task.items())]


def _standing(task_id: str, rows: list[Row]) -> Standing:
    n, n_succeeded = (sum(row[name] for row in rows) for name in ("n", "n_succeeded"))
    solves = [row["n_succeeded"] == row["n"] >= FEWEST_SOLVED for row in rows]
    name: StandingName = "unsolved" if not n_succeeded and n >= FEWEST_UNSOLVED else "solved" if all(solves) else "open"
    return Standing(task_id, name, n, n_succeeded, len(rows))


def known_standings(folder: Path) -> dict[str, Standing]:
    """Return the standings by the rollouts of a folder; none if there are none."""
    return {one.task_id: one for one in standings(known_difficulty(folder))}


def unsolved_of(out: Path) -> dict[str, str]:
    """Return the tasks of all environments of a run that no policy solves, each with a few words on that."""
    every = (one for folder in sorted((out / "rollouts").glob("*")) for one in known_standings(folder).values())
    return {one.task_id: f"no policy solves its task ({one.n} episodes of {one.n_policies} policies)"
            for one in every if one.name == "unsolved"}


def of_standing(folder: Path, name: StandingName, task_ids: Iterable[str]) -> list[str]:
    """Return the tasks of this standing; those without a try are open."""
    names = {task_id: one.name for task_id, one in known_standings(folder).items()}
    return [task_id for task_id in task_ids if names.get(task_id, "open") == name]
