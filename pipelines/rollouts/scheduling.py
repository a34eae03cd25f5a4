"""Episodes and groups as they end: the scheduler of rollouts, as an async iterator.

In: orders, a backend, the stored episodes. Out: an `Episode` for each order that was played, a `Group` for each group that
closed, a `Failed` for each order that could not be played, in the order in which they ended. What comes out is on disk.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

from env_builder.runtime.admission import FAILURES
from pipelines.rollouts.backends import Cluster, Local
from pipelines.rollouts.kept import Kept, summary
from pipelines.rollouts.orders import Gathering, Group, Order
from warehouse.errors import EpisodeFailed, TraceroomError, Unavailable

GIVE_UP = 10
"""Failures in a row after which nothing more is tried."""


class Episode(NamedTuple):
    """An episode that has ended."""

    order: Order
    trajectory: dict[str, Any]
    in_time: bool
    """False: its group had closed before."""


class Failed(NamedTuple):
    """An episode that could not be played; the same command tries it again."""

    order: Order
    error: TraceroomError


async def rollouts(
    orders: Sequence[Order], backend: Local | Cluster, kept: Kept, deadline_s: float | None = None
) -> AsyncIterator[Episode | Group | Failed]:
    """Play what is not stored yet, as many at once as the backend has seats, and yield each episode as it ends. A group closes
    when its episodes have all ended, or `deadline_s` seconds after its first one began with those that have ended by then; the
    others are yielded when they end, and those that have not begun are dropped. Raises Unavailable after `GIVE_UP` failures in
    a row; once an episode was played, one that went wrong by itself is none of these."""
    groups = Gathering(orders, kept.groups, deadline_s)
    for order in orders:
        if order.episode_id in kept.episodes:
            group = groups.end(order, kept.episodes[order.episode_id])
            if group is not None:
                kept.close_group(group)
                yield group
    waiting = deque(order for order in orders if order.episode_id not in kept.episodes)
    running: dict[asyncio.Future[dict[str, Any]], Order] = {}
    n_failed = n_played = 0
    try:
        while waiting or running:
            while waiting and len(running) < backend.n_seats:
                order = waiting.popleft()
                if not groups.is_superfluous(order):
                    groups.begin(order, time.monotonic())
                    running[asyncio.ensure_future(backend.play(order))] = order
            if not running:
                break
            done, _ = await asyncio.wait(running, timeout=groups.wait_s(time.monotonic()), return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=lambda task: running[task]):
                order = running.pop(task)
                error = task.exception() or _unstored(kept, task.result())
                if isinstance(error, Unavailable):
                    n_failed += not (n_played and isinstance(error, EpisodeFailed))
                    yield Failed(order, error)
                    if n_failed >= GIVE_UP:
                        raise Unavailable(f"{n_failed} episodes in a row could not be played ({error.what})", error.where,
                                          "fix it, then run the same command again: what was played stays")
                    continue
                n_failed, n_played = 0, n_played + 1
                trajectory = task.result()
                in_time = not groups.is_closed(order.group_id)
                yield Episode(order, trajectory, in_time)
                group = groups.end(order, summary(trajectory))
                if group is not None:
                    kept.close_group(group)
                    yield group
            for group in groups.overdue(time.monotonic()):
                kept.close_group(group)
                yield group
    finally:
        for task in running:
            task.cancel()


def _unstored(kept: Kept, trajectory: dict[str, Any]) -> EpisodeFailed | None:
    """Store a trajectory; return why that is not possible, None if it is done."""
    try:
        kept.add(trajectory)
    except FAILURES as error:
        return EpisodeFailed(f"the trajectory cannot be written ({type(error).__name__}: {error})", str(kept.folder))
    return None
