"""What the benchmark of factors says of a tiny log, in which nothing may differ but the factor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "tests" / "logs" / "airline" / "logs"


@pytest.mark.slow
def test_orders_kills_and_workers_leave_every_byte_as_it_was(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "nightly_factors.py"), str(SAMPLE), "--first", "8", "--kill",
         "--orders", "1", "--workers", "1", "--folder", str(tmp_path)],
        capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])["figures"]
    assert figures["n_sessions"] == 8
    assert figures["equal_orders"] and figures["equal_kills"] and figures["equal_workers"], figures["differs"]
    assert "sessions" in figures["killed_in"] or "extract" in figures["killed_in"], "a kill that never came shows nothing"
