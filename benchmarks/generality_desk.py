"""A desk's rooms under calls at random and under scripted ways to act, and what building them takes beside another checkout.

Random calls (truth/probes_random.jsonl) are sequences with arguments that nobody would give, answered by the real tools.
Scripted ways to act (truth/policies.jsonl) have true verdicts: a policy's success and its mean reward are taken over the same
plays, those in published tasks of its session; what a reward does not grade counts as 0.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
from fidelity_data import environments, rows
from fidelity_probes import play_all
from fidelity_score import share

ROUNDS = 3
"""Builds of each checkout, by turns; the median of the quotients counts."""


def at_random(data: Path, out: Path, n_sessions: int | None) -> dict[str, float]:
    """Play the random calls: how many are answered wrongly, and how many refusals are answered as success."""
    tally = play_all(data, out, n_sessions, "probes_random.jsonl")
    count, refusals = tally.count("all"), tally.count("error")
    return {"wrong_random": share(count["wrong"], count["n"]), "n_random": count["n"],
            "unknown_random": share(count["unknown"], count["n"]),
            "refusals_as_success": share(tally.count("error as success")["n"], refusals["n"]), "n_refusals": refusals["n"]}


def policies(data: Path, out: Path) -> dict[str, Any]:
    """Play every policy in its published tasks: rank correlation of true success with mean reward, over policies."""
    plays: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for play in rows(data / "truth" / "policies.jsonl"):
        plays[play["session_id"]].append(play)
    graded = [
        (play["policy"], float(play["truth"]), _reward(environment, task.task_id, play["steps"]))
        for environment in environments(out, "environments") for task in environment.tasks
        for session_id in sorted(task.session_ids) for play in plays[session_id]]
    means = pl.DataFrame(graded, ("policy", "success", "reward"), orient="row").group_by("policy").mean().sort("policy")
    correlation = means.select(pl.corr("success", "reward", method="spearman")).item() if means.height > 1 else None
    return {"policy_spearman": None if correlation is None else round(correlation, 4), "n_policies": means.height,
            "n_policy_plays": len(graded)}


def _reward(environment: Any, task_id: str, steps: list[dict[str, Any]]) -> float:
    environment.reset(task_id, seed=0)
    for step in steps:
        if "say" in step:
            environment.say(step["say"])
        else:
            environment.call(step["tool"], step["arguments"])
    environment.finish()
    reward = environment.grade().reward
    return 0.0 if reward is None else float(reward)


def seconds_share(logs: Path, before: Path, scratch: Path, rounds: int = ROUNDS) -> dict[str, float]:
    """Build the logs with this checkout and with another one, by turns: median of the quotients of processor seconds."""
    own = Path(__file__).resolve().parent.parent
    quotients, pairs = [], []
    for number in range(rounds):
        taken = [_seconds(root, logs, scratch / f"{number}{name}") for name, root in (("now", own), ("before", before))]
        quotients.append(taken[0] / taken[1])
        pairs.append(taken)
    return {"seconds_share": round(statistics.median(quotients), 3), "seconds_now": round(min(pair[0] for pair in pairs), 1),
            "seconds_before": round(min(pair[1] for pair in pairs), 1)}


def _seconds(root: Path, logs: Path, out: Path) -> float:
    """Processor seconds of a build by the checkout's own sources."""
    began = os.times()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pipelines", "run", str(logs), "--out", str(out), "--no-image", "--json"],
        capture_output=True, text=True, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, check=False)
    if done.returncode:
        raise SystemExit(f"{root}: the build failed: {done.stderr.strip().splitlines()[-1:]}")
    ended = os.times()
    return ended.children_user + ended.children_system - began.children_user - began.children_system
