"""How many tasks an answer is expected to make publishable by what it teaches of sessions like the reviewed one.

Input: the traits and probabilities of sessions, and which tasks they would open. The errors of log odds are normal, with the
covariance that calibration uses (`extractors.outcomes.propagation`). A task opens if the error of
its session lifts it over the gate; an answer counts for the part of this error that it resolves. What was reviewed or chosen
already is known, so that another session like it teaches less.
Does not see: weights of signals, which answers change too, and whether the audit will verify a task.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from extractors.outcomes.combining import odds
from extractors.outcomes.evidence import gather
from extractors.outcomes.feedback import CORRECTION, REVIEW
from extractors.outcomes.likeness import TRAITS, Trait, traits_of
from extractors.outcomes.propagation import LINE, Traits
from pipelines.building.decisions import effects_of, starts_of
from pipelines.building.tasks import with_stances
from warehouse.store import Store

PUBLISHED_FROM = 0.7
"""Probability from which on a session is taken to open its task."""
_EDGE = 0.01


class Lesson:
    """What answers to some sessions (`asked`) teach of the sessions of open tasks."""

    def __init__(self, chances: Mapping[str, float], traits: Traits, asked: Sequence[str],
                 opens: Mapping[str, Sequence[str]]) -> None:
        """`chances`: probability by session; `opens`: open tasks by the sessions that would open them."""
        self.rows = {name: number for number, name in enumerate(asked)}
        pairs = sorted((task, name) for name, tasks in opens.items() for task in tasks)
        self.tasks = sorted({task for task, _ in pairs})
        self.begins = [number for number, (task, _) in enumerate(pairs) if not number or pairs[number - 1][0] != task]
        learners = {name: number for number, name in enumerate(sorted(opens))}
        self.learner = np.array([learners[name] for _, name in pairs], dtype=np.intp)
        log_odds = {name: odds(min(max(chance, _EDGE), 1 - _EDGE)) for name, chance in chances.items()}
        self.missing = odds(PUBLISHED_FROM) - np.array([log_odds[name] for name in learners])
        self.among = _covariance(asked, asked, log_odds, traits)
        self.spread = np.array([_variance(log_odds[name], traits.get(name, ())) for name in learners])
        self.lifted = _tail(self.missing / np.sqrt(self.spread))
        self.alike = _covariance(asked, list(learners), log_odds, traits)
        held = [min(max(chances[name], _EDGE), 1 - _EDGE) for name in asked]
        self.noise = [1 / (chance * (1 - chance)) for chance in held]

    def learn(self, name: str) -> None:
        """Take the answer to this session as known."""
        row = self.rows[name]
        pull = self.among[:, row] / (self.among[row, row] + self.noise[row])
        self.alike = self.alike - np.outer(pull, self.alike[row])
        self.among = self.among - np.outer(pull, self.among[row])

    def opened(self, name: str) -> dict[str, float]:
        """Return what the answer to this session adds to the probability of each open task to open, by what it teaches."""
        row = self.rows[name]
        resolved = self.alike[row] ** 2 / (max(float(self.among[row, row]), 0.0) + self.noise[row]) / self.spread
        chance = np.where(self.missing <= 0, 0.0, self.lifted * resolved)
        best = np.maximum.reduceat(chance[self.learner], self.begins) if self.begins else np.zeros(0)
        return dict(zip(self.tasks, best.tolist(), strict=True))


def _variance(log_odds: float, traits: Iterable[Trait]) -> float:
    """Return the variance of the error of a session's log odds."""
    return LINE * (1.0 + log_odds * log_odds) + sum(TRAITS[name] for name, _ in traits)


def stored_traits(store: Store) -> dict[str, frozenset[Trait]]:
    """Return what the sessions of a warehouse have in common with others."""
    votes = [(session, vote["name"], vote["vote"])
             for session, signals in store.read("select session_id, signals from mart.outcomes order by session_id").iter_rows()
             for vote in json.loads(signals) if vote["name"] not in (CORRECTION, REVIEW)]
    schema = {"session_id": pl.String(), "name": pl.String(), "vote": pl.Float64()}
    evidence = gather(
        store.table("core.sessions"), with_stances(store.table("core.turns")), store.table("core.feedback"), effects_of(store),
        starts_of(store), store.table("mart.goals"), store.table("core.row_changes"))
    return traits_of(evidence, pl.DataFrame(votes, schema=schema, orient="row"))


def _covariance(asked: Sequence[str], learners: Sequence[str], log_odds: Mapping[str, float], traits: Traits) -> np.ndarray:
    """Return the covariance of the errors of each asked session with each learner."""
    having: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, name in enumerate(learners):
        for trait in sorted(traits.get(name, ())):
            having[trait].append(number)
    slopes = np.outer([log_odds[name] for name in asked], [log_odds[name] for name in learners])
    covariance = LINE * (1.0 + slopes.reshape(len(asked), len(learners)))
    for row, name in enumerate(asked):
        for trait in sorted(traits.get(name, ())):
            covariance[row, having.get(trait, [])] += TRAITS[trait[0]]
    return covariance


def _tail(deviations: np.ndarray) -> np.ndarray:
    """Return the probability that a standard normal value is above each of these."""
    return np.array([math.erfc(each / math.sqrt(2)) / 2 for each in deviations.tolist()])
