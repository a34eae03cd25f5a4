"""Episodes on Ray: the same players, as actors of a cluster (pipelines/engines/ray_tasks.py).

In: a job and orders. Out: trajectories. Where a worker dies its order is played by another one; an episode counts when it has
come back, so none is there twice. RAY_ADDRESS names the cluster; without it one is begun on this machine and ended with the
rollout. On other machines this package has to be installed and the environment's and rewards' paths have to be the same.
"""

from __future__ import annotations

from typing import Any

from pipelines.engines import ray_tasks
from pipelines.rollouts.orders import Job, Order
from pipelines.rollouts.player import TRIES, Player
from warehouse.errors import TraceroomError, Unavailable

Row = dict[str, Any]


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
        """The episode's trajectory, from the first worker that lives to its end."""
        gone = self._ray.exceptions.RayActorError
        for _ in range(TRIES):
            actor = self._free.pop() if self._free else self._begun()
            try:
                trajectory: Row = await actor.play.remote(order)
            except gone as error:
                said = error
                continue
            except self._ray.exceptions.RayTaskError as error:
                self._free.append(actor)
                if isinstance(error.cause, TraceroomError):
                    raise error.cause from None
                raise
            self._free.append(actor)
            return trajectory
        raise Unavailable(f"{TRIES} workers died with this episode ({said})", order.episode_id, "look into Ray's logs")

    def close(self) -> None:
        """End the workers, and the cluster where it is our own."""
        for actor in self._all:
            self._ray.kill(actor)
        if self._own:
            self._ray.shutdown()

    def _begun(self) -> Any:
        actor = self._actor.remote(self._job)
        self._all.append(actor)
        return actor
