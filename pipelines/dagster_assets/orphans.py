"""End a process of a run when the process that started it is gone.

A run's worker is started by the code server, and a step's process by the run's worker. One that is killed cannot end the
processes that it started: a step would go on, hold the warehouse's lock, and stand in the way of the run that is started again
instead. What was committed stays; the next run continues there. Does not see a worker in a container of its own: that ends as a
whole.
"""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """End this process as soon as its parent is gone, if Dagster started it to execute a run or a step."""
    parent = multiprocessing.parent_process()
    if parent is None:   # the code server, a command, a container's worker: nobody's child in this sense
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()
