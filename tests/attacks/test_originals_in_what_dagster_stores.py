"""People and credentials in what a materialisation by Dagster stores, default settings: its databases, logs, OUT, releases."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.attacks.originals import CREDENTIALS, logs_with_originals, traces, traces_of_groups
from tests.attacks.report import Report
from tests.command_line import environ
from tests.conftest import ROOT
from warehouse.store import Store

_IN_PROCESS = json.dumps({"execution": {"config": {"in_process": {}}}})


def materialised(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Materialise every asset of today, as Dagster's own command does."""
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    return subprocess.run(
        [sys.executable, "-m", "dagster", "asset", "materialize", "--select", "*", "--partition", day, "--config-json",
         _IN_PROCESS, "-m", "pipelines.definitions"], cwd=folder / "home", capture_output=True, text=True, check=False,
        env=environ(**variables), timeout=600)


def attack(folder: Path, share: float) -> Report:
    """Materialise all assets of logs with originals, then once more with a setting that is refused, and search everything."""
    inbox, people = logs_with_originals(folder / "inbox")
    written = folder / "written"
    for name in ("temporary", "cache"):
        (written / name).mkdir(parents=True)
    (folder / "home").mkdir()
    shutil.copy(ROOT / "dagster.yaml", folder / "home")
    (folder / "off.toml").write_text('privacy = "off"\n')
    variables = {"DAGSTER_HOME": str(folder / "home"), "TRACEROOM_INBOX": str(inbox), "TRACEROOM_OUT": str(written / "out"),
                 "TRACEROOM_IMAGE": "off", "TMPDIR": str(written / "temporary"), "XDG_CACHE_HOME": str(written / "cache")}
    done = materialised(folder, **variables)
    absent = [name for name in ("environments", "datasets", "warehouse.published.duckdb")
              if not (written / "out" / name).exists()]
    assert not absent, f"no {absent}: {done.stdout[-900:]} {done.stderr[-900:]}"
    refused = materialised(folder, TRACEROOM_CONFIG=str(folder / "off.toml"), **variables)
    assert refused.returncode, "a run with another mode of privacy is refused"
    (folder / "home").rename(written / "home")
    for name, each in (("first", done), ("second", refused)):
        (written / f"{name}.log").write_text(each.stdout + each.stderr)
    with Store.published(written / "out" / "warehouse.duckdb") as store:
        session_ids = set(store.table("core.sessions")["session_id"])
    assert traces(written / "home", session_ids), "Dagster's databases show some rows"
    originals, credentials = traces_of_groups(written, people, {*CREDENTIALS.values()})
    figures = {"originals_left": float(len(originals)), "credentials_left": float(len(credentials))}
    n_files = sum(len(files) for _, _, files in os.walk(written))
    return Report(n_files, (*originals, *credentials), figures)


@pytest.mark.slow
def test_dagster_stores_no_originals(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
