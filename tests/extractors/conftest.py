"""What the tests of the extractors share: the real sets, each read once for all workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from extractors.inventory import discover
from extractors.reading import read
from tests.conftest import once

ReadSet = Callable[[str], tuple[pl.DataFrame, pl.DataFrame]]


@pytest.fixture(scope="session")
def read_set(data: Path, tmp_path_factory: pytest.TempPathFactory) -> ReadSet:
    """Return the events and the declarations of a set, by its name."""

    def of_set(name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        def make(folder: Path) -> None:
            folder.mkdir()
            readings = [read(each) for each in discover([data / name])[0]]
            pl.concat([each.events for each in readings]).write_ipc(folder / "events.arrow")
            pl.concat([each.declarations for each in readings]).write_ipc(folder / "declarations.arrow")

        folder = once(tmp_path_factory, f"read_{name}", make)
        return pl.read_ipc(folder / "events.arrow"), pl.read_ipc(folder / "declarations.arrow")

    return of_set
