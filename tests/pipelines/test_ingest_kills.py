"""Ingestion that is killed at any moment, or runs out of room: what it holds in the end is what an undisturbed one holds."""

from __future__ import annotations

import contextlib
import gzip
import multiprocessing
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import lacking
from tests.pipelines.ingestion import HEADER, access, digest, held, in_a_process, rating, session

CHUNK_BYTES, ROWS = 7_000, 600


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return some hundred kB of logs in all layouts: rotated, repeated, packed, damaged."""
    folder = tmp_path_factory.mktemp("logs")
    lines = [session(number) for number in range(1000)]
    (folder / "a.jsonl").write_text("".join(lines[:625]) + '{"session_id": "torn", "messages"\n')
    (folder / "b.jsonl").write_text("".join(lines[575:]) + lines[-1][:40])
    (folder / "again.jsonl").write_text("".join(lines[:300]))
    (folder / "packed.jsonl.gz").write_bytes(gzip.compress("".join(map(session, range(5000, 5300))).encode(), mtime=0))
    (folder / "access.log").write_text("".join(map(access, range(750))))
    (folder / "access.log.1").write_text("".join(map(access, range(400))) + access(7))
    (folder / "ratings.csv").write_text(HEADER + "".join(map(rating, range(500))))
    (folder / "notes.md").write_text("# About these logs")
    (folder / "damaged.gz").write_bytes(gzip.compress("".join(map(session, range(7000, 7300))).encode(), mtime=0)[:1500])
    return folder


SERVER = multiprocessing.get_context("forkserver")   # imports once for all that are killed
SERVER.set_forkserver_preload(["tests.pipelines.ingestion", "pipelines.dagster_assets.assets"])


class Ingestion:
    """An ingestion in a process (and a process group) of its own."""

    def __init__(self, out: Path, in_processes: bool, logs: Path) -> None:
        self._said = out.with_name(f"{out.name}.{time.monotonic_ns()}.said")
        self._process = SERVER.Process(
            target=in_a_process, args=(out, CHUNK_BYTES, ROWS, in_processes, logs, self._said))
        self._process.start()
        assert self._process.pid is not None
        self.group = self._process.pid

    def end(self) -> tuple[int | None, str]:
        """Wait for the end; gives the exit code and what was said."""
        self._process.join(300)
        return self._process.exitcode, self._said.read_text() if self._said.exists() else ""

    def kill(self, whole_group: bool) -> bool:
        """Kill it; whether it was still at work. None of its readers may outlive it for long."""
        was_running = self._process.is_alive()
        if whole_group:
            with contextlib.suppress(ProcessLookupError):   # it has no group yet, or has ended
                os.killpg(self.group, signal.SIGKILL)
        self._process.kill()
        self._process.join(60)
        deadline = time.monotonic() + 200
        while in_group(self.group):
            assert time.monotonic() < deadline, f"processes {in_group(self.group)} outlive the one they read for"
            time.sleep(0.02)
        return was_running


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "with readers"])
def undisturbed(
    request: pytest.FixtureRequest, logs: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bool, str, float]:
    """Whether it has readers beside it, what an ingestion holds that nobody disturbs, and how long it takes."""
    out = tmp_path_factory.mktemp("undisturbed")
    Ingestion(out / "first", request.param, logs).end()   # imports
    began = time.monotonic()
    assert Ingestion(out, request.param, logs).end() == (0, "")
    seconds = time.monotonic() - began
    assert held(out)["raw.files"].height > 40, "there are chunks enough to be killed between"
    return request.param, digest(out), seconds


def in_group(group: int) -> list[int]:
    """Return processes of a process group that are alive."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(int(stat.parent.name))
    return found


def killed_often(n: int, seed: int, logs: Path, undisturbed: tuple[bool, str, float], folder: Path) -> int:
    """Kill at `n` moments, of the same warehouse up to three times over before it may end; gives how many hit."""
    in_processes, wanted, seconds = undisturbed
    choose, hit, number = random.Random(seed), 0, 0
    while hit < n:
        out = folder / f"out{number}"
        for _ in range(choose.randint(1, 3)):
            run = Ingestion(out, in_processes, logs)
            time.sleep(choose.uniform(0.05, 1.0) * seconds)
            if run.kill(choose.random() < 0.5):
                hit += 1
            else:   # it was over already: the machine had more to do when the time was taken than now
                seconds *= 0.8
        assert Ingestion(out, in_processes, logs).end() == (0, "")
        assert digest(out) == wanted, f"seed {seed}, ingestion {number}"
        number += 1
        assert number <= 4 * n, "hardly any kill hits: the moments are wrong"
    return hit


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_ingestion_that_is_killed_at_twenty_moments_goes_on(
    logs: Path, undisturbed: tuple[bool, str, float], tmp_path: Path
) -> None:
    """Twenty alone, and twenty with readers beside it."""
    assert killed_often(20, 2, logs, undisturbed, tmp_path) >= 20


def test_both_ways_hold_the_same(logs: Path, tmp_path: Path) -> None:
    for out, in_processes in (("alone", False), ("beside", True)):
        assert Ingestion(tmp_path / out, in_processes, logs).end() == (0, "")
    assert digest(tmp_path / "alone") == digest(tmp_path / "beside")


def test_two_ingestions_at_once_wait_for_each_other(
    logs: Path, undisturbed: tuple[bool, str, float], tmp_path: Path
) -> None:
    in_processes, wanted, _ = undisturbed
    runs = [Ingestion(tmp_path / "out", in_processes, logs) for _ in range(2)]
    assert [run.end() for run in runs] == [(0, ""), (0, "")]
    assert digest(tmp_path / "out") == wanted


@pytest.fixture
def little_room(tmp_path: Path) -> Iterator[Path]:
    """Yield a disk of a megabyte and a half, beside what is said."""
    room = tmp_path / "room"
    room.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", room], check=False).returncode:
        lacking("a disk that gets full needs a file system of its own, and only root may mount one")
    yield room
    subprocess.run(["umount", "-l", room], check=True)


def test_a_disk_that_is_full_is_said_and_the_run_goes_on_when_there_is_room(
    little_room: Path, logs: Path, undisturbed: tuple[bool, str, float]
) -> None:
    in_processes, wanted, _ = undisturbed
    out = little_room / "out"
    run = Ingestion(out, in_processes, logs)
    code, said = run.end()
    assert code == 2, said
    [sentence] = said.strip().splitlines()
    assert "No space left" in sentence and "warehouse.duckdb" in sentence
    assert sentence.endswith("make room on the disk, then run again: what was committed stays.")
    assert not in_group(run.group)
    subprocess.run(["mount", "-o", "remount,size=200m", little_room], check=True)
    assert Ingestion(out, in_processes, logs).end() == (0, "")
    assert digest(out) == wanted
