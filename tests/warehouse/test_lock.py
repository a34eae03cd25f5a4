"""One writer at a time, who says who they are; the lock dies with its holder."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.errors import Busy
from warehouse.lock import holder, writing

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from warehouse.lock import writing
with writing(Path(sys.argv[1]), "a run over logs", lambda who: print("waits for", who, flush=True)):
    print("held", flush=True)
    sys.stdin.read()
"""


def started(path: Path) -> subprocess.Popen[str]:
    """Return a process that takes the lock, and gives it back when its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def hold(path: Path) -> subprocess.Popen[str]:
    process = started(path)
    assert said(process) == "held\n"
    return process


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate()
    return process.returncode


def test_a_second_writer_waits_and_is_told_for_whom(tmp_path: Path) -> None:
    path, told = tmp_path / "warehouse.duckdb", []
    other = hold(path)
    assert other.stdin
    stop = other.stdin.close

    def waiting(who: str) -> None:
        told.append(who)
        stop()

    with writing(path, "another run", waiting):
        assert told == [word for word in told if word.startswith(f"a run over logs (process {other.pid} on ")]
        assert len(told) == 1
        assert holder(path).startswith("another run (")
    assert other.wait() == 0 and other.stdout and not other.stdout.read()


def test_who_waits_too_long_is_told_the_hint(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    other = hold(path)
    with pytest.raises(Busy, match=rf"a run over logs \(process {other.pid} .*nothing is lost"), \
            writing(path, "another run", timeout_s=0.2):
        pass
    other.kill()
    ended(other)


def test_a_killed_holder_gives_the_lock_back(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    other = hold(path)
    other.send_signal(signal.SIGKILL)
    assert ended(other) == -signal.SIGKILL
    with writing(path, "the next run", timeout_s=1):
        assert holder(path).startswith("the next run")


def test_it_may_be_taken_again_inside(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    with writing(path, "a run"):
        with writing(path, "a stage of it", timeout_s=1):
            assert holder(path).startswith("a run (")
        other = started(path)
        assert said(other).startswith("waits for a run (")
    assert said(other) == "held\n"
    assert ended(other) == 0
