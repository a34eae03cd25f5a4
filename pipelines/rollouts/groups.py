"""Groups: episodes from one beginning, and what each is worth beside the others.

In: rewards of a group's episodes. Out: advantages, as GRPO takes them: (reward - mean) / std (Shao et al. 2024), with the
standard deviation of the group itself. A group whose rewards are all alike says nothing of which way is better: no signal.
A group closes when all its episodes have ended, or at its deadline with those that have; who comes later is kept, but is in no
group. Does not see: why a reward is what it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.rollouts.orders import Order

ALIKE = 1e-9
"""Rewards that differ by less are equal."""
Row = dict[str, Any]


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
    """(reward - mean) / std over those that are scored; 0 where all are alike; None of the unscored."""
    scored = [reward for reward in rewards if reward is not None]
    if not scored:
        return [None] * len(rewards)
    mean = math.fsum(scored) / len(scored)
    spread = math.sqrt(math.fsum((reward - mean) ** 2 for reward in scored) / len(scored))
    alike = spread < ALIKE
    return [None if reward is None else 0.0 if alike else (reward - mean) / spread for reward in rewards]


class Gathering:
    """The groups of one run, as their episodes end."""

    def __init__(self, orders: Sequence[Order], closed: Mapping[str, Row], deadline_s: float | None) -> None:
        self._orders: dict[str, list[Order]] = {}
        for order in orders:
            self._orders.setdefault(order.group_id, []).append(order)
        self._closed = set(closed)
        self._members = {episode_id for group in closed.values() for episode_id in group["episode_ids"]}
        self._deadline_s = deadline_s
        self._ended: dict[str, dict[str, Row]] = {group_id: {} for group_id in self._orders}
        self._begun: dict[str, float] = {}

    def is_closed(self, group_id: str) -> bool:
        """Whether no further episode gets in."""
        return group_id in self._closed

    def leaves(self, order: Order) -> bool:
        """Whether nobody needs this episode any more: its group has closed without it."""
        return self.is_closed(order.group_id) and order.episode_id not in self._members

    def begin(self, order: Order, now: float) -> None:
        """An episode begins; a group's deadline counts from its first one's."""
        self._begun.setdefault(order.group_id, now)

    def end(self, order: Order, about: Row) -> Group | None:
        """An episode has ended: {"episode_id", "policy", "reward"}; the group where it was the last one of it."""
        if self.is_closed(order.group_id):
            return None
        members = self._ended[order.group_id]
        members[order.episode_id] = about
        return self._close(order.group_id, "size") if len(members) == len(self._orders[order.group_id]) else None

    def overdue(self, now: float) -> list[Group]:
        """Groups whose deadline has passed and of which an episode has ended, closed."""
        late = [group_id for group_id, begun in self._begun.items()
                if not self.is_closed(group_id) and self._ended[group_id] and self._due(begun) <= now]
        return [self._close(group_id, "deadline") for group_id in late]

    def wait_s(self, now: float) -> float | None:
        """Seconds until the next deadline, None where none is set."""
        due = [self._due(begun) for group_id, begun in self._begun.items() if not self.is_closed(group_id)]
        later = [each - now for each in due if each > now]
        return min(later) if self._deadline_s is not None and later else None

    def _due(self, begun: float) -> float:
        return begun + (math.inf if self._deadline_s is None else self._deadline_s)

    def _close(self, group_id: str, closed_by: str) -> Group:
        self._closed.add(group_id)
        orders, members = self._orders[group_id], self._ended[group_id]
        found = [members[order.episode_id] for order in orders if order.episode_id in members]
        rewards = [about["reward"] for about in found]
        first, worth = orders[0], advantages(rewards)
        return Group(group_id, first.task_id, first.seed, found[0]["policy"], len(orders), closed_by,
                     [about["episode_id"] for about in found], rewards, worth, any(worth))
