"""How often a task succeeds, from the probabilities of the sessions seen of it.

Beta-Binomial: tasks' rates are drawn from one Beta distribution, whose mean and strength come from all tasks (by moments;
Kleinman 1973); a task's own sessions then move it. A session is not known to be good but has a probability, so the rate's
distribution is a mixture over how many of them were (Poisson binomial).

Sees: probabilities. Does not see: that sessions of one task were made by one agent, or that it was another one lately.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

_STEPS = 200
"""Slices of [0, 1] that the distribution of a rate is laid out in."""

_PLACES = [(step + 0.5) / _STEPS for step in range(_STEPS)]

_STRENGTH = (1.0, 3.0)
"""Least and most sessions that the other tasks count for: probabilities are careful, and make tasks look more alike than they
are."""


class Prior(NamedTuple):
    """Beta distribution of the rates of tasks."""

    good: float
    bad: float


def prior_of(tasks: Mapping[str, Sequence[float]]) -> Prior:
    """The Beta distribution that the tasks' rates are taken to come from; probabilities by task."""
    seen = [chances for _, chances in sorted(tasks.items()) if chances]
    if not seen:
        return Prior(1.0, 1.0)
    total = sum(len(chances) for chances in seen)
    mean = (sum(sum(chances) for chances in seen) + 1.0) / (total + 2.0)
    many = [chances for chances in seen if len(chances) > 1]
    pairs = sum(len(c) * (len(c) - 1) for c in many)
    agreeing = sum(sum(c) ** 2 - sum(p * p for p in c) for c in many)
    shared = (agreeing / pairs - mean * mean) if pairs else 0.0
    likeness = min(max(shared / (mean * (1.0 - mean)), 1e-6), 1.0)
    strength = min(max(1.0 / likeness - 1.0, _STRENGTH[0]), _STRENGTH[1])
    return Prior(mean * strength, (1.0 - mean) * strength)


def mass(chances: Sequence[float], low: float, high: float, prior: Prior) -> float:
    """Probability that the task's rate of success lies in [low, high]."""
    counts = _counts(chances)
    return sum(
        weight * _beta_mass(prior.good + n_good, prior.bad + len(chances) - n_good, low, high)
        for n_good, weight in enumerate(counts)
    )


def spread(chances: Sequence[float], prior: Prior, level: float = 0.9) -> tuple[float, float]:
    """Where the task's rate of success lies with probability `level`, as much above as below left out."""
    n = len(chances)
    heights = [0.0] * _STEPS
    for n_good, weight in enumerate(_counts(chances)):
        own = _beta(prior.good + n_good, prior.bad + n - n_good)
        heights = [height + weight * each for height, each in zip(heights, own, strict=True)]
    left, low, high = (1.0 - level) / 2.0, 0.0, 1.0
    below = 0.0
    for step, height in enumerate(heights):
        before, below = below, below + height
        if before < left <= below:
            low = (step + (left - before) / height) / _STEPS
        if before < 1.0 - left <= below:
            high = (step + (1.0 - left - before) / height) / _STEPS
    return round(low, 4), round(high, 4)


def in_band(tasks: Mapping[str, Sequence[float]], low: float, high: float, least: float = 0.7) -> set[str]:
    """Tasks whose rate lies in [low, high] with a probability of at least `least`."""
    prior = prior_of(tasks)
    return {task for task, chances in tasks.items() if chances and mass(chances, low, high, prior) >= least}


def _counts(chances: Sequence[float]) -> list[float]:
    """Probability that 0, 1, 2 … of the sessions were good."""
    counts = [1.0]
    for chance in chances:
        more = [0.0, *(weight * chance for weight in counts)]
        counts = [a + b for a, b in zip(more, [*(weight * (1.0 - chance) for weight in counts), 0.0], strict=True)]
    return counts


def _beta_mass(good: float, bad: float, low: float, high: float) -> float:
    """Share of a Beta distribution that lies in [low, high]."""
    return sum(share for x, share in zip(_PLACES, _beta(good, bad), strict=True) if low <= x <= high)


@lru_cache(maxsize=4096)
def _beta(good: float, bad: float) -> tuple[float, ...]:
    """A Beta distribution's share in each slice, by the midpoint rule."""
    heights = [math.exp((good - 1.0) * math.log(x) + (bad - 1.0) * math.log(1.0 - x)) for x in _PLACES]
    total = sum(heights)
    return tuple(height / total for height in heights)
