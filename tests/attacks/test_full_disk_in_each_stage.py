"""A disk that becomes full in each stage of a run: one sentence says so, readers lose nothing, and the next run goes on."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.attacks.disks import fill, may_mount, small_disk
from tests.attacks.report import Report, counted
from tests.attacks.runs import NAMES, RUN, Run, Wanted, sentence_problems
from tests.conftest import lacking

_DISK_BYTES = 1 << 28
_FREE_BYTES = (0, 0, 8_192, 300_000)
"""What is free when a stage begins: it may be enough for a part of what the stage writes."""


def problems_in(stage: str, n_bytes_free: int, wanted: Wanted, folder: Path) -> list[str]:
    """Fill the disk of OUT and of temporary files when a stage begins, then make room."""
    with small_disk(folder / "disk", _DISK_BYTES) as disk:
        out, temporary = wanted.copy_former(disk / "out"), disk / "temporary"
        temporary.mkdir()
        run = Run(folder, *RUN, wanted.logs, "--out", out, TRACEROOM_ENGINE="process", TMPDIR=str(temporary))
        assert run.reach(stage), run.lines
        with run.standing_still():
            filler = fill(disk, n_bytes_free)
        code = run.end()
        problems = [] if code == 0 and n_bytes_free else sentence_problems(run, code, "No space left", "no room")
        problems += wanted.destroyed(out) if code else []
        filler.unlink()
        last = Run(folder, *RUN, wanted.logs, "--out", out, TRACEROOM_ENGINE="process", TMPDIR=str(temporary))
        code = last.end()
        problems += wanted.differences(out) if code == 0 else [f"exit code {code} with room: {''.join(last.lines)[-600:]}"]
        problems += [f"{path} stays" for path in temporary.iterdir()]
    shutil.rmtree(folder / "disk")
    return [f"{stage}, {n_bytes_free} bytes free: {each}" for each in problems]


def attack(folder: Path, share: float, wanted: Wanted | None = None) -> Report:
    """Fill the disk in every stage, with different bytes free."""
    wanted, choose = wanted or Wanted(folder / "wanted"), random.Random(27)
    pairs = [(stage, n_bytes_free) for stage in NAMES for n_bytes_free in sorted({*_FREE_BYTES})]
    pairs = sorted(choose.sample(pairs, counted(len(pairs), share)), key=pairs.index)
    problems = [each for stage, n_bytes_free in pairs for each in problems_in(stage, n_bytes_free, wanted, folder)]
    return Report(len(pairs), tuple(problems), {"kills_unequal": float(len(problems))})


@pytest.mark.slow
def test_a_full_disk_in_a_stage_costs_nothing(tmp_path: Path, wanted: Wanted) -> None:
    if not may_mount():
        lacking("a disk that gets full needs a file system of its own, and only root may mount one")
    assert attack(tmp_path, 0.04, wanted).problems == ()
