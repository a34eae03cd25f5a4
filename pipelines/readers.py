"""Pieces read on all cores that the process may use: in this process where there is little, else in others beside it.

Readings come in the order of their pieces, whatever finished first; no more pieces are in memory than there are readers, and
one. A reader ends by itself when the process that it reads for is gone.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self, TypeVar

from extractors.inventory import SourceFile
from extractors.pieces import PIECE_BYTES, Left, Log, Piece
from extractors.reading import Reading, left, read_piece
from warehouse.errors import Unavailable

_ENOUGH = 2 * PIECE_BYTES
"""Bytes from which on other processes pay."""


class Task(Protocol):
    """What is to be read."""

    @property
    def source_file(self) -> SourceFile: ...
    @property
    def log(self) -> Log | None: ...
    @property
    def found(self) -> Piece | Left: ...
    @property
    def number(self) -> int: ...


T = TypeVar("T", bound=Task)


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Readers:
    """Readers for about `n_bytes` of logs; use as a context manager."""

    def __init__(self, n_bytes: int) -> None:
        self._n = n_cores() if n_bytes >= _ENOUGH else 1
        self._pool: ProcessPoolExecutor | None = None

    def readings(self, tasks: Iterable[T], read_at: datetime) -> Iterator[tuple[T, Reading]]:
        """The reading of each task, in order. Errors: `Unavailable` where a process beside this one was ended."""
        waiting: deque[tuple[T, Future[Reading] | Reading]] = deque()
        try:
            for task in tasks:
                waiting.append((task, self._begin(task, read_at)))
                while len(waiting) > (self._n + 1 if self._pool else 0):
                    yield _done(*waiting.popleft())
            while waiting:
                yield _done(*waiting.popleft())
        except BrokenProcessPool as error:
            raise Unavailable("a process that read logs was ended from outside", mend=(
                "give it more memory, then run again: what was committed stays")) from error

    def _begin(self, task: Task, read_at: datetime) -> Future[Reading] | Reading:
        if isinstance(task.found, Left) or task.log is None:
            assert isinstance(task.found, Left)
            return left(task.source_file, task.found, task.number, read_at)
        if self._pool is None:
            return read_piece(task.log, task.found, read_at)
        return self._pool.submit(_read, replace(task.log, document=None), task.found, read_at)

    def __enter__(self) -> Self:
        gc.disable()   # records make millions of objects and no circles: looking for some costs a third of the time
        if self._n > 1:
            self._pool = ProcessPoolExecutor(
                self._n, multiprocessing.get_context("spawn"), initializer=_end_with, initargs=(os.getpid(),))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gc.enable()
        if self._pool is not None:
            self._pool.shutdown(wait=error is None, cancel_futures=True)


def _done(task: T, reading: Future[Reading] | Reading) -> tuple[T, Reading]:
    return task, reading.result() if isinstance(reading, Future) else reading


def _read(log: Log, piece: Piece, read_at: datetime) -> Reading:
    """Read a piece in a process that looks for circles in memory between pieces alone."""
    gc.collect()
    return read_piece(log, piece, read_at)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: one that was killed cannot say so."""
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    gc.disable()
    gc.freeze()
    threading.Thread(target=watch, daemon=True).start()
