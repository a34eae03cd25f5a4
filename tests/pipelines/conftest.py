"""What the tests of the pipelines share: a small part of the real sample, and the command line as a process."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.command_line import called, process
from tests.conftest import once
from tests.ray_interpreter import ray_interpreter
from warehouse.store import Store

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests/logs/airline"
LAMP_SHOP = ROOT / "tests/logs/lamp_shop"

Traceroom = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def traceroom() -> Traceroom:
    """Return the command line within this process."""
    return called


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a folder with the first twenty sessions of the sample, its tools and its feedback."""
    return part_of_sample(tmp_path / "logs")


def quiet() -> dict[str, Any]:
    """Return a run configuration that keeps Dagster's own log lines off the screen."""
    return {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def part_of_sample(folder: Path, n: int = 20) -> Path:
    """Write the first sessions of the sample, its tools and its feedback into a folder."""
    shutil.copytree(SAMPLE, folder)
    for file in (folder / "logs").glob("*.jsonl"):
        lines = file.read_text("utf-8").splitlines(keepends=True)
        file.write_text("".join(lines[:n]), "utf-8")
    return folder


OF_RUNS = ("raw.schema_version", "raw.stages", "raw.partitions", "raw.audits", "raw.cache", "raw.locations", "raw.published")
"""Tables that tell of runs, and nothing of logs."""


def tables(out: Path) -> dict[str, pl.DataFrame]:
    """Every table of the published warehouse, without what tells of the clock and of places."""
    with Store.published(out / "warehouse.duckdb") as store:
        names = store.read("select schema_name || '.' || table_name as name from duckdb_tables() order by all")["name"]
        return {
            name: store.table(name).drop("read_at", "path", strict=False)
            for name in names
            if name not in OF_RUNS}


def files(out: Path) -> dict[str, bytes]:
    """Every exported file with its content."""
    folders = [out / name for name in ("environments", "rewards", "unverified", "datasets")]
    return {
        str(path.relative_to(out)): path.read_bytes()
        for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()}


def same(one: dict[str, pl.DataFrame], other: dict[str, pl.DataFrame]) -> list[str]:
    """Names of the tables that differ."""
    return sorted(name for name in one.keys() | other.keys() if not one[name].equals(other[name]))


@pytest.fixture
def ran(sample_run: Path) -> Path:
    """Return the folder of a finished run over the whole sample; look, do not touch."""
    return sample_run


@pytest.fixture(scope="session")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a finished run over the first twenty sessions, and what it printed; look, do not touch."""
    def make(folder: Path) -> None:
        folder.mkdir()
        done = process("run", "--no-image", "--json", part_of_sample(folder / "logs"), "--out", folder / "out")
        assert done.returncode == 0, done.stderr
        (folder / "printed.json").write_text(done.stdout)

    folder = once(tmp_path_factory, "run_once", make)
    return folder / "out", (folder / "printed.json").read_text()


@pytest.fixture(scope="session")
def lamp_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run over a shop's desk with policies, whose published tasks are enough to draw from;
    look, do not touch."""
    def make(out: Path) -> None:
        done = process("run", "--no-image", LAMP_SHOP, "--out", out)
        assert done.returncode == 0, done.stderr

    return once(tmp_path_factory, "lamp_run", make)


@pytest.fixture(scope="session")
def ray_python() -> Path:
    """Return an interpreter with Ray beside our own packages, in the versions that are locked here."""
    return ray_interpreter()
