"""The file of journals for the grader: an episode a line, each whole or not there at all.

In: rows of episodes that have ended. Out: lines of the file. A row that cannot be written now (a full disk) stays in memory and
is written later, before any newer one; `n_waiting` says how many stay, so that a server opens no further episodes meanwhile.
Sees: errors of the system. Does not see: whether the file is read; other writers of it, which may append lines of their own.

Imports the standard library, and of ours only modules that do so too.
"""

from __future__ import annotations

import json
import os
from collections import deque
from pathlib import Path
from typing import Any

from env_builder.runtime.admission import well_formed


class JournalFile:
    """Appends episodes to a file, or, without a path, to none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._waiting: deque[bytes] = deque()
        self.problem: str | None = None
        """Why rows wait."""

    @property
    def n_waiting(self) -> int:
        """Rows that could not be written yet."""
        return len(self._waiting)

    def add(self, row: dict[str, Any]) -> None:
        """Append an episode, now or later; ValueError or RecursionError if it can never be written."""
        if self._path is not None:
            line = json.dumps(well_formed(row), ensure_ascii=False, sort_keys=True) + "\n"
            self._waiting.append(line.encode())
            self.write()

    def write(self) -> None:
        """Write the rows that wait, as far as that is possible now."""
        try:
            while self._waiting and self._path is not None:
                _append(self._path, self._waiting[0])
                self._waiting.popleft()
            self.problem = None
        except OSError as error:
            self.problem = error.strerror or str(error)


def _append(path: Path, line: bytes) -> None:
    """Append a line; a part of it that was written is taken back if the rest cannot be. OSError."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        begin, n_written = os.fstat(file).st_size, 0
        try:
            while n_written < len(line):
                n_written += os.write(file, line[n_written:])
        except OSError:
            if n_written and os.fstat(file).st_size == begin + n_written:
                os.ftruncate(file, begin)
            raise
    finally:
        os.close(file)
