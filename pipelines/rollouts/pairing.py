"""Compare two policies on the tasks that both played: pairs of episodes with the same task, seed, perturbations and attempt.

In: episodes. Out: a row per task with both success rates, their paired difference and its exact interval, and the comparison
of mean rewards over tasks (`baselines.compare`). The interval of a task: with b pairs in which only the first succeeds and c
in which only the second does, of n, the difference is (b - c) / n; both shares get an interval of Clopper and Pearson (1934)
at 97.5 %, so together they hold with 95 % (Bonferroni). It is exact for any n, and wide for small n. Sees: scored episodes.
Does not see: episodes without a partner, which are counted; whether a reward is right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pipelines.quality.precision import clopper_pearson
from pipelines.rollouts.baselines import Comparison, compare, rewards_by_task
from pipelines.rollouts.results import is_good

Row = dict[str, Any]
_LEVEL = 0.975


class PairedTask(NamedTuple):
    """A task that both policies played."""

    task_id: str
    n_pairs: int
    first_rate: float
    """Share of the first policy's paired episodes that succeeded."""
    second_rate: float
    difference: float
    """First minus second, of success rates."""
    low: float
    high: float
    """95 % interval of the difference."""
    first_reward: float
    second_reward: float
    """Mean rewards."""
    first_episode: str
    second_episode: str
    """Ids of a pair: the one whose outcomes differ, if any does."""

    @property
    def is_certain(self) -> bool:
        """Return whether the interval lies on one side of 0."""
        return self.low > 0 or self.high < 0


class PairedPolicies(NamedTuple):
    """Two policies over the tasks that both played."""

    tasks: list[PairedTask]
    """Largest difference first."""
    overall: Comparison
    """Mean rewards over tasks: `now` is the first policy, `before` the second."""
    n_alone: int
    """Scored episodes of either without a partner."""


def pair_policies(episodes: Iterable[Mapping[str, Any]], first: str, second: str) -> PairedPolicies:
    """Pair the scored episodes of two policies."""
    sides: dict[str, dict[tuple[Any, ...], Mapping[str, Any]]] = {first: {}, second: {}}
    for row in episodes:
        if row["policy"] in sides and row["reward"] is not None:
            sides[row["policy"]][_key(row)] = row
    shared = sorted(sides[first].keys() & sides[second].keys(), key=repr)
    by_task: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for key in shared:
        by_task.setdefault(key[0], []).append((sides[first][key], sides[second][key]))
    tasks = [_paired(task_id, pairs) for task_id, pairs in by_task.items()]
    rewards = [rewards_by_task(sides[name][key] for key in shared) for name in (first, second)]
    return PairedPolicies(
        sorted(tasks, key=lambda row: (-abs(row.difference), -abs(row.first_reward - row.second_reward), row.task_id)),
        compare(*rewards), len(sides[first].keys() ^ sides[second].keys()) if first != second else 0)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("task_id", "seed", "attempt", "content_digest", "rewards_digest")
    return *(row[name] for name in names), tuple(row["perturbations"])


def _paired(task_id: str, pairs: list[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> PairedTask:
    successes = [(is_good(one["reward"]), is_good(other["reward"])) for one, other in pairs]
    n, wins, losses = len(pairs), sum(a and not b for a, b in successes), sum(b and not a for a, b in successes)
    low, high = difference_interval(wins, losses, n)
    shown = next((pair for pair, (a, b) in zip(pairs, successes, strict=True) if a != b), pairs[0])
    return PairedTask(
        task_id, n, sum(a for a, _ in successes) / n, sum(b for _, b in successes) / n, (wins - losses) / n, low, high,
        math.fsum(one["reward"] for one, _ in pairs) / n, math.fsum(other["reward"] for _, other in pairs) / n,
        shown[0]["episode_id"], shown[1]["episode_id"])


def difference_interval(wins: int, losses: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of (wins - losses) / n."""
    (win_low, win_high), (loss_low, loss_high) = (clopper_pearson(k, n, _LEVEL) for k in (wins, losses))
    return win_low - loss_high, win_high - loss_low
