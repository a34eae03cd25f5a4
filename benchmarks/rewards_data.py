"""What the parts of the benchmark of rewards share: what is asked, rooms by session, an episode graded, the count of grades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from fidelity_data import build, environments

from env_builder.runtime import Environment

PASSES = 0.5
"""Reward above which a session counts as good."""
MOST_WRONG = 40
"""Wrong grades that a table names."""


class RewardsOptions(NamedTuple):
    """What the command line asks for."""

    data: Path
    scratch: Path
    """An empty folder to build in, beside those of the other parts."""
    built: Path | None
    """What a run of the same logs made before."""
    sample: int | None


class Place(NamedTuple):
    """A task in its room."""

    environment: Environment
    task_id: str


def whole(options: RewardsOptions) -> Path:
    """Return what a run of all logs made: before, or for the first part that wants it; the other parts look into the same."""
    out = options.scratch.parent / "whole.out"
    return options.built or (out if out.exists() else build(options.data, out).out)


def places(out: Path) -> dict[str, Place]:
    """Return the place of each session that a task of a run begins together with; published ones first."""
    by_name: dict[str, Place] = {}
    for environment in environments(out):
        for task in environment.tasks:
            for session_id in task.session_ids:
                by_name.setdefault(session_id, Place(environment, task.task_id))
    return by_name


def play(place: Place, steps: Iterable[tuple[str | None, dict[str, Any], str]]) -> float | None:
    """Reward of an episode of (tool, arguments, _) and (None, _, words); None: unscored."""
    environment = place.environment
    environment.reset(place.task_id, seed=0)
    for tool, arguments, content in steps:
        if tool is None:
            environment.say(content)
        else:
            environment.call(tool, arguments)
    environment.finish()
    return environment.grade().reward


class Tally:
    """Grades beside the truth."""

    def __init__(self) -> None:
        self._count: Counter[tuple[str, str]] = Counter()
        self._wrong: list[str] = []

    def add(self, good: bool, reward: float | None, has_room: bool, says: str) -> None:
        """Count one session or sequence."""
        grade = "no room" if not has_room else "unscored" if reward is None else "accept" if reward > PASSES else "reject"
        self._count["good" if good else "bad", grade] += 1
        if grade == ("reject" if good else "accept"):
            self._wrong.append(f"false {grade}: {says}, reward {reward:g}")

    def n(self, truth: str | None, *grades: str) -> int:
        """How many of this truth (None: of both) got one of these grades; any grade where none is named."""
        return sum(
            n for (own, grade), n in self._count.items() if truth in (own, None) and (not grades or grade in grades))

    def share(self, *grades: str) -> float:
        """Share of all that got one of these grades."""
        return round(self.n(None, *grades) / max(1, self.n(None)), 4)

    def rate(self, truth: str, grade: str) -> float:
        """Share of all of this truth that got this grade."""
        return round(self.n(truth, grade) / max(1, self.n(truth)), 4)

    def table(self) -> str:
        """Return counts, and the wrong grades by name."""
        counts = [f"{truth:5} {grade:9} {n:5}" for (truth, grade), n in sorted(self._count.items())]
        return "\n".join([*counts, *self._wrong[:MOST_WRONG]])
