"""Verdicts on what went on: the other half of the funnel, beside what a stage left."""

from __future__ import annotations

import polars as pl

from warehouse.records import Verdict, frame_schema


def all_of(subjects: pl.Series, left: pl.DataFrame, stage: str, reason: str, detail: str) -> pl.DataFrame:
    """Verdicts on all that came in: those of `left`, and a kept one for each of `subjects` that was not left.

    `left`: frame of `Verdict`, rows that say the same twice are told once.
    """
    stopped = left.filter(~pl.col("kept"))["subject"]
    kept = pl.DataFrame({"subject": subjects.drop_nulls().unique().sort()}, schema={"subject": pl.String()}).filter(
        ~pl.col("subject").is_in(stopped.implode())).with_columns(
        stage=pl.lit(stage), kept=pl.lit(True), reason=pl.lit(reason), detail=pl.lit(detail),
        file_id=pl.lit(None, pl.String()), line=pl.lit(None, pl.Int64()))
    return pl.concat([left, kept.select(list(frame_schema(Verdict)))]).unique(
        ["stage", "subject", "reason"], maintain_order=True)
