"""Episodes of the runtime in this process, and what it holds: functions for a process of their own."""

from __future__ import annotations

import gc
import json
import os
import random
from pathlib import Path

from env_builder.runtime import Environment
from tests.attacks.fast_motion import Holdings
from tests.rooms import TASK

_WORDS = 10_000
"""Words of a long text."""


def _play_quickly(environment: Environment, choose: random.Random) -> None:
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


def holdings_of_quick_episodes(room: Path, n_warm_up: int, n_episodes: int) -> tuple[Holdings, Holdings]:
    """Play in this process; return what it holds after the warm-up and at the end."""
    environment, choose, at = Environment.load(room), random.Random(27), []
    for n in (n_warm_up, n_episodes):
        for _ in range(n):
            _play_quickly(environment, choose)
        gc.collect()
        at.append(Holdings.of(os.getpid()))
    return at[0], at[1]


def _play_with_long_texts(environment: Environment, steps: list[dict[str, object]], choose: random.Random) -> None:
    """Follow a solution for a while, with a long text beside each argument and after it."""
    for step in steps[:4]:
        text = " ".join(f"{choose.getrandbits(40):x}" for _ in range(_WORDS))
        if "tool" in step:
            environment.call(str(step["tool"]), {**dict(step["arguments"]), "note": text})  # type: ignore[call-overload]
        environment.say(f"No: {text}")
    environment.finish()
    environment.grade()


def holdings_of_long_texts(room: Path, n_episodes: int) -> tuple[Holdings, Holdings]:
    """Play in this process; return what it holds in the middle and at the end."""
    environment, choose, at = Environment.load(room), random.Random(27), []
    lines = (room.parents[1] / "rewards" / room.name / "solutions.jsonl").read_text("utf-8").splitlines()
    solutions = [json.loads(line) for line in lines]
    for _ in range(2):
        for number in range(n_episodes // 2):
            solution = solutions[number % len(solutions)]
            environment.reset(solution["task_id"])
            _play_with_long_texts(environment, solution["steps"], choose)
        gc.collect()
        at.append(Holdings.of(os.getpid()))
    return at[0], at[1]
