"""Signals from a session's words, its number of write calls, and the length of its request's sessions.

Self-training (Yarowsky 1995): each mark (a word, a tool, an amount) has log odds of success, weighted by the other signals'
probabilities over the sessions of all *other* requests and shrunk, so that rare marks count little; a session's manner is the
mean over its marks. The base rate excludes the own request too. What a standard deviation of manner is worth is estimated the
same way. The length signal compares requests: the longer their sessions, the more can go wrong.

Does not see: order, negation, who said it, which session of a long request failed. It repeats systematic errors of the other
signals, so it weighs little."""

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


def manner(evidence: Evidence, probabilities: pl.DataFrame) -> pl.DataFrame:
    """Vote by the words and tools of sessions, graded. `probabilities`: session_id, probability, of the other signals."""
    messages = evidence.turns.filter((pl.col("kind") == "message") & pl.col("role").is_in(["user", "assistant"]))
    spoken = messages.select("session_id", split_words(pl.col("content")).alias("mark")).explode("mark")
    called = evidence.calls.select("session_id", (pl.lit("\0") + pl.col("tool")).alias("mark"))
    marks = pl.concat([spoken, called]).drop_nulls("mark").unique()
    return _learnt(evidence, probabilities, marks, "is worded as sessions that {} are")


def amount(evidence: Evidence, probabilities: pl.DataFrame) -> pl.DataFrame:
    """Vote, graded, by the number of write calls that succeeded: none, one, then in steps that double."""
    acts = evidence.everyones_writes.group_by("session_id").len("n")
    n = (
        evidence.session_requests.select("session_id").join(acts, on="session_id", how="left")
        .with_columns(pl.col("n").fill_null(0)))
    marks = n.select("session_id", (pl.col("n") + 1).log(2.0).floor().cast(pl.Int64).cast(pl.String).alias("mark"))
    return _learnt(evidence, probabilities, marks, "does as much as sessions that {} do")


def _learnt(evidence: Evidence, probabilities: pl.DataFrame, marks: pl.DataFrame, description: str) -> pl.DataFrame:
    """Votes from the marks (session_id, mark) of each session."""
    of = (
        evidence.session_requests.select("session_id", "service").join(evidence.requests, on="session_id", how="left")
        .with_columns(pl.coalesce("request", "session_id").alias("request"))
        .join(probabilities.select("session_id", "probability"), on="session_id")
        .with_columns((pl.col("probability") * _MILLION).round().cast(pl.Int64).alias("good")).sort("session_id"))
    worth = _worth(of, marks)
    rows = (
        marks.join(of.select("session_id", "service", "request", "probability"), on="session_id")
        .join(worth, on=["service", "mark", "request"]).group_by("session_id", "service", "probability")
        .agg((pl.col("odds").sum() / pl.len()).alias("manner")).sort("session_id"))
    spread = (pl.col("manner") - pl.col("manner").mean().over("service")) / pl.col("manner").std().over("service")
    rows = rows.with_columns(spread.clip(-_FAR, _FAR).alias("spread")).filter(pl.col("spread").is_finite())
    if rows.is_empty():
        return pl.DataFrame(schema=VOTES)
    weight = {service: _weight(part) for (service,), part in rows.sort("service", "session_id").group_by("service")}
    odds = pl.col("spread") * pl.col("service").replace_strict(weight, return_dtype=pl.Float64)
    rows = rows.with_columns((2.0 / (1.0 + (-odds).exp()) - 1.0).round(6).alias("vote")).filter(pl.col("vote") != 0.0)
    way = pl.when(pl.col("vote") < 0).then(pl.lit("fail")).otherwise(pl.lit("succeed"))
    return votes(rows, pl.col("vote"), pl.format(description, way), pl.lit([], pl.List(pl.String)))


def _worth(of: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Columns service, mark, request, odds (millionths): log odds of a mark over the base rate, both without this request."""
    marked = marks.join(of.select("session_id", "service", "request", "good"), on="session_id")
    marked = marked.filter(pl.len().over("service", "mark") >= _FEWEST)
    sums = pl.len().alias("n"), pl.col("good").sum()
    own = marked.group_by("service", "mark", "request").agg(*sums)
    everywhere = own.group_by("service", "mark").agg(pl.col("n", "good").sum().name.suffix("_all"))
    requests = of.group_by("service", "request").agg(*sums)
    services = requests.group_by("service").agg(pl.col("n", "good").sum().name.suffix("_all"))
    share = (pl.col("good_all") - pl.col("good")) / (pl.col("n_all") - pl.col("n")) / _MILLION
    base = requests.join(services, on="service").select("service", "request", share.clip(0.02, 0.98).alias("base"))
    counted = own.join(everywhere, on=["service", "mark"]).join(base, on=["service", "request"])
    n, good = pl.col("n_all") - pl.col("n"), (pl.col("good_all") - pl.col("good")) / _MILLION
    kept, missed = pl.col("base"), 1.0 - pl.col("base")
    odds = ((good + _SHRINK * kept) / (n - good + _SHRINK * missed)).log() - (kept / missed).log()
    return counted.filter(odds.is_finite()).select(
        "service", "mark", "request", (odds * _MILLION).round().cast(pl.Int64).alias("odds"))


def _weight(rows: pl.DataFrame) -> float:
    """Log odds of a standard deviation: of one step of Newton's from none, which is enough where it is small."""
    chances, spread = rows["probability"].to_list(), rows["spread"].to_list()
    base = math.fsum(chances) / len(chances)
    along = math.fsum(each * (chance - base) for each, chance in zip(spread, chances, strict=True))
    curve = base * (1.0 - base) * math.fsum(each * each for each in spread)
    return round(min(max(_SHARE * along / curve, 0.0), _MOST), 6) if curve > 0.0 else 0.0


_ROLES = ("user", "assistant")
_WEIGHT = 0.12
"""Log odds that a request loses with each standard deviation of length."""


def effort(evidence: Evidence) -> pl.DataFrame:
    """Against the sessions of long requests, for those of short ones: a small probability either way, as -1..1."""
    n_words = pl.col("content").fill_null("").str.count_matches(r"\S+")
    of_role = {role: (n_words.filter(pl.col("role") == role).sum() + 1).log() for role in _ROLES}
    lengths = evidence.turns.filter(pl.col("kind") == "message").group_by("session_id").agg(**of_role)
    of = evidence.requests.join(lengths, on="session_id").join(
        evidence.session_requests.select("session_id", "service"), on="session_id")
    rows = of.sort("session_id").with_columns(
        *(pl.col(role).mean().over("request").alias(role) for role in _ROLES), pl.len().over("request").alias("n"))
    deviations = [(pl.col(role) - pl.col(role).mean().over("service")) / pl.col(role).std().over("service") for role in _ROLES]
    chance = 1.0 / (1.0 + (_WEIGHT * (deviations[0] + deviations[1]) / 2.0).exp())
    rows = rows.with_columns((2.0 * chance - 1.0).round(6).alias("vote"))
    rows = rows.filter((pl.col("n") > 1) & pl.col("vote").is_finite())
    together = (pl.col("assistant").exp() + pl.col("user").exp()).round().cast(pl.Int64)
    description = pl.format("sessions of this request take about {} words", together)
    return votes(rows, pl.col("vote"), description, pl.lit([], pl.List(pl.String)))


_USUAL = 0.5
"""Standard deviations above the mean up to which a number of calls is usual."""
_EXCESS = 0.3
"""Log odds that a session loses with each further standard deviation."""


def excess(evidence: Evidence, probabilities: pl.DataFrame) -> pl.DataFrame:
    """Against sessions with far more calls than the service's sessions have: agents that err search on and try again.

    A small probability, as -1..1; the others' `probabilities` only say which sessions there are."""
    counts = evidence.calls.group_by("session_id").len("n")
    of = evidence.session_requests.select("session_id", "service", "worded").join(
        probabilities.select("session_id"), on="session_id").join(counts, on="session_id", how="left").sort("session_id")
    n = pl.col("n").fill_null(0)
    kind = "service", "worded"
    spread = ((n - n.mean().over(kind)) / n.std().over(kind)).clip(-_FAR, _FAR) - _USUAL
    rows = of.with_columns(spread.alias("spread")).filter(pl.col("spread").is_finite() & (pl.col("spread") > 0.0))
    vote = (2.0 / (1.0 + (_EXCESS * pl.col("spread")).exp()) - 1.0).round(6)
    return votes(rows, vote, pl.format("made {} calls, more than is usual", "n"), pl.lit([], pl.List(pl.String)))
