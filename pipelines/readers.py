"""Pieces read in this process where there is little, else by the workers of an engine too (pipelines/engines).

This process reads as well while they take longer than it takes to commit. What local processes read comes back as Arrow
files in a folder of its own, so that nothing is packed and unpacked; what a cluster reads, through its object store. Readings
come in the order of their pieces, whatever finished first, and few are in memory at once. A local reader ends by itself when
the process it reads for is gone.
"""

from __future__ import annotations

import gc
import shutil
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, replace
from datetime import datetime
from io import BytesIO
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import polars as pl

from extractors.inventory import SourceFile
from extractors.pieces import PIECE_BYTES, Left, Log, Piece
from extractors.reading import Reading, left, read_piece
from pipelines import engines
from pipelines.engines import Engine
from warehouse.errors import StoreError, Unavailable

_ENOUGH = 2 * PIECE_BYTES
"""Bytes from which on other processes pay."""


_QUEUE = 3
"""Pieces in memory for each reader: enough for the time that a transaction takes."""


class Seal(Protocol):
    """What keeps rows on the disk from others' eyes."""

    def shut(self, content: bytes) -> bytes: ...
    def opened(self, content: bytes) -> bytes: ...


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


class _Parked(NamedTuple):
    """A reading whose rows lie in files."""

    reading: Reading
    """With no rows in its large frames, where they lie in files."""
    place: Path | None
    """Begin of the files' names; None: the rows came with it."""
    seconds: float
    """That it took."""


@dataclass
class _Turn(Generic[T]):
    """A piece in its turn."""

    task: T
    found: Future[_Parked] | Reading | None = None
    """Its reading, now or when a reader has it; None: nobody has begun."""

    @property
    def is_done(self) -> bool:
        """Whether its reading is there."""
        return isinstance(self.found, Reading) or (self.found is not None and self.found.done())


_LARGE = ("records", "events")


class Readers:
    """Readers for about `n_bytes` of logs, with `folder` for what they read, sealed where there is a seal; use as a context
    manager."""

    def __init__(self, n_bytes: int, folder: Path, seal: Seal | None = None) -> None:
        self._n_beside = engines.n_workers() if n_bytes >= _ENOUGH else 0
        self._folder, self._seal = folder, seal
        self._engine: Engine | None = None
        self._reading, self._committing = [0.0], [0.0]
        """Seconds for each piece: of those who read it, and of whoever takes it from here."""

    def readings(self, tasks: Iterable[T], read_at: datetime) -> Iterator[tuple[T, Reading]]:
        """The reading of each task, in order.

        Errors: `Unavailable` where a process beside this one was ended, `StoreError` where the disk is full.
        """
        waiting: deque[_Turn[T]] = deque()
        try:
            for task in tasks:
                waiting.append(_Turn(task))
                self._feed(waiting, read_at)
                while waiting and (waiting[0].is_done or len(waiting) > _QUEUE * self._n_beside):
                    if fmean(self._reading) >= fmean(self._committing) * self._n_beside:
                        _help(waiting, read_at)
                    yield from self._handed_over(waiting.popleft())
                    self._feed(waiting, read_at)
            while waiting:
                _help(waiting, read_at)
                yield from self._handed_over(waiting.popleft())
                self._feed(waiting, read_at)
        except BrokenExecutor as error:
            raise Unavailable("a process that read logs was ended from outside", mend=(
                "give it more memory, then run again (what was committed stays); a script of your own that reads logs needs "
                'if __name__ == "__main__": around what it runs')) from error

    def _feed(self, waiting: Iterable[_Turn[T]], read_at: datetime) -> None:
        """Give each reader the piece that it reads and one more; what no reader takes is read here."""
        n_busy = sum(not turn.is_done for turn in waiting if turn.found is not None)
        for turn in waiting:
            task = turn.task
            if turn.found is not None:
                continue
            if self._engine is None or task.log is None or isinstance(task.found, Left):
                turn.found = _read_here(task, read_at)
            elif n_busy < 2 * self._n_beside:
                log = replace(task.log, document=None)
                place = self._folder / task.found.file_id if self._engine.shares_files else None
                turn.found = self._engine.executor.submit(_read, log, task.found, read_at, place, self._seal)
                n_busy += 1

    def _handed_over(self, turn: _Turn[T]) -> Iterator[tuple[T, Reading]]:
        assert turn.found is not None, "the first is fed first"
        reading = turn.found if isinstance(turn.found, Reading) else self._result(turn.found)
        began = time.perf_counter()
        yield turn.task, reading
        self._committing.append(time.perf_counter() - began)

    def _result(self, found: Future[_Parked]) -> Reading:
        try:
            parked = found.result()
            self._reading.append(parked.seconds)
            return _fetched(parked, self._seal)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StoreError(f"what was read cannot be put down ({error})", str(self._folder), (
                "make room on the disk, then run again: what was committed stays")) from error

    def __enter__(self) -> Self:
        gc.disable()   # records make millions of objects and no circles: looking for some costs a third of the time
        shutil.rmtree(self._folder, ignore_errors=True)   # of a run that was killed
        if self._n_beside > 0:
            self._folder.mkdir(parents=True)
            self._engine = engines.opened(_begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gc.enable()
        if self._engine is not None:
            self._engine.executor.shutdown(wait=error is None, cancel_futures=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def _help(waiting: deque[_Turn[T]], read_at: datetime) -> None:
    """Read pieces that no reader has, the last first, for as long as the first is not done."""
    for turn in reversed(waiting):
        if waiting[0].is_done:
            return
        if turn.found is None:
            turn.found = _read_here(turn.task, read_at)


def _read_here(task: Task, read_at: datetime) -> Reading:
    if isinstance(task.found, Left) or task.log is None:
        assert isinstance(task.found, Left)
        return left(task.source_file, task.found, task.number, read_at)
    return read_piece(task.log, task.found, read_at)


def _read(log: Log, piece: Piece, read_at: datetime, place: Path | None, seal: Seal | None) -> _Parked:
    """Read a piece in a process that looks for circles in memory between pieces alone."""
    gc.collect()
    began = time.perf_counter()
    reading = read_piece(log, piece, read_at)
    if place is None:
        return _Parked(reading, None, time.perf_counter() - began)
    for name in _LARGE:
        frame: pl.DataFrame = getattr(reading, name)
        if seal is None:
            frame.write_ipc(f"{place}.{name}", compression="uncompressed")
        else:
            content = BytesIO()
            frame.write_ipc(content, compression="uncompressed")
            Path(f"{place}.{name}").write_bytes(seal.shut(content.getvalue()))
    empty = replace(reading, records=reading.records.clear(), events=reading.events.clear())
    return _Parked(empty, place, time.perf_counter() - began)


def _fetched(parked: _Parked, seal: Seal | None) -> Reading:
    if parked.place is None:
        return parked.reading
    paths = [Path(f"{parked.place}.{name}") for name in _LARGE]
    records, events = (pl.read_ipc(BytesIO(seal.opened(path.read_bytes())) if seal else path) for path in paths)
    for name in _LARGE:
        Path(f"{parked.place}.{name}").unlink()
    return replace(parked.reading, records=records, events=events)


def _begin() -> None:
    gc.disable()
    gc.freeze()
