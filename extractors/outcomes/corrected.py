"""What persons said of outcomes that they looked at: known, whatever the signals say.

In: corrections of outcomes, at most one a session. Out: a vote of 1 or -1 a session, with who says so and why.
Sees: their word. Does not see: whether they are right; it stands until a later word takes its place.
"""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import votes

CORRECTION = "correction"
"""Name of the votes; no signal of the combination: nothing is weighed against a person who looked."""


def words_of(corrections: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Votes on the sessions there are."""
    said = corrections.join(sessions, left_on="subject", right_on="session_id", how="semi").sort("subject")
    good = pl.col("value") == '"good"'
    says = pl.format("{} says it went {}: {}", "author", pl.when(good).then(pl.lit("well")).otherwise(pl.lit("badly")), "why")
    rows = said.with_columns(pl.col("subject").alias("session_id"), pl.concat_list("correction_id").alias("events"))
    return votes(rows, pl.when(good).then(1.0).otherwise(-1.0), says, pl.col("events"))


def going(words: pl.DataFrame) -> dict[str, bool]:
    """Session -> did it go well?"""
    return dict(words.select("session_id", pl.col("vote") > 0).iter_rows())
