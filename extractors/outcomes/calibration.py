"""Calibrate probabilities by reviews, and measure whether a family's outcomes may be trusted for rewards.

With few reviews a line in log odds (Platt 1999), shrunk to the identity; with many, isotonic regression (Ayer and others 1955),
each step shrunk to its own probability and made continuous. The order of sessions never changes. Ratings are no fair sample, so
they do not calibrate; with too few reviews probabilities stay.

A family's outcomes are measured by AUROC and calibration error of the *blind* probability (which feedback does not reach)
against reviews, or against ratings if there is no review. A family with too few of these sessions uses those of its service; a
service with too few is not measured, and the report says so."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from extractors.outcomes.combining import chance_of, odds
from extractors.outcomes.feedback import polarities
from warehouse.records import Decision

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
_REVIEWED = 0.99
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
    reviewed = sorted((chances[name], good) for name, good in reviews.items() if name in chances)
    raw, good = [chance for chance, _ in reviewed], [good for _, good in reviewed]
    if len(reviewed) >= MANY:
        points = steps(raw, good)
        fitted = {name: between(points, chance) for name, chance in chances.items()}
    elif len(reviewed) >= FEWEST:
        slope, shift = line(raw, good)
        fitted = {name: round(chance_of(slope * _odds(chance) + shift), 6) for name, chance in chances.items()}
    else:
        fitted = dict(chances)
    return fitted | nearly_sure(chances, reviews)


def nearly_sure(chances: Mapping[str, float], outcomes: Mapping[str, bool]) -> dict[str, float]:
    """Return nearly sure probabilities for the sessions that a person reviewed or corrected."""
    return {name: _REVIEWED if good else 1.0 - _REVIEWED for name, good in outcomes.items() if name in chances}


def line(chances: Sequence[float], good: Sequence[bool]) -> tuple[float, float]:
    """Slope and shift in log odds that fit the outcomes best: Newton's method, each step halved until it betters the fit."""
    log_odds, right = np.array([_odds(chance) for chance in chances]), np.array(good, dtype=np.float64)
    precision = np.diag([_KEPT, _KEPT])
    prior, at = np.array([1.0, 0.0]), np.array([1.0, 0.0])

    def misfit(at: np.ndarray) -> float:
        fitted = at[0] * log_odds + at[1]
        return float((np.logaddexp(0.0, fitted) - right * fitted).sum() + (at - prior) @ precision @ (at - prior) / 2)

    for _ in range(_ROUNDS):
        fitted = 1.0 / (1.0 + np.exp(-(at[0] * log_odds + at[1])))
        off, sure = fitted - right, fitted * (1.0 - fitted)
        down = np.array([off @ log_odds, off.sum()]) + precision @ (at - prior)
        across = sure @ log_odds
        step = np.linalg.solve(np.array([[sure @ (log_odds * log_odds), across], [across, sure.sum()]]) + precision, down)
        while misfit(at - step) > misfit(at) and np.abs(step).max() > 1e-9:
            step = step / 2
        at = at - step
    return max(float(at[0]), 0.0), float(at[1])


def steps(chances: Sequence[float], good: Sequence[bool]) -> list[Point]:
    """Middles of the steps of the isotonic fit, ascending."""
    tied: dict[float, list[bool]] = defaultdict(list)
    for chance, outcome in zip(chances, good, strict=True):
        tied[chance].append(outcome)
    fitted = _pooled(
        [(chance, sum(outcomes) / len(outcomes), float(len(outcomes))) for chance, outcomes in sorted(tied.items())])
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
    """Return the calibrated probability: on the line between two middles, and beyond the outer ones as far off as it was."""
    if not points:
        return chance
    (first, low), (last, high) = points[0], points[-1]
    line = [(0.0, max(0.0, low - first)), *points, (1.0, min(1.0, high + 1.0 - last))]
    place = min(max(bisect_right(line, (chance, math.inf)), 1), len(line) - 1)
    (x0, y0), (x1, y1) = line[place - 1], line[place]
    return round(y0 + (y1 - y0) * (chance - x0) / (x1 - x0), 6) if x1 > x0 else round(y1, 6)


def _odds(chance: float) -> float:
    return odds(min(max(chance, _EDGE), 1.0 - _EDGE))


def interval(chance: float, chances: Sequence[float]) -> Point:
    """Compute the 95 % interval (Wilson 1927) over the reviewed sessions near it (ascending `chances`) and a few more."""
    near = bisect_right(chances, chance + _NEAR) - bisect_right(chances, chance - _NEAR)
    n = _UNSEEN + near
    middle = (chance + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
    half = _Z / (1 + _Z * _Z / n) * math.sqrt(chance * (1 - chance) / n + _Z * _Z / (4 * n * n))
    return round(max(0.0, middle - half), 6), round(min(1.0, middle + half), 6)


FEWEST_KNOWN = 20
"""Sessions with a known outcome, of both kinds together, that it takes to measure."""
_FEWEST_OF_A_KIND = 3
_BINS = 10


class Measure(NamedTuple):
    """How well outcomes hold in a family."""

    service: str
    family: str
    n: int
    """Sessions measured; 0: too few, and nothing was."""
    auroc: float | None
    ece: float | None
    of_service: bool
    """They are those of the whole service."""

    def holds(self, least_auroc: float | None, most_ece: float | None) -> bool:
        """Is what was measured within the bars? What was not measured is."""
        if self.auroc is None or self.ece is None:
            return True
        return self.auroc >= (least_auroc or 0.0) and self.ece <= (1.0 if most_ece is None else most_ece)


def measure(tasks: pl.DataFrame, outcomes: pl.DataFrame, feedback: pl.DataFrame, reviews: Iterable[str]) -> list[Measure]:
    """One measure a family of `tasks` (frame of `Task`), by service and family."""
    reviewed = feedback.filter(pl.col("name").is_in(sorted(reviews)))   # where nobody reviewed, people's ratings count
    rated = polarities(reviewed if reviewed.height else feedback)
    rated = rated.group_by("session_id").agg(pl.col("polarity").mean()).filter(pl.col("polarity") != 0)
    known_outcomes = dict(rated.sort("session_id").select("session_id", pl.col("polarity") > 0).iter_rows())
    of_session = tasks.select("service", "family", pl.col("session_ids").alias("session_id")).explode("session_id").unique()
    rows = of_session.join(outcomes.select("session_id", "blind").drop_nulls(), on="session_id").sort("session_id")
    of_family: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    of_service: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for service, family, session, blind in rows.select("service", "family", "session_id", "blind").iter_rows():
        if session in known_outcomes:
            of_family[service, family].append((blind, known_outcomes[session]))
            of_service[service].append((blind, known_outcomes[session]))
    measures = []
    for service, family in sorted(set(tasks.select("service", "family").iter_rows())):
        own = of_family[service, family]
        whole = not _enough(own)
        pairs = of_service[service] if whole else own
        if _enough(pairs):
            measures.append(Measure(service, family, len(pairs), round(auroc(pairs), 6), round(ece(pairs), 6), whole))
        else:
            measures.append(Measure(service, family, 0, None, None, whole))
    return measures


def withhold_untrusted(rubrics: pl.DataFrame, tasks: pl.DataFrame, measures: Iterable[Measure], least_auroc: float | None,
                       most_ece: float | None) -> tuple[pl.DataFrame, list[Decision]]:
    """Return the rubrics that may go on, and a decision on each that is held back."""
    untrusted = {(each.service, each.family): each for each in measures if not each.holds(least_auroc, most_ece)}
    decisions = [
        Decision(
            stage="rewards", subject=task, kept=False, reason="outcomes_not_trusted",
            detail=f"the outcomes of {each.n} sessions {'of its service' if each.of_service else 'of its family'} with known "
            f"success have AUROC {each.auroc:.2f} and calibration error {each.ece:.2f}, beyond the bars in [gates]; "
            "review more sessions, or lower the bar")
        for task, service, family in tasks.select("task_id", "service", "family").sort("task_id").iter_rows()
        if (each := untrusted.get((service, family))) is not None]
    gone = [decision.subject for decision in decisions]
    return rubrics.filter(~pl.col("task_id").is_in(gone)), decisions


def auroc(pairs: Sequence[tuple[float, bool]]) -> float:
    """Chance that a good session has the higher probability, ties half (Mann and Whitney 1947)."""
    bad = sorted(chance for chance, good in pairs if not good)
    good = [chance for chance, good in pairs if good]
    return sum(bisect_left(bad, each) + bisect_right(bad, each) for each in good) / (2 * len(good) * len(bad))


def ece(pairs: Sequence[tuple[float, bool]]) -> float:
    """Compute the expected calibration error over ten equal bins (Naeini, Cooper and Hauskrecht 2015)."""
    gaps: dict[int, float] = defaultdict(float)
    for chance, good in pairs:
        gaps[min(int(chance * _BINS), _BINS - 1)] += good - chance
    return sum(abs(gap) for gap in gaps.values()) / len(pairs)


def _enough(pairs: Sequence[tuple[float, bool]]) -> bool:
    n_good = sum(good for _, good in pairs)
    return len(pairs) >= FEWEST_KNOWN and min(n_good, len(pairs) - n_good) >= _FEWEST_OF_A_KIND
