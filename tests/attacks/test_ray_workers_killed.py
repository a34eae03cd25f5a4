"""Workers of Ray, and runs that use them, that are killed in the stages that give them shards: nothing differs in the end."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest

from tests.attacks.report import Report, counted
from tests.attacks.runs import RUN, Run, Wanted
from tests.ray_interpreter import ray_interpreter, with_our_packages

_STAGES = ("extract", "environments")
PATIENCE_S = 300.0


def struck(run: Run, stage: str, whole_run: bool, choose: random.Random) -> bool:
    """Kill a worker, or the run, once Ray has work in a stage; return whether there was one."""
    if not run.reach(stage):
        run.end()
        return False
    if whole_run:
        until = time.monotonic() + PATIENCE_S
        while not run.workers() and run.is_alive() and time.monotonic() < until:
            time.sleep(0.01)
        return run.kill(whole_group=choose.random() < 0.5)
    hit = run.kill_a_worker(choose.randrange(2), PATIENCE_S)
    code = run.end()
    assert code == 0, f"{code}: {''.join(run.lines)[-600:]}"
    return hit


def attack(folder: Path, share: float, wanted: Wanted | None = None) -> Report:
    """Kill at ten moments; of every second one the whole run."""
    n, choose, wanted = counted(10, share), random.Random(27), wanted or Wanted(folder / "wanted")
    ray = {"TRACEROOM_ENGINE": "ray", "TRACEROOM_WORKERS": "2", "PYTHONPATH": with_our_packages()}
    n_hit, problems = 0, []
    for number in range(n):
        out, stage = wanted.copy_former(folder / f"out{number}"), _STAGES[number // 2 % 2]
        try:
            run = Run(folder, *RUN, wanted.logs, "--out", out, python=ray_interpreter(), **ray)
            n_hit += struck(run, stage, number % 2 == 1, choose)
            last = Run(folder, *RUN, wanted.logs, "--out", out, TRACEROOM_ENGINE="process")
            code = last.end()
            differences = wanted.differences(out) if code == 0 else [f"exit code {code}: {''.join(last.lines)[-600:]}"]
        except AssertionError as error:
            differences = [str(error)]
        problems += [f"{stage}: {each}" for each in differences]
        shutil.rmtree(out)
    problems += ["no moment hit a worker"] if not n_hit else []
    return Report(n_hit, tuple(problems), {"kills_unequal": float(len(problems))})


@pytest.mark.slow
def test_runs_whose_ray_workers_are_killed_go_on(tmp_path: Path, wanted: Wanted) -> None:
    assert attack(tmp_path, 0.1, wanted).problems == ()
