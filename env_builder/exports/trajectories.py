"""The table of steps as Parquet, one file a side: `trajectories.train.parquet` and so on. Columns and meaning: `steps.py`.

Rows are made and written a batch of episodes at a time, so the memory it takes does not grow with the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from env_builder.exports.exporter import Exported, Exporter, Source
from env_builder.exports.steps import COLUMNS, batches, plan
from warehouse.records import SIDES, Verdict, empty

NAME = "trajectories"
ROW_GROUP = 50_000
"""Rows of a row group: what a reader has to hold."""


def file(out: Path, side: str) -> Path:
    """The file of a side in the folder `out`."""
    return out / f"{NAME}.{side}.parquet"


def read(out: Path) -> pl.DataFrame:
    """The rows of all sides that the folder `out` holds, in the order in which the table has them."""
    return pl.concat([pl.read_parquet(file(out, side)) for side in SIDES]).sort("task_id", "episode_id", "step_idx")


def _write(out: Path, source: Source) -> Exported:
    paths, planned = [], plan(source)
    for side in SIDES:
        _rows(source, side, planned).sink_parquet(
            file(out, side), compression="zstd", compression_level=1, row_group_size=ROW_GROUP, engine="streaming")
        paths.append(file(out, side))
    return Exported(sorted(paths), empty(Verdict))


def _rows(source: Source, side: str, planned: pl.DataFrame) -> pl.LazyFrame:
    def told(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        for rows in batches(source, (side,), planned):
            yield rows if columns is None else rows.select(columns)

    return register_io_source(told, schema=dict(COLUMNS))


EXPORTER = Exporter(NAME, _write)
