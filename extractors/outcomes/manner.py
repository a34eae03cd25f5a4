"""Words of a session that go with success or failure elsewhere, learnt from what the other signals say.

Self-training (Yarowsky 1995): each word's log odds of success, weighed by the other signals' probabilities over the sessions
of all *other* requests; a session's manner is the mean over its words. Shrunk, so that rare words say little.

Sees: which words are said by either side, and which tools are called. Does not see: order, negation, who said it; and it
repeats what the other signals get wrong everywhere, which is why it is given little weight.
"""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import Evidence, votes
from extractors.tasks.words import split_words

_WEIGHT = 0.24
"""Log odds of a standard deviation of manner."""

_FEWEST = 5
"""Sessions that a word must be said in."""

_SHRINK = 4.0
"""Sessions at the base rate that are added to those of each word."""

_MILLION = 1_000_000
"""Sums are of whole numbers: the order in which threads add them up can't change a result."""


def manner(seen: Evidence, probabilities: pl.DataFrame) -> pl.DataFrame:
    """Votes as graded probabilities; `probabilities`: columns session_id, probability, of the other signals."""
    of = (
        seen.asked.select("session_id", "service")
        .join(seen.requests, on="session_id", how="left")
        .with_columns(pl.coalesce("request", "session_id").alias("request"))
        .join(probabilities, on="session_id")
        .with_columns((pl.col("probability") * _MILLION).round().cast(pl.Int64).alias("good"))
        .sort("session_id")
    )
    words = _words(seen).join(of.select("session_id", "service", "request", "good"), on="session_id")
    words = words.filter(pl.len().over("service", "word") >= _FEWEST)
    own = words.group_by("service", "word", "request").agg(pl.len().alias("n_own"), pl.col("good").sum().alias("good_own"))
    everywhere = own.group_by("service", "word").agg(n=pl.col("n_own").sum(), good_all=pl.col("good_own").sum())
    base = of.group_by("service").agg((pl.col("good").sum() / (pl.len() * _MILLION)).clip(0.02, 0.98).alias("base"))
    n = pl.col("n") - pl.col("n_own")
    good = (pl.col("good_all") - pl.col("good_own")) / _MILLION
    odds = ((good + _SHRINK * pl.col("base")) / (n - good + _SHRINK * (1.0 - pl.col("base")))).log() - (
        pl.col("base") / (1.0 - pl.col("base"))
    ).log()
    told = own.join(everywhere, on=["service", "word"]).join(base, on="service")
    told = told.select("service", "word", "request", (odds * _MILLION).round().cast(pl.Int64).alias("odds"))
    rows = (
        words.join(told, on=["service", "word", "request"])
        .group_by("session_id", "service")
        .agg((pl.col("odds").sum() / pl.len()).alias("manner"))
        .sort("session_id")
    )
    spread = (pl.col("manner") - pl.col("manner").mean().over("service")) / pl.col("manner").std().over("service")
    chance = 1.0 / (1.0 + (-_WEIGHT * spread.clip(-4.0, 4.0)).exp())
    rows = rows.with_columns((2.0 * chance - 1.0).round(6).alias("vote")).filter(pl.col("vote").is_finite())
    way = pl.when(pl.col("vote") < 0).then(pl.lit("fail")).otherwise(pl.lit("succeed"))
    return votes(rows, pl.col("vote"), pl.format("is worded as sessions that {} are", way), pl.lit([], pl.List(pl.String)))


def _words(seen: Evidence) -> pl.DataFrame:
    """Columns session_id, word: every word of messages and every tool, once a session."""
    said = seen.turns.filter((pl.col("kind") == "message") & pl.col("role").is_in(["user", "assistant"]))
    spoken = said.select("session_id", split_words(pl.col("content")).alias("word")).explode("word")
    called = seen.calls.select("session_id", (pl.lit("\0") + pl.col("tool")).alias("word"))
    return pl.concat([spoken, called]).drop_nulls("word").unique()
