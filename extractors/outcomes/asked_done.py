"""What was written against what was said.

Sees: names in the arguments of a write that nobody said and nothing showed; a choice among few that the user
named otherwise. Does not see: a wrong choice among things that were all shown, and words that never went with a
write.
"""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import Evidence, votes
from extractors.tasks.arguments import names_of_things

_FEW = 12
"""An argument with more values than this in a service is no choice among few."""

_TOLD = 0.6
"""Share of its uses in which a choice's value stands in the user's words, from which on it counts as told by users."""


def untraced(seen: Evidence) -> pl.DataFrame:
    """-1 where a write took a name that the user did not say and no result or instruction showed."""
    known = (
        seen.turns.filter((pl.col("kind") == "call") | pl.col("role").is_in(["user", "system", "developer"]))
        .group_by("session_id")
        .agg(pl.col("content").drop_nulls().str.join("\n").str.to_lowercase().alias("known"))
    )
    names = (
        names_of_things(_written(seen))
        .join(known, on="session_id")
        .filter(~pl.col("known").str.contains(pl.col("value").str.to_lowercase(), literal=True))
    )
    rows = (
        names.sort("session_id", "turn_id", "value")
        .group_by("session_id", maintain_order=True)
        .agg(pl.col("value").unique(maintain_order=True).str.join(", "), pl.col("turn_id").unique(maintain_order=True))
    )
    return votes(rows, -1.0, pl.lit("wrote what nobody said and nothing showed: ") + pl.col("value"), pl.col("turn_id"))


def said_otherwise(seen: Evidence) -> pl.DataFrame:
    """-1 where a write chose among few values, and the user's words name another of them but not this one."""
    written = _written(seen).filter(pl.col("value").str.contains(r"\p{L}{3,}"))
    place = ("service", "tool", "path")
    said = written.join(seen.asked.select("session_id", pl.col("said").str.to_lowercase()), on="session_id").with_columns(
        pl.col("said").str.contains(pl.col("value").str.to_lowercase(), literal=True).alias("told")
    )
    choices = said.filter(
        (pl.col("value").n_unique().over(place) <= _FEW)
        & (pl.col("value").n_unique().over(place) > 1)
        & (pl.col("told").mean().over(place) >= _TOLD)
        & (pl.len().over(place) >= 20)
    )
    others = choices.select(*place, pl.col("value").alias("other")).unique()
    contrary = (
        choices.filter(~pl.col("told"))
        .join(others, on=place)
        .filter(pl.col("said").str.contains(pl.col("other").str.to_lowercase(), literal=True))
    )
    rows = (
        contrary.sort("session_id", "turn_id", "other")
        .group_by("session_id", maintain_order=True)
        .agg(pl.col("value", "other").first(), pl.col("turn_id").unique(maintain_order=True))
    )
    return votes(rows, -1.0, pl.format("wrote {} where the user said {}", "value", "other"), pl.col("turn_id"))


def _written(seen: Evidence) -> pl.DataFrame:
    wrote = seen.calls.filter(pl.col("acts") & ~pl.col("failed"))
    return wrote.select("session_id", "service", "tool", "turn_id").join(seen.values, on="turn_id")
