"""Slots: what sets one request of a family apart from the others.

A slot is named after the tool and the path of the argument that took it up (`tool.path`), its value is what the user
said and the tool was given. Sees: values that the user said to the letter. Does not see: what was looked up on the
way, values said in another form (a month by name), and what no tool was given.
"""

from __future__ import annotations

import json

import polars as pl

_LONGEST = 60
"""A longer value is a text, not a slot of one."""

_SHORTEST = 2
"""A value of one character is found in any text and says nothing."""


def fill_slots(asked: pl.DataFrame, members: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Columns task, slots (JSON object: name -> value, or a list of values where one argument took several).

    `asked`: session_id, said. `members`: task, family, session_id, good (bool). Good sessions fill the slots; where a
    task has none, all its sessions do. A value that is the same in every task of a family with several tasks is no
    slot.
    """
    best = members.filter(pl.col("good") == pl.col("good").any().over("task"))
    given = (
        calls.filter(~pl.col("failed"))
        .select("session_id", "turn_id", "tool", "acts")
        .join(best.select("task", "family", "session_id"), on="session_id")
        .join(values, on="turn_id")
        .filter(pl.col("value").str.len_chars().is_between(_SHORTEST, _LONGEST))
        .with_columns((pl.col("tool") + "." + pl.col("path")).alias("slot"))
        .select("task", "family", "session_id", "slot", "value", "acts")
        .unique()
    )
    said = given.join(asked.select("session_id", pl.col("said").str.to_lowercase()), on="session_id").filter(
        pl.col("said").str.contains(pl.col("value").str.to_lowercase(), literal=True)
    )
    taken = said.filter(pl.col("acts") | ~pl.col("acts").any().over("task"))
    n_tasks = members.group_by("family").agg(pl.col("task").n_unique().alias("n_tasks"))
    varied = taken.join(n_tasks, on="family").filter(
        (pl.col("n_tasks") == 1) | (pl.col("value").n_unique().over("family", "slot") > 1)
    )
    filled = (
        varied.select("task", "slot", "value")
        .unique()
        .sort("task", "slot", "value")
        .group_by("task", "slot", maintain_order=True)
        .agg("value")
        .group_by("task", maintain_order=True)
        .agg(pl.struct("slot", "value").alias("filled"))
    )
    return filled.select("task", pl.col("filled").map_elements(_object, return_dtype=pl.String).alias("slots"))


def _object(filled: list[dict[str, object]]) -> str:
    pairs = {str(row["slot"]): row["value"] for row in filled}
    flat = {name: value[0] if isinstance(value, list) and len(value) == 1 else value for name, value in pairs.items()}
    return json.dumps(flat, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
