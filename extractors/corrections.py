"""What persons corrected, the later word standing: events of kind `correction` as rows of `core.corrections`.

In: events, and the sessions there are. Out: one row a correction, and verdicts on those that do not stand: a later one of the
same subject took their place, or they speak of a session that no log holds. Sees: time, and of equal times the event's id.
Does not see: whether a family or a check is there; the stages that make these do.
"""

from __future__ import annotations

import polars as pl

from warehouse.records import Correction, Verdict, frame_schema


def corrections(events: pl.DataFrame, sessions: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(frame of `Correction` by time, frame of `Verdict`)."""
    said = events.filter(pl.col("kind") == "correction").select(
        pl.col("event_id").alias("correction_id"), "happened_at", pl.col("name").alias("author"),
        pl.col("content").alias("why"), pl.col("tool").alias("kind"), pl.col("call_id").alias("subject"), "value", "file_id",
    ).sort("happened_at", "correction_id")
    later = pl.col("author").shift(-1).over("kind", "subject")
    is_there = (pl.col("kind") != "outcome") | pl.col("subject").is_in(sessions["session_id"].implode())
    judged = said.with_columns(later.alias("later"), is_there.alias("is_there"))
    judged = judged.with_columns((pl.col("later").is_null() & pl.col("is_there")).alias("stands"))
    thing = pl.format("the {} {}", pl.col("kind").replace({"outcome": "outcome of session"}), "subject")
    replaced = pl.format("what {} said of {} gave way to a later word by {}.", "author", thing, "later")
    lost = pl.format("{} corrected {}, which no log holds; it counts as soon as one does.", "author", thing)
    left = judged.filter(~pl.col("stands")).select(
        pl.lit("sessions").alias("stage"), pl.col("correction_id").alias("subject"), pl.lit(False).alias("kept"),
        pl.when("is_there").then(pl.lit("corrected_again")).otherwise(pl.lit("unknown_session")).alias("reason"),
        pl.when("is_there").then(replaced).otherwise(lost).alias("detail"), "file_id",
        pl.lit(None, pl.Int64()).alias("line"))
    return judged.select(list(frame_schema(Correction))), left.select(list(frame_schema(Verdict)))
