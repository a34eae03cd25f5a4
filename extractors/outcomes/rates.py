"""How often a task succeeds, from the probabilities of the sessions seen of it.

Beta-Binomial: tasks' rates are drawn from one Beta distribution, whose mean and strength come from all tasks (by moments;
Kleinman 1973); a task's own sessions then move it. A session is not known to be good but has a probability, so the rate's
distribution is a mixture over how many of them were (Poisson binomial).

Sees: probabilities. Does not see: that sessions of one task were made by one agent, or that it was another one lately.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_STEPS = 200
"""Slices of [0, 1] that the distribution of a rate is laid out in."""

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
    """Share of a Beta distribution that lies in [low, high], by the midpoint rule."""
    places = [(step + 0.5) / _STEPS for step in range(_STEPS)]
    heights = [math.exp((good - 1.0) * math.log(x) + (bad - 1.0) * math.log(1.0 - x)) for x in places]
    return sum(h for x, h in zip(places, heights, strict=True) if low <= x <= high) / sum(heights)
