"""How often things are asked for, and how often they go well: rates of tasks, and the table of families.

In: sessions by task and family with their probabilities, goals, and signatures. Out: frames. Rates are those of
`outcomes.rates`: a family's from its sessions, a task's from its own and its family's. Does not see: that a rate changes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import polars as pl

from extractors.outcomes.rates import rates
from warehouse.records import Family, frame_schema

RATES = {"name": pl.String(), "rate": pl.Float64(), "rate_low": pl.Float64(), "rate_high": pl.Float64(), "band": pl.String()}
"""name: id of a task or of a family."""


def rated(members: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Frames of `RATES` of the families and of the tasks of `members` (service, family, task, probability), by name."""
    seen: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    chances = members.group_by("service", "family", "task").agg(pl.col("probability").drop_nulls().round(2).sort())
    for service, family, task, probabilities in chances.sort("service", "family", "task").iter_rows():
        seen[service][family][task] = probabilities
    of_families, of_tasks = [], []
    for _, by_service in sorted(seen.items()):
        by_family, by_task = rates(by_service)
        of_families += [(name, *rate) for name, rate in by_family.items()]
        of_tasks += [(name, *rate) for name, rate in by_task.items()]
    families, tasks = (pl.DataFrame(sorted(rows), schema=RATES, orient="row") for rows in (of_families, of_tasks))
    return families, tasks


def family_table(members: pl.DataFrame, kinds: pl.DataFrame, found: pl.DataFrame, signatures: pl.DataFrame) -> pl.DataFrame:
    """Frame of `Family`, by family. `kinds`: session_id, family, kinds; `found`: of `rated`; `signatures`: group, signature."""
    asks = kinds.sort("family", "session_id").group_by("family", maintain_order=True).agg(pl.col("kinds").first())
    example = members.sort("family", "good", "probability", "session_id", descending=[False, True, True, False],
                           nulls_last=True)
    counted = example.group_by("family", "service", maintain_order=True).agg(
        pl.col("goal").first(), pl.len().alias("n_sessions"), pl.col("task").n_unique().alias("n_tasks"),
        pl.col("good").sum().alias("n_good"), pl.col("started_at").min().alias("first_at"),
        pl.col("started_at").max().alias("last_at"))
    told = counted.join(asks, on="family", how="left").join(found, left_on="family", right_on="name", how="left").join(
        signatures, left_on="family", right_on="group", how="left")
    return told.with_columns(
        pl.col("kinds").map_elements(_json, return_dtype=pl.String).fill_null("[]").alias("asks"),
        pl.col("signature").fill_null("[]")).select(list(frame_schema(Family))).cast(pl.Schema(frame_schema(Family))).sort(
        "family")


def _json(kinds: Any) -> str:
    return json.dumps(list(kinds), ensure_ascii=False)
