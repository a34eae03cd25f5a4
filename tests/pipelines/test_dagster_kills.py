"""A backfill whose run worker is killed: the daemon starts the run again, and nothing of the dead one stands in its way."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES, PartitionBackfill
from dagster._core.instance.ref import InstanceRef

from pipelines.dagster_assets.assets import key_of
from pipelines.definitions import defs
from pipelines.stages import STAGES
from tests.command_line import environ
from tests.pipelines.conftest import ROOT, part_of_sample
from warehouse.store import Store

PATIENCE_S = 240.0
DAEMON = """
import dagster._daemon.controller as controller
controller.DEFAULT_DAEMON_INTERVAL_SECONDS = 2   # between two looks at a backfill; no setting has it
from dagster._daemon.cli import main
main()
"""
DAYS = [f"2026-03-{number:02}" for number in range(2, 16)]
KEYS = [key_of(table) for stage in STAGES if stage.name in ("extract", "sessions") for table in stage.table_names]


def eventually(look: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Return what a look gives, once it gives something."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if value := look():
            return value
        time.sleep(0.2)
    raise AssertionError(f"in vain waited for {what}")


@contextlib.contextmanager
def daemon(folder: Path) -> Iterator[tuple[psutil.Process, DagsterInstance]]:
    """Yield Dagster's daemon as dagster.yaml configures it, but for pauses, which are short, and its instance."""
    home = folder / "home"
    home.mkdir()
    text = (ROOT / "dagster.yaml").read_text()
    text = re.sub(r"(poll_interval_seconds|free_slots_after_run_end_seconds): \d+", r"\1: 2", text)
    (home / "dagster.yaml").write_text(text.replace("base_dir: .dagster", f"base_dir: {home}"))
    settings = {"DAGSTER_HOME": str(home), "TRACEROOM_INBOX": str(folder.parent / "inbox"),
                "TRACEROOM_OUT": str(folder / "out"), "TRACEROOM_IMAGE": "off"}
    with DagsterInstance.from_ref(InstanceRef.from_dir(str(home))) as instance, (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", DAEMON, "run", "-m", "pipelines.definitions"], cwd=ROOT, stdout=log, stderr=log,
            env=environ() | settings)
        with _ended_with(process) as started:
            yield started, instance


@contextlib.contextmanager
def _ended_with(process: subprocess.Popen[bytes]) -> Iterator[psutil.Process]:
    """Yield a process, and end it with all that it started."""
    started = psutil.Process(process.pid)
    try:
        yield started
    finally:
        every = [started, *started.children(recursive=True)]
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        for each in every:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        process.wait()


def working_run(started: psutil.Process) -> psutil.Process | None:
    """Return the worker of a run, once it has a step in a process: the first of Python's children below the code server."""
    for each in started.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = each.parent()
            steps = [child for child in each.children() if "spawn_main" in " ".join(child.cmdline())]
            if steps and parent is not None and "grpc" in parent.cmdline():
                return each
    return None


def ended(instance: DagsterInstance, backfill: str) -> bool:
    """Return whether a backfill came to its end, one way or the other."""
    return instance.get_backfill(backfill).status in BULK_ACTION_TERMINAL_STATUSES


def finished(instance: DagsterInstance) -> list[DagsterRun]:
    """Return the runs that ended well."""
    return instance.get_runs(RunsFilter(statuses=[DagsterRunStatus.SUCCESS]))


@contextlib.contextmanager
def backfill_at_work(folder: Path) -> Iterator[tuple[Path, DagsterInstance, psutil.Process]]:
    """Yield where a daemon works, its instance and the worker of a run that has a step in a process.

    A daemon that starts nothing is ended and its log printed; then one more is started, as a supervisor would.
    """
    for name in ("first", "second"):
        place = folder / name
        place.mkdir()
        with daemon(place) as (started, instance):
            start(instance, "fortnight")
            try:
                worker = eventually(lambda: working_run(started), "a step in a process")
            except AssertionError:
                print(name, started.is_running(), instance.get_backfill("fortnight"), instance.get_runs())
                print(*(each.cmdline() for each in started.children(recursive=True)), sep="\n")
                print((place / "log").read_text()[-6000:])
                if name == "second":
                    raise
                continue
            yield place, instance, worker
            return


def start(instance: DagsterInstance, name: str) -> None:
    """Ask the daemon for the fortnight."""
    instance.add_backfill(PartitionBackfill.from_asset_partitions(
        backfill_id=name, asset_graph=defs.resolve_asset_graph(), partition_names=DAYS, asset_selection=KEYS,
        backfill_timestamp=time.time(), tags={}, dynamic_partitions_store=instance, all_partitions=False, title=None,
        description=None, run_config=None))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_backfill_whose_worker_is_killed_is_finished(tmp_path: Path) -> None:
    part_of_sample(tmp_path / "inbox")
    with backfill_at_work(tmp_path) as (place, instance, worker):
        below = worker.children(recursive=True)
        worker.kill()
        eventually(lambda: not any(each.is_running() for each in below), "the end of the orphans", 30)

        # Dagster marks a dead run as failed before it marks it to be tried again, and ends a backfill that it looks at
        # between the two; a run of an ended backfill is not tried again. Then the backfill is asked for once more, as a
        # person would (docs/pipeline.md): it must not wait for what the dead run held.
        eventually(lambda: finished(instance) or ended(instance, "fortnight"), "the end of the backfill")
        if not finished(instance):
            start(instance, "again")
        try:
            eventually(lambda: finished(instance) and all(run.is_finished for run in instance.get_runs()),
                       "the end of the second run")
        finally:
            states = [(run.status.value, run.tags) for run in instance.get_runs()]
            print(states, (place / "log").read_text()[-3000:])
        statuses = sorted(status for status, _ in states)
        assert statuses[:2] == ["FAILURE", "SUCCESS"] and len(statuses) < 4, "the killed run alone failed"
        assert instance.get_materialized_partitions(AssetKey(["core", "sessions"])) == set(DAYS)
    with Store.open(place / "out" / "warehouse.duckdb") as store:
        assert store.count("core.sessions") == 20


def test_every_instance_gives_back_what_a_dead_run_holds() -> None:
    for path in ("dagster.yaml", "deploy/dagster.yaml"):
        monitoring = yaml.safe_load((ROOT / path).read_text())["run_monitoring"]
        assert monitoring["enabled"] and monitoring["free_slots_after_run_end_seconds"] > 0
        assert monitoring["start_timeout_seconds"] >= 900, "a busy machine starts slowly"
    values = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "values.yaml").read_text())["dagsterDaemon"]
    assert values["runMonitoring"]["freeSlotsAfterRunEndSeconds"] > 0
