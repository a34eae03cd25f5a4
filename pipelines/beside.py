"""Processes beside this one, on the other cores that it may use; each ends by itself when this one is gone."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from warehouse.errors import Unavailable

ENOUGH_TASKS = 300
"""Tasks to audit from which on a process beside this one pays: it takes seconds to start."""


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool(n: int, begin: Callable[[], None] | None = None) -> ProcessPoolExecutor:
    """`n` processes, each of which calls `begin` first."""
    return ProcessPoolExecutor(
        n, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(os.getpid(), begin))


@contextmanager
def auditors(n_tasks: int) -> Iterator[Executor | None]:
    """Processes for the audit of so many tasks; None where they would not pay. Raises Unavailable."""
    if n_tasks < ENOUGH_TASKS or n_cores() == 1:
        yield None
        return
    try:
        with pool(n_cores() - 1) as executor:
            yield executor
    except BrokenProcessPool as error:
        raise Unavailable("a process that audited tasks was ended from outside", mend=(
            "give it more memory, then run again; a script of your own that builds environments needs "
            'if __name__ == "__main__": around what it runs')) from error


def _begin(parent: int, begin: Callable[[], None] | None) -> None:
    """End this process when its parent is gone: one that was killed cannot say so."""
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if begin is not None:
        begin()
    threading.Thread(target=watch, daemon=True).start()
