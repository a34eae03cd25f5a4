"""What was said of sessions, and how they ended: feedback and outcomes, each with the session that it is on.

In: events and the sessions there are. Out: rows of `core.feedback`, and verdicts on what is said of sessions that no log holds.
Sees the session that a record names, else the session of the call, answer or message whose id it names.
Does not see: what a value means, or that two records say the same.
"""

from __future__ import annotations

import polars as pl

from warehouse.records import Feedback, Verdict, frame_schema

_KINDS = ("feedback", "outcome")


def opinions(events: pl.DataFrame, sessions: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Feedback and outcomes on the sessions there are, and verdicts on those whose session no log holds (yet)."""
    said = events.filter(pl.col("kind").is_in(_KINDS)).with_columns(
        pl.col("event_id").alias("feedback_id"), pl.col("name").fill_null(pl.col("kind")), pl.col("value").fill_null(""))
    given = _targeted(said, events)
    known = given.join(sessions, on="session_id", how="semi").select(list(frame_schema(Feedback)))
    subject = pl.coalesce(pl.format("session {}", "session_id"), pl.format("call or message {}", "call_id"),
                          pl.lit("a session that it does not name"))
    lost = given.join(sessions, on="session_id", how="anti").select(
        pl.lit("sessions").alias("stage"), pl.col("event_id").alias("subject"), pl.lit(False).alias("kept"),
        pl.lit("unknown_session").alias("reason"),
        pl.format("{} on {}, which no log holds; it counts as soon as one does.", "kind", subject).alias("detail"),
        "file_id", pl.lit(None, pl.Int64()).alias("line"))
    return known.sort("session_id", "happened_at", "feedback_id"), lost.select(list(frame_schema(Verdict)))


def _targeted(said: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Opinions with the session of their target, where they name none and one session alone has that target."""
    if said.filter(pl.col("session_id").is_null() & pl.col("call_id").is_not_null()).is_empty():
        return said
    targets = events.filter(~pl.col("kind").is_in((*_KINDS, "link")) & pl.col("call_id").is_not_null()
                            & pl.col("session_id").is_not_null())
    sessions = targets.group_by("source", "call_id").agg(
        pl.col("session_id").min().alias("_session"), pl.col("session_id").n_unique().alias("_n")).filter(_n=1)
    return said.join(sessions.drop("_n"), on=["source", "call_id"], how="left").with_columns(
        pl.coalesce("session_id", "_session").alias("session_id")).drop("_session")
