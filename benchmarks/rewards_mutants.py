"""The whole audit of a run's published tasks: what their rewards let through of changed solutions and of attackers.

A mutant counts where executing it shows that it ends otherwise than the solution and than every session known to be good,
and where the room knows how it ends; those that it does not know are unscored, shown, and no evidence either way.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import get_args

import polars as pl
from fidelity_data import sample
from rewards_data import RewardsOptions, whole

from env_builder.audit import DEEP, wilson
from env_builder.audit.attackers import Operator
from env_builder.audit.plays import PASSES
from env_builder.runtime import Environment
from env_builder.verify import verify

WRONG = (pl.col("should") == "fail") & pl.col("reward").is_not_null()
"""Plays that a right reward stops, and that could be scored."""


def mutants(options: RewardsOptions) -> dict[str, float]:
    """How many changed solutions of published tasks the rewards stop, over all and by the worst operator."""
    plays = _plays(options)
    table: dict[str, tuple[int, int]] = {}
    for operator in get_args(Operator):
        own = plays.filter((pl.col("kind") == "mutant") & (pl.col("player") == operator))
        scored = own.filter(WRONG)
        n_through = scored.filter(pl.col("reward") > PASSES).height
        table[operator] = (scored.height, n_through)
        print(f"{operator:10} {own.height:7} played {own['should'].null_count():7} like the solution "
              f"{own.height - own['should'].null_count() - scored.height:7} unscored "
              f"{scored.height:7} count {n_through:5} survive {_share(scored.height - n_through, scored.height)}",
              file=sys.stderr)
    n, n_through = (sum(row[place] for row in table.values()) for place in (0, 1))
    if not n:
        return {}
    through = plays.filter((pl.col("kind") == "mutant") & WRONG & (pl.col("reward") > PASSES))
    for row in through.head(20).iter_rows():
        print("survives:", *row, file=sys.stderr)
    return {
        "mutants": n, "mutants_fewest": min(count for count, _ in table.values()),
        "mutants_killed": round(1 - n_through / n, 4),
        "mutants_killed_worst": round(min(1 - passed / count for count, passed in table.values() if count), 4),
        "mutants_unscored": plays.filter(
            (pl.col("kind") == "mutant") & pl.col("should").is_not_null())["reward"].null_count()}


def attackers(options: RewardsOptions) -> dict[str, float]:
    """Return published tasks that any attacker passes, and those where telling everything is as good as a refusal."""
    plays = _plays(options)
    tried = plays.filter(pl.col("kind") == "attacker")
    through = tried.filter(pl.col("reward") > PASSES)
    wrong, excepted = through.filter(pl.col("should") == "fail"), through.filter(pl.col("player") == "list_everything")
    passed = Counter(wrong["player"].to_list())
    for name, n in sorted(Counter(tried["player"].to_list()).items()):
        print(f"{name:18} {n:6} played {passed[name]:5} through", file=sys.stderr)
    n_tasks = plays["task_id"].n_unique()
    return {"n_published": n_tasks, "attacker_passes": wrong["task_id"].n_unique(),
            "refusals_told_everything": excepted.filter(pl.col("should").is_null())["task_id"].n_unique()} if n_tasks else {}


def _plays(options: RewardsOptions) -> pl.DataFrame:
    return _played(whole(options), options.sample)


@lru_cache(1)
def _played(out: Path, n: int | None) -> pl.DataFrame:
    """Plays of the whole audit against n published tasks of each environment."""
    rows = []
    for manifest in sorted((out / "environments").glob("*/manifest.json")):
        room = manifest.parent
        chosen = sample((task.task_id for task in Environment.load_room(room).tasks), n)
        rows.append(verify(room, out / "rewards" / room.name, chosen, DEEP).plays)
    return pl.concat(rows) if rows else pl.DataFrame(
        schema={"task_id": pl.String(), "player": pl.String(), "kind": pl.String(), "reward": pl.Float64(),
                "should": pl.String(), "description": pl.String()})


def _share(k: int, n: int) -> str:
    low, high = wilson(k, n)
    return f"{k / n:.4f} ({low:.4f} to {high:.4f})" if n else "-"
