"""How well words tell one side of a split from another: naive Bayes, scored on tasks that it was not taught by.

Sees: the words of goals, names of things masked. Does not see: their order, and what other than words gives a side away.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

from extractors.tasks.words import masked, split_words

_ENOUGH = 10
"""Tasks on a side from which on it is asked."""


def told_apart(tasks: pl.DataFrame) -> float | None:
    """AUROC of telling held-out from train, each half of the tasks scored by what the other taught; None where one is small.

    `tasks`: task, goal, split. About .5: nothing in the words gives the side away.
    """
    known = tasks.filter(pl.col("split").is_in(["train", "held_out"])).sort("task")
    held = (known["split"] == "held_out").to_numpy()
    if min(held.sum(), (~held).sum()) < _ENOUGH:
        return None
    words = known.select(split_words(masked(pl.col("goal"))).list.unique().list.sort().alias("word"))["word"].to_list()
    half = np.array([int(hashlib.sha256(task.encode()).hexdigest(), 16) % 2 for task in known["task"]])
    score = np.zeros(len(held))
    for side in (0, 1):
        odds = _odds(words, half != side, held)
        for i in np.flatnonzero(half == side):
            score[i] = sum(odds.get(word, 0.0) for word in words[i])
    above, below = score[held][:, None], score[~held][None, :]
    return round(float((above > below).mean() + 0.5 * (above == below).mean()), 4)


def _odds(words: Sequence[Sequence[str]], teaching: np.ndarray, held: np.ndarray) -> dict[str, float]:
    """Log odds of each word for the held-out side."""
    counts, sizes = [], []
    for kind in (True, False):
        taught = np.flatnonzero(teaching & (held == kind)).tolist()
        counts.append(Counter(word for i in taught for word in words[i]))
        sizes.append(len(taught))
    ours, theirs = counts
    return {word: math.log((ours[word] + 0.5) / (sizes[0] + 1)) - math.log((theirs[word] + 0.5) / (sizes[1] + 1))
            for word in ours.keys() | theirs.keys()}
