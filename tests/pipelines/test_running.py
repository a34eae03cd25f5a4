"""A run without an instance of Dagster: rules stop it, and Dagster goes on where a fault comes that may pass."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from pipelines import running
from pipelines.engine import Counts, Stage
from pipelines.running import run
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


def test_dagster_goes_on_where_a_fault_may_pass(
    few: Path, tmp_path: Path, traceroom: Traceroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third, *rest = STAGES
    monkeypatch.setattr(running, "STAGES", (first, second, failing(third, OSError(errno.EAGAIN, "not now")), *rest))
    ran = run(settings(few, tmp_path / "out"))
    assert [stage["stage"] for stage in ran.stages] == [stage.name for stage in STAGES]
    assert all(stage["computed"] for stage in ran.stages), "what was done before Dagster is told as it was"
    done = traceroom("run", few, "--out", tmp_path / "out", "--no-image", "--json")
    assert done.returncode == 0, done.stderr
    again: list[dict[str, Any]] = json.loads(done.stdout)["stages"]
    assert not any(stage["computed"] for stage in again)


def test_a_fault_that_stays_is_said_at_once(few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *rest = STAGES
    monkeypatch.setattr(running, "STAGES", (first, failing(second, OSError(errno.ENOSPC, "no room is left")), *rest))
    with pytest.raises(Unavailable, match="no room is left"):
        run(settings(few, tmp_path / "out"))


def test_a_rule_that_does_not_hold_ends_the_run(few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = next(place for place, stage in enumerate(STAGES) if stage.name == "sessions")

    def with_a_gap(store: Store, told: Settings) -> Counts:
        counts = STAGES[at].work(store, told)
        turns = store.table("core.turns")
        store.replace("core.turns", turns.with_columns(position=turns["position"] + 1))
        return counts

    monkeypatch.setattr(running, "STAGES", (*STAGES[:at], STAGES[at]._replace(work=with_a_gap), *STAGES[at + 1:]))
    with pytest.raises(GateFailed, match="positions_have_no_gaps"):
        run(settings(few, tmp_path / "out"))
    assert not (tmp_path / "out" / "environments").exists()
