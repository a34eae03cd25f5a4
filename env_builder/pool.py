"""A warm pool: rooms in containers that were started before anybody asks for them.

In: an environment whose image is in the engine, how many rooms stand ready, how many there may be. Out: rooms, begun and
empty; `reset` gives the first observation. Every episode has a container of its own, which is removed when its room is closed;
another is started behind. Starting and removing are not waited for.

Sees: whether a room that stood ready still answers (an engine that was restarted ends its containers): one that does not is
replaced, and where none can be started the error says why. Does not see: how long episodes will take.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from env_builder import image
from env_builder.carriers import Carrier
from env_builder.room import Closing, Room
from warehouse.errors import InputError, TraceroomError, Unavailable

STARTERS = 2
"""Containers that are started, and removed, at a time."""
PAUSE_S = 0.05
"""Before a container is started or removed, so that whoever took or gave back a room first goes on with what it is about."""


class Pool(Closing):
    """Rooms of one environment, of which `ready` stand ready and of which there are never more than `most`."""

    def __init__(
        self, directory: Path, ready: int = 4, most: int = 64, limits: image.Limits = image.DEFAULT_LIMITS,
        image_id: str | None = None,
    ) -> None:
        tasks = image.tasks_of(directory)
        self._begin: Callable[[], Room] = lambda: image.start(directory, limits=limits, image_id=image_id, tasks=tasks)
        if not 1 <= ready <= most:
            raise InputError(f"a pool of {ready} ready of at most {most} rooms", mend="1 or more ready, and no fewer at most")
        self._ready, self._most = ready, most
        self._idle: deque[Room] = deque()
        self._lent: set[Room] = set()
        self._starting = 0
        self._ending = 0
        self._failed: TraceroomError | None = None
        self._closed = False
        self._pause = threading.Event()
        self._changed = threading.Condition()
        self._work = ThreadPoolExecutor(STARTERS, "pool")
        with self._changed:
            self._refill()

    def take(self, timeout_s: float = 60.0) -> Room:
        """A begun room without an episode; close it to give its place back. Unavailable where none can be started, and
        where all `most` are lent for longer than `timeout_s`."""
        while True:
            room = self._next(timeout_s)
            try:
                room.request("ping")
            except TraceroomError:  # it stood here while its engine went
                room.close()
                continue
            return room

    def wait(self, timeout_s: float = 120.0) -> None:
        """Until as many rooms stand ready as should; Unavailable where they cannot be started, or not in time."""
        with self._changed:
            full = self._changed.wait_for(lambda: self._failed or len(self._idle) >= self._wanted(), timeout_s)
            if self._failed:
                raise self._failed
            if not full:
                raise Unavailable(f"the pool is not full after {timeout_s:g} s", mend="let fewer rooms stand ready")

    def close(self) -> None:
        """Remove every container, also of rooms that are still lent."""
        with self._changed:
            self._closed = True
            self._pause.set()
            left = [*self._idle, *self._lent]
            self._idle.clear()
            self._changed.notify_all()
        list(self._work.map(Room.close, left))
        self._work.shutdown()

    def _next(self, timeout_s: float) -> Room:
        with self._changed:
            self._failed = None  # what was not there before may be there now
            self._refill()
            self._changed.wait_for(lambda: self._idle or self._failed or self._closed, timeout_s)
            if self._closed:
                raise Unavailable("the pool is closed", mend="make another one")
            if self._failed and not self._idle:
                raise self._failed
            if not self._idle:
                what = f"none of the pool's {self._most} rooms is free within {timeout_s:g} s"
                raise Unavailable(what, mend="close rooms when their episodes have ended, or allow more")
            room = self._idle.popleft()
            self._lent.add(room)
            self._refill()
            return room

    def _wanted(self) -> int:
        """How many should stand ready now."""
        return max(0, min(self._ready, self._most - len(self._lent) - self._ending))

    def _refill(self) -> None:
        """Start as many as are missing; the caller holds the lock."""
        while not self._closed and not self._failed and len(self._idle) + self._starting < self._wanted():
            self._starting += 1
            self._work.submit(self._start)

    def _start(self) -> None:
        self._pause.wait(PAUSE_S)
        if self._closed:
            return
        try:
            room = self._begin()
        except TraceroomError as error:
            with self._changed:
                self._starting -= 1
                self._failed = error
                self._changed.notify_all()
            return
        own = room.carrier
        room.carrier = _Lent(own, lambda: self._give_back(room, own))
        with self._changed:
            self._starting -= 1
            closed = self._closed
            if not closed:
                self._idle.append(room)
            self._changed.notify_all()
        if closed:
            room.close()

    def _give_back(self, room: Room, own: Carrier) -> None:
        """A room's episode has ended: its container is removed behind, and another may take its place."""
        with self._changed:
            self._lent.discard(room)
            self._ending += 1
            if not self._closed:
                self._work.submit(self._remove, own)
                return
        self._remove(own)  # in the end it is waited for

    def _remove(self, own: Carrier) -> None:
        self._pause.wait(PAUSE_S)
        own.close()
        with self._changed:
            self._ending -= 1
            self._refill()
            self._changed.notify_all()


class _Lent:
    """A room's carrier that gives its place in the pool back when it is closed, once."""

    def __init__(self, carrier: Carrier, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._open = True
        self._carrier = carrier
        self.receive, self.socket, self.unframed = carrier.receive, carrier.socket, carrier.unframed

    def send(self, data: bytes) -> None:
        """Write all of it; OSError once it is closed, though its container may go a moment later."""
        if not self._open:
            raise OSError("it was closed")
        self._carrier.send(data)

    def last_words(self) -> str:
        """What the room said on stderr at the end."""
        return self._carrier.last_words() if self._open else ""

    def close(self) -> None:
        """Give the place back."""
        if self._open:
            self._open = False
            self._ended()
