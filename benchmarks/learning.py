#!/usr/bin/env python3
"""It teaches: a small policy learns from the datasets, then in the room, and is scored on held-out tasks there.

    benchmarks/learning.py DATA [--built OUT] [--seeds N] [--rounds N]

DATA: a folder of logs with agents in them (retail_desk); OUT: a run that was made of it before. The policy
(learning_policy.py) is log-linear over features that name no domain, copies what it has seen, and sees what any agent sees; it
learns three times:

- `sft`: imitates `sft.train.jsonl`;
- `offline`: then contrasts the sessions of `trajectories.train.parquet` by how likely each went well (as KTO does);
- `online`: then plays tasks of `train` in the room, --rounds (30) rounds of 16 tasks, 8 episodes each, with group-relative
  advantages; the reward is the grader's.

`…_success` is the mean reward on held-out tasks of the likeliest choices, `…_sampled` of drawn ones (temperature 1); what is
unscored counts as 0. `log_success` is the same of the log's own agent: its recorded sessions of these tasks, played in the room
and judged by the same grader. `untrained_success` is the policy before it learnt. Intervals (95 %) by bootstrap over seeds and
tasks; `online_gain` is online over log on the same tasks. What was chosen by trying (rates, rounds) was tried on `validation`.
Tables go to stderr; the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fidelity_data import build
from learning_policy import Policy
from learning_training import choices_of, contrasted, fitted, lexicon_of, logged, play, practised, sft

from env_builder.runtime import Environment

STAGES = ("sft", "offline", "online")
N_WORKERS = 2
DRAWS = 2_000
Row = dict[str, Any]


class Learnt(NamedTuple):
    """What one seed came to."""

    greedy: dict[str, list[float]]
    """Stage -> reward of each held-out task."""
    sampled: dict[str, list[float]]
    unscored: dict[str, float]
    """Share of the held-out tasks; of the likeliest choices."""
    curve: list[float]
    """Mean reward of each round in the room."""
    seconds: dict[str, float]


def main() -> int:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--built", type=Path, default=None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=30)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = told.built or build(told.data, Path(scratch) / "out").out
        path = min((out / "environments").iterdir())
        recorded = of_log(path)
        with ProcessPoolExecutor(N_WORKERS, get_context("spawn")) as pool:  # polars' threads do not outlive a fork
            learnt = list(pool.map(learn, [path] * told.seeds, range(told.seeds), [told.rounds] * told.seeds,
                                   [sorted(recorded)] * told.seeds))
        floor = untrained(path, sorted(recorded))
    figures = summed(learnt, np.array([recorded[task_id] for task_id in sorted(recorded)]))
    print(json.dumps({"benchmark": "learning", "data": told.data.resolve().name,
                      "figures": {**figures, "untrained_success": floor}}))
    return 0


def of_log(path: Path) -> dict[str, float]:
    """Held-out task -> mean reward of the log's own sessions of it; a task that nobody logged is left out."""
    room, datasets = Environment.load(path), path.parent.parent / "datasets" / path.name
    held = {task.task_id for task in room.tasks if task.split == "held_out"}
    found: dict[str, list[float]] = {}
    for task_id, session in logged(datasets / "trajectories.held_out.parquet", []):
        if task_id in held:
            steps = [step for message in session.messages for step in _steps(message)]
            found.setdefault(task_id, []).append(_replayed(room, task_id, steps))
    return {task_id: float(np.mean(each)) for task_id, each in found.items()}


def _steps(message: Row) -> list[Row]:
    """Return what the agent did by a message."""
    if message["role"] != "assistant":
        return []
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return [*([{"say": message["content"]}] if message.get("content") else []),
            *({"tool": call["name"], "arguments": json.loads(call["arguments"])} for call in calls)]


def _replayed(room: Environment, task_id: str, steps: Sequence[Row]) -> float:
    room.reset(task_id)
    for step in steps:
        if "say" in step:
            room.say(step["say"])
        else:
            room.call(step["tool"], step["arguments"])
    room.finish()
    return room.grade().reward or 0.0


def learn(path: Path, seed: int, rounds: int, held: Sequence[str]) -> Learnt:
    """One policy's whole life, and how it does after each stage."""
    datasets = path.parent.parent / "datasets" / path.name
    room = Environment.load(path)
    room.remember()
    sessions = sft(datasets / "sft.train.jsonl")
    found = Learnt({}, {}, {}, [], {})
    policy = Policy(lexicon_of(sessions))
    imitated = [(1.0, choices_of(session, policy)) for session in sessions]
    told = [(session.reward, choices_of(session, policy))
            for _, session in logged(datasets / "trajectories.train.parquet", sessions[0].tools)]
    train = sorted(task.task_id for task in room.tasks if task.split == "train")
    for stage in STAGES:
        begun = time.process_time()
        if stage == "sft":
            fitted(policy, imitated, 12, 0.3, seed)
        elif stage == "offline":
            contrasted(policy, told, 2, 0.05, 0.5, seed)
        else:
            found.curve.extend(practised(policy, room, train, rounds, 16, 8, 0.03, seed))
        found.seconds[stage] = time.process_time() - begun
        draw = np.random.default_rng(seed)
        likeliest = [play(policy, room, task_id, None) for task_id in held]
        found.greedy[stage] = [episode.reward for episode in likeliest]
        found.unscored[stage] = float(np.mean([not episode.scored for episode in likeliest]))
        found.sampled[stage] = [play(policy, room, task_id, draw).reward for task_id in held]
        print(f"seed {seed} {stage:<8} success {np.mean(found.greedy[stage]):.3f} sampled {np.mean(found.sampled[stage]):.3f} "
              f"unscored {found.unscored[stage]:.3f} {found.seconds[stage]:.0f} s", file=sys.stderr, flush=True)
    return found


def untrained(path: Path, held: Sequence[str]) -> float:
    """Mean reward of the policy with no weights, drawn."""
    room = Environment.load(path)
    policy = Policy(lexicon_of(sft(path.parent.parent / "datasets" / path.name / "sft.train.jsonl")))
    draw = np.random.default_rng(0)
    return round(float(np.mean([play(policy, room, task_id, draw).reward for task_id in held])), 4)


def summed(learnt: Sequence[Learnt], log: NDArray[np.float64]) -> dict[str, float]:
    """Means over seeds and tasks, with their intervals."""
    rng = np.random.default_rng(0)
    figures: dict[str, float] = {"n_seeds": len(learnt), "n_tasks": len(log), **_told("log_success", log[None], rng)}
    for stage in STAGES:
        greedy = np.array([each.greedy[stage] for each in learnt])
        figures |= _told(f"{stage}_success", greedy, rng)
        figures |= _told(f"{stage}_gain", greedy - log, rng)
        figures |= _told(f"{stage}_sampled", np.array([each.sampled[stage] for each in learnt]), rng)
        figures[f"{stage}_unscored"] = round(float(np.mean([each.unscored[stage] for each in learnt])), 4)
        figures[f"{stage}_seconds"] = round(float(np.mean([each.seconds[stage] for each in learnt])), 1)
    curves = np.array([each.curve for each in learnt])
    fifth = max(1, curves.shape[1] // 5)
    print("online, mean reward by round:", *(f"{value:.2f}" for value in curves.mean(0)), file=sys.stderr)
    return figures | {"curve_first": round(float(curves[:, :fifth].mean()), 4),
                      "curve_last": round(float(curves[:, -fifth:].mean()), 4)}


def _told(name: str, values: NDArray[np.float64], rng: np.random.Generator) -> dict[str, float]:
    """Mean of (seeds, tasks), and its 95 % interval: seeds and tasks drawn with replacement."""
    n_seeds, n_tasks = values.shape
    seeds = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), DRAWS) / n_seeds
    tasks = rng.multinomial(n_tasks, np.full(n_tasks, 1 / n_tasks), DRAWS) / n_tasks
    low, high = np.quantile(np.einsum("ds,st,dt->d", seeds, values, tasks, optimize=True), [0.025, 0.975])
    return {name: round(float(values.mean()), 4), f"{name}_low": round(float(low), 4), f"{name}_high": round(float(high), 4)}


if __name__ == "__main__":
    sys.exit(main())
