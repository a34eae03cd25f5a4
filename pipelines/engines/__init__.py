"""Where shards are worked on: in this process, in processes beside it, or as tasks on a Ray cluster.

A shard is a piece of a log file or a share of the tasks to audit: what is asked of it is a plain function of our wings with
plain arguments, submitted to an `Executor`; results are taken in the order of the shards, so which engine did the work reaches
no table. This process works too while it waits. A shard whose Ray worker dies is done by another one; a local process that is
ended from outside ends the step (`BrokenExecutor`), which the next run takes up.

TRACEROOM_ENGINE (`process`, `processes`, `ray`) and TRACEROOM_WORKERS say which, and how many: by default a process for each
core but one. On this machine no more are begun than TRACEROOM_MEMORY has room for. On other machines this package has to be
installed, and logs and OUT have to have the same paths.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager
from typing import NamedTuple

from pipelines import memory
from pipelines.engines.processes import n_cores, pool
from warehouse.errors import InputError, Missing, Unavailable

ENGINES = ("process", "processes", "ray")
ENOUGH_TASKS = 300
"""Tasks to audit from which on a process beside this one pays: it takes seconds to start."""


class Engine(NamedTuple):
    """Workers beside this process."""

    executor: Executor
    n_workers: int
    shares_files: bool
    """Whether a file that a worker writes is surely seen here."""


def refuse_unknown() -> None:
    """Raises Missing, InputError where TRACEROOM_ENGINE, TRACEROOM_WORKERS or TRACEROOM_MEMORY says nothing that can be done,
    also where there is too little to do for any of them to matter."""
    _name()
    _told()
    memory.limit()


def n_workers() -> int:
    """How many workers there are to be beside this process; 0: it does all by itself. Raises Missing, InputError."""
    name, told = _name(), _told()
    if name == "process":
        return 0
    n = told if told is not None else max(n_cores() - 1, 1 if name == "ray" else 0)
    return n if name == "ray" and os.environ.get("RAY_ADDRESS") else memory.n_fitting(n)


def opened(begin: Callable[[], None] | None = None) -> Engine | None:
    """Workers, to be shut down by who asked; None where this process is to do all. `begin`: what a local one calls first."""
    n = n_workers()
    if n == 0:
        return None
    if _name() == "ray":
        from pipelines.engines.ray_tasks import RayExecutor

        return Engine(RayExecutor(n), n, shares_files=False)
    return Engine(pool(n, begin), n, shares_files=True)


@contextmanager
def auditors(n_tasks: int) -> Iterator[Engine | None]:
    """Workers for the audit of so many tasks; None where they would not pay. Raises Unavailable."""
    engine = opened() if n_tasks >= ENOUGH_TASKS else None
    if engine is None:
        yield None
        return
    try:
        with engine.executor:
            yield engine
    except BrokenExecutor as error:
        raise Unavailable("a process that audited tasks was ended from outside", mend=(
            "give it more memory, then run again; a script of your own that builds environments needs "
            'if __name__ == "__main__": around what it runs')) from error


def _name() -> str:
    name = os.environ.get("TRACEROOM_ENGINE") or "processes"
    if name not in ENGINES:
        raise Missing.named("engine", name, ENGINES, "set TRACEROOM_ENGINE to one of them, or not at all")
    return name


def _told() -> int | None:
    told = os.environ.get("TRACEROOM_WORKERS", "")
    if told and not told.isdecimal():
        raise InputError(f"{told!r} is no number of workers", "TRACEROOM_WORKERS", "set it to a whole number, or not at all")
    return int(told) if told else None
