"""Which episodes there are to play: a group of attempts a task, each with an id that hashes what it depends on.

In: what a command was told. Out: `Order`s, group by group. The same command gives the same orders, so what is on disk already
is known by its id.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from env_builder.layers import read_manifest
from env_builder.runtime.canonical import canonical, digest

PLACES = ("process", "processes", "containers", "ray")


class Job(NamedTuple):
    """What all episodes of a command have in common; plain values, so that it can be told to another machine."""

    environment: str
    """OUT/environments/NAME."""
    rewards: str | None
    """The grader's side; None: beside the environment."""
    policy: str
    """As the command names it: `oracle`, `openai:MODEL@URL` …"""
    on: str = "process"
    """One of `PLACES`."""
    conditions: tuple[str, ...] = ()
    temperature: float | None = None
    """None: the endpoint's own."""
    prune: bool = False
    """End an episode whose gate is lost for good."""


class Order(NamedTuple):
    """One episode to play."""

    episode_id: str
    group_id: str
    task_id: str
    seed: int
    attempt: int
    """0-based among those of the group."""
    group_size: int


def rewards_of(job: Job) -> Path:
    """The directory of the grader's side."""
    environment = Path(job.environment)
    return Path(job.rewards) if job.rewards else environment.parent.parent / "rewards" / environment.name


def digests(job: Job) -> tuple[str, str | None]:
    """Digests of the environment's content and of its rewards (None where it has none)."""
    about = rewards_of(job) / "rewards.json"
    graded = json.loads(about.read_text("utf-8"))["rewards_digest"] if about.is_file() else None
    return read_manifest(Path(job.environment))["content_digest"], graded


def ordered(job: Job, policy: str, task_ids: Sequence[str], n: int | None, group: int, seed: int) -> list[Order]:
    """`group` episodes of each of `n` tasks, in the order given; beyond the last one the first comes again, with the next seed.

    `policy`: its full name (`policies.named`), since an id stands for what a policy does and not for what it is called.
    """
    depends = [*digests(job), policy, sorted(job.conditions), job.prune]
    orders = []
    for place in range(len(task_ids) if n is None else n if task_ids else 0):
        task_id, own = task_ids[place % len(task_ids)], seed + place // len(task_ids)
        group_id = _id([*depends, task_id, own, group])
        orders += [Order(_id([*depends, task_id, own, attempt, None]), group_id, task_id, own, attempt, group)
                   for attempt in range(group)]
    return orders


def _id(parts: Sequence[object]) -> str:
    return digest(canonical(list(parts)))[:32]
