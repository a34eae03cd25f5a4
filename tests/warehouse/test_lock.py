"""One writer at a time, who says who they are; the lock dies with its holder."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warehouse.errors import Busy
from warehouse.lock import holder, writing

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from pathlib import Path
from warehouse.lock import writing
with writing(Path(sys.argv[1]), "a run over logs"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def hold(path: Path, seconds: float) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), str(seconds)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout and process.stdout.readline() == "held\n"
    return process


def test_a_second_writer_waits_and_is_told_for_whom(tmp_path: Path) -> None:
    path, told = tmp_path / "warehouse.duckdb", []
    other = hold(path, 3)
    began = time.monotonic()
    with writing(path, "another run", told.append):
        assert time.monotonic() - began > 1
        assert told == [word for word in told if word.startswith(f"a run over logs (process {other.pid} on ")]
        assert len(told) == 1
        assert holder(path).startswith("another run (")
    assert other.wait() == 0


def test_who_waits_too_long_is_told_the_mend(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    other = hold(path, 60)
    with pytest.raises(Busy, match=rf"a run over logs \(process {other.pid} .*nothing is lost"), \
            writing(path, "another run", timeout_s=0.2):
        pass
    other.kill()
    other.wait()


def test_a_killed_holder_gives_the_lock_back(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    other = hold(path, 60)
    other.send_signal(signal.SIGKILL)
    other.wait()
    with writing(path, "the next run", timeout_s=1):
        assert holder(path).startswith("the next run")


def test_it_may_be_taken_again_inside(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    with writing(path, "a run"):
        with writing(path, "a stage of it", timeout_s=1):
            assert holder(path).startswith("a run (")
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run([sys.executable, "-c", HOLD, str(path), "0"], cwd=ROOT, timeout=2, capture_output=True)
    hold(path, 0).wait()
