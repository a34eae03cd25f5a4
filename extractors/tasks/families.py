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

_SMOOTHING = 0.1
"""Added to every count (Lidstone): a word never seen with a kind speaks against it, but not for ever."""

_SCALE = 1000
"""Log likelihoods are kept as whole thousandths, so that sums do not depend on the order of threads."""


def find_families(asked: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, kinds: what each clause of the opening asks for, a tool that writes or `` for none, in order."""
    return read_openings(asked, calls).group_by("session_id", maintain_order=True).agg(pl.col("label").alias("kinds"))


def read_openings(asked: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, service, place, label (what the clause asks for: a tool that writes, `` for none), words.

    `asked` is of `asking.ASKED`, `calls` of `arguments.calls_of`. One row a clause, at least one a session.
    """
    clauses = _clauses(asked)
    labels = _labels(asked, calls)
    words = document_words(clauses.with_columns(masked(pl.col("text")).alias("text")), document="clause").join(
        clauses.select("clause", "session_id", "service"), on="clause"
    )
    scores = _scores(words, labels)
    best = (
        scores.sort("clause", "score", "label", descending=[False, True, False]).group_by("clause", maintain_order=True).first()
    )
    read = clauses.join(best.select("clause", pl.col("label").alias("kind")), on="clause", how="left").join(
        labels.select("session_id", "label"), on="session_id"
    )
    return (
        read.with_columns(pl.coalesce("kind", "label").alias("label"))
        .sort("session_id", "clause")
        .select("session_id", "service", pl.int_range(pl.len()).over("session_id").alias("place"), "label",
                pl.col("text").alias("words"))
    )


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


def _scores(words: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """Log likelihood of each clause under each kind of request: clause, label, score (whole number)."""
    n_clauses = words.group_by("session_id").agg(pl.col("clause").n_unique().alias("n_clauses"))
    plain = labels.join(n_clauses, on="session_id").filter((pl.col("n_tools") <= 1) & (pl.col("n_clauses") == 1))
    plain = plain.filter(pl.len().over("service", "label") >= _SUPPORT).select("session_id", "service", "label")
    kinds = plain.group_by("service", "label").agg(pl.len().alias("n_sessions"))
    counted = (
        words.join(plain.select("session_id", "label"), on="session_id")
        .group_by("service", "label", "word")
        .agg(pl.len().alias("n"))
    )
    known = counted.select("service", "word").unique()
    table = known.join(kinds, on="service").join(counted, on=["service", "label", "word"], how="left")
    share = (pl.col("n").fill_null(0) + _SMOOTHING) / (pl.col("n_sessions") + 2 * _SMOOTHING)
    table = table.select("service", "label", "word", (share.log() * _SCALE).round().cast(pl.Int64).alias("score"))
    return (
        words.select("clause", "service", "word")
        .join(table, on=["service", "word"])
        .group_by("clause", "label")
        .agg(pl.col("score").sum())
    )

