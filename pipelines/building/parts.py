"""Parts: how a stage takes more rows than it should hold, in pieces that are each a pure function of their rows.

A row's part is given by the first bytes of the SHA-256 of an id in it, of a session as a rule. How many parts there are follows
from the bytes of all rows alone, and changes no result.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import polars as pl

from pipelines.running.memory import of_duckdb
from warehouse.store import Store

PART_BYTES = 64_000_000
"""Rows of a part, as they are in memory."""
_HELD_MB, _HELD_SHARE = (128, 2048), 0.4
"""What DuckDB holds while it reads and sorts, at least and at most, and the share of all rows beyond the least: below it, sorts
of many rows fail (128 MB sort 1.3 million turns, and do not sort 5.3). The rest goes to a folder next to the warehouse."""
_ROW = 300
"""Bytes of a row besides its longest texts: ids, names, instants."""


def n_parts(store: Store, table: str, texts: tuple[str, ...], where: str = "true") -> int:
    """How many parts the rows of a table make. `texts`: its columns with texts of any length."""
    lengths = " + ".join(f"coalesce(strlen({name}), 0)" for name in texts)
    n_bytes = store.read(f"select coalesce(sum({_ROW} + {lengths}), 0)::bigint as n from {table} where {where}").item()
    return max(1, -(-int(n_bytes) // PART_BYTES))


@contextmanager
def held(store: Store, n: int) -> Iterator[None]:
    """Let DuckDB hold little while it reads the rows of `n` parts. To write it may need more: a table's keys are in memory."""
    least, most = _HELD_MB
    with store.holding(of_duckdb(min(most, least + int(_HELD_SHARE * n * PART_BYTES / 1e6))), 1):
        yield


@contextmanager
def scratch(store: Store) -> Iterator[Path]:
    """Yield a folder next to the warehouse that is there until the block ends; what a killed run had in it is gone."""
    folder = store.path.parent / ".parts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_parts(files: list[Path]) -> list[Callable[[], pl.DataFrame]]:
    """Return what reads the rows of each part."""
    return [partial(pl.read_parquet, file) for file in files]
