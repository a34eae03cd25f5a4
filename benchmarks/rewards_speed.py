"""How long grading takes: rubrics of 20 and of 200 mined checks over real episodes, the part `speed` of `rewards.py`.

Episodes are the known solutions of the rooms that DATA gives, replayed: replaying is not timed. A rubric holds the task's own
checks and others of the same service, a kind after the other, so that all kinds that were mined there are in it. It is read
once; an episode is indexed, and its words are searched for facts, each time anew: what is kept of texts is emptied before. The
figures are medians over all episodes of the best of five rounds each, in microseconds of the processor, which others may share.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from fidelity_data import build, rows, sample
from rewards_data import RewardsOptions

from env_builder.runtime import Environment, ends, words
from env_builder.runtime.grading import grade
from env_builder.runtime.records import Episode
from env_builder.runtime.rubrics import ParsedRubric

SIZES = (20, 200)
N_EPISODES = 200
"""Episodes of each service that are graded."""
ROUNDS = 5
CACHES = (words.facts_in, ends._meaning, ends._masked)


def speed(options: RewardsOptions) -> dict[str, float]:
    """`grade_20_us`, `grade_200_us`; none where no task has a rubric."""
    out = options.built or build(options.data / "logs", options.scratch / "out").out
    took: dict[int, list[float]] = {size: [] for size in SIZES}
    for manifest in sorted(out.glob("environments/*/manifest.json")):
        played = list(_episodes(manifest.parent, options.sample or N_EPISODES))
        pool = _pool([rubric for rubric, _ in played])
        for size in SIZES:
            for rubric, episode in played:
                own = {check["check_id"] for check in rubric["checks"]}
                others = [check for check in pool if check["check_id"] not in own]
                checks = [*rubric["checks"], *_as_many(others or pool, size - len(rubric["checks"]))][:size]
                read = ParsedRubric.read({"checks": checks})
                took[size].append(min(_microseconds(read, episode) for _ in range(ROUNDS)))
            kinds = Counter(check.kind for check in read.checks)
            print(f"{manifest.parent.name}: {len(played)} episodes, {size} checks: {dict(kinds)}", file=sys.stderr)
    for size, times in took.items():
        if times:
            low, high = quantiles(times, n=20)[0], quantiles(times, n=20)[-1]
            print(f"{size} checks: median {median(times):.1f} µs, 5 % {low:.1f}, 95 % {high:.1f}", file=sys.stderr)
    return {f"grade_{size}_us": round(median(times), 1) for size, times in took.items() if times}


def _episodes(directory: Path, n: int) -> Iterator[tuple[dict[str, Any], Episode]]:
    """(rubric, the known solution as the grader sees it) of so many tasks."""
    rewards = directory.parent.parent / "rewards" / directory.name
    environment = Environment.load(directory, rewards)
    rubrics = {row["task_id"]: row for row in rows(rewards / "rubrics.jsonl")}
    solutions = {row["task_id"]: row["steps"] for row in rows(rewards / "solutions.jsonl")}
    for task_id in sorted(sample(rubrics.keys() & solutions.keys(), n)):
        steps = [{"kind": "say", "content": step["say"]} if "say" in step else {"kind": "call", **step}
                 for step in solutions[task_id]]
        yield rubrics[task_id], environment.replay(task_id, steps)


def _pool(rubrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All checks, a kind after the other."""
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for check in chain.from_iterable(rubric["checks"] for rubric in rubrics):
        by_kind.setdefault(check["kind"], []).append(check)
    turns = zip_longest(*(by_kind[kind] for kind in sorted(by_kind)))
    return [check for turn in turns for check in turn if check is not None]


def _as_many(checks: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    return [checks[index % len(checks)] for index in range(max(0, n))]


def _microseconds(rubric: ParsedRubric, episode: Episode) -> float:
    for cache in CACHES:
        cache.cache_clear()
    began = time.thread_time_ns()
    grade(rubric, episode)
    return (time.thread_time_ns() - began) / 1000
