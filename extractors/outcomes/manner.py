"""Words of a session, and how much it did, that go with success or failure elsewhere, learnt from what the other signals say.

Self-training (Yarowsky 1995): each mark's (a word's, a tool's, an amount's) log odds of success, weighed by the other signals'
probabilities over the sessions of all *other* requests; a session's manner is the mean over its marks. Shrunk, so that rare
marks say little. The base rate, too, is that of the other requests: else a session's own success would speak against it. How
much a standard deviation of manner counts is found the same way: a part of how well it tells the other signals' probabilities
of requests that it was not learnt from, and nothing where it tells them wrongly.

Sees: which words are said by either side, which tools are called, how often something that acts was called. Does not see:
order, negation, who said it; and it repeats what the other signals get wrong everywhere, which is why it weighs little.
"""

from __future__ import annotations

import math

import polars as pl

from extractors.outcomes.evidence import VOTES, Evidence, votes
from extractors.tasks.words import split_words

_SHARE = 0.8
"""Part of the log odds that a standard deviation is found to be worth which counts."""

_MOST = 0.3
"""Log odds that a standard deviation counts for at most."""

_FAR = 2.0
"""Standard deviations that no session is further off than."""

_FEWEST = 5
"""Sessions that a mark must be on."""

_SHRINK = 4.0
"""Sessions at the base rate that are added to those of each mark."""

_MILLION = 1_000_000
"""Sums are of whole numbers: the order in which threads add them up can't change a result."""


def manner(seen: Evidence, probabilities: pl.DataFrame) -> pl.DataFrame:
    """Votes on the words and tools of sessions, as graded probabilities; `probabilities`: session_id, probability, of the
    other signals."""
    said = seen.turns.filter((pl.col("kind") == "message") & pl.col("role").is_in(["user", "assistant"]))
    spoken = said.select("session_id", split_words(pl.col("content")).alias("mark")).explode("mark")
    called = seen.calls.select("session_id", (pl.lit("\0") + pl.col("tool")).alias("mark"))
    marks = pl.concat([spoken, called]).drop_nulls("mark").unique()
    return _learnt(seen, probabilities, marks, "is worded as sessions that {} are")


def amount(seen: Evidence, probabilities: pl.DataFrame) -> pl.DataFrame:
    """The same on how often a session called what acts, with success: never, once, then in steps that double."""
    acts = seen.calls.filter(pl.col("acts") & ~pl.col("failed")).group_by("session_id").len("n")
    n = seen.asked.select("session_id").join(acts, on="session_id", how="left").with_columns(pl.col("n").fill_null(0))
    marks = n.select("session_id", (pl.col("n") + 1).log(2.0).floor().cast(pl.Int64).cast(pl.String).alias("mark"))
    return _learnt(seen, probabilities, marks, "does as much as sessions that {} do")


def _learnt(seen: Evidence, probabilities: pl.DataFrame, marks: pl.DataFrame, says: str) -> pl.DataFrame:
    """Votes from the marks (session_id, mark) of each session."""
    of = (
        seen.asked.select("session_id", "service")
        .join(seen.requests, on="session_id", how="left")
        .with_columns(pl.coalesce("request", "session_id").alias("request"))
        .join(probabilities.select("session_id", "probability"), on="session_id")
        .with_columns((pl.col("probability") * _MILLION).round().cast(pl.Int64).alias("good"))
        .sort("session_id")
    )
    worth = _worth(of, marks)
    rows = (
        marks.join(of.select("session_id", "service", "request", "probability"), on="session_id")
        .join(worth, on=["service", "mark", "request"])
        .group_by("session_id", "service", "probability")
        .agg((pl.col("odds").sum() / pl.len()).alias("manner"))
        .sort("session_id")
    )
    spread = (pl.col("manner") - pl.col("manner").mean().over("service")) / pl.col("manner").std().over("service")
    rows = rows.with_columns(spread.clip(-_FAR, _FAR).alias("spread")).filter(pl.col("spread").is_finite())
    if rows.is_empty():
        return pl.DataFrame(schema=VOTES)
    weight = {service: _weight(part) for (service,), part in rows.sort("service", "session_id").group_by("service")}
    odds = pl.col("spread") * pl.col("service").replace_strict(weight, return_dtype=pl.Float64)
    rows = rows.with_columns((2.0 / (1.0 + (-odds).exp()) - 1.0).round(6).alias("vote")).filter(pl.col("vote") != 0.0)
    way = pl.when(pl.col("vote") < 0).then(pl.lit("fail")).otherwise(pl.lit("succeed"))
    return votes(rows, pl.col("vote"), pl.format(says, way), pl.lit([], pl.List(pl.String)))


def _worth(of: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Columns service, mark, request, odds (millionths): log odds of a mark over the base rate, both without this request."""
    marked = marks.join(of.select("session_id", "service", "request", "good"), on="session_id")
    marked = marked.filter(pl.len().over("service", "mark") >= _FEWEST)
    sums = (pl.len().alias("n"), pl.col("good").sum())
    own = marked.group_by("service", "mark", "request").agg(*sums)
    everywhere = own.group_by("service", "mark").agg(pl.col("n", "good").sum().name.suffix("_all"))
    requests = of.group_by("service", "request").agg(*sums)
    services = requests.group_by("service").agg(pl.col("n", "good").sum().name.suffix("_all"))
    share = (pl.col("good_all") - pl.col("good")) / (pl.col("n_all") - pl.col("n")) / _MILLION
    base = requests.join(services, on="service").select("service", "request", share.clip(0.02, 0.98).alias("base"))
    told = own.join(everywhere, on=["service", "mark"]).join(base, on=["service", "request"])
    n, good = pl.col("n_all") - pl.col("n"), (pl.col("good_all") - pl.col("good")) / _MILLION
    kept, missed = pl.col("base"), 1.0 - pl.col("base")
    odds = ((good + _SHRINK * kept) / (n - good + _SHRINK * missed)).log() - (kept / missed).log()
    return told.filter(odds.is_finite()).select(
        "service", "mark", "request", (odds * _MILLION).round().cast(pl.Int64).alias("odds"))


def _weight(rows: pl.DataFrame) -> float:
    """Log odds of a standard deviation: of one step of Newton's from none, which is enough where it is small."""
    chances, spread = rows["probability"].to_list(), rows["spread"].to_list()
    base = math.fsum(chances) / len(chances)
    along = math.fsum(each * (chance - base) for each, chance in zip(spread, chances, strict=True))
    curve = base * (1.0 - base) * math.fsum(each * each for each in spread)
    return round(min(max(_SHARE * along / curve, 0.0), _MOST), 6) if curve > 0.0 else 0.0
