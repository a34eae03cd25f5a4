"""Families: requests for the same kind of thing.

A family comes from what was asked. What sessions did is used once, to learn which words ask for what: over sessions
that wrote with one tool (or with none) the words are counted (naive Bayes over words and pairs of words, names of
things masked), and then every clause is read by its words alone. So a session that did something unasked, or did not
do what was asked, still lands in the family of its words.

Sees: clauses parted by an English "also" or the like. Does not see: two goals in one clause, a goal that comes up
later in the conversation, and kinds of request that end in the same write (or in none).
"""

from __future__ import annotations

import polars as pl

from extractors.tasks.words import document_words, masked

_CONNECTIVE = r"(?i)[\s.;,]*\b(?:also|additionally|moreover|furthermore|besides that|another thing|secondly)\b[\s,:]*"
"""English words that begin another request; where they are absent the whole goal is one clause."""

_SUPPORT = 3
"""Fewer sessions than this do not make a kind of request."""

_ROUTINE = 0.5
"""Share of a service's acting sessions from which on a tool is routine, and tells nothing of what was asked."""

_OFTEN, _TIMES = 0.01, (1.0, 8.0)
"""A word tells of kinds where so many of the clauses that teach hold it, within these bounds: rare words name things."""

_SMOOTHING = 0.1
"""Added to every count (Lidstone): a word never seen with a kind speaks against it, but not for ever."""

_SCALE = 1000
"""Log likelihoods are kept as whole thousandths, so that sums do not depend on the order of threads."""


def read_openings(asked: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, service, place, label (what the clause asks for: a tool that writes, `` for none), words.

    `asked` is of `asking.ASKED`, `calls` of `arguments.calls_of`. One row a clause, at least one a session.
    """
    labels = _labels(asked, calls)
    silent = asked.filter(~pl.col("worded")).join(labels, on="session_id").select(
        "session_id", "service", pl.lit(0, pl.Int64).alias("place"), "label", pl.col("goal").alias("words"))
    asked = asked.filter("worded")
    clauses = _clauses(asked)
    words = document_words(clauses.with_columns(masked(pl.col("text")).alias("text")), document="clause").join(
        clauses.select("clause", "session_id", "service"), on="clause"
    )
    best = _read(words, _taught(words, labels))
    read = clauses.join(best, on="clause", how="left").join(
        labels.select("session_id", "label"), on="session_id"
    )
    read = read.with_columns(pl.coalesce("kind", "label").alias("label")).sort("session_id", "clause").select(
        "session_id", "service", pl.int_range(pl.len()).over("session_id").alias("place"), "label",
        pl.col("text").alias("words"))
    return pl.concat([read, silent]).sort("session_id", "place")


def _clauses(asked: pl.DataFrame) -> pl.DataFrame:
    parted = asked.select(
        "session_id", "service", pl.col("goal").str.replace_all(_CONNECTIVE, "\u001e").str.split("\u001e").alias("text")
    ).explode("text")
    spoken = parted.filter(pl.col("text").str.contains(r"\p{L}"))
    silent = asked.join(spoken, on="session_id", how="anti").select("session_id", "service", pl.col("goal").alias("text"))
    place = pl.int_range(pl.len()).over("session_id").cast(pl.String).str.zfill(3)
    return pl.concat([spoken, silent]).with_columns((pl.col("session_id") + " " + place).alias("clause"))


def _labels(asked: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """What each session did: session_id, service, label (tools that wrote with success, joined), n_tools."""
    did = (
        _telling(calls.filter(pl.col("acts") & ~pl.col("failed")))
        .group_by("session_id")
        .agg(pl.col("tool").unique().sort().str.join(" ").alias("label"), pl.col("tool").n_unique().alias("n_tools"))
    )
    labels = asked.select("session_id", "service").join(did, on="session_id", how="left")
    labels = labels.with_columns(pl.col("label").fill_null(""), pl.col("n_tools").fill_null(0))
    silent = ~(pl.col("label") != "").any().over("service")
    looked = _looked_up(calls)
    return (
        labels.join(looked, on="session_id", how="left")
        .with_columns(pl.when(silent).then(pl.col("looked").fill_null("")).otherwise("label").alias("label"))
        .drop("looked")
    )


def _telling(acts: pl.DataFrame) -> pl.DataFrame:
    """Leave out tools that most acting sessions of a service use: the routine around the request, not the request."""
    n_using = pl.col("session_id").n_unique().over("service", "tool")
    n_acting = pl.col("session_id").n_unique().over("service")
    n_tools = pl.col("tool").n_unique().over("service")
    return acts.filter((n_using <= _ROUTINE * n_acting) | (n_tools <= 2))


def _looked_up(calls: pl.DataFrame) -> pl.DataFrame:
    """For services in which nothing writes: the tool of the session that fewest sessions use, its most telling one."""
    used = calls.select("session_id", "service", "tool").unique()
    return (
        used.with_columns(pl.len().over("service", "tool").alias("n"))
        .sort("session_id", "n", "tool")
        .group_by("session_id", maintain_order=True)
        .agg(pl.col("tool").first().alias("looked"))
    )


def _taught(words: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """Clauses whose kind what was done tells: clause, service, label. Those of sessions of one clause and one tool or none."""
    n_clauses = words.group_by("session_id").agg(pl.col("clause").n_unique().alias("n_clauses"), pl.col("clause").first())
    plain = labels.join(n_clauses, on="session_id").filter((pl.col("n_tools") <= 1) & (pl.col("n_clauses") == 1))
    return plain.filter(pl.len().over("service", "label") >= _SUPPORT).select("clause", "service", "label")


def _read(words: pl.DataFrame, taught: pl.DataFrame) -> pl.DataFrame:
    """The likeliest kind of request of each clause, in the words of those that are taught: clause, kind."""
    kinds = taught.group_by("service", "label").agg(pl.len().alias("n_taught"))
    counted = (
        words.join(taught.select("clause", "label"), on="clause")
        .group_by("service", "label", "word")
        .agg(pl.len().alias("n"))
    )
    n_taught = taught.group_by("service").agg((pl.len() * _OFTEN).clip(*_TIMES).alias("least"))
    known = counted.group_by("service", "word").agg(pl.col("n").sum()).join(n_taught, on="service").filter(
        pl.col("n") >= pl.col("least")).select("service", "word")
    table = known.join(kinds, on="service").join(counted, on=["service", "label", "word"], how="left")
    share = (pl.col("n").fill_null(0) + _SMOOTHING) / (pl.col("n_taught") + 2 * _SMOOTHING)
    table = table.select("service", "label", "word", (share.log() * _SCALE).round().cast(pl.Int64).alias("score"))
    scores = words.select("clause", "service", "word").join(table, on=["service", "word"]).group_by("clause", "label").agg(
        pl.col("score").sum())
    first = scores.sort("clause", "score", "label", descending=[False, True, False]).group_by("clause", maintain_order=True)
    return first.agg(pl.col("label").first().alias("kind"))
