"""How much memory a process and its children hold, looked at beside them (Linux's /proc; 0 where there is none)."""

from __future__ import annotations

import threading

from pipelines.running.memory import family, resident


class Memory(threading.Thread):
    """Looks every 50 ms; `most` is the largest sum of resident sets, in bytes."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self.most, self.done = pid, 0, threading.Event()

    def run(self) -> None:
        """Look until it is done."""
        while not self.done.wait(0.05):
            self.most = max(self.most, sum(map(resident, family(self._pid))))
