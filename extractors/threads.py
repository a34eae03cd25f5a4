"""Histories of one session to threads: conversations told once, in order.

In: runs of events (a file's, or a record's where a file tells the same place twice), each a history or its continuation.
Out: threads of row numbers. What it sees: equal parts (`formats.overlap`), calls told again without their conversation.
What it does not see: that two histories without a common end are one conversation; they stay two threads, unless the format
tells each part once, or the later one is calls without a word.
"""

from __future__ import annotations

from dataclasses import dataclass

from extractors.formats.overlap import Print, n_known
from extractors.formats.registry import history_of
from extractors.shelf import Shelf, Thread, is_answer
from extractors.tellings import Columns, is_bare, is_partial, pairs, print_of, take


@dataclass(slots=True)
class Run:
    """Events of one session that one file (or record) tells, in order of position."""

    run_id: str
    file_id: str
    format: str
    rows: list[int]


@dataclass(slots=True)
class _Cursor:
    """Where a file stands in a thread: the next position it will tell, and the row of the thread that it falls on."""

    file_id: str
    thread: Thread
    position: int
    index: int


class Weaver:
    """Weaves the runs of one session in one format to threads."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.repeated: list[Run] = []
        """Runs that told nothing new."""
        self._begin()

    def _begin(self) -> None:
        self.repeated.clear()
        self._cursors: dict[str, _Cursor] = {}
        self._last_at: dict[int, _Cursor] = {}
        self._shelf = Shelf()
        self.threads: list[Thread] = []
        self.replaced: list[int] = []
        """Rows of answers that a later history does not hold: another answer was taken in their place."""

    def weave(self, runs: list[Run]) -> None:
        """Take the runs in, in order of time; one side of a conversation, told again without the other, only fills it in."""
        partial = [run for run in runs if len(runs) > 1 and self._first(run) == 0 and is_partial(run.rows, self._columns)]
        if partial and len(partial) < len(runs):
            ids = {id(run) for run in partial}
            self._weave([run for run in runs if id(run) not in ids])
            told = {id(run) for run in partial if self._is_told(run)}
            if len(told) < len(partial):
                self._begin()
                self._weave([run for run in runs if id(run) not in told])
                told = {id(run) for run in partial if id(run) in told and self._is_told(run)}
            self.repeated += [run for run in partial if id(run) in told]
        else:
            self._weave(runs)

    def _weave(self, runs: list[Run]) -> None:
        if len(runs) == 1:
            self.threads.append(Thread(runs[0].rows))
            return
        for run in runs:
            cursor = self._cursors.get(run.file_id)
            first = self._first(run)
            if first and (cursor is None or cursor.position != first):
                cursor = self._standing_at(run.file_id, first)
            if first and cursor is not None:
                self._continue(run, cursor)
            else:
                self._join(run)

    def _first(self, run: Run) -> int:
        return int(self._columns["position"][run.rows[0]])

    def _is_answers(self, run: Run) -> bool:
        """Whether a run lists answers whose questions another one may hold."""
        return history_of(run.format) == "answers" and all(is_answer(print_of(row, self._columns)) for row in run.rows)

    def _is_told(self, run: Run) -> bool:
        """Whether one thread holds every part of the run, but for an end that goes on after the thread's; what the run knows
        more is filled in.
        """
        for thread in self.threads:
            same = pairs(thread.rows, run.rows, self._columns)
            n_told = next((i for i, row in enumerate(run.rows) if row not in same), len(run.rows))
            if n_told and n_told == len(same):
                for other, row in same.items():
                    take(row, other, self._columns)
                thread.rows = [*thread.rows, *run.rows[n_told:]]   # a run's own list stays as it is
                thread.prints += [print_of(row, self._columns) for row in run.rows[n_told:]]
                return True
        return False

    def _standing_at(self, file_id: str, position: int) -> _Cursor | None:
        """Where a run goes on whose beginning another file gave (a log that grew and was read again)."""
        last = self._last_at.get(position)
        if last is not None and self._cursors[last.file_id] is last:
            return _Cursor(file_id, last.thread, position, last.index)
        thread = next((each for each in self.threads if len(each.rows) >= position), None)
        return _Cursor(file_id, thread, position, position) if thread is not None else None

    def _join(self, run: Run) -> None:
        """A history from its beginning: to the thread that it shares most with, else a thread of its own."""
        prints = [print_of(row, self._columns) for row in run.rows]
        shares = [(known, thread) for thread in self._shelf.shares(prints)
                  if (known := n_known(thread.prints, prints)) is not None]
        if shares:
            known, thread = max(shares, key=lambda share: share[0])
            if known == len(run.rows):
                self.repeated.append(run)
        else:
            known, thread = self._another_answer(prints) or (0, self._thread_for(run, prints))
        index = self._fill(thread, run, known)
        thread.rows += run.rows[known:]
        thread.prints += prints[known:]
        self._shelf.put(thread)
        grown = len(thread.rows) if known < len(run.rows) else index
        self._stand(run, thread, grown)

    def _continue(self, run: Run, cursor: _Cursor) -> None:
        """New parts after what this file told before; another file may have told them already."""
        thread, index = cursor.thread, cursor.index
        for row in run.rows:
            made = print_of(row, self._columns)
            if index < len(thread.rows) and thread.prints[index] != made:
                self._shelf.put(thread)
                thread = Thread([*thread.rows[:index]], [*thread.prints[:index]])
                self.threads.append(thread)
            if index < len(thread.rows):
                take(thread.rows[index], row, self._columns)
            else:
                thread.rows.append(row)
                thread.prints.append(made)
            index += 1
        self._shelf.put(thread)
        self._stand(run, thread, index)

    def _thread_for(self, run: Run, prints: list[Print]) -> Thread:
        """The last thread, where the run only goes on; not where it begins as that one did, and then differs."""
        goes_on = history_of(run.format) == "once" or is_bare(run.rows, self._columns) or self._is_answers(run)
        if self.threads and goes_on and (len(prints) < 2 or self.threads[-1].prints[:2] != prints[:2]):
            return self.threads[-1]
        self.threads.append(Thread())
        return self.threads[-1]

    def _another_answer(self, prints: list[Print]) -> tuple[int, Thread] | None:
        """A thread whose end, an answer that nothing followed, is another one in this history: a retry or a candidate."""
        for thread in self._shelf.answered(prints):
            same = 0
            while same < min(len(prints), len(thread.prints)) and prints[same] == thread.prints[same]:
                same += 1
            if same and prints[same:] and all(is_answer(each) for each in thread.prints[same:]):
                self.replaced += thread.rows[same:]
                self._shelf.cut(thread, same)
                return same, thread
        return None

    def _fill(self, thread: Thread, run: Run, known: int) -> int:
        """Facts that only the repeated telling has (a time, a model), where the two line up from the beginning."""
        lined_up = min(known, len(thread.rows))
        if lined_up == known:
            for row, again in zip(thread.rows[:lined_up], run.rows[:lined_up], strict=True):
                take(row, again, self._columns)
        return lined_up

    def _stand(self, run: Run, thread: Thread, index: int) -> None:
        position = int(self._columns["position"][run.rows[-1]]) + 1
        cursor = _Cursor(run.file_id, thread, position, index)
        self._cursors[run.file_id] = self._last_at[position] = cursor
