"""Files that are whole or absent: what is written into a folder that a run may read at any time.

A draft has a hidden name, which no run reads; it is flushed to the disk and then renamed. A process that is killed leaves at
most a draft, which the next one replaces.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
from filelock import FileLock, Timeout

from warehouse.errors import Busy


def json_lines(records: Iterable[object]) -> Iterator[bytes]:
    """Return each record as a line of JSON."""
    return (orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS) for record in records)


def write_durably(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file that is on the disk, whole, when this returns; one of that name is replaced. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name.lstrip('.')}.draft")
    with draft.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the folder: one process at a time pulls into it. Raises `Busy`."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".pull.lock")
    try:
        lock.acquire(timeout=1)
    except Timeout:
        raise Busy("another process pulls into this folder", str(folder), "wait for it or end it") from None
    try:
        yield
    finally:
        lock.release()
