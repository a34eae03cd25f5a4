"""One writer at a time: the lock next to the warehouse.

`<warehouse>.lock` is an advisory file lock of the operating system, released when its holder dies, even by SIGKILL;
`<warehouse>.holder.json` describes the holder to people. Readers take no lock: they open the published copy. A process that
holds the lock may take it again (a run holds it over all its stages, and each stage takes it too), unless the folder was moved
or replaced meanwhile: another process may have the lock that is there now, and the warehouse would begin empty.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from warehouse.errors import Busy, StoreError
from warehouse.permissions import private

_FIRST_WAIT_S = 1.0
_LOCKED: dict[str, tuple[int, int] | None] = {}
"""Name of a lock that this process holds -> which file it was then."""


@contextlib.contextmanager
def writing(
    warehouse: Path, what: str, waiting: Callable[[str], None] | None = None, timeout_s: float = 6 * 3600
) -> Iterator[None]:
    """Hold the warehouse for writing, as `what` (`a run over logs/`). While another run holds it, `waiting` gets its
    description once, and we wait for at most `timeout_s` seconds: then `Busy`. Files that are made meanwhile are private."""
    with private(), _locked(warehouse, what, waiting, timeout_s):
        yield


@contextlib.contextmanager
def _locked(warehouse: Path, what: str, waiting: Callable[[str], None] | None, timeout_s: float) -> Iterator[None]:
    lock = FileLock(f"{warehouse}.lock", is_singleton=True)
    outermost = not lock.is_locked
    if outermost:
        warehouse.parent.mkdir(parents=True, exist_ok=True)
    elif _identity(lock) != _LOCKED.get(lock.lock_file):
        raise StoreError(f"the folder was moved, removed or replaced before {what}", str(warehouse),
                         "put it back, then run again: what was committed stays in it")
    try:
        lock.acquire(timeout=_FIRST_WAIT_S)
    except Timeout:
        if waiting:
            waiting(holder(warehouse))
        try:
            lock.acquire(timeout=timeout_s)
        except Timeout:
            raise Busy(f"{holder(warehouse)} has held the warehouse for {timeout_s:.0f} s", str(warehouse),
                       "wait for it or end it, then run again: nothing is lost") from None
    try:
        if outermost:
            _LOCKED[lock.lock_file] = _identity(lock)
            with contextlib.suppress(OSError):   # the work fails by itself on a disk that is full
                _describe(warehouse, what)
        yield
    finally:
        if outermost:
            for each in (_holder_file(warehouse), _draft(warehouse)):
                with contextlib.suppress(OSError):
                    each.unlink(missing_ok=True)
        lock.release()


def _identity(lock: BaseFileLock) -> tuple[int, int] | None:
    """Return which file the lock's name stands for now, None if there is none."""
    try:
        file = Path(lock.lock_file).stat()
    except OSError:
        return None
    return file.st_dev, file.st_ino


def _describe(warehouse: Path, what: str) -> None:
    draft = _draft(warehouse)  # whoever waits reads it whole, or not at all
    draft.write_text(json.dumps({
        "what": what, "process": os.getpid(), "host": socket.gethostname(),
        "since": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")}))
    draft.replace(_holder_file(warehouse))


def holder(warehouse: Path) -> str:
    """Describe who holds the warehouse."""
    try:
        who = json.loads(_holder_file(warehouse).read_text())
        return f"{who['what']} (process {who['process']} on {who['host']}, since {who['since']})"
    except (OSError, ValueError, KeyError):
        return "another run"


def is_described(warehouse: Path) -> bool:
    """Whether a process describes itself as the holder: it has the lock, or was killed."""
    return _holder_file(warehouse).exists()


def _holder_file(warehouse: Path) -> Path:
    return warehouse.with_name(warehouse.name + ".holder.json")


def _draft(warehouse: Path) -> Path:
    return _holder_file(warehouse).with_suffix(".draft")
