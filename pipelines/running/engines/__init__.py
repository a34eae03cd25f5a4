"""Engines: shards are done in this process, in other local processes, or as tasks on a Ray cluster.

A shard is a chunk of a log file to read, a reading to pseudonymise, or some of the tasks to audit: a plain function of our
wings with plain arguments, submitted to an `Executor`. Results are taken in the order of the shards (`Turns`), so the engine
changes no table. This process does shards too while they take longer than what its caller does with them. A shard whose Ray
worker dies is done by another one; a local process that is ended from outside ends the step (`BrokenExecutor`), which the
next run takes up. A local process ends by itself when this one is gone.

TRACEROOM_ENGINE (`process`, `processes`, `ray`) and TRACEROOM_WORKERS choose the engine and its workers: by default a process
for each core but one, and no more than TRACEROOM_MEMORY allows. Other machines need this package, and the same paths for logs
and OUT.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pipelines.running import memory
from warehouse.errors import InputError, Missing, Unavailable

ENGINES = ("process", "processes", "ray")
ENOUGH_TASKS = 300
"""Tasks to audit from which on another process pays: it takes seconds to start."""


class Engine(NamedTuple):
    """Workers in other processes."""

    executor: Executor
    n_workers: int
    shares_files: bool
    """Whether a file that a worker writes is surely seen here."""


def refuse_unknown() -> None:
    """Check TRACEROOM_ENGINE, TRACEROOM_WORKERS and TRACEROOM_MEMORY, even for little work. Raises Missing, InputError."""
    _name()
    _configured_workers()
    memory.limit()


def n_workers() -> int:
    """Return the number of workers in other processes; 0: this one does all. Raises Missing, InputError."""
    name, wanted = _name(), _configured_workers()
    if name == "process":
        return 0
    n = wanted if wanted is not None else max(n_cores() - 1, 1 if name == "ray" else 0)
    return n if name == "ray" and os.environ.get("RAY_ADDRESS") else memory.n_fitting(n)


def opened(begin: Callable[[], None] | None = None) -> Engine | None:
    """Workers, to be shut down by who asked; None where this process is to do all. `begin`: what a local one calls first."""
    n = n_workers()
    if n == 0:
        return None
    if _name() == "ray":
        from pipelines.running.engines.ray_tasks import RayExecutor

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
        raise Unavailable("a process that audited tasks was ended from outside", hint=(
            "give it more memory, then run again; a script of your own that builds environments needs "
            'if __name__ == "__main__": around what it runs')) from error


def _name() -> str:
    name = os.environ.get("TRACEROOM_ENGINE") or "processes"
    if name not in ENGINES:
        raise Missing.named("engine", name, ENGINES, "set TRACEROOM_ENGINE to one of them, or not at all")
    return name


def _configured_workers() -> int | None:
    text = os.environ.get("TRACEROOM_WORKERS", "")
    if text and not text.isdecimal():
        raise InputError(f"{text!r} is no number of workers", "TRACEROOM_WORKERS", "set it to a whole number, or not at all")
    return int(text) if text else None


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool(n: int, begin: Callable[[], None] | None = None) -> ProcessPoolExecutor:
    """`n` processes, each of which calls `begin` first."""
    return ProcessPoolExecutor(n, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(os.getpid(), begin))


def _begin(parent: int, begin: Callable[[], None] | None) -> None:
    """End this process when its parent is gone: one that was killed cannot say so."""
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if begin is not None:
        begin()
    threading.Thread(target=watch, daemon=True).start()


_QUEUE = 3
"""Shards in memory for each worker, and more where they are small: enough for the time that a transaction takes."""
_WAITING = 3 << 24
"""Bytes of them for each worker."""
_FED = 1 << 22
"""Bytes of small shards that a worker has before it, besides the one that it does."""
T = TypeVar("T")
R = TypeVar("R")
T_in = TypeVar("T_in", contravariant=True)
R_out = TypeVar("R_out", covariant=True)
Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of a module, and its arguments."""


class Work(Protocol[T_in, R_out]):
    """What is to be done with a shard."""

    def size(self, shard: T_in, /) -> int:
        """Bytes that are in it."""
    def run_here(self, shard: T_in, /) -> R_out:
        """Do it in this process."""
    def remote_call(self, shard: T_in, engine: Engine, /) -> Call | None:
        """Give what a worker is to call; None: it is done here."""
    def fetched(self, given: Callable[[], Any], /) -> R_out:
        """Fetch the result, which may be in a file, by what the worker gives back; it raises what the worker raised."""


_Timed = tuple[Any, float]
"""What a worker gives back, and the seconds that it took."""


@dataclass
class _Turn(Generic[T, R]):
    """A shard in its turn."""

    shard: T
    outcome: Future[_Timed] | tuple[R] | None = None
    """A worker's future result, or the result; None: it has not begun."""

    @property
    def is_done(self) -> bool:
        return isinstance(self.outcome, tuple) or (self.outcome is not None and self.outcome.done())


class Turns(Generic[T, R]):
    """The work of an engine (None: this process alone) on shards, of which few are in memory at once."""

    def __init__(self, work: Work[T, R], engine: Engine | None) -> None:
        self._work, self._engine = work, engine
        self._n_beside = engine.n_workers if engine else 0
        self._doing, self._taking = [0.0], [0.0]
        """Seconds for each shard: of the workers, and of the caller that takes it."""

    def of(self, shards: Iterable[T]) -> Iterator[tuple[T, R]]:
        """Yield the result of each shard, in order. Errors: `Unavailable` where a worker was ended; else what the work
        raises."""
        waiting: deque[_Turn[T, R]] = deque()
        try:
            for shard in shards:
                waiting.append(_Turn(shard))
                self._feed(waiting)
                while waiting and (waiting[0].is_done or (
                        len(waiting) > _QUEUE * self._n_beside
                        and sum(self._work.size(turn.shard) for turn in waiting) > _WAITING * self._n_beside)):
                    if fmean(self._doing) >= fmean(self._taking) * self._n_beside:
                        self._help(waiting)
                    yield from self._handed_over(waiting.popleft())
                    self._feed(waiting)
            while waiting:
                self._help(waiting)
                yield from self._handed_over(waiting.popleft())
                self._feed(waiting)
        except BrokenExecutor as error:
            raise Unavailable("a process that read logs was ended from outside", hint=(
                "give it more memory, then run again (what was committed stays); a script of your own that reads logs needs "
                'if __name__ == "__main__": around what it runs')) from error

    def _feed(self, waiting: Iterable[_Turn[T, R]]) -> None:
        """Give each worker the shard that it does and one more, of small ones some; what none may do is done here."""
        begun = [turn for turn in waiting if turn.outcome is not None and not turn.is_done]
        n_begun, n_bytes = len(begun), sum(self._work.size(turn.shard) for turn in begun)
        for turn in waiting:
            if turn.outcome is not None:
                continue
            if self._engine and n_begun >= 2 * self._n_beside and n_bytes >= _FED * self._n_beside:
                return
            if self._engine and (call := self._work.remote_call(turn.shard, self._engine)):
                turn.outcome = self._engine.executor.submit(_timed, *call)
                n_begun, n_bytes = n_begun + 1, n_bytes + self._work.size(turn.shard)
            else:
                turn.outcome = (self._work.run_here(turn.shard),)

    def _help(self, waiting: deque[_Turn[T, R]]) -> None:
        """Do shards that no worker has, the last first, for as long as the first is not done."""
        for turn in reversed(waiting):
            if waiting[0].is_done:
                return
            if turn.outcome is None:
                turn.outcome = (self._work.run_here(turn.shard),)

    def _handed_over(self, turn: _Turn[T, R]) -> Iterator[tuple[T, R]]:
        assert turn.outcome is not None, "the first is fed first"
        outcome = turn.outcome
        result = outcome[0] if isinstance(outcome, tuple) else self._work.fetched(partial(self._given, outcome))
        began = time.perf_counter()
        yield turn.shard, result
        self._taking.append(time.perf_counter() - began)

    def _given(self, outcome: Future[_Timed]) -> Any:
        given, seconds = outcome.result()
        self._doing.append(seconds)
        return given


def _timed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Timed:
    began = time.perf_counter()
    return function(*arguments), time.perf_counter() - began
