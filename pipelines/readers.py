"""Pieces read in this process where there is little, else by the workers of an engine too (pipelines/engines).

What local processes read comes back as Arrow files in a folder of its own, so that nothing is packed and unpacked; what a
cluster reads, through its object store. Readings come in the order of their pieces, whatever finished first (engines/turns.py).
A local reader ends by itself when the process it reads for is gone.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self, TypeVar

import polars as pl

from extractors.inventory import SourceFile
from extractors.pieces import PIECE_BYTES, Left, Log, Piece
from extractors.reading import Reading, left, read_piece
from pipelines import engines
from pipelines.engines import Engine
from pipelines.engines.turns import Call, Turns
from warehouse.errors import StoreError

_ENOUGH = 2 * PIECE_BYTES
"""Bytes from which on other processes pay."""


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


_LARGE = ("records", "events")


class Readers:
    """Readers for about `n_bytes` of logs, with `folder` for what they read, sealed where there is a seal; use as a context
    manager."""

    def __init__(self, n_bytes: int, folder: Path, seal: Seal | None = None) -> None:
        self._n_beside = engines.n_workers() if n_bytes >= _ENOUGH else 0
        self._folder, self._seal = folder, seal
        self.engine: Engine | None = None
        """Its workers; None: this process alone."""

    def readings(self, tasks: Iterable[T], read_at: datetime) -> Iterator[tuple[T, Reading]]:
        """The reading of each task, in order.

        Errors: `Unavailable` where a process beside this one was ended, `StoreError` where the disk is full.
        """
        return Turns[T, Reading](_Work(read_at, self._folder, self._seal), self.engine).of(tasks)

    def __enter__(self) -> Self:
        gc.disable()   # records make millions of objects and no circles: looking for some costs a third of the time
        shutil.rmtree(self._folder, ignore_errors=True)   # of a run that was killed
        if self._n_beside > 0:
            self._folder.mkdir(parents=True)
            self.engine = engines.opened(_begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gc.enable()
        if self.engine is not None:
            self.engine.executor.shutdown(cancel_futures=True)   # waits: one that it tells when it ends itself never ends
        shutil.rmtree(self._folder, ignore_errors=True)


class _Work(NamedTuple):
    """How a piece is read."""

    read_at: datetime
    folder: Path
    seal: Seal | None

    def size(self, task: Task, /) -> int:
        return 0 if isinstance(task.found, Left) else len(task.found.content)

    def here(self, task: Task, /) -> Reading:
        return _read_here(task, self.read_at)

    def beside(self, task: Task, engine: Engine, /) -> Call | None:
        if task.log is None or isinstance(task.found, Left):
            return None
        place = self.folder / task.found.file_id if engine.shares_files else None
        return _read, (replace(task.log, document=None), task.found, self.read_at, place, self.seal)

    def fetched(self, given: Callable[[], _Parked], /) -> Reading:
        try:
            return _fetched(given(), self.seal)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise no_room(error, self.folder) from error


def no_room(error: Exception, folder: Path) -> StoreError:
    """What is said where the disk is full."""
    return StoreError(f"what was read cannot be put down ({error})", str(folder), (
        "make room on the disk, then run again: what was committed stays"))


def _read_here(task: Task, read_at: datetime) -> Reading:
    if isinstance(task.found, Left) or task.log is None:
        assert isinstance(task.found, Left)
        return left(task.source_file, task.found, task.number, read_at)
    return read_piece(task.log, task.found, read_at)


def _read(log: Log, piece: Piece, read_at: datetime, place: Path | None, seal: Seal | None) -> _Parked:
    """Read a piece in a process that looks for circles in memory between pieces alone."""
    gc.collect()
    reading = read_piece(log, piece, read_at)
    if place is None:
        return _Parked(reading, None)
    for name in _LARGE:
        frame: pl.DataFrame = getattr(reading, name)
        if seal is None:
            frame.write_ipc(f"{place}.{name}", compression="uncompressed")
        else:
            content = BytesIO()
            frame.write_ipc(content, compression="uncompressed")
            Path(f"{place}.{name}").write_bytes(seal.shut(content.getvalue()))
    empty = replace(reading, records=reading.records.clear(), events=reading.events.clear())
    return _Parked(empty, place)


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
