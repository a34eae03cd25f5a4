"""Chunks read in this process if there are few, else also by the workers of an engine (pipelines/running/engines).

Local processes return their frames as Arrow files in a folder, which saves packing; a cluster returns them through its object
store. Readings come in the order of their chunks, whichever finished first (pipelines/running/engines). A local reader ends by
itself if the process it reads for is gone.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import NamedTuple, Self

import polars as pl

from extractors.chunks import CHUNK_BYTES, Chunk, Log, RejectedFile
from extractors.inventory import SourceFile
from extractors.reading import Reading, read_chunk, rejected_reading
from pipelines.privacy.keys import Seal
from pipelines.running import engines
from pipelines.running.engines import Call, Engine, Turns
from warehouse.errors import StoreError
from warehouse.records import FileLocation

_ENOUGH = 2 * CHUNK_BYTES
"""Bytes from which on other processes are worth it."""
_LARGE = ("records", "events")
"""Frames that local processes return as files."""


class ReadTask(NamedTuple):
    """A chunk to be read, or a file (or the rest of one) that is rejected."""

    source_file: SourceFile
    log: Log | None
    chunk: Chunk | RejectedFile
    number: int
    replaces: tuple[str, ...]
    """Rows of the ledger about shorter versions of the same file."""
    location: FileLocation | None
    """Where the file is, for its last chunk."""
    is_stored: bool = False
    """Whether the ledger has it: it is read only for the people in it."""


class Readers:
    """Readers for about `n_bytes` of logs, with `folder` for their frames, encrypted if there is a seal; a context manager."""

    def __init__(self, n_bytes: int, folder: Path, seal: Seal | None = None) -> None:
        self._n_beside = engines.n_workers() if n_bytes >= _ENOUGH else 0
        self._folder, self._seal = folder, seal
        self.engine: Engine | None = None
        """Its workers; None: only this process."""

    def readings(self, tasks: Iterable[ReadTask], read_at: datetime) -> Iterator[tuple[ReadTask, Reading]]:
        """Yield the reading of each task, in order. Raises Unavailable if a worker was ended, StoreError if the disk is
        full."""
        return Turns[ReadTask, Reading](_Work(read_at, self._folder, self._seal), self.engine).of(tasks)

    def __enter__(self) -> Self:
        gc.disable()   # records make millions of objects and no circles: searching for them costs a third of the time
        shutil.rmtree(self._folder, ignore_errors=True)   # of a run that was killed
        if self._n_beside > 0:
            self._folder.mkdir(parents=True)
            self.engine = engines.opened(_begin)
        return self

    def __exit__(self, *_: object) -> None:
        gc.enable()
        if self.engine is not None:
            self.engine.executor.shutdown(cancel_futures=True)   # waits: a worker that is stopped only at exit never ends
        shutil.rmtree(self._folder, ignore_errors=True)


class _Work(NamedTuple):
    """How a chunk is read."""

    read_at: datetime
    folder: Path
    seal: Seal | None

    def size(self, task: ReadTask, /) -> int:
        return 0 if isinstance(task.chunk, RejectedFile) else len(task.chunk.content)

    def run_here(self, task: ReadTask, /) -> Reading:
        if isinstance(task.chunk, RejectedFile) or task.log is None:
            assert isinstance(task.chunk, RejectedFile)
            return rejected_reading(task.source_file, task.chunk, task.number, self.read_at)
        return read_chunk(task.log, task.chunk, self.read_at)

    def remote_call(self, task: ReadTask, engine: Engine, /) -> Call | None:
        if task.log is None or isinstance(task.chunk, RejectedFile):
            return None
        folder = self.folder if engine.shares_files else None
        return _read, (replace(task.log, document=None), task.chunk, self.read_at, folder, self.seal)

    def fetched(self, given: Callable[[], Reading], /) -> Reading:
        try:
            reading = given()
            paths = {name: self.folder / f"{reading.file.file_id}.{name}" for name in _LARGE}
            if not paths["events"].exists():
                return reading
            seal = self.seal
            frames = {name: pl.read_ipc(BytesIO(seal.decrypt(path.read_bytes())) if seal else path)
                      for name, path in paths.items()}
            for path in paths.values():
                path.unlink()
            return replace(reading, records=frames["records"], events=frames["events"])
        except (OSError, pl.exceptions.PolarsError) as error:
            raise no_room(error, self.folder) from error


def no_room(error: Exception, folder: Path) -> StoreError:
    """Return the error of a full disk."""
    return StoreError(f"what was read cannot be written ({error})", str(folder), (
        "make room on the disk, then run again: what was committed stays"))


def _read(log: Log, chunk: Chunk, read_at: datetime, folder: Path | None, seal: Seal | None) -> Reading:
    """Read a chunk in a worker, which collects garbage only between chunks; large frames go to files in `folder`."""
    gc.collect()
    reading = read_chunk(log, chunk, read_at)
    if folder is None:
        return reading
    for name in _LARGE:
        frame: pl.DataFrame = getattr(reading, name)
        content = BytesIO()
        path = folder / f"{reading.file.file_id}.{name}"
        frame.write_ipc(path if seal is None else content, compression="uncompressed")
        if seal is not None:
            path.write_bytes(seal.encrypt(content.getvalue()))
    return replace(reading, records=reading.records.clear(), events=reading.events.clear())


def _begin() -> None:
    gc.disable()
    gc.freeze()
