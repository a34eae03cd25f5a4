"""The end state that sessions of the same request share.

Sees: services whose sessions all start from the same state, sessions that ask for the same thing there, and what each
wrote (arguments without texts for people, numbers and order apart). Does not see: the right end state: where most do
the same wrong thing, the vote is wrong too. It abstains on a request that only one session makes.
"""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import VOTES, Evidence, votes
from extractors.tasks.instances import same_request

_NONE_AGREE = -0.25
"""Vote where no two sessions of a request agree: it is a hard one, but nobody is known to be wrong."""

_PROSE = r"\s\S+\s\S+\s"
"""A value of four words or more is a text for people: two people never write the same."""


def end_state(seen: Evidence) -> pl.DataFrame:
    """Share of the other sessions that ended in the same state, shrunk: (n_same + .5) / (n_others + 1), as -1..1."""
    asked = seen.asked if seen.reset is None else seen.asked.filter(pl.col("service").is_in(seen.reset))
    if asked.is_empty():
        return pl.DataFrame(schema=VOTES)
    states = same_request(asked).join(_states(seen), on="session_id", how="left").with_columns(pl.col("state").fill_null(""))
    counted = states.with_columns(
        (pl.len().over("request", "state") - 1).alias("n_same"),
        (pl.len().over("request") - 1).alias("n_others"),
    ).filter(pl.col("n_others") > 0)
    share = (pl.col("n_same") + 0.5) / (pl.col("n_others") + 1.0)
    agreed = pl.col("n_same").max().over("request") > 0
    rows = counted.with_columns(pl.when(agreed).then(2.0 * share - 1.0).otherwise(_NONE_AGREE).round(6).alias("vote"))
    says = pl.format("{} of {} other sessions of this request end in the same state", "n_same", "n_others")
    none = pl.col("turn_id").fill_null(pl.lit([], dtype=pl.List(pl.String)))
    return votes(rows, pl.col("vote"), says, none)


def _states(seen: Evidence) -> pl.DataFrame:
    value = pl.col("value").str.strip_chars().str.to_lowercase()
    number = value.cast(pl.Float64, strict=False)
    plain = (
        pl.when(value.str.contains(_PROSE))
        .then(pl.lit("…"))
        .when(number.is_not_null())
        .then(number.cast(pl.String))
        .otherwise(value)
    )
    written = seen.calls.filter(pl.col("acts") & ~pl.col("failed"))
    items = (
        written.select("session_id", "turn_id", "tool")
        .join(seen.values.with_columns((pl.col("path") + "=" + plain).alias("item")), on="turn_id", how="left")
        .group_by("session_id", "turn_id", "tool")
        .agg(pl.col("item").drop_nulls().sort().str.join("\n"))
        .with_columns((pl.col("tool") + "\n" + pl.col("item")).alias("act"))
    )
    return (
        items.sort("session_id", "act", "turn_id")
        .group_by("session_id", maintain_order=True)
        .agg(pl.col("act").str.join("\u001e").alias("state"), "turn_id")
    )
