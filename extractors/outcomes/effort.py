"""How much talk a request takes: the longer its sessions are, the more there is to get wrong.

Sees: the words said in all sessions of one request, beside those of the service's other requests. Does not see: which of
the sessions went wrong; it tells requests apart, not sessions. It abstains on a request that only one session makes.
"""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import Evidence, votes

_ROLES = ("user", "assistant")

_WEIGHT = 0.12
"""Log odds that a request loses with each standard deviation of length."""


def effort(seen: Evidence) -> pl.DataFrame:
    """Against the sessions of long requests, for those of short ones: a small probability either way, as -1..1."""
    n_words = pl.col("content").fill_null("").str.count_matches(r"\S+")
    of_role = {role: (n_words.filter(pl.col("role") == role).sum() + 1).log() for role in _ROLES}
    said = seen.turns.filter(pl.col("kind") == "message").group_by("session_id").agg(**of_role)
    of = seen.requests.join(said, on="session_id").join(seen.asked.select("session_id", "service"), on="session_id")
    rows = of.sort("session_id").with_columns(
        *(pl.col(role).mean().over("request").alias(role) for role in _ROLES), pl.len().over("request").alias("n")
    )
    beside = [(pl.col(role) - pl.col(role).mean().over("service")) / pl.col(role).std().over("service") for role in _ROLES]
    chance = 1.0 / (1.0 + (_WEIGHT * (beside[0] + beside[1]) / 2.0).exp())
    rows = rows.with_columns((2.0 * chance - 1.0).round(6).alias("vote"))
    rows = rows.filter((pl.col("n") > 1) & pl.col("vote").is_finite())
    together = (pl.col("assistant").exp() + pl.col("user").exp()).round().cast(pl.Int64)
    says = pl.format("sessions of this request take about {} words", together)
    return votes(rows, pl.col("vote"), says, pl.lit([], pl.List(pl.String)))
