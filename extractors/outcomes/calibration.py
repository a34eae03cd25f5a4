"""Probabilities held to what reviewers found, and how far they can be trusted.

With few reviews a line in log odds (Platt 1999), drawn to leave them as they are: few sessions can tell two numbers, not more.
With many, isotonic regression (Ayer and others 1955): the monotone step function of the probability that comes closest to the
reviewed sessions' outcomes, each step drawn toward its own probability as if some more sessions had said so, then made
continuous between the middles of its steps. No two sessions change their order.

Sees: reviews. Does not see: ratings that people gave of their own accord, who are no fair sample of all; what these are
worth is estimated in `combining`. With too few reviews probabilities stay as they are.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

FEWEST = 20
"""Reviewed sessions from which on probabilities are calibrated."""

MANY = 200
"""Reviewed sessions from which on the calibration may have steps."""

_KEPT = 10.0
"""How much the line is drawn to leave probabilities as they are, in reviewed sessions of log odds 1."""

_ROUNDS = 30

_DRAWN = 8.0
"""Sessions that a step's own probability counts for."""

_EDGE = 0.001
"""No probability counts for more than this or its opposite while the line is fitted."""

_KNOWN = 0.99
"""Probability of a session that was reviewed and found good; reviewers err too."""

_UNSEEN = 8.0
"""Sessions that a probability is taken to stand on where none like it was reviewed."""

_NEAR = 0.1
"""Probabilities this close are like each other."""

_Z = 1.96

Point = tuple[float, float]
"""A probability as it was, and as it is."""


def calibrated(chances: Mapping[str, float], reviews: Mapping[str, bool]) -> dict[str, float]:
    """Probabilities by session after calibration on the reviewed ones, whose own become nearly sure."""
    seen = sorted((chances[name], good) for name, good in reviews.items() if name in chances)
    told, good = [chance for chance, _ in seen], [good for _, good in seen]
    if len(seen) >= MANY:
        points = steps(told, good)
        held = {name: between(points, chance) for name, chance in chances.items()}
    else:
        held = _on_line(chances, *line(told, good)) if len(seen) >= FEWEST else dict(chances)
    return held | known(chances, reviews)


def known(chances: Mapping[str, float], outcomes: Mapping[str, bool]) -> dict[str, float]:
    """Probabilities, nearly sure, of the sessions of which somebody who looked said how they went."""
    return {name: _KNOWN if good else 1.0 - _KNOWN for name, good in outcomes.items() if name in chances}


def _on_line(chances: Mapping[str, float], slope: float, shift: float) -> dict[str, float]:
    return {name: round(_chance(slope * _odds(chance) + shift), 6) for name, chance in chances.items()}


def line(chances: Sequence[float], good: Sequence[bool]) -> tuple[float, float]:
    """Slope and shift in log odds that fit the outcomes best: Newton's method, each step halved until it betters the fit."""
    odds, right = np.array([_odds(chance) for chance in chances]), np.array(good, dtype=np.float64)
    held = np.diag([_KEPT, _KEPT])
    left, at = np.array([1.0, 0.0]), np.array([1.0, 0.0])

    def misfit(at: np.ndarray) -> float:
        fitted = at[0] * odds + at[1]
        return float((np.logaddexp(0.0, fitted) - right * fitted).sum() + (at - left) @ held @ (at - left) / 2)

    for _ in range(_ROUNDS):
        fitted = 1.0 / (1.0 + np.exp(-(at[0] * odds + at[1])))
        off, sure = fitted - right, fitted * (1.0 - fitted)
        down = np.array([off @ odds, off.sum()]) + held @ (at - left)
        step = np.linalg.solve(np.array([[sure @ (odds * odds), sure @ odds], [sure @ odds, sure.sum()]]) + held, down)
        while misfit(at - step) > misfit(at) and np.abs(step).max() > 1e-9:
            step = step / 2
        at = at - step
    return max(float(at[0]), 0.0), float(at[1])


def steps(chances: Sequence[float], good: Sequence[bool]) -> list[Point]:
    """Middles of the steps of the isotonic fit, ascending."""
    tied: dict[float, list[bool]] = defaultdict(list)
    for chance, outcome in zip(chances, good, strict=True):
        tied[chance].append(outcome)
    fitted = _pooled([(chance, sum(found) / len(found), float(len(found))) for chance, found in sorted(tied.items())])
    drawn = [(middle, (rate * n + _DRAWN * middle) / (n + _DRAWN), n + _DRAWN) for middle, rate, n in fitted]
    return [(middle, rate) for middle, rate, _ in _pooled(drawn)]


def _pooled(blocks: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Neighbours (middle, rate, sessions) joined as long as one's rate is above its follower's."""
    done: list[tuple[float, float, float]] = []
    for block in blocks:
        done.append(block)
        while len(done) > 1 and done[-2][1] > done[-1][1]:
            (x0, y0, n0), (x1, y1, n1) = done[-2:]
            done[-2:] = [((x0 * n0 + x1 * n1) / (n0 + n1), (y0 * n0 + y1 * n1) / (n0 + n1), n0 + n1)]
    return done


def between(points: Sequence[Point], chance: float) -> float:
    """The calibrated probability: on the line between two middles, and beyond the outer ones as far off as it was."""
    if not points:
        return chance
    (first, low), (last, high) = points[0], points[-1]
    line = [(0.0, max(0.0, low - first)), *points, (1.0, min(1.0, high + 1.0 - last))]
    place = min(max(bisect_right(line, (chance, math.inf)), 1), len(line) - 1)
    (x0, y0), (x1, y1) = line[place - 1], line[place]
    return round(y0 + (y1 - y0) * (chance - x0) / (x1 - x0), 6) if x1 > x0 else round(y1, 6)


def _odds(chance: float) -> float:
    held = min(max(chance, _EDGE), 1.0 - _EDGE)
    return math.log(held / (1.0 - held))


def _chance(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds))


def interval(chance: float, chances: Sequence[float]) -> Point:
    """95 % interval of a probability (Wilson 1927), as if it stood on the reviewed sessions like it (their `chances`,
    ascending) and a few more."""
    near = bisect_right(chances, chance + _NEAR) - bisect_right(chances, chance - _NEAR)
    n = _UNSEEN + near
    middle = (chance + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
    half = _Z / (1 + _Z * _Z / n) * math.sqrt(chance * (1 - chance) / n + _Z * _Z / (4 * n * n))
    return round(max(0.0, middle - half), 6), round(min(1.0, middle + half), 6)
