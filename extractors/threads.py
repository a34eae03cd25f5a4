"""Histories of one session to threads: conversations told once, in order.

In: runs of events (a file's, or a record's where a file tells the same place twice), each a history or its continuation.
Out: threads of row numbers. What it sees: equal parts (`formats.overlap`). What it does not see: that two histories without
a common end are one conversation; they stay two threads, unless the format may leave known history out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from extractors.formats.overlap import Print, fingerprint, n_known

Columns = dict[str, list[Any]]
_MAY_LEAVE_HISTORY_OUT = frozenset({"otlp"})
_FILLED = ("happened_at", "latency_ms", "model", "is_error", "service", "name")


@dataclass(slots=True)
class Run:
    """Events of one session that one file (or record) tells, in order of position."""

    run_id: str
    file_id: str
    format: str
    rows: list[int]


@dataclass(slots=True)
class Thread:
    """A conversation: its rows in order, each part once."""

    rows: list[int] = field(default_factory=list)
    prints: list[Print] = field(default_factory=list)


@dataclass(slots=True)
class _Cursor:
    """Where a file stands in a thread: the next position it will tell, and the row of the thread that it falls on."""

    thread: Thread
    position: int
    index: int


class Weaver:
    """Weaves the runs of one session in one format to threads."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._cursors: dict[str, _Cursor] = {}
        self.threads: list[Thread] = []
        self.repeated: list[Run] = []
        """Runs that told nothing new."""
        self.replaced: list[int] = []
        """Rows of answers that a later history does not hold: another answer was taken in their place."""

    def weave(self, runs: list[Run]) -> None:
        """Take the runs in, in order of time."""
        if len(runs) == 1:
            self.threads.append(Thread(runs[0].rows))
            return
        for run in runs:
            cursor = self._cursors.get(run.file_id)
            first = self._columns["position"][run.rows[0]]
            if first and (cursor is None or cursor.position != first):
                cursor = self._standing_at(first)
            if first and cursor is not None:
                self._continue(run, cursor)
            else:
                self._join(run)

    def _standing_at(self, position: int) -> _Cursor | None:
        """Where a run goes on whose beginning another file gave (a log that grew and was read again)."""
        for cursor in reversed(self._cursors.values()):
            if cursor.position == position:
                return _Cursor(cursor.thread, position, cursor.index)
        thread = next((each for each in self.threads if len(each.rows) >= position), None)
        return _Cursor(thread, position, position) if thread is not None else None

    def _join(self, run: Run) -> None:
        """A history from its beginning: to the thread that it shares most with, else a thread of its own."""
        prints = [self._print(row) for row in run.rows]
        shares = [(known, thread) for thread in self.threads if (known := n_known(thread.prints, prints)) is not None]
        if shares:
            known, thread = max(shares, key=lambda share: share[0])
            if known == len(run.rows):
                self.repeated.append(run)
        else:
            known, thread = self._another_answer(prints) or (0, self._thread_for(run))
        index = self._fill(thread, run, known)
        thread.rows += run.rows[known:]
        thread.prints += prints[known:]
        grown = len(thread.rows) if known < len(run.rows) else index
        self._stand(run, thread, grown)

    def _continue(self, run: Run, cursor: _Cursor) -> None:
        """New parts after what this file told before; another file may have told them already."""
        thread = cursor.thread
        for number, row in enumerate(run.rows):
            made = self._print(row)
            if cursor.index < len(thread.rows) and thread.prints[cursor.index] != made:
                thread = Thread([*thread.rows[:cursor.index]], [*thread.prints[:cursor.index]])
                self.threads.append(thread)
            if cursor.index < len(thread.rows):
                self._take(thread.rows[cursor.index], run.rows[number])
            else:
                thread.rows.append(row)
                thread.prints.append(made)
            cursor.index += 1
        self._stand(run, thread, cursor.index)

    def _thread_for(self, run: Run) -> Thread:
        if self.threads and run.format in _MAY_LEAVE_HISTORY_OUT:
            return self.threads[-1]
        self.threads.append(Thread())
        return self.threads[-1]

    def _another_answer(self, prints: list[Print]) -> tuple[int, Thread] | None:
        """A thread whose end, an answer that nothing followed, is another one in this history: a retry or a candidate."""
        for thread in self.threads:
            same = 0
            while same < min(len(prints), len(thread.prints)) and prints[same] == thread.prints[same]:
                same += 1
            ends = thread.prints[same:]
            if same and prints[same:] and all(each[0] == "call" or each[:2] == ("message", "assistant") for each in ends):
                self.replaced += thread.rows[same:]
                del thread.rows[same:], thread.prints[same:]
                return same, thread
        return None

    def _fill(self, thread: Thread, run: Run, known: int) -> int:
        """Facts that only the repeated telling has (a time, a model), where the two line up from the beginning."""
        lined_up = min(known, len(thread.rows))
        if lined_up == known:
            for row, again in zip(thread.rows[:lined_up], run.rows[:lined_up], strict=True):
                self._take(row, again)
        return lined_up

    def _take(self, row: int, again: int) -> None:
        for name in _FILLED:
            column = self._columns[name]
            if column[row] is None:
                column[row] = column[again]

    def _stand(self, run: Run, thread: Thread, index: int) -> None:
        self._cursors[run.file_id] = _Cursor(thread, self._columns["position"][run.rows[-1]] + 1, index)

    def _print(self, row: int) -> Print:
        columns = self._columns
        return fingerprint(columns["kind"][row], columns["role"][row], columns["content"][row], columns["tool"][row],
                           columns["arguments"][row])
