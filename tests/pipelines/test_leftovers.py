"""What a killed run leaves behind is removed by the next one, also where that has nothing else to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from pipelines.progress import NAME
from pipelines.running.stage import Stage, StageTable, carry_out
from pipelines.settings import Settings
from tests.pipelines.conftest import Traceroom
from warehouse.errors import StoreError
from warehouse.lock import writing
from warehouse.store import Store


@pytest.mark.parametrize("name", [NAME, "warehouse.duckdb.holder.json", "warehouse.published.duckdb.7.draft"])
def test_a_run_with_nothing_to_do_removes_what_a_killed_one_left(
    name: str, run_once: tuple[Path, str], tmp_path: Path, traceroom: Traceroom
) -> None:
    out = tmp_path / "out"
    shutil.copytree(run_once[0], out)
    (out / name).write_text("{}")
    done = traceroom("run", "--no-image", run_once[0].parent / "logs", "--out", out)
    assert done.returncode == 0, done.stderr
    assert not (out / name).exists()


def test_a_folder_that_is_replaced_while_its_lock_is_held_is_refused(tmp_path: Path) -> None:
    warehouse = tmp_path / "out" / "warehouse.duckdb"
    with writing(warehouse, "a run"):
        with writing(warehouse, "a stage of it"):
            pass
        (tmp_path / "out").rename(tmp_path / "moved")
        with pytest.raises(StoreError, match="moved, removed or replaced before a stage"), writing(warehouse, "a stage of it"):
            pass
        assert not (tmp_path / "out").exists()
    with writing(warehouse, "the next run"):
        assert warehouse.parent.is_dir()


def test_what_the_system_refuses_in_words_is_its_error(tmp_path: Path) -> None:
    def work(store: Store, settings: Settings) -> dict[str, int]:
        raise pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)")

    stage = Stage("sessions", "Write.", (StageTable("core.sessions"),), (), work)
    with pytest.raises(OSError, match="No space left") as raised:
        carry_out(stage, Settings(logs=(), out=str(tmp_path / "out")))
    assert raised.value.errno == 28
