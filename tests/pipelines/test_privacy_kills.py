"""Ingestion with privacy on that is killed between two transactions: the next one judges and stores as an undisturbed one."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import polars as pl
import pytest

from pipelines.ingestion import ingest
from pipelines.settings import Settings
from tests.pipelines.conftest import same
from tests.pipelines.ingestion import TABLES, small
from tests.pipelines.test_privacy import KEY, session
from warehouse.lock import writing
from warehouse.store import Store

SERVER = multiprocessing.get_context("forkserver")   # imports once for all that are killed
SERVER.set_forkserver_preload([__name__])
TEXTS = ("write to Zed.Q@corp-mail.io", "my name is Wren Abara", "is a lamp by Fenwick in stock?",
         "write to zed.q@corp-mail.io", "call +1 415 555 0132, or (415) 555-0132")
RESULTS = ('{"brand": "Fenwick", "id": "L-1"}', '{"first_name": "Fenwick", "last_name": "Obi"}', "ok", "ok", "ok")


def held(out: Path, logs: Path, n_commits: int | None = None) -> dict[str, pl.DataFrame]:
    """Ingest, each chunk in a transaction of its own, and return the tables; where `n_commits` is given, die behind so many of
    these."""
    commit, n_done = ingest._Batch.commit, 0

    def commit_or_die(batch: ingest._Batch) -> None:
        nonlocal n_done
        if n_done == n_commits:
            os.kill(os.getpid(), signal.SIGKILL)
        n_done += 1
        commit(batch)

    settings = Settings(logs=(str(logs),), out=str(out), privacy=True)
    with small(900, 0), pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACEROOM_KEY", KEY)
        patch.setattr(ingest._Batch, "commit", commit_or_die)
        with writing(settings.warehouse, "a test"), Store.open(settings.warehouse) as store:
            ingest.ingest(store, settings)
            return {table: store.table(table).drop("read_at", strict=False) for table in (
                *TABLES, "raw.people", "raw.new_people", "raw.locations")}


def kill(out: Path, logs: Path, n_commits: int) -> None:
    process = SERVER.Process(target=held, args=(out, logs, n_commits))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return files that need each other: a brand in one is a name in another, and addresses differ in case."""
    folder = tmp_path_factory.mktemp("logs")
    for number, (said, result) in enumerate(zip(TEXTS, RESULTS, strict=True)):
        (folder / f"{number}.jsonl").write_text(session(number, said, result))
    return folder


@pytest.fixture(scope="module")
def undisturbed(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    tables = held(tmp_path_factory.mktemp("undisturbed"), logs)
    assert tables["raw.people"].height > 3 and tables["raw.new_people"].is_empty()
    return tables


@pytest.mark.slow
@pytest.mark.parametrize("kills", [(4,), (2, 1)])
def test_an_ingestion_that_was_killed_knows_the_same_people(
        kills: tuple[int, ...], logs: Path, undisturbed: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    """Those whom only the form of an address or a number tells too, and a name that another file shows to be a brand."""
    for n_commits in kills:
        kill(tmp_path, logs, n_commits)
    assert same(undisturbed, held(tmp_path, logs)) == []


def test_whom_a_killed_run_met_stays_known_where_the_log_is_gone_before_the_next_one(
        logs: Path, undisturbed: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    fewer = Path(shutil.copytree(logs, tmp_path / "logs"))
    kill(tmp_path / "out", fewer, 4)
    (fewer / "0.jsonl").unlink()
    known = held(tmp_path / "out", fewer)["raw.people"]
    assert undisturbed["raw.people"].join(known, on="person_id", how="anti").is_empty()
