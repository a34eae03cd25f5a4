"""OUT that becomes read-only in each stage of a run: one sentence says so, readers lose nothing, and the next run goes on."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.attacks.disks import may_mount, read_only
from tests.attacks.report import Report, counted
from tests.attacks.runs import NAMES, RUN, Run, Wanted, sentence_problems
from tests.conftest import lacking


def problems_in(stage: str, wanted: Wanted, folder: Path) -> list[str]:
    """Make OUT read-only when a stage begins, run until that ends the run, and again, then let a run write to it."""
    out = wanted.copy_former(folder / "out")

    def started() -> Run:
        return Run(folder, *RUN, wanted.logs, "--out", out, TRACEROOM_ENGINE="process")

    run = started()
    assert run.reach(stage), run.lines
    with run.standing_still():
        barred = read_only(out)
        barred.__enter__()
    try:
        problems = sentence_problems(run, run.end(), "Read-only", "read-only")
        again = started()
        problems += sentence_problems(again, again.end(), "Read-only", "read-only")
        problems += wanted.destroyed(out)
    finally:
        barred.__exit__(None, None, None)
    last = started()
    code = last.end()
    problems += wanted.differences(out) if code == 0 else [f"exit code {code} afterwards: {''.join(last.lines)[-600:]}"]
    shutil.rmtree(out)
    return [f"{stage}: {each}" for each in problems]


def attack(folder: Path, share: float, wanted: Wanted | None = None) -> Report:
    """Make OUT read-only in every stage."""
    wanted, choose = wanted or Wanted(folder / "wanted"), random.Random(27)
    stages = sorted(choose.sample(NAMES, counted(len(NAMES), share)), key=NAMES.index)
    problems = [each for stage in stages for each in problems_in(stage, wanted, folder)]
    return Report(2 * len(stages), tuple(problems), {"kills_unequal": float(len(problems))})


@pytest.mark.slow
def test_a_read_only_folder_in_a_stage_costs_nothing(tmp_path: Path, wanted: Wanted) -> None:
    if not may_mount():
        lacking("a folder that becomes read-only needs a mount, and only root may mount one")
    assert attack(tmp_path, 0.09, wanted).problems == ()
