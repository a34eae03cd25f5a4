"""Does success in the environment mean success on the real service? Statistics of a matrix of results.

In: results of policies on tasks, in the environment and on the real service. Out: a `Transfer`. Results with the same policy,
task, seed and attempt are a pair; only pairs with both successes known count. Sources: rank correlation (Spearman 1904, ties at
their mean rank); least squares of real on environment rates; 95 % intervals by bootstrap over tasks, all pairs of a task
together, percentiles (Efron 1979), seeded. Causes: the recorded one, else what both journals show (`divergence.py`), else an
unknown answer or a perturbation. Does not see: why results without journals disagree otherwise (`not_examined`); whether the
real result is right. Checkpoints of one policy: `tuning.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.rollouts.divergence import Divergence, divergence
from pipelines.rollouts.tuning import Checkpoint, PairedSuccess, TuningTransfer, tuning_transfer

PLACES = ("environment", "real")
NOT_EXAMINED = "not_examined"
WORST = 3
"""Tasks and tools that are named of each cause."""
DRAWS = 1_000
LEVEL = 0.95
Floats = NDArray[np.float64]


class PlacedResult(NamedTuple):
    """What came of one episode in one place."""

    policy: str
    task_id: str
    seed: int
    place: str
    success: bool | None
    """None: not scored."""
    cause: str | None = None
    """One of `divergence.CAUSES`, where the recorder knows why it differs from the other place."""
    n_unknown: int = 0
    perturbations: tuple[str, ...] = ()
    attempt: int = 0
    """Which of several tries with the same seed."""
    journal: tuple[dict[str, Any], ...] | None = None
    """What happened, row by row; None: not recorded."""
    rewarded: bool | None = None
    """Of a real episode that was judged otherwise: whether the environment's reward pays it; None: not known."""
    checkpoint_of: str | None = None
    """Which policy this one is a state of, while that was tuned. One result of a policy that names it is enough."""
    step: int | None = None
    """How far it was tuned then; the smallest is the first checkpoint."""


class PolicyTransfer(NamedTuple):
    """A policy in both places, on its pairs."""

    policy: str
    n: int
    environment: float
    real: float
    difference: float
    """Environment minus real."""
    low: float
    high: float
    """95 % interval of the difference."""
    n_unscored: int
    """Pairs of which a success is not known; they count nowhere else."""


class TaskDisagreement(NamedTuple):
    """A task on which the places disagree."""

    task_id: str
    n: int
    n_disagree: int
    n_only_environment: int
    """Disagreements in which only the environment says success."""
    causes: dict[str, int]


class CauseShare(NamedTuple):
    """A cause of disagreements."""

    cause: str
    n: int
    share: float
    """Of all disagreements."""
    tools: dict[str, int]
    """Tools whose answers differ first, the most frequent first."""
    tasks: list[str]
    """Ids of the tasks with most disagreements of this cause."""


class Transfer(NamedTuple):
    """Two places over the same policies and tasks."""

    policies: list[PolicyTransfer]
    """Best in reality first."""
    tasks: list[TaskDisagreement]
    """Most disagreements first."""
    causes: dict[str, int]
    cause_shares: list[CauseShare]
    """Most frequent first."""
    n_pairs: int
    n_alone: int
    """Results without a partner in the other place."""
    spearman: float | None
    """None where fewer than two policies differ in both places."""
    spearman_low: float | None
    spearman_high: float | None
    slope: float | None
    intercept: float | None
    regret: float | None
    """Best real rate minus that of the policy with the best rate in the environment; the mean of several such policies."""
    tuning: list[TuningTransfer]
    """Of each policy with several checkpoints."""


def transfer(results: Iterable[PlacedResult], draws: int = DRAWS, seed: int = 0) -> Transfer:
    """Compare both places. The same results in any order give the same output. ValueError: a result that is there twice, or a
    policy that is two checkpoints."""
    results = [*results]
    sides: dict[str, dict[tuple[str, str, int, int], PlacedResult]] = {place: {} for place in PLACES}
    for each in results:
        key = each.policy, each.task_id, each.seed, each.attempt
        if key in sides[each.place]:
            raise ValueError(f"two results of policy {each.policy!r}, task {each.task_id!r}, seed {each.seed}, in {each.place}")
        sides[each.place][key] = each
    here, there = sides["environment"], sides["real"]
    shared = [(here[key], there[key]) for key in sorted(here.keys() & there.keys())]
    pairs = [(one, other) for one, other in shared if one.success is not None and other.success is not None]
    unscored = Counter(one.policy for one, other in shared if one.success is None or other.success is None)
    names, task_ids = sorted({one.policy for one, _ in pairs}), sorted({one.task_id for one, _ in pairs})
    table = np.zeros((3, len(task_ids), len(names)))
    row_of, column_of = ({name: place for place, name in enumerate(each)} for each in (task_ids, names))
    for one, other in pairs:
        table[:, row_of[one.task_id], column_of[one.policy]] += (1, bool(one.success), bool(other.success))
    n, first, second = table.sum(axis=1)
    rates = first / n, second / n
    lows, highs, interval = _intervals(table, draws, seed)
    policies = [PolicyTransfer(name, int(n[i]), float(rates[0][i]), float(rates[1][i]), float(rates[0][i] - rates[1][i]),
                               float(lows[i]), float(highs[i]), unscored[name]) for i, name in enumerate(names)]
    apart = [(one.task_id, diverged(one, other)) for one, other in pairs if one.success != other.success]
    slope, intercept = line(*rates)
    return Transfer(
        sorted(policies, key=lambda row: (-row.real, row.policy)), _disagreements(pairs, apart),
        dict(sorted(Counter(why.cause for _, why in apart).items())), _shares(apart), len(pairs),
        len(here.keys() ^ there.keys()),
        spearman(*rates), *interval, slope, intercept, choosing_regret(*rates), tuning_transfer(
            [PairedSuccess(one.policy, one.task_id, bool(one.success), bool(other.success)) for one, other in pairs],
            _checkpoints(results), draws, seed))


def _checkpoints(results: Iterable[PlacedResult]) -> dict[str, Checkpoint]:
    """Return the checkpoint that each policy is, where a result names it."""
    checkpoints: dict[str, Checkpoint] = {}
    for each in results:
        if each.checkpoint_of is not None and each.step is not None:
            own = Checkpoint(each.policy, each.checkpoint_of, each.step)
            if checkpoints.setdefault(each.policy, own) != own:
                raise ValueError(f"policy {each.policy!r} is two checkpoints: {checkpoints[each.policy]} and {own}")
    return checkpoints


def diverged(one: PlacedResult, other: PlacedResult) -> Divergence:
    """Return the cause of a disagreement: the recorded one, else what the episodes show, `one` in the environment."""
    if named := one.cause or other.cause:
        return Divergence(named)
    if other.rewarded is not None and other.rewarded != other.success:
        return Divergence("reward_wrong")
    is_perturbed = one.perturbations != other.perturbations
    if one.journal is not None and other.journal is not None:
        return divergence(one.journal, other.journal, is_perturbed)
    if one.n_unknown:
        return Divergence("answer_unknown")
    return Divergence("perturbation" if is_perturbed else NOT_EXAMINED)


def spearman(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Rank correlation, ties at their mean rank; None where a side does not vary."""
    ranks = _ranks(first), _ranks(second)
    if len(first) < 2 or any(np.ptp(each) == 0 for each in ranks):
        return None
    return round(float(np.clip(np.corrcoef(*ranks)[0, 1], -1, 1)), 12)


def line(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> tuple[float | None, float | None]:
    """Return slope and intercept of least squares of `second` on `first`; None where `first` does not vary."""
    x, y = np.asarray(first, float), np.asarray(second, float)
    if len(x) < 2 or np.ptp(x) < 1e-12:
        return None, None
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    return slope, float(y.mean() - slope * x.mean())


def choosing_regret(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Return what choosing the best of `first` loses in reality; of several such, their mean. None of no policy."""
    x, y = np.asarray(first, float), np.asarray(second, float)
    return float(y.max() - y[x >= x.max() - 1e-12].mean()) if len(x) else None


def _ranks(values: Sequence[float] | Floats) -> Floats:
    """Ranks from 0; ties at their mean. Values that differ by rounding alone are ties."""
    _, places, sizes = np.unique(np.round(np.asarray(values, float), 12), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(sizes) - (sizes + 1) / 2)[places], float)


def _intervals(table: Floats, draws: int, seed: int) -> tuple[Floats, Floats, tuple[float | None, float | None]]:
    """Return the intervals of each policy's difference, and that of the rank correlation."""
    n_tasks, n_policies = table.shape[1:]
    if not n_tasks:
        return np.zeros(n_policies), np.zeros(n_policies), (None, None)
    weights = np.random.default_rng(seed).multinomial(n_tasks, np.full(n_tasks, 1 / n_tasks), draws).astype(float)
    n, first, second = (weights @ each for each in table)
    with np.errstate(invalid="ignore", divide="ignore"):   # a draw may have no pair of a policy: it tells nothing of it
        rates = first / n, second / n
    ends = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]
    lows, highs = np.nanpercentile(rates[0] - rates[1], ends, axis=0)
    drawn = [spearman(one[~np.isnan(one)], other[~np.isnan(one)]) for one, other in zip(*rates, strict=True)]
    able = [each for each in drawn if each is not None]
    if not able:
        return lows, highs, (None, None)
    low, high = np.percentile(able, ends)
    return lows, highs, (float(low), float(high))


def _disagreements(
    pairs: Sequence[tuple[PlacedResult, PlacedResult]], apart: Sequence[tuple[str, Divergence]],
) -> list[TaskDisagreement]:
    n_pairs = Counter(one.task_id for one, _ in pairs)
    only_environment = Counter(one.task_id for one, other in pairs if one.success and not other.success)
    causes: dict[str, Counter[str]] = defaultdict(Counter)
    for task_id, why in apart:
        causes[task_id][why.cause] += 1
    rows = [TaskDisagreement(task_id, n_pairs[task_id], own.total(), only_environment[task_id], dict(sorted(own.items())))
            for task_id, own in causes.items()]
    return sorted(rows, key=lambda row: (-row.n_disagree, row.task_id))


def _shares(apart: Sequence[tuple[str, Divergence]]) -> list[CauseShare]:
    by_cause: dict[str, list[tuple[str, Divergence]]] = defaultdict(list)
    for task_id, why in apart:
        by_cause[why.cause].append((task_id, why))
    rows = [CauseShare(name, len(own), len(own) / len(apart), dict(_most(why.tool for _, why in own if why.tool)),
                       [task_id for task_id, _ in _most(task_id for task_id, _ in own)]) for name, own in by_cause.items()]
    return sorted(rows, key=lambda row: (-row.n, row.cause))


def _most(names: Iterable[str]) -> list[tuple[str, int]]:
    """Return the most frequent names with their counts."""
    return sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))[:WORST]
