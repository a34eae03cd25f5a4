"""Hundreds of episodes in which an agent sends long texts, each one new: what the runtime keeps of them is bounded."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tests.attacks.in_process import holdings_of_long_texts
from tests.attacks.report import Report, counted
from tests.command_line import process
from tests.pipelines.conftest import part_of_sample

EPISODES = 400
MOST_GROWTH = 0.4
"""Of memory from the middle to the end; without a bound it is nearly doubled."""


def run(folder: Path) -> Path:
    """Build an environment from logs; return the folder of the run."""
    done = process("run", "--no-image", part_of_sample(folder / "logs"), "--out", folder / "out")
    assert done.returncode == 0, done.stderr
    return folder / "out"


def attack(folder: Path, share: float, out: Path | None = None) -> Report:
    """Play an environment that was built from logs with long texts."""
    n, out = counted(EPISODES, share, 2), out or run(folder)
    room = min((out / "environments").iterdir())
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        middle, end = executor.submit(holdings_of_long_texts, room, n).result()
    growth = middle.growth(end)
    problems = [f"memory grew by {growth:.1%}: {middle.n_bytes:,} to {end.n_bytes:,}"] if growth > MOST_GROWTH else []
    return Report(n, tuple(problems))


@pytest.mark.slow
def test_long_texts_fill_no_memory(tmp_path: Path, run_once: tuple[Path, str]) -> None:
    assert attack(tmp_path, 0.3, run_once[0]).problems == ()
