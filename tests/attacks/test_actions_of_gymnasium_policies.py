"""Policies in a Gymnasium loop: actions of other types, numbers that are none, steps after the end, and a second reward."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.attacks.report import Report, counted
from tests.conftest import ROOT
from tests.peers import with_package
from tests.rooms import write_rewards, write_room

ACTIONS = 5_000
LOOP = """
import json, sys
from env_builder.gymnasium_env import GymnasiumEnv
from tests.attacks.fuzz import Fuzz
room, task, n = sys.argv[1], "%s", int(sys.argv[2])
ODD = (None, 1, float("nan"), b"x", [], {}, object, "", "\\ud800", '{"tool": 1}', '{"tool": "open_door", "arguments": null}',
       '{"tool": "open_door", "arguments": "x"}', '{"finish": 1}', '{"finish": "true"}', '{"reward": 1}', "[" * 100_000,
       '{"tool": "open_door", "arguments": {"door": NaN}}', '{"tool": "open_door", "arguments": {"door": 1e999}}',
       "x" * (1 << 21))
env, fuzz, problems = GymnasiumEnv(room), Fuzz(9), []
odd = [json.dumps(fuzz.changed({"tool": "open_door", "arguments": {"door": "8"}})) for _ in range(n)]
env.reset(seed=1)
for number, action in enumerate((*ODD, *odd)):
    try:
        _, reward, terminated, truncated, _ = env.step(action)
    except Exception as error:
        problems.append(f"{str(action)[:60]!r}: {type(error).__name__}: {error}")
        env.reset(seed=number)
        continue
    problems += [f"{str(action)[:60]!r} earns {reward}"] if reward else []
    if terminated or truncated:
        env.reset(seed=number)
env.reset(seed=1, options={"task_id": task})
rewards = [env.step(action)[1] for action in (
    '{"tool": "open_door", "arguments": {"door": "7"}}', '{"finish": true}', '{"finish": true}', "more", '{"finish": true}')]
problems += [] if rewards == [0.0, 1.0, 0.0, 0.0, 0.0] else [f"one episode has rewards {rewards}"]
for options in ({"task_id": "../x"}, {"task_id": task, "perturbations": ["x"]}, {"task_id": 5}):
    try:
        env.reset(options=options)
        problems.append(f"reset takes {options}")
    except (KeyError, ValueError, TypeError):
        pass
print(json.dumps(problems))
"""


def attack(folder: Path, share: float) -> Report:
    """Step with each action, then with fuzzed ones over several episodes, and add up the rewards."""
    from tests.rooms import TASK

    room, n = write_room(folder / "out" / "environments" / "hall"), counted(ACTIONS, share)
    write_rewards(room)
    done = subprocess.run(
        [with_package("gymnasium==1.4.0"), "-c", LOOP % TASK, room, str(n)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    problems = json.loads(done.stdout) if done.returncode == 0 else [done.stderr[-600:]]
    return Report(n + 27, tuple(problems))


@pytest.mark.slow
def test_no_action_earns_what_it_did_not_do(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
