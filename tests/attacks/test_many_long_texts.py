"""Hundreds of episodes in which an agent sends long texts, each one new: what the runtime keeps of them is bounded."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from env_builder.runtime import Environment
from tests.attacks.fast_motion import Holdings
from tests.attacks.report import Report, counted
from tests.command_line import process
from tests.pipelines.conftest import part_of_sample

EPISODES, WORDS = 400, 10_000
MOST_GROWTH = 0.15
"""Of memory from the middle to the end; without a bound it is nearly doubled."""


def play(environment: Environment, steps: list[dict[str, object]], choose: random.Random) -> None:
    """Follow a solution for a while, with a long text beside each argument and after it."""
    for step in steps[:4]:
        text = " ".join(f"{choose.getrandbits(40):x}" for _ in range(WORDS))
        if "tool" in step:
            environment.call(str(step["tool"]), {**dict(step["arguments"]), "note": text})  # type: ignore[call-overload]
        environment.say(f"No: {text}")
    environment.finish()
    environment.grade()


def holdings_of(room: Path, n_episodes: int) -> tuple[Holdings, Holdings]:
    """Play in this process; return what it holds in the middle and at the end."""
    environment, choose, at = Environment.load(room), random.Random(27), []
    lines = (room.parents[1] / "rewards" / room.name / "solutions.jsonl").read_text("utf-8").splitlines()
    solutions = [json.loads(line) for line in lines]
    for _ in range(2):
        for number in range(n_episodes // 2):
            solution = solutions[number % len(solutions)]
            environment.reset(solution["task_id"])
            play(environment, solution["steps"], choose)
        gc.collect()
        at.append(Holdings.of(os.getpid()))
    return at[0], at[1]


def attack(folder: Path, share: float) -> Report:
    """Build an environment from logs, and play it with long texts."""
    n, out = counted(EPISODES, share, 2), folder / "out"
    done = process("run", "--no-image", part_of_sample(folder / "logs"), "--out", out)
    assert done.returncode == 0, done.stderr
    room = min((out / "environments").iterdir())
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        middle, end = executor.submit(holdings_of, room, n).result()
    growth = middle.growth(end)
    problems = [f"memory grew by {growth:.1%}: {middle.n_bytes:,} to {end.n_bytes:,}"] if growth > MOST_GROWTH else []
    return Report(n, tuple(problems))


@pytest.mark.slow
def test_long_texts_fill_no_memory(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.3).problems == ()
