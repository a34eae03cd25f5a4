"""The table of steps as a whole: made from a source, or read from what an export wrote."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from env_builder.exports.exporter import DatasetSource
from env_builder.exports.steps import COLUMNS, batches, file
from warehouse.records import SPLITS


def all_steps(source: DatasetSource) -> pl.DataFrame:
    """Return all rows of the source at once."""
    return pl.concat([pl.DataFrame(schema=COLUMNS), *batches(source)])


def read_steps(out: Path) -> pl.DataFrame:
    """Return the rows of all splits in the folder `out`, in the order of the table."""
    return pl.concat([pl.read_parquet(file(out, split)) for split in SPLITS]).sort("task_id", "episode_id", "step_idx")
