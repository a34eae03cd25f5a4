"""Processes beside this one, on the other cores that it may use; each ends by itself when this one is gone."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool(n: int, begin: Callable[[], None] | None = None) -> ProcessPoolExecutor:
    """`n` processes, each of which calls `begin` first."""
    return ProcessPoolExecutor(
        n, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(os.getpid(), begin))


def _begin(parent: int, begin: Callable[[], None] | None) -> None:
    """End this process when its parent is gone: one that was killed cannot say so."""
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if begin is not None:
        begin()
    threading.Thread(target=watch, daemon=True).start()
