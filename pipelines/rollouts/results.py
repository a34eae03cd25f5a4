"""Results of rollouts: a table per policy, and how hard each task is.

In: the episodes of an environment's rollouts. Out: rows, and the files `episodes.jsonl` and `difficulty.jsonl`, written anew
each time. Sees: rewards, where a success is a reward of 1. Does not see: how a policy would do with another seed or another
user.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from extractors.outcomes.rates import rates

_FORMER = "n_good"
"""What versions up to 0.1 called `n_succeeded`."""
EPISODES, DIFFICULTY, DATASETS = "episodes.jsonl", "difficulty.jsonl", "datasets"
Row = dict[str, Any]


def is_good(reward: float | None) -> bool:
    """Whether the episode is a success: it meets the whole rubric."""
    return reward is not None and reward >= 1.0


def results(episodes: Iterable[Row], k: int) -> list[Row]:
    """Return one row per policy. `k`: attempts that all have to succeed for pass^k."""
    by_policy: dict[str, list[Row]] = {}
    for about in episodes:
        by_policy.setdefault(about["policy"], []).append(about)
    rows = []
    for policy, own in sorted(by_policy.items()):
        scored = [about for about in own if about["reward"] is not None]
        ended = [about["ended"] for about in own]
        tries: dict[tuple[Any, ...], list[bool]] = {}
        for about in scored:
            same = (about["content_digest"], about["rewards_digest"], about["task_id"], about["seed"], *about["perturbations"])
            tries.setdefault(same, []).append(is_good(about["reward"]))
        rows.append({
            "policy": policy, "episodes": len(own), "tasks": len({about["task_id"] for about in own}),
            "mean_reward": _mean([about["reward"] for about in scored]), "pass_1": _pass_all(tries.values(), 1),
            f"pass^{k}": _pass_all(tries.values(), k), "unscored": len(own) - len(scored),
            "unknown": sum(about["n_unknown"] for about in own), "truncated": ended.count("truncated"),
            "pruned": ended.count("pruned"), "steps": _mean([about["n_moves"] for about in own]),
            "seconds": _mean([about["seconds"] for about in own])})
    return rows


def _pass_all(tries: Iterable[Sequence[bool]], k: int) -> float | None:
    """pass^k (Yao et al. 2024): the chance that k attempts at a task all succeed, over the tasks tried so often."""
    often = [each for each in tries if len(each) >= k]
    return _mean([math.comb(sum(each), k) / math.comb(len(each), k) for each in often])


def _mean(numbers: Sequence[float]) -> float | None:
    return round(math.fsum(numbers) / len(numbers), 6) if numbers else None


def difficulty(episodes: Iterable[Row]) -> list[Row]:
    """Estimate how often each policy succeeds at each task: Beta-Binomial by family, as for sessions."""
    by_task: dict[str, dict[str, dict[str, list[Row]]]] = {}
    for about in episodes:
        if about["reward"] is not None:
            families = by_task.setdefault(about["policy"], {})
            families.setdefault(about["family"], {}).setdefault(about["task_id"], []).append(about)
    rows = []
    for policy, families in sorted(by_task.items()):
        chances = {family: {task_id: [float(is_good(about["reward"])) for about in tries] for task_id, tries in tasks.items()}
                   for family, tasks in families.items()}
        _, each = rates(chances)
        for family, tasks in sorted(families.items()):
            for task_id, tries in sorted(tasks.items()):
                own, good = each[task_id], chances[family][task_id]
                rows.append({
                    "policy": policy, "task_id": task_id, "family": family, "split": tries[0]["split"], "n": len(good),
                    "n_succeeded": int(sum(good)), "mean_reward": _mean([about["reward"] for about in tries]), "rate": own.rate,
                    "rate_low": own.low, "rate_high": own.high, "difficulty_band": own.difficulty_band})
    return rows


def write(folder: Path, episodes: Mapping[str, Row]) -> None:
    """Write a row per episode, and a row per task and policy."""
    order = ("policy", "task_id", "seed", "attempt", "episode_id")
    rows = sorted(episodes.values(), key=lambda about: tuple(about[name] for name in order))
    for name, written in ((EPISODES, rows), (DIFFICULTY, difficulty(rows))):
        draft = folder / f".{name}"
        draft.write_text("".join(canonical(row) + "\n" for row in written), "utf-8", newline="\n")
        draft.replace(folder / name)


def in_band(folder: Path, policy: str, band: str, task_ids: Iterable[str]) -> list[str]:
    """Return the tasks that the policy succeeds at `rarely`, `sometimes`, `often` or `mostly`, and those that it never
    tried."""
    levels = {row["task_id"]: row["difficulty_band"] for row in known_difficulty(folder) if row["policy"] == policy}
    return [task_id for task_id in task_ids if levels.get(task_id, band) == band]


def known_difficulty(folder: Path) -> list[Row]:
    """Return the rows of `difficulty` in the folder; none if there are no rollouts."""
    path = folder / DIFFICULTY
    return [{**row, "n_succeeded": row.get("n_succeeded", row.get(_FORMER))} for row in rows_of(path)] if path.is_file() else []
