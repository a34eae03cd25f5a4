"""Off-policy evaluation: what is a policy worth, going by episodes that another one played, and by the rebuilt environment?

In: logged episodes (their reward, and how likely their turns are under the policy that played and under the evaluated one), and
episodes of the evaluated policy in the rebuilt environment. Out: an `Estimate` a method (docs/evaluation.md), with an interval,
or the one reason why there is none. Sources: `wis`, weighted importance sampling (Precup, Sutton, Singh 2000); `dr`, doubly
robust (Jiang and Li 2016, with weights that add up to one, Thomas and Brunskill 2016; an episode is one action, its end rewards
it).

Sees: rewards, probabilities, which task. Does not see: turns that the policy would take and the log never took, beyond what
their weights tell (`support`); tasks that the log does not have; users who would have answered otherwise. An error of the
environment that no logged episode shows stays in `direct`, and in `dr` if the weights are few.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

METHODS = ("direct", "wis", "dr")
LEAST_ESS = 10.0
"""Effective sample size below which a log says nothing of a policy."""
LEAST_SUPPORT = 0.75
"""Share of what a policy does that the log must hold: refused where the interval of it ends below. Few episodes of great weight
make that interval too short, so the bar leaves room."""
MOST_UNSCORED = 0.5
"""Share of a policy's episodes in the room that may be unscored."""
DRAWS = 1_000
LEVEL = 0.95
Floats = NDArray[np.float64]


class Logged(NamedTuple):
    """An episode that another policy played."""

    task_id: str
    reward: float | None
    """What came of it; None: unknown."""
    behaviour: Sequence[float | None] | None = None
    """Natural logarithm of the probability of each turn under who acted; None where it was not kept."""
    target: Sequence[float | None] | None = None
    """The same turns under the policy in question; -inf: it never takes this turn. None: it does not say."""
    modelled: float | None = None
    """What the rebuilt room gives the same turns; None: it cannot tell."""


class Estimate(NamedTuple):
    """What one method says a policy is worth."""

    method: str
    value: float | None
    """Mean reward of an episode; None: refused."""
    low: float | None
    high: float | None
    """95 % interval: bootstrap over tasks, the episodes of one together (Efron 1979, percentiles)."""
    n: int
    """Logged episodes it rests on; of `direct` without a log, tasks."""
    ess: float | None = None
    """Effective sample size (sum of weights)² / sum of squares (Kong 1992); None where nothing is weighed."""
    support: float | None = None
    """Mean weight: 1 where the log holds all that the policy does, less where it does not."""
    refused: str | None = None
    """Why there is none: one sentence."""


class _Table(NamedTuple):
    """The log by episode, ready to be weighed."""

    task: NDArray[np.int64]
    reward: Floats
    weight: Floats
    model: Floats
    """Of the policy in the room on the episode's task."""
    modelled: Floats
    """Of the logged turns in the room."""


def evaluate(
    log: Sequence[Logged], played: Mapping[str, Sequence[float | None]], least_ess: float = LEAST_ESS, draws: int = DRAWS,
    seed: int = 0,
) -> list[Estimate]:
    """Return the three estimates of a policy, in the order of `METHODS`.

    `log`: episodes of another policy; may be empty. `played`: task -> rewards of the policy's own episodes in the rebuilt room
    (None: unscored); may be empty. Where the room cannot tell, `direct` and `dr` take the mean of what it can: the more it
    cannot, the more `dr` is `wis`. The same input gives the same output. ValueError: an episode's log-probabilities that are
    not equally many, or that deny what was done.
    """
    scored = any(reward is not None for each in played.values() for reward in each)
    room = _values(played) if scored else {}
    with_reward = [episode for episode in log if episode.reward is not None]
    weighed = [episode for episode in with_reward if _is_weighed(episode)]
    no_log = _no_log(log, with_reward, weighed)
    rng = np.random.default_rng(seed)
    direct = _direct(log, played, room, draws, rng)
    if no_log:
        return [direct, _refusal("wis", no_log), _refusal("dr", no_log)]
    usual = room.get("", 0.0)
    places = {task_id: place for place, task_id in enumerate(sorted({episode.task_id for episode in weighed}))}
    ratios = [math.fsum(map(_number, episode.target or ())) - math.fsum(map(_number, episode.behaviour or ()))
              for episode in weighed]
    table = _Table(
        np.array([places[episode.task_id] for episode in weighed]),
        np.array([_number(episode.reward) for episode in weighed]),
        np.exp(np.clip(ratios, -np.inf, 700.0)),
        np.array([room.get(episode.task_id, usual) for episode in weighed]),
        np.array([usual if episode.modelled is None else episode.modelled for episode in weighed]))
    n = len(weighed)
    ess, support, reason = _supported(table, least_ess, n)
    if reason:
        return [direct, _refusal("wis", reason, n, ess, support), _refusal("dr", reason, n, ess, support)]
    wis = Estimate("wis", *_interval(table, False, draws, rng), n, ess, support)
    outside = sorted({episode.task_id for episode in weighed} - played.keys())
    if not room or outside:
        lacking = direct.refused if not room else (
            f"the policy was not played in the room on {len(outside)} tasks of the log, {outside[0]!r} among them; play all")
        return [direct, wis, _refusal("dr", lacking or "", n, ess, support)]
    return [direct, wis, Estimate("dr", *_interval(table, True, draws, rng), n, ess, support)]


def _refusal(method: str, reason: str, n: int = 0, ess: float | None = None, support: float | None = None) -> Estimate:
    return Estimate(method, None, None, None, n, ess, support, reason)


def _no_room(log: Sequence[Logged], played: Mapping[str, Sequence[float | None]]) -> str | None:
    rewards = [reward for each in played.values() for reward in each]
    if not rewards:
        return "the policy was not played in the rebuilt room; play it on the log's tasks"
    n_unscored = rewards.count(None)
    if n_unscored > MOST_UNSCORED * len(rewards):
        return (f"the room could not score {n_unscored} of the policy's {len(rewards)} episodes: "
                "it knows too little of what this policy does")
    if log and played.keys().isdisjoint(episode.task_id for episode in log):
        return "the policy was played in the room on none of the log's tasks; play it on these"
    return None


def _no_log(log: Sequence[Logged], scored: Sequence[Logged], weighed: Sequence[Logged]) -> str | None:
    if not log:
        return "there is no log of another policy's episodes"
    if not scored:
        return f"of none of the {len(log)} logged episodes is it known what came of it"
    if weighed:
        return None
    if all(_unsaid(episode.behaviour) for episode in scored):
        return (f"none of the {len(scored)} logged episodes has the log-probabilities of its turns; "
                "record them with the log, or take `direct`")
    return "the policy does not say how likely the logged turns are under it; let it say so, or take `direct`"


def _unsaid(chances: Sequence[float | None] | None) -> bool:
    return chances is None or any(chance is None for chance in chances)


def _is_weighed(episode: Logged) -> bool:
    if episode.behaviour is None or episode.target is None or _unsaid(episode.behaviour) or _unsaid(episode.target):
        return False
    if len(episode.behaviour) != len(episode.target):
        raise ValueError(
            f"an episode of task {episode.task_id!r} has {len(episode.behaviour)} log-probabilities under who acted and "
            f"{len(episode.target)} under the policy; give one a turn")
    if not all(map(math.isfinite, map(_number, episode.behaviour))):
        raise ValueError(
            f"an episode of task {episode.task_id!r} has a turn that who acted never takes; give the log-probability with "
            "which it was taken")
    return True


def _values(played: Mapping[str, Sequence[float | None]]) -> dict[str, float]:
    """Task -> mean reward in the room, what is unscored at the mean of the rest; under "" that mean."""
    scored = [reward for each in played.values() for reward in each if reward is not None]
    usual = math.fsum(scored) / len(scored)
    return {"": usual} | {
        task_id: math.fsum(usual if reward is None else reward for reward in each) / len(each)
        for task_id, each in played.items() if each}


def _number(value: float | None) -> float:
    return 0.0 if value is None else value


def _supported(table: _Table, least_ess: float, n: int) -> tuple[float, float, str | None]:
    """Effective sample size, mean weight, and why the log says nothing of the policy, if so."""
    weight = table.weight / max(float(table.weight.max()), 1e-300)
    square = float((weight**2).sum())
    ess = float(weight.sum()) ** 2 / square if square else 0.0
    support = float(table.weight.mean())
    most = support + 1.96 * float(table.weight.std()) / math.sqrt(n)
    if not square or ess < least_ess:
        return ess, support, (f"the {n} logged episodes are worth {ess:.1f} of this policy (effective sample size), fewer than "
                              f"{least_ess:g}; log more, or log a policy nearer to it")
    if most < LEAST_SUPPORT:
        return ess, support, (f"at most {most:.0%} of what this policy does is in the log; "
                              "log a policy that tries what this one does")
    return ess, support, None


def _direct(
    log: Sequence[Logged], played: Mapping[str, Sequence[float | None]], room: Mapping[str, float], draws: int,
    rng: np.random.Generator,
) -> Estimate:
    """Mean over the log's episodes of the policy's mean reward on their tasks; without a log over the tasks played."""
    no_room = _no_room(log, played)
    if no_room:
        return _refusal("direct", no_room)
    times = Counter(task_id for task_id in ([episode.task_id for episode in log] or played) if task_id in room)
    n = np.array([times[task_id] for task_id in sorted(times)], float)
    sums = n * np.array([room[task_id] for task_id in sorted(times)])
    counts = _counts(len(n), draws, rng)
    return Estimate("direct", float(sums.sum() / n.sum()), *_ends((counts @ sums) / (counts @ n)), int(n.sum()))


def _interval(table: _Table, doubly: bool, draws: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """(value, low, high) of `dr` or `wis`: ratios of sums over tasks, so that a draw of tasks is a product of matrices."""
    n_tasks = int(table.task.max()) + 1
    remainder = table.reward - table.modelled if doubly else table.reward
    weight = table.weight / float(table.weight.max())
    columns = np.stack([np.bincount(table.task, each, n_tasks) for each in (
        weight * remainder, weight, table.model if doubly else np.zeros_like(weight), np.ones_like(weight))], axis=1)
    drawn = np.vstack([np.ones(n_tasks), _counts(n_tasks, draws, rng)]) @ columns
    with np.errstate(invalid="ignore", divide="ignore"):
        values = drawn[:, 0] / drawn[:, 1] + drawn[:, 2] / drawn[:, 3]
    return float(values[0]), *_ends(values[1:][np.isfinite(values[1:])])


def _counts(n: int, draws: int, rng: np.random.Generator) -> Floats:
    """How often each of `n` is in each draw of `n` with replacement: (draws, n)."""
    return rng.multinomial(n, np.full(n, 1.0 / n), size=draws).astype(float)


def _ends(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
