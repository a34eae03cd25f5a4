"""The report of the last run is repeated only if nothing that it depends on changed, and costs little to load."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.running import receipt
from pipelines.settings import Settings
from tests.pipelines.conftest import Traceroom

HEAVY = ("dagster", "docker", "env_builder.bundle", "env_builder.verify", "extractors.reading", "faker", "jsonschema",
         "mcp", "openai", "playwright", "pyarrow", "pyarrow.parquet", "ray", "sklearn", "sqlglot")
COMMAND = """
import sys
from pipelines.cli import main
try:
    main()
finally:
    print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.fixture
def finished(run_once: tuple[Path, str], tmp_path: Path, traceroom: Traceroom) -> Settings:
    """Return the settings of a finished run, over logs and into a folder of their own."""
    shutil.copytree(run_once[0], tmp_path / "out")
    shutil.copytree(run_once[0].parent / "logs", tmp_path / "logs")
    done = traceroom("run", "--no-image", tmp_path / "logs", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    return Settings(logs=(str(tmp_path / "logs"),), out=str(tmp_path / "out"), image=False)


def files_below(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*") if path.is_file()}


def corrected(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "one.jsonl").write_text("{}\n")


def appended(path: Path) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("\n")


def test_a_run_without_news_reports_the_same_and_loads_little(finished: Settings) -> None:
    first = receipt.document(finished)
    assert first is not None and first["n_sessions"] > 0
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(heavy=HEAVY), "run", "--no-image", "--json", *finished.logs, "--out",
         finished.out], capture_output=True, text=True, check=True)
    made = json.loads(done.stdout)
    assert {name: made[name] for name in first} == json.loads(json.dumps(first))
    assert not any(stage["computed"] for stage in made["stages"])
    assert done.stderr.splitlines()[-1] == "[]", "what a run without news does not need"


def test_whatever_it_rests_on_makes_the_run_look_again(finished: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    out, logs = Path(finished.out), Path(finished.logs[0])
    log = next(logs.rglob("*.jsonl"))
    written = next((out / "environments").rglob("tasks.jsonl"))
    changes: list[tuple[str, Callable[[], object]]] = [
        ("a new log", lambda: (logs / "more.jsonl").write_text("{}\n")), ("a longer log", lambda: appended(log)),
        ("a log with another name", lambda: log.rename(log.with_name("renamed.jsonl"))),
        ("a file that a stage wrote", lambda: appended(written)), ("one that is gone", written.unlink),
        ("what is published", lambda: os.utime(out / "warehouse.published.duckdb", ns=(1, 1))),
        ("a correction", lambda: corrected(out / "corrections")),
        ("a run that was killed", lambda: (out / "progress.json").write_text("{}"))]
    for what, change in changes:
        before = {path: (path.read_bytes(), path.stat()) for path in files_below(out, logs)}
        assert receipt.document(finished) is not None, f"before {what}"
        change()
        assert receipt.document(finished) is None, what
        for path in files_below(out, logs) - before.keys():
            path.unlink()
        for path, (content, status) in before.items():
            if not path.exists() or path.stat().st_mtime_ns != status.st_mtime_ns:
                if not path.exists() or path.read_bytes() != content:
                    path.write_bytes(content)
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    for other in (finished.model_copy(update={"limit": 5}), finished.model_copy(update={"since": "2026-03-01"}),
                  finished.model_copy(update={"privacy": False})):
        assert receipt.document(other) is None
    monkeypatch.setenv("TRACEROOM_MODEL", "another")
    assert receipt.document(finished) is None


def test_a_person_who_is_forgotten_and_a_run_with_something_left_to_do_leave_no_receipt(
        finished: Settings, traceroom: Traceroom) -> None:
    assert finished.receipt.exists()
    (Path(finished.logs[0]) / "more.jsonl").write_text("{}\n")
    receipt.keep(finished, {}, "")
    assert not finished.receipt.exists()
    finished.receipt.write_text("{}")
    assert traceroom("forget", "--subject", "nobody-is-called-so", "--out", finished.out).returncode == 0
    assert not finished.receipt.exists()
