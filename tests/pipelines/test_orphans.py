"""Processes whose parent was killed; a module that imports little, since each process loads it."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import psutil

from pipelines.dagster_assets.orphans import end_with_parent


def test_a_process_ends_with_the_one_that_started_it() -> None:
    """A parent that is killed: its child, which would sleep for minutes, ends; a process without such a parent goes on."""
    end_with_parent()
    reading, writing = multiprocessing.Pipe(duplex=False)
    parent = multiprocessing.get_context("spawn").Process(target=_parent, args=(writing,))
    parent.start()
    assert reading.poll(120)
    child = psutil.Process(reading.recv())
    parent.kill()
    parent.join()
    until = time.monotonic() + 60
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until, "the child goes on"
        time.sleep(0.05)


def _parent(writing: Any) -> None:
    child = multiprocessing.get_context("spawn").Process(target=_child, args=(writing,))
    child.start()
    child.join()


def _child(writing: Any) -> None:
    end_with_parent()
    writing.send(multiprocessing.current_process().pid)
    time.sleep(300)
