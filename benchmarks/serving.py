#!/usr/bin/env python3
"""How fast a room is, in its own process, behind the protocols and in a container, and whether it stays the same.

    benchmarks/serving.py [ENV] [--only PART …] [--resets N] [--gigabytes N]

PART: `core` (below), `protocols` (serving_protocols.py), `containers` (serving_containers.py); all of them by default.

ENV: OUT/environments/<name> of a run, with its rewards beside it; by default made from the sample (with privacy off). The known
solutions are played in seeded random order, each task once a pass, with reset, calls, words and grade; `episodes_s` and
`calls_s` are medians over passes before each of which everything that was kept of former episodes is dropped (the world's own
documents are parsed once, at their first look), `episodes_s_cached` over passes in which calls are taken from memory
(`remember`). Forks are taken after every step in a world of 1 MB and one of --gigabytes (1); the figure is that of the worse
one. State hashes are compared over --resets (1,000,000), between which episodes are played. Tables go to stderr; the last line
on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import serving_containers
import serving_protocols

from env_builder.runtime import Environment
from env_builder.runtime.apps.records import RecordsApp
from env_builder.runtime.world import World

ROOT = Path(__file__).resolve().parent.parent
PASSES = 7
DOCUMENT_BYTES = 10_000
N_FORKS = 20_000
N_STEPS = 40
Step = dict[str, Any]
Solutions = dict[str, list[Step]]


def main() -> int:
    """Measure one environment and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path, nargs="?")
    parser.add_argument("--only", action="append", choices=PARTS, default=None, metavar="PART")
    parser.add_argument("--resets", type=int, default=1_000_000)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = options.environment.resolve() if options.environment else from_sample(Path(scratch))
        figures: dict[str, float] = {}
        for part in options.only or PARTS:
            figures |= PARTS[part](path, options)
    print(json.dumps({"benchmark": "serving", "environment": path.name, "figures": figures}))
    return 0


def core(path: Path, options: argparse.Namespace) -> dict[str, float]:
    """Figures of the room in this process."""
    environment, solved = Environment.load(path), solutions(path)
    gc.collect()
    gc.freeze()  # what was loaded is never garbage: as a server of episodes would
    return {
        "n_tasks": len(solved), **rates(environment, solved), **resets(environment, solved, options.resets),
        **forks(options.gigabytes)}


PARTS: dict[str, Callable[[Path, argparse.Namespace], dict[str, float]]] = {
    "core": core,
    "protocols": lambda path, _: serving_protocols.figures(path),
    "containers": lambda path, _: serving_containers.figures(path),
}


def from_sample(scratch: Path) -> Path:
    """Return the environment that a run of the sample publishes."""
    out = scratch / "out"
    subprocess.run(
        [sys.executable, "-m", "pipelines", "run", str(ROOT / "tests/logs/airline"), "--out", str(out), "--no-image", "--json",
         "--privacy", "off"],
        stdout=subprocess.DEVNULL, cwd=ROOT, check=True)
    return min((out / "environments").iterdir())


def solutions(path: Path) -> Solutions:
    """Task -> steps of its known solution, in seeded random order."""
    file = path.parent.parent / "rewards" / path.name / "solutions.jsonl"
    with file.open(encoding="utf-8") as lines:
        rows = sorted((json.loads(line) for line in lines), key=lambda row: row["task_id"])
    random.Random(0).shuffle(rows)
    return {row["task_id"]: row["steps"] for row in rows}


def rates(environment: Environment, solved: Solutions) -> dict[str, float]:
    """Episodes and calls a second on one core, with and without what is kept of former episodes."""
    episodes, calls, slowest = [], [], []
    for _ in range(PASSES):
        forget()
        episodes.append(len(solved) / timed(environment, solved, graded=True))
        forget()
        times = sorted(call_times(environment, solved))
        calls.append(len(times) / sum(times))
        slowest.append(times[int(len(times) * 0.99)])
    environment.remember()
    timed(environment, solved, graded=True)
    cached = [len(solved) / timed(environment, solved, graded=True) for _ in range(PASSES)]
    environment.remember(0)
    print(f"episodes a second: {min(episodes):.0f} to {max(episodes):.0f} over {PASSES} passes", file=sys.stderr)
    return {
        "episodes_s": round(statistics.median(episodes)), "episodes_s_cached": round(statistics.median(cached)),
        "calls_s": round(statistics.median(calls)), "call_p99_us": round(statistics.median(slowest) * 1e6, 1)}


def forget() -> None:
    """Drop everything that the runtime keeps from one episode for another."""
    for name, module in list(sys.modules.items()):
        for value in vars(module).values() if name.startswith("env_builder.runtime") else ():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def timed(environment: Environment, solved: Solutions, graded: bool) -> float:
    """Seconds that all solutions take, each once."""
    began = time.perf_counter()
    for task_id, steps in solved.items():
        play(environment, task_id, steps)
        if graded and environment.grade().reward != 1.0:
            raise SystemExit(f"the known solution of {task_id} is not worth 1")
    return time.perf_counter() - began


def play(environment: Environment, task_id: str, steps: list[Step]) -> None:
    """One episode."""
    environment.reset(task_id)
    for step in steps:
        if "say" in step:
            environment.say(step["say"])
        else:
            environment.call(step["tool"], step["arguments"])
    environment.finish()


def call_times(environment: Environment, solved: Solutions) -> Iterator[float]:
    """Seconds of each call."""
    for task_id, steps in solved.items():
        environment.reset(task_id)
        for step in steps:
            if "say" in step:
                environment.say(step["say"])
            else:
                began = time.perf_counter()
                environment.call(step["tool"], step["arguments"])
                yield time.perf_counter() - began


def resets(environment: Environment, solved: Solutions, n: int) -> dict[str, float]:
    """State hashes after so many resets that are not those of the first; growth of the process's memory meanwhile."""
    names = list(solved)
    first = {}
    for name in names:
        environment.reset(name)
        first[name] = environment.state_hash()
    for name in names:  # all that a room keeps is there before memory is measured
        play(environment, name, solved[name])
    before, differences = memory_mb(), 0
    for count in range(n):
        name = names[count % len(names)]
        if count % 100 == 0:
            play(environment, name, solved[name])
        environment.reset(name)
        differences += environment.state_hash() != first[name]
    return {"resets": n, "reset_differences": differences, "reset_growth": round(memory_mb() / before - 1, 4)}


def memory_mb() -> float:
    """Resident memory now, where the system tells; else its peak."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def forks(gigabytes: float) -> dict[str, float]:
    """Microseconds of a fork after each step of an episode, in a small and in a large world."""
    figures: dict[str, float] = {}
    for name, n_bytes in (("1mb", 2**20), ("large", int(gigabytes * 2**30))):
        times = sorted(fork_times(large_room(max(1, n_bytes // DOCUMENT_BYTES))))
        figures[f"fork_p50_us_{name}"] = round(times[len(times) // 2] * 1e6, 2)
        figures[f"fork_p99_us_{name}"] = round(times[int(len(times) * 0.99)] * 1e6, 2)
    for quantile in ("p50", "p99"):
        figures[f"fork_{quantile}_us"] = max(figures[f"fork_{quantile}_us_1mb"], figures[f"fork_{quantile}_us_large"])
    return figures


def large_room(n_documents: int) -> Environment:
    """Return a room of so many documents of `DOCUMENT_BYTES`, with a tool that sets a field of one."""
    body = "x" * DOCUMENT_BYTES
    facts = (
        {"class": "thing", "key": f"t{n}", "value": json.dumps({"n": n, "state": 0, "body": f"{n}{body}"}), "from": None,
         "to": None, "session": None} for n in range(n_documents))
    rule = {
        "rule": "write", "class": "thing", "argument": "key", "before": "", "after": "", "order": [], "style": {}, "when": None,
        "fields": {"n": ["before", "n"], "state": ["argument", "state"], "body": ["before", "body"]}}
    program = {"tool": "set", "effect": "write", "class": "thing", "relation": {}, "rules": [rule]}
    app = RecordsApp("main", {"set": program}, World(facts, ()))
    return Environment({"name": "large", "content_digest": ""}, (), [], [app], {})


def fork_times(environment: Environment) -> Iterator[float]:
    """Seconds of forks, taken after each step of episodes that change something with every step."""
    gc.collect()
    gc.freeze()
    for _ in range(N_FORKS // N_STEPS):
        environment.reset(None)
        for step in range(N_STEPS):
            if environment.call("set", {"key": f"t{step}", "state": step}).is_error:
                raise SystemExit("the large room does not answer")
            began = time.perf_counter()
            environment.fork()
            yield time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
