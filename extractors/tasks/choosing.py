"""Which of several candidates is meant: logistic regression over what is true of each.

In: rows of features (names), grouped, and which were right. Out: a probability for any row. Full-batch gradient with AdaGrad
(Duchi, Hazan, Singer 2011), a fixed number of steps: the same rows give the same numbers. Does not see: features together, but
for those that the caller joins into one name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_STEPS = 120
_RATE = 0.7
_DECAY = 1e-3
_SEEN = 3
"""Rows that have a feature, from which on it counts."""


class Choice:
    """Learnt weights: feature -> nats."""

    def __init__(self, rows: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
        counts: dict[str, int] = {}
        for row in rows:
            for name in row:
                counts[name] = counts.get(name, 0) + 1
        self._numbers = {name: i + 1 for i, name in enumerate(sorted(name for name, n in counts.items() if n >= _SEEN))}
        at, which = self._flat(rows)
        self._weights = _fit(at, which, len(rows), len(self._numbers) + 1, np.array(right, dtype=np.float64))

    def __call__(self, rows: Sequence[Sequence[str]]) -> np.ndarray:
        """Probability of each row."""
        at, which = self._flat(rows)
        return _sure(np.bincount(at, self._weights[which], len(rows)))

    def _flat(self, rows: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
        """(row, feature) of all that is true; feature 0 is true of every row."""
        pairs = [(i, number) for i, row in enumerate(rows)
                 for number in (0, *(self._numbers[name] for name in row if name in self._numbers))]
        flat = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return flat[:, 0], flat[:, 1]


def _fit(at: np.ndarray, which: np.ndarray, n_rows: int, n_features: int, right: np.ndarray) -> np.ndarray:
    weights, seen = np.zeros(n_features), np.full(n_features, 1e-8)
    for _ in range(_STEPS):
        off = (_sure(np.bincount(at, weights[which], n_rows)) - right) / max(1.0, right.sum())
        slope = np.bincount(which, off[at], n_features) + _DECAY * weights
        seen += slope * slope
        weights -= _RATE * slope / np.sqrt(seen)
    return weights


def _sure(nats: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(nats, -30.0, 30.0))))
