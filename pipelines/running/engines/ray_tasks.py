"""Shards as tasks on Ray. The one door to Ray (optional: `pip install 'traceroom[ray]'`).

A task whose worker dies is given to another one, up to `TRIES` times; a task has come back once or not at all. RAY_ADDRESS
names the cluster; without it one is begun on this machine and ended with the work.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, ParamSpec, TypeVar

from warehouse.errors import Unavailable

STORE_BYTES = 200_000_000
"""Shared memory of a cluster of our own: what comes back is small."""
TRIES = 3
P = ParamSpec("P")
T = TypeVar("T")


class RayExecutor(Executor):
    """Tasks of a cluster, of which `n_workers` run at once where the cluster is our own."""

    def __init__(self, n_workers: int) -> None:
        """Connect to Ray. Raises Unavailable."""
        self._ray, self._own = joined(n_workers)
        self._work: Any = self._ray.remote(num_cpus=1, max_retries=TRIES)(_call)
        self._refs: list[Any] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a task; its future has the result, or what it raised: BrokenExecutor where `TRIES` + 1 workers died with it."""
        ref = self._work.remote(fn, args, kwargs)
        self._refs.append(ref)
        future: Future[T] = Future()

        def tell(reference: Future[T]) -> None:
            error = reference.exception()
            if error is None:
                future.set_result(reference.result())
            elif isinstance(error, self._ray.exceptions.WorkerCrashedError):
                future.set_exception(BrokenExecutor(str(error)))
            else:
                future.set_exception(getattr(error, "cause", None) or error)

        ref.future().add_done_callback(tell)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the cluster where it is our own; elsewhere what still runs is cancelled or waited for."""
        if cancel_futures:
            for ref in self._refs:
                self._ray.cancel(ref, force=True)
        elif wait and self._refs:
            self._ray.wait(self._refs, num_returns=len(self._refs))
        self._refs.clear()
        if self._own:
            self._ray.shutdown()


def joined(n_workers: int) -> tuple[Any, bool]:
    """Ray, on a cluster, and whether it is our own, with so many processors (0: this machine's). Raises Unavailable."""
    try:
        import ray
    except ImportError as error:
        raise Unavailable("Ray is not installed", hint="pip install 'traceroom[ray]'") from error
    if ray.is_initialized():
        return ray, False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    address = os.environ.get("RAY_ADDRESS")
    try:
        if address:
            ray.init(address, **quiet)
        else:
            os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # else driver and daemon look for a token
            ray.init("local", num_cpus=n_workers or None, include_dashboard=False, object_store_memory=STORE_BYTES, **quiet)
    except Exception as error:
        if type(error) is Exception or isinstance(error, ConnectionError | RuntimeError | OSError):   # of a slow node: bare
            raise Unavailable(f"no Ray cluster answers ({error})", address or "this machine", "see RAY_ADDRESS") from error
        raise
    return ray, True


def _call(work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return work(*args, **kwargs)
