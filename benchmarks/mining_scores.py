"""Scores of the mining benchmark: adjusted Rand index, F1 of boundaries and atoms, bootstrap intervals."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

ROUNDS = 200
"""Bootstrap rounds behind an interval."""


def ari(truth: Sequence[Hashable], found: Sequence[Hashable]) -> float:
    """Return adjusted Rand index of two labellings of the same items (Hubert and Arabie 1985)."""
    pairs = _pairs(Counter(zip(truth, found, strict=True)).values())
    of_truth, of_found = _pairs(Counter(truth).values()), _pairs(Counter(found).values())
    expected = of_truth * of_found / max(len(truth) * (len(truth) - 1) / 2, 1)
    most = (of_truth + of_found) / 2
    return 1.0 if most == expected else (pairs - expected) / (most - expected)


def f1(n_right: float, n_found: float, n_true: float) -> float:
    """Harmonic mean of precision and recall; 0 where nothing is right."""
    return 2 * n_right / (n_found + n_true) if n_right else 0.0


def f1_of(counts: Iterable[tuple[float, float, float]]) -> float:
    """Micro F1 of (right, found, true) of many units."""
    sums = [sum(column) for column in zip(*counts, strict=True)] or [0, 0, 0]
    return f1(*sums)


def atoms(found: Iterable[Hashable], truth: Iterable[Hashable]) -> tuple[int, int, int]:
    """(right, found, true) of two multisets."""
    one, two = Counter(found), Counter(truth)
    return (one & two).total(), one.total(), two.total()


def matched(found: Sequence[int], truth: Sequence[int], within: int = 0) -> int:
    """How many places match one to one, each within so many steps; both in ascending order, the earliest first."""
    n, i = 0, 0
    for place in sorted(truth):
        while i < len(found) and found[i] < place - within:
            i += 1
        if i < len(found) and found[i] <= place + within:
            n, i = n + 1, i + 1
    return n


def interval(units: Sequence[Any], score: Callable[[Sequence[Any]], float], seed: int = 0) -> list[float]:
    """95 % percentile interval of a score over bootstrap samples of its units."""
    if not units:
        return [0.0, 0.0]
    chance = random.Random(seed)
    drawn = sorted(score(chance.choices(units, k=len(units))) for _ in range(ROUNDS))
    return [round(drawn[int(0.025 * ROUNDS)], 4), round(drawn[int(0.975 * ROUNDS) - 1], 4)]


def ari_of(pairs: Sequence[tuple[Hashable, Hashable]]) -> float:
    """ARI of (true, found) pairs."""
    return ari([true for true, _ in pairs], [found for _, found in pairs])


def figure(name: str, units: Sequence[Any], score: Callable[[Sequence[Any]], float]) -> dict[str, Any]:
    """Return a figure and its interval, as `{name: …, name_interval: [low, high]}`."""
    return {name: round(score(units), 4), f"{name}_interval": interval(units, score)}


def mean_of(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean over seeds, figure by figure."""
    return {name: round(sum(each[name] for each in figures) / len(figures), 4) for name in figures[0]} if figures else {}


def _pairs(counts: Iterable[int]) -> float:
    return sum(n * (n - 1) / 2 for n in counts)
