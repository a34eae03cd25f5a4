"""Does what is gained by tuning in the environment arrive on the real service? Statistics of one policy's checkpoints.

In: pairs of results, some of which name the policy that they are a checkpoint of, and its step. Out: a `TuningTransfer` of each
such policy. Only tasks on which every checkpoint has a pair count, each once: success there is the mean over a checkpoint's
pairs. Chosen is the checkpoint that is best in the environment; of several such, all, and their mean counts. The interval is a
bootstrap over tasks, both places and all checkpoints of a task together, in which each draw chooses again; percentiles (Efron
1979), seeded. Does not see: that the tasks may be those which the policy was tuned on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
Floats = NDArray[np.float64]


class Checkpoint(NamedTuple):
    """A policy that is one of several states of another one."""

    policy: str
    of: str
    step: int


class PairedSuccess(NamedTuple):
    """A pair of results with both successes known."""

    policy: str
    task_id: str
    environment: bool
    real: bool


class TuningTransfer(NamedTuple):
    """What tuning a policy gained in both places."""

    policy: str
    n_checkpoints: int
    n_tasks: int
    """On which every checkpoint has a pair."""
    first: str
    chosen: list[str]
    """The checkpoints that are best in the environment."""
    gain_environment: float
    """Success of the chosen checkpoint minus that of the first one."""
    gain_real: float
    arrives: float | None
    """Real gain over the gain in the environment; None without one."""
    arrives_low: float | None
    """95 % interval; None where more draws than it leaves out gain nothing in the environment."""
    arrives_high: float | None
    regret: float
    """Real success of the checkpoint that is best there, minus that of the chosen one."""


def tuning_transfer(
    pairs: Sequence[PairedSuccess], checkpoints: Mapping[str, Checkpoint], draws: int, seed: int
) -> list[TuningTransfer]:
    """Return what tuning gained, by policy; policies without two checkpoints on one task are left out.

    `checkpoints`: name of a policy -> its checkpoint.
    """
    by_run: dict[str, dict[str, list[PairedSuccess]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        if pair.policy in checkpoints:
            by_run[checkpoints[pair.policy].of][pair.policy].append(pair)
    rows = []
    for run, own in sorted(by_run.items()):
        names = sorted(own, key=lambda name: (checkpoints[name].step, name))
        success = _success([own[name] for name in names])
        if len(names) > 1 and success.shape[2]:
            rows.append(_tuned(run, names, success, draws, seed))
    return rows


def _success(by_checkpoint: Sequence[Sequence[PairedSuccess]]) -> Floats:
    """Return mean success by (place, checkpoint, task), of the tasks that all checkpoints have."""
    means: list[dict[str, tuple[float, float]]] = []
    for own in by_checkpoint:
        of_task: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
        for pair in own:
            of_task[pair.task_id].append((pair.environment, pair.real))
        means.append({task_id: (float(np.mean([here for here, _ in each])), float(np.mean([there for _, there in each])))
                      for task_id, each in of_task.items()})
    shared = sorted(frozenset(means[0]).intersection(*means[1:]))
    table = np.array([[own[task_id] for task_id in shared] for own in means]).reshape(len(means), len(shared), 2)
    return table.transpose(2, 0, 1)


def _tuned(run: str, names: list[str], success: Floats, draws: int, seed: int) -> TuningTransfer:
    rates = success.mean(axis=2)[:, :, None]
    gains, real = _gains(rates)
    n_tasks = success.shape[2]
    weights = np.random.default_rng(seed).multinomial(n_tasks, np.full(n_tasks, 1 / n_tasks), draws) / n_tasks
    drawn, _ = _gains(success @ weights.T)
    able = drawn[:, drawn[0] > 1e-12]
    low, high = (None, None) if able.shape[1] < LEVEL * draws else map(
        float, np.percentile(able[1] / able[0], [50 * (1 - LEVEL), 50 * (1 + LEVEL)]))
    here, there = (float(gain) for gain in gains[:, 0])
    chosen = list(compress(names, _chosen(rates[0])[:, 0]))
    return TuningTransfer(
        run, len(names), n_tasks, names[0], chosen, here, there,
        there / here if here > 1e-12 else None, low, high, float(rates[1].max() - real[0]))


def _chosen(rates: Floats) -> NDArray[np.bool_]:
    """Return which checkpoints are best, by (checkpoint, draw)."""
    return np.asarray(rates >= rates.max(axis=0) - 1e-12)


def _gains(rates: Floats) -> tuple[Floats, Floats]:
    """Return the gain of the chosen checkpoints by (place, draw), and their real success by draw. `rates`: (place, checkpoint,
    draw)."""
    chosen = _chosen(rates[0])
    success = (rates * chosen).sum(axis=1) / chosen.sum(axis=0)
    return success - rates[:, 0], success[1]
