"""Which episodes to play: a group of attempts per task, each with an id that hashes what it depends on; and the groups'
results.

In: a command's options. Out: `Order`s, group by group. The same command gives the same orders, so an episode that is on disk
is recognized by its id. Then in: rewards of a group's episodes. Out: advantages, as GRPO takes them: (reward - mean) / std
(Shao et al. 2024), with the standard deviation of the group itself. A group whose rewards are all equal has no signal. A group
closes when all its episodes have ended, or at its deadline with those that have; a later episode is stored, but belongs to no
group. Does not see why a reward is what it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.layers import read_manifest
from env_builder.runtime.canonical import canonical, digest

ALIKE = 1e-9
"""Rewards that differ by less are equal."""
Row = dict[str, Any]


class AgentCommand(NamedTuple):
    """An agent of somebody's own, which plays the episodes: a command, or a service."""

    command: str
    """A command line, or the URL of a service that gets a POST for each episode."""
    adapters: tuple[str, ...] = ()
    """Frameworks whose tool functions are replaced."""
    talk: str = "auto"
    """How it speaks to the user: `text` of its model, `tools` of the MCP endpoint, or `auto`: by tools if it opens that."""
    seconds: float = 600.0
    """The most that an episode may take."""

    @property
    def name(self) -> str:
        """Name it by what decides how it plays."""
        parts = [self.command, *(f"adapter {name}" for name in self.adapters)]
        return " ".join(parts if self.talk == "auto" else [*parts, f"talk {self.talk}"])


class Job(NamedTuple):
    """What all episodes of a command have in common; plain values, which can be sent to another machine."""

    environment: str
    """OUT/environments/NAME."""
    rewards: str | None
    """The rewards folder; None: next to the environment."""
    policy: str
    """As the command names it: `oracle`, `openai:MODEL@URL` …"""
    on: str = "process"
    """Where environments run: `process`, `processes`, `containers` or `ray`."""
    perturbations: tuple[str, ...] = ()
    temperature: float | None = None
    """None: the endpoint's own."""
    prune: bool = False
    """End an episode as soon as one of its gates cannot pass."""
    tokens: bool = False
    """Ask the model's endpoint for token ids and log-probabilities."""
    agent: AgentCommand | None = None
    """Who acts, with the policy as its model; None: the policy itself."""


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
    """Return the directory of the grader's side."""
    environment = Path(job.environment)
    return Path(job.rewards) if job.rewards else environment.parent.parent / "rewards" / environment.name


def digests(job: Job) -> tuple[str, str | None]:
    """Digests of the environment's content and of its rewards (None where it has none)."""
    about = rewards_of(job) / "rewards.json"
    graded = json.loads(about.read_text("utf-8"))["rewards_digest"] if about.is_file() else None
    return read_manifest(Path(job.environment))["content_digest"], graded


def ordered(job: Job, policy: str, task_ids: Sequence[str], n: int | None, group: int, seed: int) -> list[Order]:
    """Order `group` episodes of each of `n` tasks; beyond the last task the first comes again, with the next seed. `policy`:
    its full name (`policies.named`), since an id identifies what a policy does, not how it is called."""
    def hashed(*parts: object) -> str:
        return digest(canonical([*depends, *parts]))[:32]

    depends = [*digests(job), policy, sorted(job.perturbations), job.prune]
    orders = []
    for position in range(len(task_ids) if n is None else n if task_ids else 0):
        task_id, own = task_ids[position % len(task_ids)], seed + position // len(task_ids)
        group_id = hashed(task_id, own, group)
        orders += [Order(hashed(task_id, own, attempt, None), group_id, task_id, own, attempt, group)
                   for attempt in range(group)]
    return orders


class Group(NamedTuple):
    """A group that has closed."""

    group_id: str
    task_id: str
    seed: int
    policy: str
    size: int
    """Episodes that were ordered."""
    closed_by: str
    """`size` or `deadline`."""
    episode_ids: list[str]
    """Those that had ended, by attempt."""
    rewards: list[float | None]
    """None: unscored."""
    advantages: list[float | None]
    signal: bool
    """Do the rewards differ?"""


def advantages(rewards: Sequence[float | None]) -> list[float | None]:
    """Return (reward - mean) / std over scored episodes; 0 if all rewards are equal; None for unscored episodes."""
    scored = [reward for reward in rewards if reward is not None]
    if not scored:
        return [None] * len(rewards)
    mean = math.fsum(scored) / len(scored)
    spread = math.sqrt(math.fsum((reward - mean) ** 2 for reward in scored) / len(scored))
    return [None if reward is None else 0.0 if spread < ALIKE else (reward - mean) / spread for reward in rewards]


class Gathering:
    """The groups of one run, as their episodes end."""

    def __init__(self, orders: Sequence[Order], closed: Mapping[str, Row], deadline_s: float | None) -> None:
        self._orders: dict[str, list[Order]] = {}
        for order in orders:
            self._orders.setdefault(order.group_id, []).append(order)
        self._closed = set(closed)
        self._members = {episode_id for group in closed.values() for episode_id in group["episode_ids"]}
        self._deadline_s = math.inf if deadline_s is None else deadline_s
        self._ended: dict[str, dict[str, Row]] = {group_id: {} for group_id in self._orders}
        self._begun: dict[str, float] = {}

    def is_closed(self, group_id: str) -> bool:
        """Whether no further episode can join."""
        return group_id in self._closed

    def is_superfluous(self, order: Order) -> bool:
        """Whether the episode's group has closed without it."""
        return self.is_closed(order.group_id) and order.episode_id not in self._members

    def begin(self, order: Order, now: float) -> None:
        """Note that an episode starts; a group's deadline counts from its first one."""
        self._begun.setdefault(order.group_id, now)

    def end(self, order: Order, about: Row) -> Group | None:
        """Note that an episode has ended: {"episode_id", "policy", "reward"}; return its group if it was the last one."""
        if self.is_closed(order.group_id):
            return None
        members = self._ended[order.group_id]
        members[order.episode_id] = about
        return self._close(order.group_id, "size") if len(members) == len(self._orders[order.group_id]) else None

    def overdue(self, now: float) -> list[Group]:
        """Close the groups whose deadline has passed and of which an episode has ended."""
        late = [group_id for group_id, begun in self._begun.items()
                if not self.is_closed(group_id) and self._ended[group_id] and begun + self._deadline_s <= now]
        return [self._close(group_id, "deadline") for group_id in late]

    def wait_s(self, now: float) -> float | None:
        """Return the seconds until the next deadline, None if there is none."""
        waits = (begun + self._deadline_s - now for group_id, begun in self._begun.items() if not self.is_closed(group_id))
        return min((wait for wait in waits if 0 < wait < math.inf), default=None)

    def _close(self, group_id: str, closed_by: str) -> Group:
        self._closed.add(group_id)
        orders, members = self._orders[group_id], self._ended[group_id]
        ended = [members[order.episode_id] for order in orders if order.episode_id in members]
        rewards = [about["reward"] for about in ended]
        first, worth = orders[0], advantages(rewards)
        return Group(group_id, first.task_id, first.seed, ended[0]["policy"], len(orders), closed_by,
                     [about["episode_id"] for about in ended], rewards, worth, any(worth))
