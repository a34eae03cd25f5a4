"""Votes to a probability.

    log odds(success) = log odds(base rate) + sum over groups of weight * vote

Signals that see the same thing are one group, and a group has one vote: its strongest (correlated votes counted one
by one make a model that is far too sure; Dawid and Skene 1979 suffers from it). A signal that abstains adds nothing.
Weights are fixed and careful; where enough sessions are rated, a group's weight is its log likelihood ratio over the
rated sessions, shrunk toward the fixed one. Then the sign is learnt too: what has weight 0 here (a hand-over) may
speak for or against.

Sees: votes. Does not see: that ratings are selected and now and then wrong; shrinking is all that is done about it.
"""

from __future__ import annotations

import math

import polars as pl

GROUPS: dict[str, tuple[float, tuple[str, ...]]] = {
    "feedback": (2.5, ("feedback",)),
    "end_state": (1.5, ("end_state",)),
    "asked_done": (2.0, ("missing_or_extra", "untraced", "said_otherwise")),
    "trouble": (1.0, ("error_last", "unanswered")),
    "words": (1.0, ("complaint", "repeats")),
    "thanks": (0.2, ("thanks",)),
    "handover": (0.0, ("handover",)),
}
"""Group -> its fixed weight (log odds of a full vote) and the signals in it."""

BASE_RATE = 0.6
"""Share of sessions taken to succeed where nobody rated any."""

_ECHO = 0.25
"""Share of its vote that `asked_done` keeps beside an `end_state` vote: both look at what was written, and where
requests come again and again the words of each are few, and teach little about what they ask for."""

_SHRINK = 20.0
"""Rated sessions that the fixed weight counts for."""


def combine(votes: pl.DataFrame, n_rated: int, minimum: int) -> pl.DataFrame:
    """Columns session_id, probability. `votes`: session_id, name, vote. Calibrates from `minimum` rated sessions on."""
    groups = pl.DataFrame(
        [(name, group, weight) for group, (weight, names) in GROUPS.items() for name in names],
        schema={"name": pl.String, "group": pl.String, "fixed": pl.Float64},
        orient="row",
    )
    grouped = (
        votes.join(groups, on="name")
        .sort("session_id", "group", pl.col("vote").abs(), "vote", descending=[False, False, True, False])
        .group_by("session_id", "group", maintain_order=True)
        .agg(pl.col("vote", "fixed").first())
    )
    echo = (pl.col("group") == "asked_done") & (pl.col("group") == "end_state").any().over("session_id")
    grouped = grouped.with_columns(pl.when(echo).then(pl.col("vote") * _ECHO).otherwise("vote").alias("vote"))
    rated = grouped.filter((pl.col("group") == "feedback") & (pl.col("vote") != 0)).select(
        "session_id", (pl.col("vote") > 0).alias("good")
    )
    base = _base_rate(rated)
    weights = (
        _weights(grouped, rated)
        if n_rated >= minimum
        else grouped.select("group", pl.col("fixed").alias("for"), pl.col("fixed").alias("against")).unique("group")
    )
    weight = pl.when(pl.col("vote") > 0).then("for").otherwise("against")
    odds = (
        grouped.join(weights, on="group")
        .sort("session_id", "group")
        .group_by("session_id", maintain_order=True)
        .agg(((pl.col("vote") * weight * 1e6).round().cast(pl.Int64).sum() / 1e6).alias("odds"))
    )
    total = pl.col("odds") + math.log(base / (1.0 - base))
    return odds.select("session_id", (1.0 / (1.0 + (-total).exp())).round(6).alias("probability"))


def base_rate(votes: pl.DataFrame) -> float:
    """Share of good ones among the rated sessions, shrunk to `BASE_RATE` by two; `BASE_RATE` where none is rated."""
    rated = votes.filter((pl.col("name") == "feedback") & (pl.col("vote") != 0))
    return _base_rate(rated.select("session_id", (pl.col("vote") > 0).alias("good")))


def _base_rate(rated: pl.DataFrame) -> float:
    return (int(rated["good"].sum()) + 2.0 * BASE_RATE) / (rated.height + 2.0)


def _weights(grouped: pl.DataFrame, rated: pl.DataFrame) -> pl.DataFrame:
    """Per group the weight of a vote for and of one against, from how often each came with good and with bad
    ratings."""
    n_good, n_bad = int(rated["good"].sum()), int((~rated["good"]).sum())
    seen = grouped.join(rated, on="session_id", how="left")
    out = [pl.col("fixed").first()]
    for side, chosen in (("for", pl.col("vote") > 0), ("against", pl.col("vote") < 0)):
        good = (chosen & pl.col("good")).sum().cast(pl.Float64)
        bad = (chosen & ~pl.col("good")).sum().cast(pl.Float64)
        ratio = ((good + 1.0) / (n_good + 2.0)).log() - ((bad + 1.0) / (n_bad + 2.0)).log()
        strength = pl.when(chosen).then(pl.col("vote").abs()).mean().fill_null(1.0)
        signed = (ratio if side == "for" else -ratio) / strength
        out.append(((good + bad) * signed + _SHRINK * pl.col("fixed").first()).truediv(good + bad + _SHRINK).alias(side))
    own = pl.col("group") == "feedback"
    return (
        seen.sort("group", "session_id")
        .group_by("group", maintain_order=True)
        .agg(out)
        .select(
            "group",
            pl.when(own).then("fixed").otherwise(pl.col("for").clip(-3.0, 3.0)).alias("for"),
            pl.when(own).then("fixed").otherwise(pl.col("against").clip(-3.0, 3.0)).alias("against"),
        )
    )
