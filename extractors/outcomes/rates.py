"""Estimate how often a task succeeds, from the probabilities of its sessions.

Beta-Binomial: the rates of tasks come from one Beta distribution (by moments over all tasks; Kleinman 1973), which a task's own
sessions move. As sessions have probabilities, a rate's distribution is a mixture over how many were good (Poisson binomial). A
family's rate is that of its sessions, each of which counts less the more its task has (design effect; Kish 1965); the family's
tasks are distributed around it. Does not see: sessions of one task by one agent, or a change of agents over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

BANDS = ("rarely", 0.0, 0.2), ("sometimes", 0.2, 0.5), ("often", 0.5, 0.8), ("mostly", 0.8, 1.0)
"""Bands of a rate of success; those that go well sometimes are the ones that a learner gets most out of."""
_STEPS = 200
"""Slices of [0, 1] that the distribution of a rate is laid out in."""
_PLACES = [(step + 0.5) / _STEPS for step in range(_STEPS)]
_STRENGTH = (1.0, 2.5)
"""Least and most sessions that the other tasks count for: careful probabilities make tasks appear alike."""
_LEVEL = 0.9
"""Probability that an interval holds the rate."""
_LIKELY = 0.5
"""Probability from which on a band is told."""


class Prior(NamedTuple):
    """Beta distribution of the rates of tasks."""

    good: float
    bad: float

    @property
    def strength(self) -> float:
        return self.good + self.bad


class Rate(NamedTuple):
    """How often something succeeds."""

    rate: float
    """Mean of its distribution."""
    low: float
    high: float
    """Where it lies with 90 %."""
    difficulty_band: str | None
    """Name of `BANDS`; None where no band is likely."""


def prior_of(tasks: Mapping[str, Sequence[float]]) -> Prior:
    """Estimate the Beta distribution that the tasks' rates come from; probabilities by task."""
    nonempty = [chances for _, chances in sorted(tasks.items()) if chances]
    if not nonempty:
        return Prior(1.0, 1.0)
    total = sum(len(chances) for chances in nonempty)
    mean = (sum(sum(chances) for chances in nonempty) + 1.0) / (total + 2.0)
    many = [chances for chances in nonempty if len(chances) > 1]
    pairs = sum(len(c) * (len(c) - 1) for c in many)
    agreeing = sum(sum(c) ** 2 - sum(p * p for p in c) for c in many)
    shared = (agreeing / pairs - mean * mean) if pairs else 0.0
    likeness = min(max(shared / (mean * (1.0 - mean)), 1e-6), 1.0)
    strength = min(max(1.0 / likeness - 1.0, _STRENGTH[0]), _STRENGTH[1])
    return Prior(mean * strength, (1.0 - mean) * strength)


def rate_of(chances: Sequence[float], prior: Prior) -> Rate:
    """How often a task succeeds, from the probabilities of its sessions."""
    return _rate_of_task(tuple(chances), prior)


@lru_cache(maxsize=4096)
def _rate_of_task(chances: tuple[float, ...], prior: Prior) -> Rate:
    """Return the same; most tasks of a family have the same chances."""
    return _rate_of_heights((prior.good + sum(chances)) / (prior.strength + len(chances)), distribution(chances, prior))


def distribution(chances: Sequence[float], prior: Prior) -> list[float]:
    """Lay out the distribution of a task's rate in equal slices of [0, 1]: a mixture over how many sessions were good."""
    counts = [1.0]   # probability that 0, 1, 2 … of the sessions were good
    for chance in chances:
        more = [0.0, *(weight * chance for weight in counts)]
        counts = [a + b for a, b in zip(more, [*(weight * (1.0 - chance) for weight in counts), 0.0], strict=True)]
    heights = [0.0] * _STEPS
    for n_good, weight in enumerate(counts):
        own = _beta(prior.good + n_good, prior.bad + len(chances) - n_good)
        heights = [height + weight * each for height, each in zip(heights, own, strict=True)]
    return heights


def family_rate(tasks: Sequence[Sequence[float]], prior: Prior, likeness: float) -> Rate:
    """Estimate a family's rate from the probabilities of its tasks' sessions, as the Beta with the mixture's mean and variance.

    `likeness`: correlation of the sessions of one task, 0 to 1."""
    chances = [chance for task in tasks for chance in task]
    n = sum(len(task) / (1.0 + (len(task) - 1) * likeness) for task in tasks if task)
    mean, doubt = sum(chances) / len(chances), sum(p * (1.0 - p) for p in chances) / len(chances)
    rate = (prior.good + n * mean) / (prior.strength + n)
    variance = rate * (1.0 - rate) / (prior.strength + n + 1.0) + n * doubt / (prior.strength + n) ** 2
    strength = max(rate * (1.0 - rate) / variance - 1.0, _STRENGTH[0])
    return _rate_of_heights(rate, _beta(round(rate * strength, 6), round((1.0 - rate) * strength, 6)))


def rates(families: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[dict[str, Rate], dict[str, Rate]]:
    """Rates of the families and of the tasks of one service; probabilities by task by family, families without any left out."""
    judged = {family: {task: chances for task, chances in tasks.items() if chances} for family, tasks in families.items()}
    judged = {family: tasks for family, tasks in sorted(judged.items()) if tasks}
    of_task = prior_of({task: chances for tasks in judged.values() for task, chances in tasks.items()})
    of_family = prior_of({family: [p for chances in tasks.values() for p in chances] for family, tasks in judged.items()})
    of_families: dict[str, Rate] = {}
    each: dict[str, Rate] = {}
    for family, tasks in judged.items():
        rate = family_rate([chances for _, chances in sorted(tasks.items())], of_family, 1.0 / (1.0 + of_task.strength))
        prior = Prior(rate.rate * of_task.strength, (1.0 - rate.rate) * of_task.strength)
        each |= {task: rate_of(sorted(chances), prior) for task, chances in sorted(tasks.items())}
        of_families[family] = rate
    return of_families, each


def _rate_of_heights(rate: float, heights: Sequence[float]) -> Rate:
    """Interval, as much above as below left out, and band of a distribution that is laid out in slices."""
    mass, band = max((sum(share for x, share in zip(_PLACES, heights, strict=True) if low <= x < high), name)
                     for name, low, high in BANDS)
    tail, low, high, below = (1.0 - _LEVEL) / 2.0, 0.0, 1.0, 0.0
    for step, height in enumerate(heights):
        before, below = below, below + height
        if before < tail <= below:
            low = (step + (tail - before) / height) / _STEPS
        if before < 1.0 - tail <= below:
            high = (step + (1.0 - tail - before) / height) / _STEPS
    return Rate(round(rate, 4), round(low, 4), round(high, 4), band if mass >= _LIKELY else None)


@lru_cache(maxsize=4096)
def _beta(good: float, bad: float) -> tuple[float, ...]:
    """Return a Beta distribution's share in each slice, by the midpoint rule."""
    logs = [(good - 1.0) * math.log(x) + (bad - 1.0) * math.log(1.0 - x) for x in _PLACES]
    top = max(logs)
    heights = [math.exp(each - top) for each in logs]
    total = sum(heights)
    return tuple(height / total for height in heights)
