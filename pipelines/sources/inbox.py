"""The folder that a source is pulled into: records as lines, and one process at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
from filelock import FileLock, Timeout

from warehouse.errors import Busy


def json_lines(records: Iterable[object]) -> Iterator[bytes]:
    """Return each record as a line of JSON."""
    return (orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS) for record in records)


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
