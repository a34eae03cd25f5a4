"""The leakage report: what the sides of a split still have in common.

Sees: names of things in arguments, users, and words of the goals. Does not see: likeness beyond words.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from extractors.tasks.apart import told_apart
from extractors.tasks.splits import Sides
from extractors.tasks.words import split_words
from warehouse.records import SIDES

_EXAMPLES = 10
_AT_ONCE = 200
"""Tasks whose goals are compared with all others at once: each pair that shares a word is a row for each such word."""


def report(sides: Sides, goals: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Per service a JSON object: method, sizes by side, near-duplicates, shared names by kind, and how alike the sides are.

    `goals`: task, goal, words (id of the group of near-duplicates), n_sessions. `leaks` counts the users and things that tie
    tasks, and the groups of near-duplicates, that stand on several sides all the same; it is 0 where the split goes by
    components.
    """
    tasks = sides.tasks.join(goals, on="task", how="left")
    both = (
        sides.ties.join(tasks.select("task", "split"), on="task")
        .group_by("service", "kind", "value")
        .agg(pl.col("shared").any(), pl.col("split").n_unique().alias("n_sides"))
        .filter(pl.col("n_sides") > 1)
        .sort("service", "kind", "value")
    )
    return {
        str(service): _of_service(part, both.filter(pl.col("service") == service))
        for (service,), part in tasks.sort("service", "task").group_by("service", maintain_order=True)
    }


def _of_service(tasks: pl.DataFrame, both: pl.DataFrame) -> dict[str, Any]:
    by_side = tasks.group_by("split").agg(pl.len(), pl.col("n_sessions").sum()).sort("split")
    sizes = {split: (n_tasks, n_sessions) for split, n_tasks, n_sessions in by_side.iter_rows()}
    kinds = both.group_by("kind", maintain_order=True).agg(pl.len(), pl.col("value").head(_EXAMPLES))
    alike = tasks.group_by("words").agg(pl.len().alias("n"), pl.col("split").n_unique().alias("n_sides"))
    alike = alike.filter(pl.col("n") > 1)
    return {
        "method": tasks["method"][0],
        "n_components": tasks["component"].n_unique(),
        "n_tasks": {side: sizes.get(side, (0, 0))[0] for side in SIDES},
        "n_sessions": {side: sizes.get(side, (0, 0))[1] for side in SIDES},
        "n_near_duplicates": int(alike["n"].sum()),
        "shared": {kind: {"n": n, "examples": examples} for kind, n, examples in kinds.iter_rows()},
        "leaks": both.filter(~pl.col("shared")).height + alike.filter(pl.col("n_sides") > 1).height,
        "highest_jaccard": _highest_jaccard(tasks),
        "told_apart": told_apart(tasks),
    }


def _highest_jaccard(tasks: pl.DataFrame) -> float | None:
    """The highest share of words that a goal in train and one on another side have in common; None where a side is empty.

    Two goals that share so much of their words share one of their rarest (prefix filter: Chaudhuri, Ganti, Kaushik, ICDE 2006);
    so pairs are sought by these alone, of a high share first, and the share of those that are found is counted.
    """
    words = (
        tasks.unique(["split", "goal"], keep="first", maintain_order=True)
        .select("task", "split", split_words(pl.col("goal")).list.unique().alias("word"))
        .with_columns(pl.col("word").list.len().alias("n"), pl.col("task").rank("dense").alias("at"))
        .explode("word")
        .with_columns(pl.len().over("word").alias("n_goals"))
        .with_columns(pl.struct("n_goals", "word").rank("ordinal").over("at", "split").alias("rank"))
        .select("at", "split", "word", "n", "rank")
    )
    train, held = words.filter(pl.col("split") == "train"), words.filter(pl.col("split") != "train")
    if train.is_empty() or held.is_empty():
        return None
    highest = 0.0
    for tenths in range(9, -1, -1):
        rare = pl.col("rank") <= pl.col("n") - (pl.col("n") * tenths + 9) // 10 + 1
        parts = held.with_columns(part=pl.col("at") // _AT_ONCE).partition_by("part")
        highest = max(_highest(some, train, rare) for some in parts)
        if highest >= tenths / 10:
            break
    return round(highest, 6)


def _highest(held: pl.DataFrame, train: pl.DataFrame, rare: pl.Expr) -> float:
    """The highest share of the pairs that have one of these words in common."""
    pairs = held.filter(rare).join(train.filter(rare), on="word", suffix="_train").select("at", "at_train").unique()
    joined = (
        pairs.join(held.select("at", "word", "n"), on="at")
        .join(train.select("at", "word", "n"), left_on=["at_train", "word"], right_on=["at", "word"], suffix="_train")
        .group_by("at", "at_train", "n", "n_train").agg(pl.len().alias("both"))
    )
    highest = joined.select((pl.col("both") / (pl.col("n") + pl.col("n_train") - pl.col("both"))).max()).item()
    return float(highest) if highest is not None else 0.0
