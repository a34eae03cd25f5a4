"""Where episodes are played: `Backend`, and the one of this machine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from env_builder.image import image_of
from env_builder.pool import Pool
from env_builder.room import Room, start_process
from pipelines.rollouts import policies
from pipelines.rollouts.orders import Job, Order
from pipelines.rollouts.player import Grader, Player

READY = 4
"""Containers that stand ready, at most."""
Row = dict[str, Any]


class Backend(Protocol):
    """Plays orders side by side."""

    n_seats: int
    """Episodes at once."""

    async def play(self, order: Order) -> Row:
        """The episode's trajectory; Unavailable where it could not be played."""

    def close(self) -> None:
        """End everything that was begun."""


class Local:
    """Threads of this process, a player each: policies wait for their endpoints side by side. Rooms are here, or, as the job
    says, local processes, one a thread, or containers, one an episode."""

    def __init__(self, job: Job, n_seats: int) -> None:
        """Raises InputError where the environment has no image to make containers of."""
        self.n_seats = n_seats
        self._job = job
        self._grader = Grader(job)
        self._policy = policies.named(job)
        self._threads = ThreadPoolExecutor(n_seats, "rollout")
        self._own = threading.local()
        self._players: list[Player] = []
        self._pool: Pool | None = None
        if job.on == "containers":
            image_of(Path(job.environment))
            self._pool = Pool(Path(job.environment), min(n_seats, READY), 2 * n_seats)

    async def play(self, order: Order) -> Row:
        """The episode's trajectory."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._play, order)

    def close(self) -> None:
        """Stop what runs, each at the end of its turn, then end the rooms."""
        for player in self._players:
            player.stop()
        self._threads.shutdown(cancel_futures=True)
        for player in self._players:
            player.close()
        if self._pool is not None:
            self._pool.close()

    def _play(self, order: Order) -> Row:
        if not hasattr(self._own, "player"):
            self._own.player = Player(self._job, self._grader, self._policy, self._beginner(), self._pool is None)
            self._players.append(self._own.player)
        player: Player = self._own.player
        return player.play(order)

    def _beginner(self) -> Callable[[], Room] | None:
        """How a room apart begins, None where rooms are in this process."""
        if self._pool is not None:
            return self._pool.take
        return (lambda: start_process(Path(self._job.environment))) if self._job.on == "processes" else None
