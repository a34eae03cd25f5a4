"""How predictions of success are scored, and a predictor that is trained on the truth to stand beside them.

Outcomes are True or False, chances in [0, 1], tasks ids; lists of equal length and order.
"""

from __future__ import annotations

import math
import random
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

N_BINS = 10
N_DRAWS = 200
_WORD = re.compile(r"[^\W_]+")


def auroc(good: Sequence[bool], chance: Sequence[float]) -> float:
    """Chance that a good one is given more than a bad one, ties half (Mann and Whitney 1947); .5 where one kind lacks."""
    n_good = sum(good)
    n_bad = len(good) - n_good
    if not n_good or not n_bad:
        return 0.5
    bad = sorted(c for g, c in zip(good, chance, strict=True) if not g)
    wins = sum(bisect_left(bad, c) + bisect_right(bad, c) for g, c in zip(good, chance, strict=True) if g)
    return wins / (2 * n_good * n_bad)


def interval(
    good: Sequence[bool], chance: Sequence[float], task: Sequence[str],
    figure: Callable[[Sequence[bool], Sequence[float]], float],
) -> tuple[float, float]:
    """95 % interval of a figure: 200 draws of whole tasks with replacement."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(task):
        places[name].append(place)
    names, draw, values = sorted(places), random.Random(0), []
    for _ in range(N_DRAWS):
        drawn = [place for name in draw.choices(names, k=len(names)) for place in places[name]]
        values.append(figure([good[p] for p in drawn], [chance[p] for p in drawn]))
    values.sort()
    return values[int(0.025 * N_DRAWS)], values[int(0.975 * N_DRAWS) - 1]


def ece(good: Sequence[bool], chance: Sequence[float]) -> float:
    """Return expected calibration error over ten equal bins (Naeini, Cooper and Hauskrecht 2015)."""
    gaps: dict[int, float] = defaultdict(float)
    for g, c in zip(good, chance, strict=True):
        gaps[min(int(c * N_BINS), N_BINS - 1)] += g - c
    return sum(abs(gap) for gap in gaps.values()) / len(good)


def ece_excess(good: Sequence[bool], chance: Sequence[float]) -> float:
    """`ece` minus its mean where outcomes are drawn from the chances: what a small sample does to perfect ones."""
    draw = random.Random(0)
    floor = sum(ece([draw.random() < c for c in chance], chance) for _ in range(N_DRAWS)) / N_DRAWS
    return ece(good, chance) - floor


def brier_skill(good: Sequence[bool], chance: Sequence[float]) -> float:
    """1 - Brier score over that of the true base rate: above 0 it says more than the base rate."""
    base = sum(good) / len(good)
    spread = sum((g - base) ** 2 for g in good)
    return 1.0 - sum((g - c) ** 2 for g, c in zip(good, chance, strict=True)) / spread if spread else 0.0


def trained_tfidf(texts: Sequence[str], good: Sequence[bool], task: Sequence[str]) -> list[float]:
    """Out-of-fold chances of a logistic regression on TF-IDF words, trained on the truth of other tasks: five folds."""
    vectors = _tfidf(texts)
    tasks = sorted(set(task))
    random.Random(0).shuffle(tasks)
    fold_of = {name: place % 5 for place, name in enumerate(tasks)}
    chance = [0.0] * len(texts)
    for fold in range(5):
        seen = [place for place, name in enumerate(task) if fold_of[name] != fold]
        weights = _trained([vectors[p] for p in seen], [good[p] for p in seen])
        for place, name in enumerate(task):
            if fold_of[name] == fold:
                chance[place] = _squashed(sum(weights.get(word, 0.0) * value for word, value in vectors[place].items()))
    return chance


def _tfidf(texts: Sequence[str]) -> list[dict[str, float]]:
    counts = [Counter(_WORD.findall(text.lower())) for text in texts]
    n_with = Counter(word for each in counts for word in each)
    vectors = []
    for each in counts:
        vector = {word: (1 + math.log(n)) * math.log((1 + len(texts)) / n_with[word])
                  for word, n in sorted(each.items()) if n_with[word] >= 3}
        length = math.sqrt(sum(value * value for value in vector.values())) or 1.0
        vectors.append({word: value / length for word, value in vector.items()})
    return vectors


def _trained(vectors: list[dict[str, float]], good: list[bool], rounds: int = 12) -> dict[str, float]:
    """Logistic regression by stochastic gradient descent."""
    weights: dict[str, float] = defaultdict(float)
    order, draw = list(range(len(vectors))), random.Random(0)
    for number in range(rounds):
        draw.shuffle(order)
        rate = 4.0 / (1.0 + number)
        for place in order:
            vector = vectors[place]
            step = rate * (good[place] - _squashed(weights[""] + sum(weights[w] * v for w, v in vector.items())))
            weights[""] += 0.1 * step
            for word, value in vector.items():
                weights[word] += step * value
    return dict(weights)


def _squashed(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, odds))))
