"""What rollouts say, read from what is kept: a table of results a policy, how hard each task is, and datasets.

In: the episodes of an environment's rollouts. Out: rows, and the files beside the kept ones: `episodes.jsonl` and
`difficulty.jsonl`, made anew each time. Sees: rewards, where a success is a reward of 1. Does not see: how a policy would do
with another seed or another user.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from extractors.outcomes.rates import rates

EPISODES, DIFFICULTY, DATASETS = "episodes.jsonl", "difficulty.jsonl", "datasets"
Row = dict[str, Any]


def is_good(reward: float | None) -> bool:
    """Is this a success? All that the rubric asks for."""
    return reward is not None and reward >= 1.0


def results(episodes: Iterable[Row], k: int) -> list[Row]:
    """One row a policy: what its episodes came to. `k`: attempts that all have to succeed for pass^k."""
    by_policy: dict[str, list[Row]] = {}
    for about in episodes:
        by_policy.setdefault(about["policy"], []).append(about)
    return [_result(policy, found, k) for policy, found in sorted(by_policy.items())]


def _result(policy: str, episodes: Sequence[Row], k: int) -> Row:
    scored = [about["reward"] for about in episodes if about["reward"] is not None]
    ended = [about["ended"] for about in episodes]
    tries = list(_tries(episodes).values())
    return {
        "policy": policy, "episodes": len(episodes), "tasks": len({about["task_id"] for about in episodes}),
        "mean_reward": _mean(scored), "pass_1": _all_of(tries, 1), f"pass^{k}": _all_of(tries, k),
        "unscored": len(episodes) - len(scored), "unknown": sum(about["n_unknown"] for about in episodes),
        "truncated": ended.count("truncated"), "pruned": ended.count("pruned"),
        "steps": _mean([about["n_moves"] for about in episodes]),
        "seconds": _mean([about["seconds"] for about in episodes])}


def _tries(episodes: Iterable[Row]) -> dict[tuple[Any, ...], list[bool]]:
    """Successes of the scored attempts by what they had in common."""
    found: dict[tuple[Any, ...], list[bool]] = {}
    for about in episodes:
        if about["reward"] is not None:
            same = (about["content_digest"], about["rewards_digest"], about["task_id"], about["seed"], *about["conditions"])
            found.setdefault(same, []).append(is_good(about["reward"]))
    return found


def _all_of(tries: Sequence[Sequence[bool]], k: int) -> float | None:
    """pass^k (Yao et al. 2024): the chance that k attempts at a task all succeed, over the tasks tried so often."""
    often = [each for each in tries if len(each) >= k]
    return _mean([math.comb(sum(each), k) / math.comb(len(each), k) for each in often])


def _mean(numbers: Sequence[float]) -> float | None:
    return round(math.fsum(numbers) / len(numbers), 6) if numbers else None


def difficulty(episodes: Iterable[Row]) -> list[Row]:
    """How often each policy succeeds at each task: Beta-Binomial, a task by its family, as it is told of sessions."""
    found: dict[str, dict[str, dict[str, list[Row]]]] = {}
    for about in episodes:
        if about["reward"] is not None:
            found.setdefault(about["policy"], {}).setdefault(about["family"], {}).setdefault(about["task_id"], []).append(about)
    rows = []
    for policy, families in sorted(found.items()):
        chances = {family: {task_id: [float(is_good(about["reward"])) for about in tries] for task_id, tries in tasks.items()}
                   for family, tasks in families.items()}
        _, each = rates(chances)
        for family, tasks in sorted(families.items()):
            for task_id, tries in sorted(tasks.items()):
                own, good = each[task_id], chances[family][task_id]
                rows.append({
                    "policy": policy, "task_id": task_id, "family": family, "split": tries[0]["split"], "n": len(good),
                    "n_good": int(sum(good)), "mean_reward": _mean([about["reward"] for about in tries]), "rate": own.rate,
                    "rate_low": own.low, "rate_high": own.high, "band": own.band})
    return rows


def write(folder: Path, episodes: Mapping[str, Row]) -> None:
    """Write what is read from the kept episodes: a row an episode, a row a task and policy."""
    order = ("policy", "task_id", "seed", "attempt", "episode_id")
    rows = sorted(episodes.values(), key=lambda about: tuple(about[name] for name in order))
    _replace(folder / EPISODES, rows)
    _replace(folder / DIFFICULTY, difficulty(rows))


def in_band(folder: Path, policy: str, band: str, task_ids: Iterable[str]) -> list[str]:
    """Those of the tasks that the policy succeeds at so often (`rarely`, `sometimes`, `often`, `mostly`), or that it was never
    seen at."""
    known = {row["task_id"]: row["band"] for row in known_difficulty(folder) if row["policy"] == policy}
    return [task_id for task_id in task_ids if known.get(task_id, band) == band]


def known_difficulty(folder: Path) -> list[Row]:
    """The rows of `difficulty` as they stand in the folder; none where nobody rolled out."""
    path = folder / DIFFICULTY
    return list(rows_of(path)) if path.is_file() else []


def _replace(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows aside, then put them into place."""
    draft = path.with_name(f".{path.name}")
    draft.write_text("".join(canonical(row) + "\n" for row in rows), "utf-8", newline="\n")
    draft.replace(path)
