"""SkyRL-Gym makes the environment of every row and steps through known solutions, and through nothing at all."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pyarrow.parquet
import skyrl_gym
from moves import can_wait, moves, text
from telling import EXPORTS, episodes, tell

FOLDER = EXPORTS / "skyrl"
sys.path.insert(0, str(FOLDER))
package = importlib.import_module(f"{next(FOLDER.glob('traceroom_*')).name}.skyrl_room")
package.register()
package.register()
rows: list[dict[str, Any]] = [
    row for path in sorted(FOLDER.glob("*.parquet")) for row in pyarrow.parquet.read_table(path).to_pylist()]


def played(row: dict[str, Any], actions: list[str]) -> float:
    """Return the reward of an episode of a row, from what the environment gives step by step."""
    env = skyrl_gym.make(row["env_class"], env_config={}, extras={name: row[name] for name in row if name != "prompt"})
    prompt, _ = env.init(row["prompt"])
    assert "<tools>" in prompt[0]["content"] and prompt[-1]["role"] == "user"
    total, done = 0.0, False
    for action in actions:
        assert not done, "it ended before the last action"
        step = env.step(action)
        total, done = total + step["reward"], step["done"]
    assert done, "it did not end"
    env.close()
    return total


n_oracles = 0
for row in rows:
    task_id = row["reward_spec"]["ground_truth"]
    assert played(row, [""]) == 0.0, row
    if can_wait(package.KIT, task_id):
        n_oracles += 1
        assert played(row, [text(move) for move in moves(package.KIT, task_id, package.KIT.solution(task_id))]) == 1.0, row
assert n_oracles, "no known solution could be played"
by_task = {row["reward_spec"]["ground_truth"]: row for row in rows}
rewards = {each["name"]: played(by_task[each["task_id"]], [
    text(move) for move in moves(package.KIT, each["task_id"], each["steps"])]) for each in episodes()}
tell(f"{len(rows)} rows made and stepped: doing nothing 0, {n_oracles} known solutions 1",
     digest=package.KIT.digest, rewards=rewards, rows=len(rows))
