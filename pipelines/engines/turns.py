"""Shards done in their turn: by workers and by this process, and handed over in the order in which they came.

This process does shards as well while they take longer than what its caller does with them. Few are in memory at once. What a
worker gives back may lie elsewhere (in a file); it is fetched when its turn comes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pipelines.engines import Engine
from warehouse.errors import Unavailable

_QUEUE = 3
"""Shards in memory for each worker, and more where they are small: enough for the time that a transaction takes."""
_ROOM = 3 << 24
"""Bytes of them for each worker."""
_FED = 1 << 22
"""Bytes of small shards that a worker has before it, beside the one that it does."""
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
    def here(self, shard: T_in, /) -> R_out:
        """Do it in this process."""
    def beside(self, shard: T_in, engine: Engine, /) -> Call | None:
        """What a worker is to call; None: it is done here."""
    def fetched(self, given: Callable[[], Any], /) -> R_out:
        """The result, of what the worker gives back; it raises what the worker raised."""


class _Timed(NamedTuple):
    given: Any
    seconds: float
    """That it took."""


class _Done(NamedTuple, Generic[R]):
    result: R


@dataclass
class _Turn(Generic[T, R]):
    """A shard in its turn."""

    shard: T
    found: Future[_Timed] | _Done[R] | None = None
    """Its result, now or when a worker has it; None: nobody has begun."""

    @property
    def is_done(self) -> bool:
        """Whether its result is there."""
        return isinstance(self.found, _Done) or (self.found is not None and self.found.done())


class Turns(Generic[T, R]):
    """The work of an engine (None: this process alone) on shards."""

    def __init__(self, work: Work[T, R], engine: Engine | None) -> None:
        self._work, self._engine = work, engine
        self._n_beside = engine.n_workers if engine else 0
        self._doing, self._taking = [0.0], [0.0]
        """Seconds for each shard: of the workers, and of whoever takes it from here."""

    def of(self, shards: Iterable[T]) -> Iterator[tuple[T, R]]:
        """The result of each shard, in order. Errors: `Unavailable` where a worker was ended; else what the work raises."""
        waiting: deque[_Turn[T, R]] = deque()
        try:
            for shard in shards:
                waiting.append(_Turn(shard))
                self._feed(waiting)
                while waiting and (waiting[0].is_done or self._is_full(waiting)):
                    if fmean(self._doing) >= fmean(self._taking) * self._n_beside:
                        self._help(waiting)
                    yield from self._handed_over(waiting.popleft())
                    self._feed(waiting)
            while waiting:
                self._help(waiting)
                yield from self._handed_over(waiting.popleft())
                self._feed(waiting)
        except BrokenExecutor as error:
            raise Unavailable("a process that read logs was ended from outside", mend=(
                "give it more memory, then run again (what was committed stays); a script of your own that reads logs needs "
                'if __name__ == "__main__": around what it runs')) from error

    def _is_full(self, waiting: deque[_Turn[T, R]]) -> bool:
        return len(waiting) > _QUEUE * self._n_beside and (
            sum(self._work.size(turn.shard) for turn in waiting) > _ROOM * self._n_beside)

    def _feed(self, waiting: Iterable[_Turn[T, R]]) -> None:
        """Give each worker the shard that it does and one more, of small ones some; what none may do is done here."""
        begun = [turn for turn in waiting if turn.found is not None and not turn.is_done]
        n_begun, n_bytes = len(begun), sum(self._work.size(turn.shard) for turn in begun)
        for turn in waiting:
            if turn.found is not None:
                continue
            if self._engine is None:
                turn.found = _Done(self._work.here(turn.shard))
            elif n_begun < 2 * self._n_beside or n_bytes < _FED * self._n_beside:
                if call := self._work.beside(turn.shard, self._engine):
                    turn.found = self._engine.executor.submit(_timed, *call)
                    n_begun, n_bytes = n_begun + 1, n_bytes + self._work.size(turn.shard)
                else:
                    turn.found = _Done(self._work.here(turn.shard))

    def _help(self, waiting: deque[_Turn[T, R]]) -> None:
        """Do shards that no worker has, the last first, for as long as the first is not done."""
        for turn in reversed(waiting):
            if waiting[0].is_done:
                return
            if turn.found is None:
                turn.found = _Done(self._work.here(turn.shard))

    def _handed_over(self, turn: _Turn[T, R]) -> Iterator[tuple[T, R]]:
        assert turn.found is not None, "the first is fed first"
        found = turn.found
        result = found.result if isinstance(found, _Done) else self._work.fetched(partial(self._given, found))
        began = time.perf_counter()
        yield turn.shard, result
        self._taking.append(time.perf_counter() - began)

    def _given(self, found: Future[_Timed]) -> Any:
        timed = found.result()
        self._doing.append(timed.seconds)
        return timed.given


def _timed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Timed:
    began = time.perf_counter()
    return _Timed(function(*arguments), time.perf_counter() - began)
