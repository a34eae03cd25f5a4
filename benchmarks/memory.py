"""How much memory a process and its children hold, looked at beside them (Linux's /proc; 0 where there is none)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path


class Memory(threading.Thread):
    """Looks every 50 ms; `most` is the largest sum of resident sets, in bytes."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self.most, self.done = pid, 0, threading.Event()

    def run(self) -> None:
        """Look until it is done."""
        while not self.done.wait(0.05):
            self.most = max(self.most, sum(_resident(pid) for pid in _family(self._pid)))


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    except OSError:
        return
    for child in children:
        yield from _family(int(child))


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
