"""Votes to a probability.

    log odds(success) = log odds(base rate) + sum over groups of weight * vote

Signals that see the same thing are one group, and a group has one vote: its strongest (correlated votes counted one
by one make a model that is far too sure; Dawid and Skene 1979 suffers from it). A signal that abstains adds nothing.
Weights are fixed and careful; where enough sessions are rated, a group's weight is its log likelihood ratio over the
rated sessions, shrunk toward the fixed one, and the base rate is set so that the rated sessions' mean comes out. Then
the sign is learnt too: what has weight 0 here (a hand-over) may speak for or against.

Sees: votes. Does not see: that ratings are selected and now and then wrong; shrinking is all that is done about it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

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


class Combined(NamedTuple):
    """What `combine` gives."""

    probabilities: pl.DataFrame
    """Columns session_id, probability: the sessions that a signal voted on."""
    silent: float
    """Probability of a session that no signal voted on."""


def combine(votes: pl.DataFrame, minimum: int) -> Combined:
    """Probabilities from votes (columns session_id, name, vote); weights are learnt from `minimum` rated sessions
    on."""
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
    base = (int(rated["good"].sum()) + 2.0 * BASE_RATE) / (rated.height + 2.0)
    if rated.height < minimum:
        offset = math.log(base / (1.0 - base))
        odds = _sum(grouped.with_columns((pl.col("vote") * pl.col("fixed")).alias("odds")))
    else:
        weight = pl.when(pl.col("vote") > 0).then("for").otherwise("against")
        weighed = grouped.join(_weights(grouped, rated), on="group").with_columns((pl.col("vote") * weight).alias("odds"))
        others = rated.join(_sum(weighed.filter(pl.col("group") != "feedback")), on="session_id", how="left")
        offset = _offset(others["odds"].fill_null(0.0).to_list(), base)
        odds = _sum(weighed)
    chance = (1.0 / (1.0 + (-(pl.col("odds") + offset)).exp())).round(6).alias("probability")
    return Combined(odds.select("session_id", chance), round(_chance(offset), 6))


def _sum(weighed: pl.DataFrame) -> pl.DataFrame:
    """Sum of `odds` per session, in whole millionths: the order of the terms can't change it."""
    millionths = (pl.col("odds") * 1e6).round().cast(pl.Int64).sum() / 1e6
    return weighed.group_by("session_id").agg(millionths.alias("odds")).sort("session_id")


def _offset(odds: list[float], base: float) -> float:
    """Log odds to add so that the mean chance is `base` (by bisection): votes that only speak against pull the mean
    down."""
    low, high = -10.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2.0
        mean = sum(_chance(middle + each) for each in odds) / len(odds)
        low, high = (middle, high) if mean < base else (low, middle)
    return round((low + high) / 2.0, 6)


def _chance(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds))


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
