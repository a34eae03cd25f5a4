"""Runs that are killed in any stage, or lose a worker: the next run ends with what an undisturbed one writes."""

from __future__ import annotations

import random
import shutil
import time
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.attacks.report import Report, counted
from tests.attacks.runs import NAMES, RUN, Run, Wanted

_WITH_WORKERS = ("extract", "environments")
"""Stages that give shards to workers."""
_AT_ONCE = 3
"""Kills of runs into the same folder before one may end."""


class Moment(NamedTuple):
    """When a run is killed, and what of it."""

    stage: str
    share: float
    """Of the stage's time that has passed."""
    target: str
    """Main process, all processes, or one worker."""
    has_workers: bool


def moments(n: int, choose: random.Random) -> list[Moment]:
    """Choose moments over all stages; every third is of a run with workers, in a stage that has them."""
    stages, with_workers = cycle(NAMES), cycle(_WITH_WORKERS)
    chosen = []
    for number in range(n):
        has_workers = number % 3 == 2
        stage = next(with_workers if has_workers else stages)
        targets = ("worker", "worker", "main", "all") if has_workers else ("main",)
        chosen.append(Moment(stage, choose.random(), choose.choice(targets), has_workers))
    return chosen


def struck(run: Run, moment: Moment, wanted: Wanted) -> bool:
    """Kill a run, or a worker of it, at a moment; return whether it was at work."""
    if not run.reach(moment.stage):
        run.end()
        return False
    if moment.target != "worker":
        time.sleep(moment.share * wanted.seconds[moment.stage])
        return run.kill(whole_group=moment.target == "all")
    hit = run.kill_a_worker(int(moment.share * 10), patience_s=60)
    code = run.end()
    text = "".join(run.lines)
    assert code == 0 or (code == 2 and "ended from outside" in text and "Traceback" not in text), f"{code}: {text[-600:]}"
    return hit


def attack(folder: Path, share: float, wanted: Wanted | None = None) -> Report:
    """Kill runs at 120 moments, of the same folder up to three times over, then let one end."""
    n, choose, wanted = counted(120, share), random.Random(27), wanted or Wanted(folder / "wanted")
    waiting, problems, n_hit, number = moments(n, choose), [], 0, 0
    while waiting:
        number += 1
        some = sorted(waiting[:_AT_ONCE], key=lambda moment: NAMES.index(moment.stage))
        del waiting[:_AT_ONCE]
        out = folder / f"out{number}"
        if number % 2:
            wanted.copy_former(out)
        try:
            for moment in some:
                engine = {"TRACEROOM_WORKERS": "1"} if moment.has_workers else {"TRACEROOM_ENGINE": "process"}
                n_hit += struck(Run(folder, *RUN, wanted.logs, "--out", out, **engine), moment, wanted)
            last = Run(folder, *RUN, wanted.logs, "--out", out, TRACEROOM_ENGINE="process")
            code = last.end()
            differences = wanted.differences(out) if code == 0 else [f"exit code {code}: {''.join(last.lines)[-600:]}"]
        except AssertionError as error:
            differences = [str(error)]
        problems += [f"{each}, after {some}" for each in differences]
        shutil.rmtree(out)
    if 2 * n_hit < n:
        problems.append(f"only {n_hit} of {n} moments hit a run at work")
    return Report(n_hit, tuple(problems), {"kills_unequal": float(len(problems))})


@pytest.mark.slow
def test_runs_that_are_killed_go_on(tmp_path: Path, wanted: Wanted) -> None:
    report = attack(tmp_path, 0.05, wanted)
    assert report.problems == () and report.n_tried >= 3
