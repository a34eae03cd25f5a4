"""A million quick episodes of the runtime in one process, with graded, forked and abandoned ones: its memory is flat."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.attacks.in_process import holdings_of_quick_episodes
from tests.attacks.report import Report, counted
from tests.rooms import write_rewards, write_room

EPISODES, WARM_UP = 1_000_000, 1_500
MOST_GROWTH, FEW_BYTES = 0.05, 3 << 20
"""Python takes memory by the mebibyte, a twentieth of what such a process holds: a few of them are no growth."""


def attack(folder: Path, share: float) -> Report:
    """Play episodes one after the other in a process of their own."""
    n, room = counted(EPISODES, share, 10_000), write_room(folder / "environments" / "hall")
    write_rewards(room)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        before, after = executor.submit(holdings_of_quick_episodes, room, WARM_UP, n).result()
    growth, n_left = before.growth(after), before.n_left(after)
    problems = [f"memory grew by {growth:.1%}: {before.n_bytes:,} to {after.n_bytes:,}"] if (
        growth > MOST_GROWTH and after.n_bytes - before.n_bytes > FEW_BYTES) else []
    problems += [f"{n_left} handles stay: {after.handles - before.handles}"] if n_left else []
    return Report(n, tuple(problems), {"memory_growth": growth, "handles_left": float(n_left)})


def test_many_episodes_in_process_leave_nothing_behind(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.001).problems == ()
