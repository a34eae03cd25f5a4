"""How likely published rewards are right: an estimate per task, and a statement on all of them with a 95 % interval.

Input: rubrics, outcomes and reviews of the warehouse. A reward is right if the end that it pays for is right. A task's
estimate is the probability of the best session that supports its gates, a part of the log odds of the others, which came to the
same end, and what a passed audit is worth; a review of one of them settles it. The statement rests on random reviews if there
are any (Clopper and Pearson 1934), else on the estimates: the share of right rewards is beta-binomial (Skellam 1948), since the
estimates of a service err together.
Does not see: whether a right end can be reached by wrong conduct (`env_builder.audit`), and whether a sample was really random.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

import polars as pl

from extractors.outcomes.combining import chance_of, odds
from extractors.reviews import settled_sessions
from pipelines.screen import many
from warehouse.store import Store
from warehouse.vocabulary import SUCCEEDED_FROM

END_KINDS = ("state", "must_not_write")
"""Kinds of checks that name the end which is paid."""
CONFIDENCE = 0.95
AGREEING = 0.5
"""Part of the log odds that each further session with the same end adds: sessions of one service err alike in part."""
VERIFIED = 1.35
"""Log odds that a passed audit adds: wrong ends pass it less often. Of a line in log odds (Platt 1999) that was fitted on
seventeen services the slope is 1, so the shift alone is kept: 1.2 pooled over tasks, 1.4 as the mean of the services."""
_SUREST = 0.995
"""No session counts for more than this, or for less than its opposite."""
UNANCHORED = 60.0
"""Reviewed sessions that a mean estimate is worth before any review: so little it strayed from the truth on the eight services
of the benchmark, and so much services may differ."""
BESIDE_SAMPLE = 8.0
"""Random reviews that the estimates count for beside a random sample."""
CALLED_GOOD = SUCCEEDED_FROM
"""Probability without any feedback from which on a reviewed session counts as an anchor of the estimates."""
ANCHOR = 0.5
"""Sessions that a reviewed one counts for, as it was chosen and not drawn."""
_ROUNDS = 60
_PLACES = 4
_REWARDED = ("select task_id, service, checks, false as generated from mart.rubrics where task_id not in (select task_id from "
             "mart.variants) union all select task_id, service, checks, true as generated from mart.variants")


class RewardEstimate(NamedTuple):
    """What is known of the end that a task's reward pays for."""

    task_id: str
    service: str
    probability: float | None
    """Probability that the end is right if the audit verifies it; None: nothing speaks of it."""
    session_ids: tuple[str, ...]
    """Sessions that support it, sorted; a review of one settles the task. None if its solution was generated."""
    is_right: bool | None
    """What reviewers settled; None: nobody reviewed one of its sessions."""


class Precision(NamedTuple):
    """Share of rewards that are right."""

    low: float
    high: float
    """95 % interval."""
    estimate: float
    n_reviews: int
    """Random reviews."""
    basis: str
    """What it rests on, in a few words."""


def reward_estimates(store: Store, service: str | None = None) -> dict[str, RewardEstimate]:
    """Estimate the reward of each task of `service` (all by default), by task id."""
    settled = settled_sessions(store.table("core.reviews"))
    chances = dict(store.read("select session_id, probability from mart.outcomes").iter_rows())
    rows = store.read(f"select * from ({_REWARDED}) where $service is null or service = $service order by task_id",
                      service=service).iter_rows()
    return {task_id: _estimate(task_id, of_service, json.loads(checks), {} if generated else chances, settled)
            for task_id, of_service, checks, generated in rows}


def _estimate(task_id: str, service: str, checks: list[dict[str, Any]], chances: Mapping[str, float | None],
              settled: Mapping[str, bool]) -> RewardEstimate:
    gates = [check for check in checks if check["role"] == "gate"]
    ends = [check["provenance"] for check in gates if check["kind"] in END_KINDS] or [check["provenance"] for check in gates]
    session_ids = tuple(sorted({name for each in ends for name in each.get("supporting") or () if name in chances}))
    answers = {settled[name] for name in session_ids if name in settled}
    is_right = answers.pop() if len(answers) == 1 else None
    known = [chance for name in session_ids if (chance := chances[name]) is not None
             and (is_right is None or settled.get(name) is is_right)]
    known = known or [each["confidence"] for each in ends if each.get("confidence") is not None]
    audited = 0.0 if is_right is False else VERIFIED
    return RewardEstimate(task_id, service, _together(known, audited) if known else None, session_ids, is_right)


def _together(chances: Iterable[float], audited: float) -> float:
    """Return the probability that an end is right which sessions of these probabilities share. `audited`: log odds besides."""
    first, *others = sorted((odds(min(max(chance, 1 - _SUREST), _SUREST)) for chance in chances), reverse=True)
    return chance_of(audited + first + AGREEING * sum(each for each in others if each > 0))


def stated_precision(published: Iterable[RewardEstimate], reviewed: pl.DataFrame,
                     anchors: Iterable[bool] = ()) -> Precision | None:
    """State the precision of published rewards; None if nothing is published. `reviewed`: frame of `Review` on sessions of
    the same services. `anchors`: whether each reviewed session that the signals alone call good is right; only these say
    something of the estimates of published rewards.

    Rewards that a review settled are known. Of the others, random reviews measure the share; those found wrong count although
    the next run no longer publishes them. Rewards of generated solutions cannot be drawn, and are estimated.
    """
    every, judged = list(published), list(anchors)
    if not every:
        return None
    unknown = [each for each in every if each.is_right is None and each.session_ids]
    generated = [each for each in every if each.is_right is None and not each.session_ids]
    settled = settled_sessions(reviewed)
    drawn = sorted(set(reviewed.filter("is_sampled")["session_id"]))
    n_right, estimated = sum(settled.get(name) is True for name in drawn), _estimated(unknown, judged)
    basis = "the probabilities of the sessions that came to the paid ends"
    basis += f", and {many(len(judged), 'review')} that are no random sample" if judged else ""
    measured = estimated
    if drawn:
        low, high = clopper_pearson(n_right, len(drawn))
        middle = (n_right + BESIDE_SAMPLE * estimated[1]) / (len(drawn) + BESIDE_SAMPLE)
        measured = low, min(max(middle, low), high), high
        basis = f"{len(drawn)} random reviews" if len(drawn) > 1 else "1 random review"
    n_known = len(every) - len(unknown) - len(generated)
    low, middle, high = (
        round((n_known + one * len(unknown) + other * len(generated)) / len(every), _PLACES)
        for one, other in zip(measured, _estimated(generated, judged), strict=True))
    return Precision(low, high, middle, len(drawn), basis)


def _estimated(rewards: list[RewardEstimate], anchors: list[bool]) -> tuple[float, float, float]:
    """Return the mean of the estimates, drawn towards the anchors, between the bounds of the share that is right."""
    if not rewards:
        return 1.0, 1.0, 1.0
    mean = sum(each.probability or 0.0 for each in rewards) / len(rewards)
    n = UNANCHORED + ANCHOR * len(anchors)
    n_right = UNANCHORED * mean + ANCHOR * sum(anchors)
    low, high = share_interval(n_right / n, n, len(rewards))
    return min(low, n_right / n), n_right / n, max(high, n_right / n)


def share_interval(mean: float, n_worth: float, n: int) -> tuple[float, float]:
    """Compute the 95 % interval of the share of `n` that is right, if the service's mean is worth `n_worth` observations."""
    right, wrong = max(mean, 1e-9) * n_worth, max(1.0 - mean, 1e-9) * n_worth
    among = math.lgamma(n + 1) + math.lgamma(right + wrong) - math.lgamma(right) - math.lgamma(wrong) - math.lgamma(
        n + right + wrong)
    chances = [math.exp(among - math.lgamma(k + 1) - math.lgamma(n - k + 1) + math.lgamma(k + right)
                        + math.lgamma(n - k + wrong)) for k in range(n + 1)]
    tail = (1 - CONFIDENCE) / 2
    low = next(k for k, total in enumerate(accumulate(chances)) if total > tail)
    high = n - next(k for k, total in enumerate(accumulate(reversed(chances))) if total > tail)
    return low / n, high / n


def precision_of(store: Store, task_ids: Iterable[str], estimates: Mapping[str, RewardEstimate],
                 service: str | None = None) -> Precision | None:
    """State the precision of these published tasks, of `service` or of all."""
    reviewed = store.read(
        "select r.* from core.reviews r join core.sessions using (session_id) where $service is null or service = $service "
        "order by review_id", service=service)
    blind = dict(store.read("select session_id, blind from mart.outcomes where blind is not null").iter_rows())
    anchors = [right for name, right in settled_sessions(reviewed).items() if blind.get(name, 0.0) >= CALLED_GOOD]
    return stated_precision([estimates[name] for name in task_ids if name in estimates], reviewed, anchors)


def published_precision(store: Store) -> tuple[Precision | None, int]:
    """State the precision of everything that the warehouse publishes, and count its tasks."""
    names = store.read("select distinct subject from mart.decisions where stage = 'verify' and kept order by all")["subject"]
    return precision_of(store, names, reward_estimates(store)), len(names)


def sentence_on_code(store: Store) -> str | None:
    """Say how many tasks of repositories are published; None where none is."""
    n_tasks = store.read("select coalesce(sum(n_tasks), 0) from mart.code_rooms").item()
    return f"{n_tasks:,} tasks of repositories are published; tests and answers compared outside decide their rewards." \
        if n_tasks else None


def sentence_on_sites(store: Store) -> str | None:
    """Say how many tasks of web sites are published; None where none is."""
    n_tasks = store.read("select coalesce(sum(n_tasks), 0) from mart.site_rooms").item()
    return f"{n_tasks:,} tasks of web sites are published; the work that others did for the same ask decides their rewards." \
        if n_tasks else None


def sentence_on_companies(store: Store) -> str | None:
    """Say how many tasks of a company's work are published; None where none is."""
    n_tasks = store.read("select coalesce(sum(n_tasks), 0) from mart.company_rooms where folder = 'environments'").item()
    return f"{n_tasks:,} tasks of a company's work are published; what people's own work changed decides their rewards." \
        if n_tasks else None


def sentence_on(precision: Precision | None, n_published: int) -> str:
    """Say what the published rewards rest on."""
    if precision is None:
        return "No reward is published."
    low, estimate = math.floor(100 * precision.low), round(100 * precision.estimate)
    rewards = "the one published reward" if n_published == 1 else f"the {n_published:,} published rewards"
    if precision.n_reviews:
        return f"Of {rewards} at least {low} % are right (95 % confidence), by {precision.basis}."
    return (f"Not reviewed: of {rewards} an estimated {estimate} % are right (95 % interval {low} to "
            f"{math.ceil(100 * precision.high)} %), by {precision.basis}.")


def clopper_pearson(k: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Compute the exact interval of a share of which `k` of `n` random observations were seen."""
    tail = (1 - confidence) / 2
    low = 0.0 if k == 0 else _solved(lambda share: at_least(k, n, share) - tail)
    high = 1.0 if k == n else _solved(lambda share: at_least(k + 1, n, share) - (1 - tail))
    return low, high


def at_least(k: int, n: int, share: float) -> float:
    """Probability of `k` or more successes in `n` trials."""
    if share in (0.0, 1.0):
        return float(share == 1.0 or k == 0)
    logs = (math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(share)
            + (n - i) * math.log1p(-share) for i in range(k, n + 1))
    return math.fsum(map(math.exp, logs))


def _solved(rising: Callable[[float], float]) -> float:
    """Find the share at which a rising function is 0, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2
