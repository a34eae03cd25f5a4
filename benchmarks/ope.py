#!/usr/bin/env python3
"""Twenty policies ranked by one log of another policy, beside what they are worth.

    benchmarks/ope.py DATA [--built OUT] [--episodes N] [--logs N] [--truth N]

Policies are scripts: at each step of a task's known solution they do it, or with chances of their own skip it, do it twice, do
it with another task's values, or end. A behaviour policy errs at a step with a chance of .3; the twenty err with chances from 0
to .6 in mixes of their own. All probabilities are exact.

*True value*: mean reward over --truth episodes of the policy in the room, on tasks drawn anew. What an estimator has:
--episodes (1,600) episodes of the behaviour policy, one log, and a *poorer room*, in which a third of the things of the world
are not known and no recorded answer about them; the policy plays each logged task there once. `direct`, `wis` and `dr` are
those of `env_builder.evaluation`. `ope_spearman` is the rank correlation of `dr` with the true values: mean over --logs (3)
logs, `ope_spearman_least` the worst of them; a policy that is refused stands at the mean of the others. `direct_same` plays in
the true room itself, so it shows the error of sampling alone. `covered`: share of 95 % intervals that hold the true value.
Tables go to stderr; the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fidelity_data import build
from serving import solutions

from env_builder.evaluation import METHODS, Estimate, Logged, evaluate
from env_builder.runtime import Environment
from env_builder.runtime.canonical import digest

WAYS = ("do", "skip", "twice", "other", "end")
Step = dict[str, Any]


class Scripted(NamedTuple):
    """A policy: with which chance it goes each of `WAYS` at a step."""

    name: str
    chances: tuple[float, ...]

    def ways(self, n_steps: int, draw: random.Random) -> list[str]:
        """Return what it does at each step, until it ends."""
        runs = []
        for _ in range(n_steps):
            runs.append(draw.choices(WAYS, self.chances)[0])
            if runs[-1] == "end":
                break
        return runs

    def logs(self, ways: Sequence[str]) -> list[float]:
        """Log-probabilities of these ways."""
        return [math.log(chance) if (chance := self.chances[WAYS.index(way)]) else -math.inf for way in ways]


BEHAVIOUR = Scripted("behaviour", (0.7, 0.075, 0.075, 0.075, 0.075))


def policies() -> list[Scripted]:
    """Return the twenty: five chances of an error, four mixes of errors."""
    mixes = {"even": (1, 1, 1, 1), "lazy": (3, 0.5, 0.5, 1), "hasty": (0.5, 3, 1, 0.5), "wrong": (0.5, 0.5, 3, 1)}
    return [
        Scripted(f"{name} {err:g}", (1 - err, *(err * part / sum(mix) for part in mix)))
        for err in (0.0, 0.05, 0.15, 0.3, 0.45, 0.6) for name, mix in mixes.items()
        if err or name == "even"][:20]


class Table(NamedTuple):
    """A room, and what is known to solve its tasks."""

    room: Environment
    ways: dict[str, list[Step]]
    others: dict[str, list[Step]]
    """Tool -> calls of it in any solution."""

    rewards: dict[tuple[str, ...], float | None]
    """Rewards by task and ways: the room gives the same again."""

    def play(self, task_id: str, ways: Sequence[str]) -> float | None:
        """Return the reward of doing so at each step of the task's known solution."""
        key = (task_id, *ways)
        if key not in self.rewards:
            self.rewards[key] = self._played(task_id, ways)
        return self.rewards[key]

    def _played(self, task_id: str, ways: Sequence[str]) -> float | None:
        self.room.reset(task_id)
        for place, (step, way) in enumerate(zip(self.ways[task_id], ways, strict=False)):
            if way == "end":
                break
            done = self._other(step, f"{task_id} {place}") if way == "other" else step
            for _ in range({"skip": 0, "twice": 2}.get(way, 1)):
                if "say" in done:
                    self.room.say(done["say"])
                else:
                    self.room.call(done["tool"], done["arguments"])
        self.room.finish()
        return self.room.grade().reward

    def _other(self, step: Step, seed: str) -> Step:
        return random.Random(seed).choice(self.others.get(step.get("tool", ""), [step]))


def main() -> int:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--built", type=Path, default=None, help="OUT of a run made before")
    parser.add_argument("--episodes", type=int, default=1600)
    parser.add_argument("--logs", type=int, default=3)
    parser.add_argument("--truth", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = options.built or build(options.data, Path(scratch) / "out").out
        path = min((out / "environments").iterdir())
        true, poorer = table(path), table(poor(path, Path(scratch) / "poorer"))
        figures = measured(true, poorer, options.episodes, options.logs, options.truth)
    print(json.dumps({"benchmark": "ope", "data": options.data.resolve().name, "figures": figures}))
    return 0


def table(path: Path) -> Table:
    """Return the room in this directory."""
    room, ways = Environment.load(path), solutions(path)
    room.remember()
    others: dict[str, list[Step]] = {}
    for steps in ways.values():
        for step in steps:
            if "tool" in step:
                others.setdefault(step["tool"], []).append(step)
    return Table(room, ways, others, {})


def poor(path: Path, out: Path) -> Path:
    """Return a copy of the room, in which nothing is known of a third of the things."""
    room = out / "environments" / path.name
    shutil.copytree(path, room)
    shutil.copytree(path.parent.parent / "rewards" / path.name, out / "rewards" / path.name)
    rows = [json.loads(line) for line in (path / "world.jsonl").read_text("utf-8").splitlines()]
    gone = {row["key"] for row in rows if int(digest(row["key"].encode())[:8], 16) % 3 == 0}
    _write(room / "world.jsonl", [row for row in rows if row["key"] not in gone])
    recorded = [json.loads(line) for line in (path / "recorded.jsonl").read_text("utf-8").splitlines()]
    _write(room / "recorded.jsonl", [row for row in recorded if gone.isdisjoint(_values(json.loads(row["arguments"])))])
    return room


def _values(node: Any) -> set[str]:
    if isinstance(node, dict | list):
        return set().union(*(_values(each) for each in (node.values() if isinstance(node, dict) else node)))
    return {str(node)}


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def measured(true: Table, poorer: Table, n: int, n_logs: int, n_truth: int) -> dict[str, float]:
    """Rank correlations, errors, coverage and refusals of each method, over the logs."""
    task_ids, named = sorted(true.ways), policies()
    worth = [truth(true, policy, task_ids, n_truth) for policy in named]
    by_method: dict[str, list[list[Estimate]]] = {method: [] for method in (*METHODS, "direct_same")}
    for number in range(n_logs):
        log = behave(true, poorer, task_ids, n, number)
        each = [estimates(log, true, poorer, policy, number) for policy in named]
        for method, estimates_of in by_method.items():
            estimates_of.append([one[method] for one in each])
        print(f"log {number}", *(f"{method} {_spearman(estimates_of[-1], worth):.3f}" for method,
                                 estimates_of in by_method.items()),
              sep="  ", file=sys.stderr)
    _tell(named, worth, by_method)
    figures = {"n_policies": len(named), "n_episodes": n, "n_logs": n_logs, "behaviour_value": round(
        truth(true, BEHAVIOUR, task_ids, n_truth), 4)}
    for method, estimates_of in by_method.items():
        figures |= _figures(method, estimates_of, worth)
    return {"ope_spearman": figures["dr_spearman"], "ope_spearman_least": figures["dr_spearman_least"], **figures}


def truth(where: Table, policy: Scripted, task_ids: Sequence[str], n: int) -> float:
    """Mean reward of the policy's own episodes in the room; what is unscored at the mean of the rest."""
    draw, got = random.Random(f"truth {policy.name}"), []
    for _ in range(n):
        task_id = draw.choice(task_ids)
        got.append(where.play(task_id, policy.ways(len(where.ways[task_id]), draw)))
    return float(np.mean([reward for reward in got if reward is not None]))


class Past(NamedTuple):
    """A logged episode: what was done, what came of it, and what the poorer room makes of it."""

    task_id: str
    ways: list[str]
    reward: float | None
    modelled: float | None


def behave(true: Table, poorer: Table, task_ids: Sequence[str], n: int, seed: int) -> list[Past]:
    """Return a log of the behaviour policy."""
    draw, episodes = random.Random(f"log {seed}"), []
    for _ in range(n):
        task_id = draw.choice(task_ids)
        ways = BEHAVIOUR.ways(len(true.ways[task_id]), draw)
        episodes.append(Past(task_id, ways, true.play(task_id, ways), poorer.play(task_id, ways)))
    return episodes


def estimates(log: Sequence[Past], true: Table, poorer: Table, policy: Scripted, seed: int) -> dict[str, Estimate]:
    """Return what each method says of the policy."""
    logged = [Logged(past.task_id, past.reward, BEHAVIOUR.logs(past.ways), policy.logs(past.ways), past.modelled)
              for past in log]
    by_name = {one.method: one for one in evaluate(logged, played(log, poorer, policy, seed))}
    return by_name | {"direct_same": evaluate(logged, played(log, true, policy, seed))[0]}


def played(log: Sequence[Past], where: Table, policy: Scripted, seed: int) -> dict[str, list[float | None]]:
    """Return the policy's own episodes in a room: one for each that was logged."""
    draw = random.Random(f"played {policy.name} {seed}")
    rewards: dict[str, list[float | None]] = {}
    for past in log:
        ways = policy.ways(len(where.ways[past.task_id]), draw)
        rewards.setdefault(past.task_id, []).append(where.play(past.task_id, ways))
    return rewards


def _figures(method: str, estimates: Sequence[Sequence[Estimate]], worth: Sequence[float]) -> dict[str, float]:
    ranks = [_spearman(each, worth) for each in estimates]
    pairs = [(one, value) for each in estimates for one, value in zip(each, worth, strict=True) if one.value is not None]
    errors = [abs((one.value or 0.0) - value) for one, value in pairs]
    covered = [(one.low or 0.0) <= value <= (one.high or 0.0) for one, value in pairs]
    return {
        f"{method}_spearman": round(float(np.mean(ranks)), 4), f"{method}_spearman_least": round(min(ranks), 4),
        f"{method}_error": round(float(np.mean(errors)), 4), f"{method}_covered": round(float(np.mean(covered)), 3),
        f"{method}_refused": sum(map(len, estimates)) - len(pairs)}


def _spearman(estimates: Sequence[Estimate], worth: Sequence[float]) -> float:
    """Rank correlation (Spearman 1904), ties at their mean rank; what was refused stands at the mean of the others."""
    values = [one.value for one in estimates if one.value is not None]
    usual = float(np.mean(values)) if values else 0.0
    guessed = _ranks([usual if one.value is None else one.value for one in estimates])
    return float(np.corrcoef(guessed, _ranks(worth))[0, 1]) if len(set(guessed)) > 1 else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [float(np.mean([place for place, other in enumerate(ordered) if other == value])) for value in values]


def _tell(named: Sequence[Scripted], worth: Sequence[float], by_method: dict[str, list[list[Estimate]]]) -> None:
    print(f"{'policy':<12} {'true':>6}", *(f"{method:>24}" for method in by_method), sep=" ", file=sys.stderr)
    for place, policy in enumerate(named):
        cells = []
        for runs in by_method.values():
            one = runs[0][place]
            ess = "" if one.ess is None else f" {one.ess:4.0f}"
            cells.append("refused" + ess if one.value is None else f"{one.value:.3f} [{one.low:.3f} {one.high:.3f}]{ess}")
        print(f"{policy.name:<12} {worth[place]:6.3f}", *(f"{cell:>24}" for cell in cells), sep=" ", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
