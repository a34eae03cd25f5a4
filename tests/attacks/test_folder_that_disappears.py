"""OUT that is moved away, removed or replaced during a run: a sentence says so, and the run begins no empty warehouse there."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.attacks.report import Report, counted
from tests.attacks.runs import NAMES, RUN, Run, Wanted, sentence_problems

_WAYS = ("moved", "removed", "replaced")


def problems_in(stage: str, way: str, wanted: Wanted, folder: Path) -> list[str]:
    """Take OUT away when a stage begins, let the run end, put OUT back where it was moved, and run again."""
    out, elsewhere = wanted.copy_former(folder / "out"), folder / "elsewhere"

    def started() -> Run:
        return Run(folder, *RUN, wanted.logs, "--out", out, TRACEROOM_ENGINE="process")

    run = started()
    assert run.reach(stage), run.lines
    with run.standing_still():
        out.rename(elsewhere)
        if way == "replaced":
            wanted.copy_former(out)
    code = run.end()
    if code == 0:   # it had not begun yet
        problems = wanted.differences(out)
    else:
        problems = sentence_problems(run, code, "moved, removed or replaced", "No such file", "there is no")
        problems += wanted.destroyed(out) if way == "replaced" else []
        if way != "replaced" and (out / "warehouse.published.duckdb").exists():
            problems.append("a warehouse was published where none was")
    if way == "moved":
        shutil.rmtree(out, ignore_errors=True)
        elsewhere.rename(out)
    last = started()
    code = last.end()
    problems += wanted.differences(out) if code == 0 else [f"exit code {code} afterwards: {''.join(last.lines)[-600:]}"]
    for each in (out, elsewhere):
        shutil.rmtree(each, ignore_errors=True)
    return [f"{stage}, {way}: {each}" for each in problems]


def attack(folder: Path, share: float, wanted: Wanted | None = None) -> Report:
    """Take OUT away in every stage, in each way."""
    wanted, choose = wanted or Wanted(folder / "wanted"), random.Random(27)
    pairs = [(stage, way) for stage in NAMES for way in _WAYS]
    chosen = sorted(choose.sample(pairs, counted(len(pairs), share)), key=pairs.index)
    problems = [each for stage, way in chosen for each in problems_in(stage, way, wanted, folder)]
    return Report(len(chosen), tuple(problems), {"kills_unequal": float(len(problems))})


@pytest.mark.slow
def test_a_folder_that_disappears_is_named(tmp_path: Path, wanted: Wanted) -> None:
    assert attack(tmp_path, 0.08, wanted).problems == ()
