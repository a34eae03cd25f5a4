"""A million quick episodes of the runtime in one process, with graded, forked and abandoned ones: its memory is flat."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from env_builder.runtime import Environment
from tests.attacks.fast_motion import Holdings
from tests.attacks.report import Report, counted
from tests.rooms import TASK, write_rewards, write_room

EPISODES, WARM_UP = 1_000_000, 1_500
MOST_GROWTH = 0.05


def play(environment: Environment, choose: random.Random) -> None:
    """Play an episode of any kind."""
    environment.reset(TASK, seed=choose.randrange(1_000_000))
    number = choose.randrange(100)
    environment.call("read_sign", {"at": "gate"} if number % 2 else {"at": f"gate {number} {choose.random()}"})
    if number < 5:
        environment.fork().call("open_door", {"door": "7"})
    if number < 20:
        environment.call("open_door", {"door": "7"})
        environment.say("The seventh is open.")
        environment.finish()
        assert environment.grade().reward in (0.0, 1.0)
    if number > 97:
        environment.rollback(1)


def holdings_of(room: Path, n_episodes: int) -> tuple[Holdings, Holdings]:
    """Play in this process; return what it holds after the warm-up and at the end."""
    environment, choose, at = Environment.load(room), random.Random(27), []
    for n in (WARM_UP, n_episodes):
        for _ in range(n):
            play(environment, choose)
        gc.collect()
        at.append(Holdings.of(os.getpid()))
    return at[0], at[1]


def attack(folder: Path, share: float) -> Report:
    """Play episodes one after the other in a process of their own."""
    n, room = counted(EPISODES, share, 2_000), write_room(folder / "environments" / "hall")
    write_rewards(room)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        before, after = executor.submit(holdings_of, room, n).result()
    growth, n_left = before.growth(after), before.n_left(after)
    problems = [f"memory grew by {growth:.1%}: {before.n_bytes:,} to {after.n_bytes:,}"] if growth > MOST_GROWTH else []
    problems += [f"{n_left} handles stay: {after.handles - before.handles}"] if n_left else []
    return Report(n, tuple(problems), {"memory_growth": growth, "handles_left": float(n_left)})


def test_many_episodes_in_process_leave_nothing_behind(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.001).problems == ()
