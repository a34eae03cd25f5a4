"""Episodes on Ray: the same players, as actors of a cluster. The one door to Ray (optional: `pip install 'traceroom[ray]'`).

In: a job and orders. Out: trajectories. Where a worker dies its order is played by another one; an episode counts when it has
come back, so none is there twice. RAY_ADDRESS names the cluster; without it one is begun on this machine and ended with the
rollout. On other machines this package has to be installed and the environment's and rewards' paths have to be the same.
"""

from __future__ import annotations

import os
from typing import Any

from pipelines.rollouts.orders import Job, Order
from pipelines.rollouts.player import TRIES, Player
from warehouse.errors import TraceroomError, Unavailable

STORE_BYTES = 200_000_000
"""Shared memory of a cluster of our own: trajectories are small."""
Row = dict[str, Any]


class Cluster:
    """Actors, a player each."""

    def __init__(self, job: Job, n_seats: int = 0) -> None:
        """`n_seats`: episodes at once; 0: as many as the cluster has processors. Raises Unavailable."""
        try:
            import ray
        except ImportError as error:
            raise Unavailable("Ray is not installed", mend="pip install 'traceroom[ray]'") from error
        self._ray: Any = ray
        self._own = not ray.is_initialized()
        if self._own:
            self._join(n_seats)
        self.n_seats = n_seats or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._job = job._replace(on="process")
        self._actor: Any = ray.remote(num_cpus=1, max_restarts=0)(Player)
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

    def _join(self, n_seats: int) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        address = os.environ.get("RAY_ADDRESS")
        try:
            if address:
                self._ray.init(address, **quiet)
                return
            os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # else driver and daemon look for a token
            self._ray.init(
                "local", num_cpus=n_seats or None, include_dashboard=False, object_store_memory=STORE_BYTES, **quiet)
        except (ConnectionError, RuntimeError, OSError) as error:
            raise Unavailable(f"no Ray cluster answers ({error})", address or "this machine", "see RAY_ADDRESS") from error
