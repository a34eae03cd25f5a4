#!/usr/bin/env python3
"""Play what a run published through the public interface of the checkout in the current folder; of today's and of older ones.

    benchmarks/house_play.py OUT [--rounds N] [--probes FILE]

In each published and unverified environment of OUT, for each task: the known solution, each of its prefixes' last calls with an
argument that nobody logged, the recorded sessions that the task starts together with, and the probes (FILE: rows of
{"session_id", "steps": [{"tool", "arguments"}]}). Prints one JSON line an episode: environment, task, what was played, and its
answers and grade; on the last line {"episodes_s"}: the median over N rounds of known
solutions, reset to grade.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))

import duckdb

from env_builder.runtime import Environment

Step = dict[str, Any]
PASSES = 50
"""Passes over all known solutions in a round: one alone takes a millisecond, and the first of all is cold."""


def main() -> int:
    """Play everything, then time the known solutions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--probes", type=Path)
    options = parser.parse_args()
    recorded = recorded_sessions(options.out)
    probes: dict[str, list[list[Step]]] = defaultdict(list)
    for row in rows(options.probes) if options.probes else ():
        probes[row["session_id"]].append(row["steps"])
    seconds: list[float] = [0.0] * options.rounds
    n_episodes = 0
    for path in environments(options.out):
        environment = Environment.load(path)
        solutions = {}
        if path.parent.name == "environments":   # nobody knows a solution of an unverified task
            solutions = {row["task_id"]: row["steps"] for row in rows(options.out / "rewards" / path.name / "solutions.jsonl")}
        if options.rounds:
            n_episodes += len(solutions)
            for number in range(options.rounds):
                began = time.perf_counter()
                for _ in range(PASSES):
                    for task_id, steps in solutions.items():
                        play(environment, task_id, steps)
                seconds[number] += (time.perf_counter() - began) / PASSES
            continue
        for task in environment.tasks:
            for kind, steps in episodes(solutions.get(task.task_id, []), task.session_ids, recorded, probes):
                answers, reward = play(environment, task.task_id, steps)
                print(json.dumps([path.name, task.task_id, kind, answers, reward]))
    print(json.dumps({"episodes_s": round(n_episodes / statistics.median(seconds), 1) if n_episodes else None}))
    return 0


def environments(out: Path) -> list[Path]:
    """Return the folders of the published environments, then of the unverified ones."""
    return sorted(path.parent for folder in ("environments", "unverified", "withheld")
                  for path in out.glob(f"{folder}/*/manifest.json"))


def rows(path: Path) -> Iterator[Any]:
    """Yield the rows of a file of JSON lines; none where there is no file."""
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def recorded_sessions(out: Path) -> dict[str, list[Step]]:
    """Return the calls and words of each session of the run's warehouse, in order."""
    sessions: dict[str, list[Step]] = defaultdict(list)
    with duckdb.connect(str(out / "warehouse.published.duckdb"), read_only=True) as connection:
        turns = connection.execute(
            "select session_id, kind, role, content, tool, arguments from core.turns order by session_id, position")
        for session_id, kind, role, content, tool, arguments in turns.fetchall():
            if kind == "call" and arguments is not None:
                sessions[session_id].append({"tool": tool, "arguments": json.loads(arguments)})
            elif kind == "message" and role == "assistant" and content:
                sessions[session_id].append({"say": content})
    return sessions


def episodes(
    solution: list[Step], session_ids: tuple[str, ...], recorded: dict[str, list[Step]], probes: dict[str, list[list[Step]]],
) -> Iterator[tuple[str, list[Step]]]:
    """Yield what is played in a task: (kind, steps)."""
    yield "nothing", []
    yield "solution", solution
    yield "changed", [
        step if "say" in step else {**step, "arguments": {**step["arguments"], "unheard_of": "1"}} for step in solution]
    yield "reversed", solution[::-1]
    for session_id in session_ids:
        yield f"session {session_id}", recorded.get(session_id, [])
        for number, steps in enumerate(probes.get(session_id, [])):
            yield f"probe {session_id} {number}", steps


def play(environment: Environment, task_id: str, steps: list[Step]) -> tuple[list[Any], float | None]:
    """Play one episode to its grade; return the answers and the reward."""
    environment.reset(task_id, seed=0)
    answers: list[Any] = []
    for step in steps:
        if "say" in step:
            answers.append(environment.say(step["say"]))
        else:
            result = environment.call(step["tool"], step["arguments"])
            answers.append([result.content, result.is_error, result.tier])
    environment.finish()
    return answers, environment.grade().reward


if __name__ == "__main__":
    sys.exit(main())
