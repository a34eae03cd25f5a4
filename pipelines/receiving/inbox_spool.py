"""Received lines on their way into the inbox: on disk at once, handed over as whole files of whole traces.

In: lines with the trace that each is of. Out: files `otlp-….jsonl` in the inbox, renamed into place, so that each is whole or
absent. Until then the lines are in one hidden file (`.otlp-….spool`), which readers of an inbox skip. A line there has its
trace before it. What `sync` has returned for survives SIGKILL and a power failure: the next start goes on with the file, up to
its last whole line.

A trace is handed over once no line of it came for `quiet_s`, so that a file's end does not cut a conversation. A long trace is
handed over after `MOST_HOLD_S` at the latest, all of them where the hidden file is four times as large as a file should be.
If the process dies between the two steps of handing over, lines are in both files; readers take equal records once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson
from filelock import FileLock, Timeout

from pipelines.durable_files import sync, write_all
from pipelines.receiving.otlp_request import NO_TRACE, TraceLine
from warehouse.errors import InputError

MOST_HOLD_S = 3600.0
_FULL, _PAUSE_S = 4, 1.0


@dataclass(frozen=True)
class DeliveryRule:
    """When lines become files of the inbox."""

    file_bytes: int = 64 << 20
    """Size of the hidden file at which what is quiet is handed over before its time."""
    file_s: float = 60.0
    """Seconds between files."""
    quiet_s: float = 300.0
    """Seconds without a line of a trace after which it is whole."""
    free_bytes: int = 256 << 20
    """Bytes of the disk that stay free: below, nothing is taken."""


class InboxSpool:
    """The hidden file of one inbox; of one thread at a time."""

    def __init__(self, inbox: Path, delivery: DeliveryRule, now: Callable[[], float] = time.monotonic) -> None:
        """Lock the inbox, and go on with what an earlier receiver wrote. Raises InputError where another one writes there."""
        inbox.mkdir(parents=True, exist_ok=True)
        self._inbox, self._rule, self._now = inbox, delivery, now
        self._lock = FileLock(inbox / ".otlp-receiver.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise InputError("another receiver writes there", str(inbox), "stop it, or give this one its own --inbox") from None
        self._open: dict[str, tuple[float, float]] = {}
        """Trace -> when its first and its last line came."""
        self._delivered_at = now()
        for draft in inbox.glob(".otlp-*.draft"):   # its lines are in the hidden file too
            draft.unlink()
        self._size = self._synced = 0
        self._begin()
        self.n_recovered = sum(self._take(path) for path in sorted(inbox.glob(".otlp-*.spool")) if path != self._path)

    def append(self, lines: Iterable[TraceLine]) -> None:
        """Write lines, which count once `sync` returns. Raises OSError: what was written since `sync` is to be rolled back."""
        content = b"".join(b"%s %s" % (line.trace_id.encode(), line.content) for line in lines)
        if _free_bytes(self._inbox) - len(content) < self._rule.free_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._inbox))
        write_all(self._file, content)
        self._size += len(content)
        now = self._now()
        for line in lines:
            self._open[line.trace_id] = (self._open.get(line.trace_id, (now,))[0], now)

    def sync(self) -> None:
        """Make what was appended survive a power failure. Raises OSError, as `append`."""
        os.fsync(self._file)
        self._synced = self._size

    def roll_back(self) -> None:
        """Forget what was appended since `sync`."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self._synced)
        self._size = self._synced

    def deliver_due(self) -> Path | None:
        """Hand over the traces that are whole, if it is time; returns the new file. Raises OSError: all stays as it is."""
        now, pause_s = self._now(), _PAUSE_S if self._size >= self._rule.file_bytes else self._rule.file_s
        if not self._open or now - self._delivered_at < pause_s:
            return None
        due = {trace_id for trace_id, (first, last) in self._open.items() if trace_id == NO_TRACE
               or now - last >= self._rule.quiet_s or now - first >= MOST_HOLD_S}
        return self._deliver(set(self._open) if self._size >= _FULL * self._rule.file_bytes else due)

    def close(self) -> Path | None:
        """Hand over everything, and give the inbox free. Raises OSError: the next receiver hands it over."""
        try:
            handed = self._deliver(set(self._open))
            os.close(self._file)
            self._path.unlink()
            return handed
        finally:
            self._lock.release()

    def _begin(self) -> None:
        self._path = self._inbox / f".{_name()}.spool"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o666)
        self._size = self._synced = 0
        sync(self._inbox)

    def _deliver(self, due: set[str]) -> Path | None:
        """Copy the lines of these traces into a file of the inbox, the others into a new hidden file."""
        self._delivered_at = self._now()
        if not due:
            return None
        before, before_path, before_size = self._file, self._path, self._synced
        name = _name()
        draft = self._inbox / f".{name}.draft"
        self._begin()
        try:
            with before_path.open("rb") as lines, draft.open("wb") as file:
                for line in lines:
                    trace_id, _, content = line.partition(b" ")
                    if trace_id.decode() in due:
                        file.write(content)
                    else:
                        write_all(self._file, line)
                        self._size += len(line)
                file.flush()
                os.fsync(file.fileno())
            self.sync()
        except OSError:
            os.close(self._file)
            for path in (self._path, draft):
                path.unlink(missing_ok=True)
            self._file, self._path, self._size, self._synced = before, before_path, before_size, before_size
            raise
        handed = self._inbox / f"{name}.jsonl" if draft.stat().st_size else None
        if handed is None:   # of these traces nothing was written in the end
            draft.unlink()
        else:
            draft.rename(handed)
            sync(self._inbox)
        os.close(before)
        before_path.unlink()
        self._open = {trace_id: times for trace_id, times in self._open.items() if trace_id not in due}
        return handed

    def _take(self, path: Path) -> int:
        """Go on with the file of a receiver that died; returns the number of its whole lines."""
        n_lines, now = 0, self._now()
        with path.open("rb") as lines:
            for line in lines:
                if not _is_whole(line):   # it was never acknowledged, nor was what follows it
                    break
                write_all(self._file, line)
                self._size += len(line)
                self._open.setdefault(line.partition(b" ")[0].decode(), (now, now))
                n_lines += 1
        self.sync()
        path.unlink()
        return n_lines


def _name() -> str:
    return f"otlp-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def _is_whole(line: bytes) -> bool:
    trace_id, _, content = line.partition(b" ")
    try:
        orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return trace_id.isascii() and line.endswith(b"\n")


def _free_bytes(folder: Path) -> int:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize
