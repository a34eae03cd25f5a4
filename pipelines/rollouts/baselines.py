"""Is a policy as good as it was? Rewards of its tasks against those of a baseline, which is a file in somebody's repository.

In: rewards by task, now and then. Out: means, and the difference with a 95 % interval: tasks are paired and drawn with
replacement (the percentile bootstrap, Efron 1979), since tasks differ more than attempts. Sees: scored episodes of tasks that
both have. Does not see: tasks that one of them lacks, which are counted; whether a reward is right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warehouse.errors import InputError

FORMAT = "traceroom-baseline/1"
DRAWS, SEED = 2000, 0
"""Resamples of the tasks, and the seed that draws them: the same rewards give the same interval."""
Rewards = Mapping[str, Sequence[float]]
"""Task -> rewards of its scored episodes."""


class TaskChange(NamedTuple):
    """A task at which the policy does better or worse than before."""

    task_id: str
    before: float
    now: float


class Comparison(NamedTuple):
    """A policy's mean reward, and how it stands to the baseline's on the tasks that both have."""

    n_tasks: int
    mean: float | None
    """Of all tasks now; None: none is scored."""
    n_shared: int = 0
    before: float | None = None
    now: float | None = None
    """Means of the shared tasks."""
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    """Ends of its interval; None where fewer than two tasks are shared."""
    worse: tuple[TaskChange, ...] = ()
    better: tuple[TaskChange, ...] = ()

    def is_worse(self, tolerance: float) -> bool:
        """Return whether the whole interval lies below `-tolerance`; without an interval, whether the difference does."""
        end = self.difference if self.high is None else self.high
        return end is not None and end < -tolerance


def rewards_by_task(episodes: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the rewards of scored episodes by task, sorted."""
    rewards: dict[str, list[float]] = {}
    for about in episodes:
        if about["reward"] is not None:
            rewards.setdefault(about["task_id"], []).append(float(about["reward"]))
    return {task_id: sorted(own) for task_id, own in sorted(rewards.items())}


def compare(now: Rewards, before: Rewards | None) -> Comparison:
    """Compare rewards by task with a baseline's; None: there is none."""
    means = {task_id: _mean(own) for task_id, own in now.items()}
    overall = _mean(list(means.values())) if means else None
    shared = sorted(means.keys() & before.keys()) if before is not None else []
    if before is None or not shared:
        return Comparison(len(means), overall)
    earlier = {task_id: _mean(before[task_id]) for task_id in shared}
    differences = np.array([means[task_id] - earlier[task_id] for task_id in shared])
    low, high = _interval(differences)
    changes = [TaskChange(task_id, earlier[task_id], means[task_id]) for task_id in shared]
    return Comparison(
        len(means), overall, len(shared), _mean(list(earlier.values())), _mean([means[task_id] for task_id in shared]),
        round(float(differences.mean()), 6), low, high,
        tuple(sorted((each for each in changes if each.now < each.before), key=lambda each: each.now - each.before)),
        tuple(sorted((each for each in changes if each.now > each.before), key=lambda each: each.before - each.now)))


def read_baseline(path: Path) -> dict[str, list[float]]:
    """Return the rewards by task of a file that `write_baseline` wrote. Raises InputError."""
    hint = "write one with: traceroom test ENVIRONMENT --policy POLICY --save FILE"
    try:
        document = json.loads(path.read_text("utf-8"))
        if document["format"] != FORMAT:
            raise InputError(f"unknown format {document['format']!r} of a baseline", str(path), hint)
        return {task_id: [float(reward) for reward in own] for task_id, own in document["tasks"].items() if own}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"cannot read the baseline ({error})", str(path), hint) from error


def write_baseline(path: Path, rewards: Rewards, about: Mapping[str, Any]) -> None:
    """Write rewards by task, with what they were measured on: equal rewards give equal bytes."""
    document = {"format": FORMAT, **about, "tasks": {task_id: list(own) for task_id, own in sorted(rewards.items())}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8", newline="\n")


def markdown(comparison: Comparison, goals: Mapping[str, str], most: int = 20) -> str:
    """Return the comparison as Markdown, for the page of a pull request. `goals`: task -> what its user wants."""
    lines = ["| | baseline | now | difference (95 %) | tasks |", "|---|---|---|---|---|"]
    if comparison.difference is None:
        lines.append(f"| mean reward | – | {_number(comparison.mean)} | – | {comparison.n_tasks} |")
    else:
        interval = "" if comparison.low is None else f" ({_signed(comparison.low)} to {_signed(comparison.high)})"
        lines.append(f"| mean reward | {_number(comparison.before)} | {_number(comparison.now)} | "
                     f"{_signed(comparison.difference)}{interval} | {comparison.n_shared} |")
    for title, changes in (("Worse", comparison.worse), ("Better", comparison.better)):
        if changes:
            lines += ["", f"{title} at {len(changes)} tasks:", "", "| task | wants | baseline | now |", "|---|---|---|---|"]
            lines += [f"| `{each.task_id[:12]}` | {_cell(goals.get(each.task_id, ''))} | {_number(each.before)} | "
                      f"{_number(each.now)} |" for each in changes[:most]]
            lines += [f"| and {len(changes) - most} more | | | |"] if len(changes) > most else []
    return "\n".join(lines) + "\n"


def _interval(differences: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float | None, float | None]:
    if len(differences) < 2:
        return None, None
    places = np.random.default_rng(SEED).integers(0, len(differences), (DRAWS, len(differences)))
    low, high = np.quantile(differences[places].mean(axis=1), (0.025, 0.975))
    return round(float(low), 6), round(float(high), 6)


def _mean(numbers: Sequence[float]) -> float:
    return round(math.fsum(numbers) / len(numbers), 6)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:80]
