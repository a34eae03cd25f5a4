"""Where episodes are played: `Local` on this machine, `Cluster` on Ray. Both play up to `n_seats` orders at once.

`Cluster` has the same players, as actors (pipelines/running/engines/ray_tasks.py). If a worker dies, another one plays its
order; an episode counts once it has come back, so none is there twice. RAY_ADDRESS names the cluster; without it, one is
started on this machine and ended with the rollout. Other machines need this package, and the same paths of the environment and
its rewards.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from env_builder.image import image_of
from env_builder.pool import Pool
from env_builder.process import start_process
from pipelines.rollouts import policies
from pipelines.rollouts.agents.agent_player import AgentPlayer
from pipelines.rollouts.agents.server import SeatServer
from pipelines.rollouts.orders import Job, Order
from pipelines.rollouts.player import TRIES, Grader, Player
from pipelines.running.engines import ray_tasks
from warehouse.errors import TraceroomError, Unavailable

READY = 4
"""Containers that are kept ready, at most."""
Row = dict[str, Any]


class Local:
    """Threads of this process, a player each: policies wait for their endpoints in parallel. Environments run here, or, as the
    job says, in local processes, one per thread, or in containers, one per episode."""

    def __init__(self, job: Job, n_seats: int) -> None:
        """Check that the environment has an image for containers. Raises InputError."""
        self.n_seats = n_seats
        self._job = job
        self._grader = Grader(job)
        self._policy = policies.named(job)
        self._threads = ThreadPoolExecutor(n_seats, "rollout")
        self._own = threading.local()
        self._players: list[Player] = []
        self._pool: Pool | None = None
        self._server = SeatServer() if job.agent is not None else None
        """Of the episodes that an agent plays."""
        if job.on == "containers":
            image_of(Path(job.environment))
            self._pool = Pool(Path(job.environment), min(n_seats, READY), 2 * n_seats)

    async def play(self, order: Order) -> Row:
        """Return the episode's trajectory. Raises Unavailable if it could not be played."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._play, order)

    def close(self) -> None:
        """Stop what runs, each at the end of its turn, then end the environments."""
        for player in self._players:
            player.stop()
        self._threads.shutdown(cancel_futures=True)
        for player in self._players:
            player.close()
        if self._pool is not None:
            self._pool.close()
        if self._server is not None:
            self._server.close()

    def _play(self, order: Order) -> Row:
        if not hasattr(self._own, "player"):
            start = self._pool.take if self._pool is not None else None
            if self._job.on == "processes":
                start = partial(start_process, Path(self._job.environment))
            shared = (self._job, self._grader, self._policy, start, self._pool is None)
            self._own.player = Player(*shared) if self._server is None else AgentPlayer(*shared, self._server)
            self._players.append(self._own.player)
        player: Player = self._own.player
        return player.play(order)


class Cluster:
    """Actors, a player each."""

    def __init__(self, job: Job, n_seats: int = 0) -> None:
        """`n_seats`: episodes at once; 0: as many as the cluster has processors. Raises Unavailable."""
        self._ray, self._own = ray_tasks.joined(n_seats)
        self.n_seats = n_seats or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._job = job._replace(on="process")
        self._actor: Any = self._ray.remote(num_cpus=1, max_restarts=0)(Player)
        self._free: list[Any] = []
        self._all: list[Any] = []

    async def play(self, order: Order) -> Row:
        """Return the episode's trajectory, from the first worker that lives to its end."""
        gone = self._ray.exceptions.RayActorError
        for _ in range(TRIES):
            if not self._free:
                self._all.append(self._actor.remote(self._job))
                self._free.append(self._all[-1])
            actor = self._free.pop()
            try:
                trajectory: Row = await actor.play.remote(order)
            except gone as error:
                failure = error
                continue
            except self._ray.exceptions.RayTaskError as error:
                self._free.append(actor)
                if isinstance(error.cause, TraceroomError):
                    raise error.cause from None
                raise
            self._free.append(actor)
            return trajectory
        raise Unavailable(f"{TRIES} workers died with this episode ({failure})", order.episode_id, "see Ray's logs")

    def close(self) -> None:
        """End the workers, and the cluster where it is our own."""
        for actor in self._all:
            self._ray.kill(actor)
        if self._own:
            self._ray.shutdown()
