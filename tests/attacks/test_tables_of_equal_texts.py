"""Parquet files of a few kilobytes that stand for gigabytes: equal texts, rows, and lists are written once."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from tests.attacks.logs import bomb_problems, read_log
from tests.attacks.report import Report

N = 150_000


def tables() -> dict[str, pl.DataFrame]:
    """Return tables that are small where they lie."""
    text = pl.repeat("A" * 4000, N, eager=True).alias("content")
    return {
        "texts": pl.DataFrame([text]),
        "texts in records": pl.DataFrame([text]).select(pl.struct("content").alias("message")),
        "texts in lists": pl.DataFrame([text]).select(pl.concat_list("content", "content").alias("messages")),
        "bytes": pl.DataFrame([text.cast(pl.Binary)]),
        "rows": pl.DataFrame({f"c{n}": pl.repeat(1, 3 * N, eager=True) for n in range(200)})}


def attack(folder: Path, share: float) -> Report:
    """Read each."""
    problems, n_tried = [], 0
    for name, table in tables().items():
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        n_tried += 1
        assert len(buffer.getvalue()) < 1 << 20, f"{name}: {len(buffer.getvalue())} bytes"
        problems += bomb_problems(name, read_log(buffer.getvalue(), folder / "log.parquet"), 500)
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
def test_equal_texts_are_counted_before_they_are_held(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
