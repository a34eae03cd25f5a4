"""The benchmark of nights: a small desk's, to the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.pipelines.conftest import SAMPLE


@pytest.mark.slow
def test_nights_are_measured_and_end_where_a_full_build_does(tmp_path: Path) -> None:
    lines = next((SAMPLE / "logs").glob("*.jsonl")).read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "desk.jsonl").write_text("".join(lines[:16]), "utf-8")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "nightly.py"), str(tmp_path / "desk.jsonl"), "--nights", "2",
         "--measured", "1", "--share", "0.1", "--services", "2", "--folder", str(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    figures = told["figures"]
    assert (told["benchmark"], told["n_nights"], figures["n_sessions"]) == ("nightly", 2, 16)
    assert figures["equal"] is True, done.stderr
    assert figures["rubric_rebuilds_world"] is False and figures["idle_computes"] == 0
    assert 0 < figures["idle_share"] < figures["incremental_share"] and "share_world" in figures
    assert [path.name for path in tmp_path.iterdir()] == ["desk.jsonl"], "it leaves nothing behind"
