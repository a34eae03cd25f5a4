"""A warm pool: environment processes in containers that start before a caller asks for them.

In: an environment whose image is in the engine, how many processes stand ready, how many there may be. Out: processes without
an episode; `reset` gives the first observation. Every episode has a container of its own, which is removed when its process is
closed; another one is started in the background, and nothing waits for starting and removing.

Sees: whether a process that stood ready still answers (a restarted engine ends its containers): one that does not is replaced,
and if none can be started the error says why. Does not see: how long episodes will take.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from env_builder import image
from env_builder.process import EnvironmentProcess, Transport
from warehouse.errors import InputError, TraceroomError, Unavailable

STARTERS = 2
"""Containers that are started, and removed, at a time."""
PAUSE_S = 0.05
"""Seconds before a container is started or removed, so that the caller of `take` or `close` goes first."""


class Pool:
    """Processes of one environment, `ready` of which stand ready and of which there are never more than `most`."""

    def __init__(
        self, directory: Path, ready: int = 4, most: int = 64, limits: image.ContainerLimits = image.DEFAULT_LIMITS,
        image_id: str | None = None,
    ) -> None:
        if not 1 <= ready <= most:
            raise InputError(f"a pool of {ready} ready of at most {most} processes", hint="1 <= ready <= most")
        tasks = image.task_lookup(directory)
        self._start: Callable[[], EnvironmentProcess] = lambda: image.start(
            directory, limits=limits, image_id=image_id, tasks=tasks)
        self._ready, self._most = ready, most
        self._idle: deque[EnvironmentProcess] = deque()
        self._lent: set[EnvironmentProcess] = set()
        self._n_starting = 0
        self._n_ending = 0
        self._failure: TraceroomError | None = None
        self._closed = False
        self._pause = threading.Event()
        self._changed = threading.Condition()
        self._work = ThreadPoolExecutor(STARTERS, "pool")
        with self._changed:
            self._refill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def take(self, timeout_s: float = 60.0) -> EnvironmentProcess:
        """Return a process without an episode; close it to give its place back. Unavailable if none can be started, or if all
        `most` are lent for longer than `timeout_s`."""
        while True:
            process = self._next(timeout_s)
            try:
                process.request("ping")
            except TraceroomError:  # its engine went while it stood here
                process.close()
                continue
            return process

    def wait(self, timeout_s: float = 120.0) -> None:
        """Wait until as many processes stand ready as should; Unavailable if they cannot be started, or not in time."""
        with self._changed:
            full = self._changed.wait_for(lambda: self._failure or len(self._idle) >= self._n_wanted(), timeout_s)
            if self._failure:
                raise self._failure
            if not full:
                raise Unavailable(f"the pool is not full after {timeout_s:g} s", hint="let fewer processes stand ready")

    def close(self) -> None:
        """Remove every container, also of processes that are still lent."""
        with self._changed:
            self._closed = True
            self._pause.set()
            remaining = [*self._idle, *self._lent]
            self._idle.clear()
            self._changed.notify_all()
        list(self._work.map(EnvironmentProcess.close, remaining))
        self._work.shutdown()

    def _next(self, timeout_s: float) -> EnvironmentProcess:
        with self._changed:
            self._failure = None  # it may be possible now
            self._refill()
            self._changed.wait_for(lambda: self._idle or self._failure or self._closed, timeout_s)
            if self._closed:
                raise Unavailable("the pool is closed", hint="make another one")
            if self._failure and not self._idle:
                raise self._failure
            if not self._idle:
                what = f"none of the pool's {self._most} processes is free within {timeout_s:g} s"
                raise Unavailable(what, hint="close processes when their episodes have ended, or allow more")
            process = self._idle.popleft()
            self._lent.add(process)
            self._refill()
            return process

    def _n_wanted(self) -> int:
        return max(0, min(self._ready, self._most - len(self._lent) - self._n_ending))

    def _refill(self) -> None:
        """Start as many as are missing; the caller holds the lock."""
        while not self._closed and not self._failure and len(self._idle) + self._n_starting < self._n_wanted():
            self._n_starting += 1
            self._work.submit(self._add)

    def _add(self) -> None:
        self._pause.wait(PAUSE_S)
        if self._closed:
            return
        try:
            process = self._start()
        except TraceroomError as error:
            with self._changed:
                self._n_starting -= 1
                self._failure = error
                self._changed.notify_all()
            return
        own = process.transport
        process.transport = _LentTransport(own, lambda: self._give_back(process, own))
        with self._changed:
            self._n_starting -= 1
            closed = self._closed
            if not closed:
                self._idle.append(process)
            self._changed.notify_all()
        if closed:
            process.close()

    def _give_back(self, process: EnvironmentProcess, own: Transport) -> None:
        """Remove the container of an episode that has ended, in the background."""
        with self._changed:
            self._lent.discard(process)
            self._n_ending += 1
            if not self._closed:
                self._work.submit(self._remove, own)
                return
        self._remove(own)  # at the end of the pool it is waited for

    def _remove(self, own: Transport) -> None:
        self._pause.wait(PAUSE_S)
        own.close()
        with self._changed:
            self._n_ending -= 1
            self._refill()
            self._changed.notify_all()


class _LentTransport:
    """A transport that gives its place in the pool back when it is first closed."""

    def __init__(self, transport: Transport, on_close: Callable[[], None]) -> None:
        self._on_close = on_close
        self._open = True
        self._transport = transport
        self.receive, self.socket, self.decode = transport.receive, transport.socket, transport.decode

    def send(self, data: bytes) -> None:
        """Write all bytes; OSError once it is closed, though its container may go a moment later."""
        if not self._open:
            raise OSError("it was closed")
        self._transport.send(data)

    def last_error_line(self) -> str:
        return self._transport.last_error_line() if self._open else ""

    def close(self) -> None:
        """Give the place back."""
        if self._open:
            self._open = False
            self._on_close()
