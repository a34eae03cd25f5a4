"""Let reviews correct the probabilities of all sessions: by a line in log odds, and by what sessions have in common.

    log odds = log odds before + shift + slope * log odds before + sum over the session's traits of their errors

Shift, slope and the error of each trait are normal around 0 with a fixed variance, so that a few reviews change little, and a
review changes most what is most like its session. They are fitted to the answers by Newton's method, over the reviewed sessions
(the mode of a Gaussian process, Rasmussen and Williams 2006, algorithm 3.1). A wrong answer counts
for at most what one answer can count.
Does not see: traits that no reviewed session has; for sessions without any of them, shift and slope alone count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np

from extractors.outcomes.combining import chance_of, odds
from extractors.outcomes.likeness import TRAITS, Trait

LINE = 0.1
"""Variance of shift and slope, in squared log odds."""
_ROUNDS = 12
_EDGE = 0.001
"""No probability counts for more than this or its opposite before it is corrected."""
Traits = Mapping[str, Set[Trait]]


def propagated(chances: Mapping[str, float], reviews: Mapping[str, bool], traits: Traits) -> dict[str, float]:
    """Correct probabilities by session with the answers to the reviewed ones; without any they stay."""
    reviewed = sorted(name for name in reviews if name in chances)
    if not reviewed:
        return dict(chances)
    names = sorted(chances)
    before = np.array([odds(min(max(chances[name], _EDGE), 1.0 - _EDGE)) for name in names])
    place = {name: number for number, name in enumerate(names)}
    chosen = [place[name] for name in reviewed]
    features = _features(names, reviewed, traits, before)
    pulls = _pulls(features[chosen] @ features[chosen].T, before[chosen], [reviews[name] for name in reviewed])
    after = before + features @ (features[chosen].T @ pulls)
    return {name: round(chance_of(float(after[number])), 6) for number, name in enumerate(names)}


def _features(names: Sequence[str], reviewed: Sequence[str], traits: Traits, before: np.ndarray) -> np.ndarray:
    """Return a row a session: 1, its log odds, and its traits among those of reviewed sessions, each by its deviation."""
    shared = sorted({each for name in reviewed for each in traits.get(name, ())})
    columns = {trait: 2 + number for number, trait in enumerate(shared)}
    features = np.zeros((len(names), 2 + len(columns)))
    features[:, 0], features[:, 1] = LINE ** 0.5, LINE ** 0.5 * before
    for row, name in enumerate(names):
        for trait in traits.get(name, ()):
            if trait in columns:
                features[row, columns[trait]] = TRAITS[trait[0]] ** 0.5
    return features


def _pulls(alike: np.ndarray, before: np.ndarray, right: Sequence[bool]) -> np.ndarray:
    """Return how far each answer pulls: what is left between it and its corrected probability. `alike`: covariance of the
    errors of the reviewed sessions."""
    answers, pulls = np.array(right, dtype=np.float64), np.zeros(len(before))

    def misfit(pulls: np.ndarray) -> float:
        shift = alike @ pulls
        fitted = before + shift
        return float((np.logaddexp(0.0, fitted) - answers * fitted).sum() + pulls @ shift / 2)

    for _ in range(_ROUNDS):
        shift = alike @ pulls
        fitted = 1.0 / (1.0 + np.exp(-(before + shift)))
        weight = np.sqrt(fitted * (1.0 - fitted))
        target = weight * weight * shift + answers - fitted
        within = np.eye(len(before)) + weight[:, None] * alike * weight[None, :]
        step = target - weight * np.linalg.solve(within, weight * (alike @ target)) - pulls
        while misfit(pulls + step) > misfit(pulls) and np.abs(step).max() > 1e-9:
            step = step / 2
        pulls = pulls + step
    return pulls
