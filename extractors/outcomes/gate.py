"""May a family's reward be published? First the outcomes must tell good sessions from bad ones, then they may teach.

Sessions that people spoke of (reviews; where there are none, ratings) are held against the *blind* probability, which what
people say of that session does not reach: how often a good session is put above a bad one, and how far probabilities are off.
A family with too few such sessions stands on those of its whole service, and a service with too few on none: then nothing was
measured, and the report says so.

Sees: families and what was said of their sessions. Does not see: whether those who spoke are a fair sample; ratings are not,
so a bar on calibration is best set where there are reviews.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from extractors.outcomes.feedback import polarities
from warehouse.records import Verdict

FEWEST = 20
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
    known = _known(feedback, sorted(reviews))
    of_session = tasks.select("service", "family", pl.col("session_ids").alias("session_id")).explode("session_id").unique()
    rows = of_session.join(outcomes.select("session_id", "blind").drop_nulls(), on="session_id").sort("session_id")
    of_family: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    of_service: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for service, family, session, blind in rows.select("service", "family", "session_id", "blind").iter_rows():
        if session in known:
            of_family[service, family].append((blind, known[session]))
            of_service[service].append((blind, known[session]))
    found = []
    for service, family in sorted(set(tasks.select("service", "family").iter_rows())):
        own = of_family[service, family]
        whole = not _enough(own)
        pairs = of_service[service] if whole else own
        if _enough(pairs):
            found.append(Measure(service, family, len(pairs), round(auroc(pairs), 6), round(ece(pairs), 6), whole))
        else:
            found.append(Measure(service, family, 0, None, None, whole))
    return found


def hold_back(
    rubrics: pl.DataFrame, tasks: pl.DataFrame, measures: Iterable[Measure], least_auroc: float | None, most_ece: float | None
) -> tuple[pl.DataFrame, list[Verdict]]:
    """The rubrics that may go on, and a verdict on each that is held back."""
    held = {(each.service, each.family): each for each in measures if not each.holds(least_auroc, most_ece)}
    verdicts = [
        Verdict(
            stage="rewards", subject=task, kept=False, reason="outcomes_not_trusted",
            detail=f"the outcomes of {each.n} sessions {'of its service' if each.of_service else 'of its family'} with known "
            f"success have AUROC {each.auroc:.2f} and calibration error {each.ece:.2f}, beyond the bars in [gates]; "
            "review more sessions, or lower the bar")
        for task, service, family in tasks.select("task_id", "service", "family").sort("task_id").iter_rows()
        if (each := held.get((service, family))) is not None
    ]
    gone = [verdict.subject for verdict in verdicts]
    return rubrics.filter(~pl.col("task_id").is_in(gone)), verdicts


def auroc(pairs: Sequence[tuple[float, bool]]) -> float:
    """Chance that a good session has the higher probability, ties half (Mann and Whitney 1947)."""
    bad = sorted(chance for chance, good in pairs if not good)
    good = [chance for chance, good in pairs if good]
    return sum(bisect_left(bad, each) + bisect_right(bad, each) for each in good) / (2 * len(good) * len(bad))


def ece(pairs: Sequence[tuple[float, bool]]) -> float:
    """Expected calibration error over ten equal bins (Naeini, Cooper and Hauskrecht 2015)."""
    gaps: dict[int, float] = defaultdict(float)
    for chance, good in pairs:
        gaps[min(int(chance * _BINS), _BINS - 1)] += good - chance
    return sum(abs(gap) for gap in gaps.values()) / len(pairs)


def _enough(pairs: Sequence[tuple[float, bool]]) -> bool:
    n_good = sum(good for _, good in pairs)
    return len(pairs) >= FEWEST and min(n_good, len(pairs) - n_good) >= _FEWEST_OF_A_KIND


def _known(feedback: pl.DataFrame, reviews: Sequence[str]) -> Mapping[str, bool]:
    """Session -> how it went, as reviewers found; where nobody reviewed, as people rated it."""
    reviewed = feedback.filter(pl.col("name").is_in(reviews))
    rows = polarities(reviewed if reviewed.height else feedback)
    rows = rows.group_by("session_id").agg(pl.col("polarity").mean()).filter(pl.col("polarity") != 0)
    return dict(rows.sort("session_id").select("session_id", pl.col("polarity") > 0).iter_rows())
