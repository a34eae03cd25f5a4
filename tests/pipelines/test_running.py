"""A run in this process: rules stop it, faults that may pass are retried, and DAGSTER_HOME gets a record of it."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey

from pipelines.dagster_assets.assets import instance
from pipelines.running import run as running
from pipelines.running.run import run
from pipelines.running.stage import Counts, Stage
from pipelines.settings import Settings
from pipelines.stages import STAGES
from tests.pipelines.conftest import Traceroom
from warehouse.errors import GateFailed, Unavailable
from warehouse.store import Store


@pytest.fixture
def few(logs: Path) -> Path:
    """Three sessions."""
    for file in (logs / "logs").glob("*.jsonl"):
        file.write_text("".join(file.read_text("utf-8").splitlines(keepends=True)[:3]), "utf-8")
    return logs


def settings(logs: Path, out: Path) -> Settings:
    return Settings(logs=(str(logs),), out=str(out), image=False).checked()


def failing(stage: Stage, error: OSError) -> Stage:
    def fails(store: Store, settings: Settings) -> Counts:
        raise error

    return stage._replace(work=fails)


def test_a_fault_that_may_pass_is_retried_in_the_same_process(
    few: Path, tmp_path: Path, traceroom: Traceroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEROOM_RETRY_SECONDS", "0,0")
    first, second, third, *rest = STAGES
    tries: list[str] = []

    def passes(store: Store, settings: Settings) -> Counts:
        tries.append(third.name)
        if len(tries) < 3:
            raise OSError(errno.EAGAIN, "not now")
        return third.run(store, settings)

    monkeypatch.setattr(running, "STAGES", (first, second, third._replace(work=passes), *rest))
    ran = run(settings(few, tmp_path / "out"))
    assert len(tries) == 3 and [stage["stage"] for stage in ran.stages] == [stage.name for stage in STAGES]
    assert all(stage["computed"] for stage in ran.stages)
    done = traceroom("run", few, "--out", tmp_path / "out", "--no-image", "--json")
    assert done.returncode == 0, done.stderr
    again: list[dict[str, Any]] = json.loads(done.stdout)["stages"]
    assert {stage["stage"] for stage in again if stage["computed"]} <= {"extract", "world", "funnel"}


def test_a_fault_that_does_not_pass_after_all_retries_ends_the_run(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEROOM_RETRY_SECONDS", "0")
    first, second, *rest = STAGES
    monkeypatch.setattr(running, "STAGES", (first, failing(second, OSError(errno.EAGAIN, "not now")), *rest))
    with pytest.raises(Unavailable, match="not now"):
        run(settings(few, tmp_path / "out"))


@pytest.mark.slow
def test_a_run_is_recorded_on_the_instance_of_dagster_home(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(Path(__file__).parents[2] / "dagster.yaml", home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    run(settings(few, tmp_path / "out"))
    assert {path.name for path in home.iterdir()} == {"dagster.yaml", ".dagster"}
    with instance() as recorded:
        for table in (table for stage in STAGES for table in stage.table_names):
            event = recorded.get_latest_materialization_event(AssetKey(table.split(".")))
            assert event is not None and event.asset_materialization is not None
            assert event.asset_materialization.metadata["computed"].value is True


def test_a_fault_that_stays_is_said_at_once(few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *rest = STAGES
    monkeypatch.setattr(running, "STAGES", (first, failing(second, OSError(errno.ENOSPC, "no room is left")), *rest))
    with pytest.raises(Unavailable, match="no room is left"):
        run(settings(few, tmp_path / "out"))


def test_a_rule_that_does_not_hold_ends_the_run(few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = next(place for place, stage in enumerate(STAGES) if stage.name == "sessions")

    def with_a_gap(store: Store, told: Settings) -> Counts:
        counts = STAGES[at].run(store, told)
        turns = store.table("core.turns")
        store.replace("core.turns", turns.with_columns(position=turns["position"] + 1))
        return counts

    monkeypatch.setattr(running, "STAGES", (*STAGES[:at], STAGES[at]._replace(work=with_a_gap), *STAGES[at + 1:]))
    with pytest.raises(GateFailed, match="positions_have_no_gaps"):
        run(settings(few, tmp_path / "out"))
    assert not (tmp_path / "out" / "environments").exists()


def test_the_folder_of_an_older_run_gets_todays_name(tmp_path: Path) -> None:
    (tmp_path / "withheld" / "main").mkdir(parents=True)
    here = Settings(logs=(), out=str(tmp_path))
    here.rename_old_folders()
    assert (tmp_path / "unverified" / "main").is_dir() and not (tmp_path / "withheld").exists()
    (tmp_path / "withheld").mkdir()
    here.rename_old_folders()
    assert (tmp_path / "unverified" / "main").is_dir(), "what stands there already stays"
