"""Weave the histories of one session to threads: conversations with each part once, in order.

Input: runs of events (a file's, or a record's if a file has the same position twice), each a history or its continuation.
Output: threads of row numbers. Equal parts are found by call id or by content (`formats.history`); an index over beginnings and
ends keeps thousands of conversations under one id fast. Two histories without a common end stay two threads, unless the format
states each part once or the later one is calls without a word.

A thread then becomes turns: each call with its result, positions without gaps. A result answers the latest unanswered call of
its id, without an id the oldest unanswered call (of its tool, where it names one). What it does not see: whether an answer is
an error where the log does not say so."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from extractors.call_ids import renumbered
from extractors.formats import history_of
from extractors.formats.history import Print, canonical, fingerprint, is_telling, n_known
from warehouse.records import Decision


@dataclass(slots=True, eq=False)
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
        """Runs without new parts."""
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
        """Weave runs in order of time; a repetition of one side of a conversation only fills it in."""
        partial = dict.fromkeys(run for run in runs if len(runs) > 1 and self._is_partial(run))
        if not partial or len(partial) == len(runs):
            self._weave(runs)
            return
        self._weave([run for run in runs if run not in partial])
        repeated = dict.fromkeys(run for run in partial if self._is_repeated(run))
        if len(repeated) < len(partial):
            self._begin()
            self._weave([run for run in runs if run not in repeated])
            repeated = dict.fromkeys(run for run in repeated if self._is_repeated(run))
        self.repeated += repeated

    def _is_partial(self, run: Run) -> bool:
        """Whether a run from the beginning has no user message and one side alone: calls and results, or answers."""
        columns = self._columns
        if int(columns["position"][run.rows[0]]):
            return False
        kinds = {columns["role"][row] if columns["kind"][row] == "message" else columns["kind"][row] for row in run.rows}
        return "user" not in kinds and (kinds <= {"call", "result", "system", "developer"} or "result" not in kinds)

    def _is_repeated(self, run: Run) -> bool:
        """Whether a thread holds every part of the run, except a later end; adds that end and facts that the run alone has."""
        for thread in self.threads:
            same = pairs(thread.rows, run.rows, self._columns)
            n_repeated = next((i for i, row in enumerate(run.rows) if row not in same), len(run.rows))
            if n_repeated and n_repeated == len(same):
                for other, row in same.items():
                    take(row, other, self._columns)
                thread.rows = [*thread.rows, *run.rows[n_repeated:]]   # a run's own list stays as it is
                thread.prints += [print_of(row, self._columns) for row in run.rows[n_repeated:]]
                return True
        return False

    def _weave(self, runs: list[Run]) -> None:
        if len(runs) == 1:
            self.threads.append(Thread(runs[0].rows))
            return
        for run in runs:
            cursor = self._cursors.get(run.file_id)
            first = int(self._columns["position"][run.rows[0]])
            if first and (cursor is None or cursor.position != first):
                cursor = self._standing_at(run.file_id, first)
            if first and cursor is not None:
                self._continue(run, cursor)
            else:
                prints = [print_of(row, self._columns) for row in run.rows]
                shares = [(n_shared, thread) for thread in self._shelf.shares(prints)
                          if (n_shared := n_known(thread.prints, prints)) is not None]
                if shares:
                    n_shared, thread = max(shares, key=lambda share: share[0])
                    if n_shared == len(run.rows):
                        self.repeated.append(run)
                else:
                    n_shared, thread = self._another_answer(prints) or (0, self._thread_for(run, prints))
                index = min(n_shared, len(thread.rows))
                if index == n_shared:   # the two line up: facts that only the repeated telling has (a time, a model)
                    for row, again in zip(thread.rows[:index], run.rows[:index], strict=True):
                        take(row, again, self._columns)
                thread.rows += run.rows[n_shared:]
                thread.prints += prints[n_shared:]
                self._shelf.put(thread)
                self._stand(run, thread, len(thread.rows) if n_shared < len(run.rows) else index)

    def _standing_at(self, file_id: str, position: int) -> _Cursor | None:
        """Where a run goes on whose beginning another file gave (a log that grew and was read again)."""
        last = self._last_at.get(position)
        if last is not None and self._cursors[last.file_id] is last:
            return _Cursor(file_id, last.thread, position, last.index)
        thread = next((each for each in self.threads if len(each.rows) >= position), None)
        return _Cursor(file_id, thread, position, position) if thread is not None else None

    def _continue(self, run: Run, cursor: _Cursor) -> None:
        """Add new parts after what this file stated before; another file may have stated them already."""
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
        history = history_of(run.format)
        goes_on = history == "once" or (history == "answers" and all(map(is_answer, prints))) or all(
            self._columns["kind"][row] != "message" for row in run.rows)
        if self.threads and goes_on and (len(prints) < 2 or self.threads[-1].prints[:2] != prints[:2]):
            return self.threads[-1]
        self.threads.append(Thread())
        return self.threads[-1]

    def _another_answer(self, prints: list[Print]) -> tuple[int, Thread] | None:
        """Return a thread whose end, an answer that nothing followed, is another one in this history (a retry)."""
        for thread in self._shelf.answered(prints):
            same = 0
            while same < min(len(prints), len(thread.prints)) and prints[same] == thread.prints[same]:
                same += 1
            if same and prints[same:] and all(is_answer(each) for each in thread.prints[same:]):
                self.replaced += thread.rows[same:]
                self._shelf.cut(thread, same)
                return same, thread
        return None

    def _stand(self, run: Run, thread: Thread, index: int) -> None:
        position = int(self._columns["position"][run.rows[-1]]) + 1
        cursor = _Cursor(run.file_id, thread, position, index)
        self._cursors[run.file_id] = self._last_at[position] = cursor


_MOST_LIKELY = 64
"""How many threads that share but an end with a history are looked at, the latest first."""


@dataclass(slots=True, eq=False)
class Thread:
    """A conversation: its rows in order, each part once."""

    rows: list[int] = field(default_factory=list)
    prints: list[Print] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    """Of each part, a hash of the parts up to it; as far as the shelf has seen."""
    keys: tuple[Hashable, ...] = ()
    """Its other keys on the shelf."""


def marks(prints: Sequence[Print], before: int = 0) -> list[int]:
    """Return a hash of all parts up to each part; `before`: that of the parts before the first."""
    hashes = []
    for each in prints:
        before = hash((before, each))
        hashes.append(before)
    return hashes


class Shelf:
    """The threads of a session in the order in which they came."""

    def __init__(self) -> None:
        self._numbers: dict[Thread, int] = {}
        self._places: dict[Hashable, dict[Thread, None]] = {}

    def put(self, thread: Thread) -> None:
        self._numbers.setdefault(thread, len(self._numbers))
        new = marks(thread.prints[len(thread.marks):], thread.marks[-1] if thread.marks else 0)
        for mark in new:
            self._stand(thread, ("begins", mark))
        thread.marks += new
        for key in thread.keys:
            self._places[key].pop(thread, None)
        thread.keys = ()
        if thread.prints:
            stem = len(thread.prints)
            while stem and is_answer(thread.prints[stem - 1]):
                stem -= 1
            keys: list[Hashable] = [("whole", thread.marks[-1]), ("end", thread.prints[-1])]
            keys += [("ends", *thread.prints[-2:])] if len(thread.prints) > 1 else []
            keys += [("stem", thread.marks[max(stem - 1, 0)])] if stem < len(thread.prints) else []
            thread.keys = tuple(keys)
        for key in thread.keys:
            self._stand(thread, key)

    def cut(self, thread: Thread, length: int) -> None:
        for mark in thread.marks[length:]:
            self._places["begins", mark].pop(thread, None)
        del thread.rows[length:], thread.prints[length:], thread.marks[length:]

    def shares(self, prints: Sequence[Print]) -> list[Thread]:
        """Threads that may have parts of this history: it extends or repeats them, or it holds their end."""
        made = marks(prints)
        sure = [("whole", mark) for mark in made] + [("begins", made[-1])] if made else []
        likely: list[Hashable] = [("ends", one, two) for one, two in pairwise(prints)]
        likely += [("end", each) for each in prints if is_telling(each)]
        return list(dict.fromkeys(self._threads_at(sure, None) + self._threads_at(dict.fromkeys(likely), _MOST_LIKELY)))

    def answered(self, prints: Sequence[Print]) -> list[Thread]:
        """Threads whose last answer may be another one in this history, which begins with all that stands before it."""
        return self._threads_at([("stem", mark) for mark in marks(prints)], None)

    def _threads_at(self, keys: Iterable[Hashable], most: int | None) -> list[Thread]:
        threads: dict[Thread, None] = {}
        for key in keys:
            for thread in reversed(self._places.get(key, {})):
                threads[thread] = None
                if most is not None and len(threads) >= most:
                    return sorted(threads, key=self._numbers.__getitem__)
        return sorted(threads, key=self._numbers.__getitem__)

    def _stand(self, thread: Thread, key: Hashable) -> None:
        self._places.setdefault(key, {})[thread] = None

def is_answer(part: Print) -> bool:
    """Whether a part is what a model says or calls."""
    return part[0] == "call" or part[:2] == ("message", "assistant")


Columns = dict[str, list[Any]]
"""Events by column: all that follows speaks of rows by number."""
_FILLED = ("happened_at", "latency_ms", "model", "is_error", "service", "name")


def print_of(row: int, columns: Columns) -> Print:
    """Return what makes two rows the same part of a conversation."""
    return fingerprint(columns["kind"][row], columns["role"][row], columns["content"][row], columns["tool"][row],
                       columns["arguments"][row])


def take(row: int, other: int, columns: Columns) -> None:
    """Fill in facts that only `other`, a repetition of the part, has."""
    for name in _FILLED:
        column = columns[name]
        if column[row] is None:
            column[row] = column[other]
    if columns["kind"][row] == "result" and columns["content"][row] is None:
        columns["content"][row] = columns["content"][other]


def pairs(rows: Iterable[int], others: Iterable[int], columns: Columns) -> dict[int, int]:
    """Row of `rows` for each of `others` that is the same part; each is the counterpart of one alone."""
    waiting: dict[Hashable, deque[int]] = defaultdict(deque)
    for row in rows:
        for key in _keys(row, columns):
            waiting[key].append(row)
    counterparts: dict[int, int] = {}
    taken: set[int] = set()
    for other in others:
        for key in _keys(other, columns):
            same = waiting.get(key, deque())
            while same and same[0] in taken:
                same.popleft()
            if same:
                counterparts[other] = same.popleft()
                taken.add(counterparts[other])
                break
    return counterparts


def _keys(row: int, columns: Columns) -> list[Hashable]:
    """Return what the row may be known by, the surest first."""
    kind, call_id = columns["kind"][row], columns["call_id"][row]
    by_words = print_of(row, columns)
    if kind == "call" and call_id is not None:
        return [("id", kind, call_id, columns["tool"][row]), by_words]
    return [("id", kind, call_id), by_words] if kind == "result" and call_id is not None else [by_words]


_RESOLUTION_US = 1_000_000
_OF_TURNS = ("happened_at", "kind", "role", "call_id", "tool", "requestor", "latency_ms", "model")
Row = dict[str, Any]


def turns_of(session_id: str, service: str, rows: list[int], columns: Columns) -> tuple[list[Row], list[Decision]]:
    """Return turns of the session in order, and decisions on results that answer no call and calls without an answer."""
    turns: list[Row] = []
    waiting = _Waiting()
    decisions: list[Decision] = []
    answered: set[str] = set()
    other_ids = renumbered(rows, columns)
    for row in rows:
        if columns["kind"][row] == "result":
            call = waiting.take_answered(other_ids.get(row, columns["call_id"][row]), columns["tool"][row])
            if call is None:
                call_id = columns["call_id"][row]
                again = call_id is not None and call_id in answered
                why = "was answered already" if again else "is not in the session"
                decisions.append(Decision(
                    stage="sessions", subject=columns["event_id"][row], kept=False,
                    reason="duplicate_result" if again else "orphan_result", file_id=columns["file_id"][row],
                    detail=f"session {session_id}: a result for call {call_id!r}, which {why}; it stays in the events."))
            else:
                answered.add(str(call["call_id"]))
                call |= {"content": columns["content"][row], "is_error": columns["is_error"][row],
                         "answered_at": _not_before(call["happened_at"], columns["happened_at"][row]),
                         "result_id": columns["event_id"][row]}
        else:
            turn = _turn(session_id, service, len(turns), row, columns)
            turns.append(turn)
            if turn["kind"] == "call":
                waiting.add(turn)
    decisions += [Decision(
        stage="sessions", subject=columns["event_id"][row], kept=True, reason="renumbered_result",
        file_id=columns["file_id"][row], detail=(
            f"session {session_id}: a result for call {columns['call_id'][row]!r} is that of {call_id!r}, by their order."),
    ) for row, call_id in other_ids.items()]
    decisions += [Decision(
        stage="sessions", subject=call["turn_id"], kept=True, reason="unanswered_call",
        detail=f"session {call['session_id']}: call {call['position']} has no result in the log; it is kept without an answer.",
    ) for call in waiting.calls.values()]
    return turns, decisions


class _Waiting:
    """Calls without an answer, found by id and by tool."""

    def __init__(self) -> None:
        self.calls: dict[int, Row] = {}
        self._all: deque[int] = deque()
        self._by_id: defaultdict[str, list[int]] = defaultdict(list)
        self._by_tool: defaultdict[str | None, deque[int]] = defaultdict(deque)
        self._nameless: defaultdict[str | None, deque[int]] = defaultdict(deque)

    def add(self, call: Row) -> None:
        place, call_id, tool = call["position"], call["call_id"], call["tool"]
        self.calls[place] = call
        self._all.append(place)
        if call_id is not None:
            self._by_id[call_id].append(place)
        else:
            self._nameless[tool].append(place)
        self._by_tool[tool].append(place)

    def take_answered(self, call_id: str | None, tool: str | None) -> Row | None:
        """Return the call that a result answers; it waits no longer."""
        place = None
        if call_id is not None:
            places = self._by_id.get(call_id, [])
            while places and places[-1] not in self.calls:
                places.pop()
            place = places[-1] if places else None
        queues = [(self._by_tool if call_id is None else self._nameless).get(tool, deque())] if tool else []
        queues += [self._all] if call_id is None else []
        for queue in queues if place is None else ():
            while queue and queue[0] not in self.calls:
                queue.popleft()
            if queue:
                place = queue[0]
                break
        return None if place is None else self.calls.pop(place)

def _turn(session_id: str, service: str, position: int, row: int, columns: Columns) -> Row:
    arguments = columns["arguments"][row] if columns["kind"][row] == "call" else None
    return {"turn_id": columns["event_id"][row], "session_id": session_id, "service": service, "position": position,
            **{name: columns[name][row] for name in _OF_TURNS},
            "content": None if columns["kind"][row] == "call" else columns["content"][row],
            "arguments": canonical(arguments), "arguments_raw": arguments,
            "is_error": None, "answered_at": None, "result_id": None}


def _not_before(called_at: int | None, answered_at: int | None) -> int | None:
    """Return the answer's time; logs that cut times to seconds can put it up to one second before the question."""
    if called_at is not None and answered_at is not None and 0 < called_at - answered_at <= _RESOLUTION_US:
        return called_at
    return answered_at
