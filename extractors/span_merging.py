"""What several files tell of the spans of one session, merged to one conversation.

In: runs of events, one a file (or chunk of one), each the conversation as the spans of that file alone tell it. Out: threads of
row numbers, as `extractors.threads` has them. Each run is a part of the whole in its order: equal parts are the anchors, and
what is between them goes in by time. A call and its result go together. Of two tellings of a part the fuller is taken; times
are those that one file with all spans would give: of a call, when it ran; of an answer to it, when that was done; of a
user's words, when they first went in. What only a span around others says gives way to those others.
Sees: calls by id, by arguments, and by tool where a span states neither; equal words by place and time.
Does not see: which span was around which, where they are in different files: what ran inside a tool that another file holds
counts to the session itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from extractors.formats.conversation import ANSWER_FROM_SPAN, AROUND, FROM_SPAN, NOT_CAPTURED
from extractors.formats.history import canonical, is_telling
from extractors.threads import Columns, Run, Thread, marks, print_of, take

Enclosing = Callable[[int, str], int]
"""When the outermost span began that was open at an instant; the instant itself where no other file than that one holds one."""
_ORDER = {"system": 0, "developer": 0, "result": 1, "user": 2}
_INPUT_ROLES = ("user", "system", "developer")
_PAUSE_US = 1_800_000_000
_MOST_PAIRS = 64
"""How many places of an equal text are looked at for each of its repetitions."""


@dataclass(slots=True, eq=False)
class _Part:
    """A part of a conversation: its row, and that of its result where it is a call that was answered."""

    row: int
    result: int | None = None


def merge_spans(runs: list[Run], columns: Columns, enclosing: Enclosing | None = None) -> tuple[list[Thread], list[Run]]:
    """Return the threads of a session in one format, and the runs without a new part. `enclosing`: for formats in which the
    words of a user are as of when their trace began."""
    merging = _Merging(columns, enclosing)
    repeated = [run for run in runs if not merging.add(run)]
    return [Thread(rows, [print_of(row, columns) for row in rows]) for rows in merging.rows()], repeated


def continued(threads: dict[str, Thread], columns: Columns) -> dict[str, str]:
    """Return, of conversations of traces without a session, the first one for each that goes on from all that another says.

    In one file the reader has found them (`extractors.formats.conversation.stitched`): each end is gone on with once, within
    half an hour."""
    begun = {name: min(times) for name, thread in threads.items()
             if (times := [time for row in thread.rows if (time := columns["happened_at"][row]) is not None])}
    ends: dict[int, list[str]] = {}
    for name in begun:
        threads[name].marks = marks(threads[name].prints)
        if is_telling(threads[name].prints[-1]):
            ends.setdefault(threads[name].marks[-1], []).append(name)
    first = {name: name for name in begun}
    for name in sorted(begun, key=lambda name: (begun[name], name)):
        for mark, said_at in _repeated(threads[name], columns):
            before = next((each for each in ends.get(mark, ()) if first[each] != first[name]
                           and 0 <= said_at - _ended(threads[each], columns) <= _PAUSE_US), None)
            if before is not None:
                ends[mark].remove(before)
                earliest, other = sorted((first[before], first[name]), key=lambda each: (begun[each], each))
                first.update((each, earliest) for each, root in first.items() if root == other)
    return {name: root for name, root in first.items() if root != name}


def _repeated(thread: Thread, columns: Columns) -> list[tuple[int, int]]:
    """Return of each part that a conversation repeats, the longest beginning first: its mark, and when it goes on itself."""
    repeated, said_at = [], None
    for row, mark in zip(reversed(thread.rows), reversed(thread.marks), strict=True):
        time = columns["happened_at"][row]
        if time is None and said_at is not None:
            repeated.append((mark, said_at))
        said_at = said_at if time is None else time
    return repeated


def _ended(thread: Thread, columns: Columns) -> int:
    times: list[int] = [time for row in thread.rows if (time := columns["happened_at"][row]) is not None]
    return max(times)


class _Conversation:
    """The parts of a thread in order, and where each is by its keys: what is appended costs no more than itself."""

    def __init__(self, parts: list[_Part], keys_of: Callable[[_Part], tuple[Hashable, ...]]) -> None:
        self.parts: list[_Part] = []
        self._keys_of = keys_of
        self._keys: list[tuple[Hashable, ...]] = []
        self.places: dict[Hashable, list[int]] = defaultdict(list)
        self.replace(parts, 0)

    def replace(self, parts: list[_Part], first: int) -> None:
        """Take other parts, which are the same before the place `first`."""
        for place in range(len(self._keys) - 1, first - 1, -1):
            for key in self._keys[place]:
                self.places[key].pop()
        del self._keys[first:]
        self.parts = parts
        for place in range(first, len(parts)):
            keys = self._keys_of(parts[place])
            self._keys.append(keys)
            for key in keys:
                self.places[key].append(place)

    def place_of(self, kind: str, call_id: str | None) -> int | None:
        """Return the place of a call or a result by its id."""
        return next(iter(self.places.get((kind, "id", call_id), ())), None) if call_id is not None else None

    def has_changed(self, place: int) -> bool:
        """Whether the part at a place is known by other keys than it was."""
        return self._keys[place] != self._keys_of(self.parts[place])


class _Merging:
    def __init__(self, columns: Columns, enclosing: Enclosing | None) -> None:
        self._columns = columns
        self._from_trace = enclosing is not None
        self._enclosing = enclosing
        self._threads: list[_Conversation] = []
        self._confirmed: set[int] = set()
        """Rows of summaries that a span of its own tells too."""

    def add(self, run: Run) -> bool:
        """Merge a run into the thread that it is a part of; return whether it has a part that the thread has not."""
        parts = self._parts(run.rows)
        if self._enclosing is not None:
            self._begin_with_traces(parts, self._enclosing)
        for thread in self._threads:
            parts = self._without_answers(thread, parts)
            same = self._same(thread, parts)
            if not self._is_other(thread.parts, parts, same):
                n_before = len(thread.parts)
                thread.replace(*self._merged(thread, parts, same))
                return len(thread.parts) > n_before
        self._threads.append(_Conversation(parts, self._keys))
        return True

    def rows(self) -> Iterable[list[int]]:
        """Return the rows of each thread, without what others tell better."""
        for thread in self._threads:
            parts = self._without_summaries(thread.parts)
            rows = [row for part in parts for row in ((part.row,) if part.result is None else (part.row, part.result))]
            yield _after_calls(rows, self._columns)

    def _parts(self, rows: list[int]) -> list[_Part]:
        """Return the parts of a run: each result with its call, by id, else by the span of both, the tool, or their order."""
        columns, parts, waiting = self._columns, list[_Part](), list[_Part]()
        for row in rows:
            if columns["kind"][row] == "result":
                call = self._call_of(row, waiting)
                if call is not None:
                    call.result = row
                    waiting.remove(call)
                    continue
            part = _Part(row)
            parts.append(part)
            if columns["kind"][row] == "call":
                waiting.append(part)
        return parts

    def _call_of(self, result: int, waiting: list[_Part]) -> _Part | None:
        columns = self._columns
        if columns["call_id"][result] is not None:
            return next((each for each in waiting if columns["call_id"][each.row] == columns["call_id"][result]), None)
        return min(waiting, default=None, key=lambda each: (
            not self._has(each.row, FROM_SPAN) or columns["record_id"][each.row] != columns["record_id"][result],
            columns["tool"][each.row] != columns["tool"][result]))

    def _without_answers(self, thread: _Conversation, parts: list[_Part]) -> list[_Part]:
        """Give answers that stand alone to their calls in the other list, by id; return the rest of `parts`."""
        kinds, ids = self._columns["kind"], self._columns["call_id"]
        rest = []
        for part in parts:
            place = thread.place_of("call", ids[part.row]) if kinds[part.row] == "result" else None
            if place is None:
                rest.append(part)
            else:
                thread.parts[place].result = self._answer(thread.parts[place].result, part.row)
        for part in rest:
            place = thread.place_of("result", ids[part.row]) if kinds[part.row] == "call" else None
            if place is not None:
                part.result = self._answer(part.result, thread.parts[place].row)
                thread.replace([*thread.parts[:place], *thread.parts[place + 1:]], place)
        return rest

    def _begin_with_traces(self, parts: list[_Part], enclosing: Enclosing) -> None:
        times = self._columns["happened_at"]
        for part in parts:
            if _side(part.row, self._columns) in _INPUT_ROLES and times[part.row] is not None:
                times[part.row] = enclosing(times[part.row], self._columns["file_id"][part.row])

    def _is_other(self, thread: list[_Part], parts: list[_Part], same: dict[int, int]) -> bool:
        """Whether two runs are two conversations: begun alike at another time, or instructed otherwise."""
        def opening(of: list[_Part]) -> list[Hashable]:
            return [print_of(part.row, self._columns) for part in of[:2]]

        def instructions(of: list[_Part]) -> Hashable:
            is_system = bool(of) and self._columns["role"][of[0].row] in ("system", "developer")
            return print_of(of[0].row, self._columns) if is_system else None

        if len(thread) > 1 and len(parts) > 1 and opening(thread) == opening(parts) and same.get(1) != 1:
            return True
        one, two = instructions(thread), instructions(parts)
        return not same and one is not None and two is not None and one != two

    # equal parts

    def _same(self, thread: _Conversation, parts: list[_Part]) -> dict[int, int]:
        """Return the place in the thread of each of the parts that it has, in the same order: the most there can be."""
        n_first = 0
        shorter = min(len(thread.parts), len(parts))
        while n_first < shorter and self._is_same(thread.parts, n_first, parts, n_first):
            n_first += 1
        same = {place: place for place in range(n_first)}
        ends: list[int] = []
        chains: list[tuple[int, int, int]] = []
        at_end: list[int] = []   # the longest common subsequence, after Hunt and Szymanski
        for number in range(n_first, len(parts)):
            for place in reversed(self._candidates(thread, parts, number, n_first)):
                length = bisect_left(ends, place)
                chains.append((number, place, at_end[length - 1] if length else -1))
                ends[length:length + 1] = [place]
                at_end[length:length + 1] = [len(chains) - 1]
        link = at_end[-1] if at_end else -1
        while link >= 0:
            number, place, link = chains[link]
            same[number] = place
        return same

    def _keys(self, part: _Part) -> tuple[Hashable, ...]:
        """Return what a part may be known by, the surest first."""
        columns, row = self._columns, part.row
        kind, call_id = columns["kind"][row], columns["call_id"][row]
        if kind == "message":
            return (print_of(row, columns),)
        by_id: tuple[Hashable, ...] = ((kind, "id", call_id),) if call_id is not None else ()
        if kind == "result":
            return by_id or ((kind, columns["content"][row]),)
        tool, arguments = columns["tool"][row], columns["arguments"][row]
        return (*by_id, (kind, tool, canonical(arguments) or arguments), (kind, tool))

    def _candidates(self, thread: _Conversation, parts: list[_Part], number: int, first: int) -> list[int]:
        """Return places from `first` on that may hold the same part, by the surest key that finds any."""
        for key in self._keys(parts[number]):
            same = [place for place in thread.places.get(key, ())[-_MOST_PAIRS:]
                    if place >= first and self._is_same(thread.parts, place, parts, number)]
            if same:
                return same
        return []

    def _is_same(self, thread: list[_Part], place: int, parts: list[_Part], number: int) -> bool:
        columns, one, two = self._columns, thread[place].row, parts[number].row
        if columns["kind"][one] != columns["kind"][two]:
            return False
        ids = columns["call_id"][one], columns["call_id"][two]
        if None not in ids and columns["kind"][one] != "message":
            return bool(ids[0] == ids[1])
        if print_of(one, columns) != print_of(two, columns) and not self._may_be_run_of(one, two):
            return False
        return self._fits(thread, place, two) and self._fits(parts, number, one)

    def _may_be_run_of(self, one: int, two: int) -> bool:
        """Whether one of two calls of a tool is known from its span alone, which does not state its id."""
        columns = self._columns
        if columns["kind"][one] != "call" or columns["tool"][one] != columns["tool"][two]:
            return False
        return self._has(one, FROM_SPAN) != self._has(two, FROM_SPAN) and any(
            self._has(row, FROM_SPAN) and columns["call_id"][row] is None for row in (one, two))

    def _fits(self, parts: list[_Part], place: int, other: int) -> bool:
        """Whether the time of a row is between those of what comes before and after a place, as far as they are known."""
        columns, at = self._columns, self._columns["happened_at"][other]
        if at is None or columns["happened_at"][parts[place].row] is None:
            return True
        if self._is_summary(parts[place].row) or self._is_summary(other):
            return True
        side = _side(parts[place].row, columns)

        def time_of_another(places: range) -> int:
            return next((time for each in places if _side(parts[each].row, columns) != side
                         and (time := self._time(parts[each])) is not None), at)

        return bool(time_of_another(range(place - 1, -1, -1)) <= at <= time_of_another(range(place + 1, len(parts))))

    # one conversation

    def _merged(self, thread: _Conversation, parts: list[_Part], same: dict[int, int]) -> tuple[list[_Part], int]:
        """Return both in one order (what is between two equal parts, by time), and the first place that is not as it was."""
        columns, before = self._columns, thread.parts
        merged: list[_Part] = []
        changed = [len(before)]
        done = begun = 0
        for number in [*sorted(same), len(parts)]:
            place = same.get(number, len(before))
            new = []
            for part in parts[begun:number]:
                other = thread.place_of("call", columns["call_id"][part.row]) if columns["kind"][part.row] == "call" else None
                if other is None:
                    new.append(part)
                else:   # the same call, in another order of those that ran side by side
                    self._join(before[other], part)
                    changed += [other] if thread.has_changed(other) else []
            between = before[done:place]
            if new:
                n_before = self._n_before(between, new)
                changed.append(len(merged) + n_before)
                between[n_before:] = self._by_time(between[n_before:], new, before[place:place + 1])
            merged += between
            if number < len(parts):
                merged.append(self._join(before[place], parts[number]))
                changed += [place] if thread.has_changed(place) else []
            done, begun = place + 1, number + 1
        return merged, min(changed)

    def _n_before(self, between: list[_Part], new: list[_Part]) -> int:
        """Count the parts up to the last one whose time is before all new ones."""
        first = min((time for each in new if (time := self._time(each)) is not None), default=None)
        if first is None:
            return 0
        return next((place + 1 for place in range(len(between) - 1, -1, -1)
                     if (time := self._time(between[place])) is not None and time < first), 0)

    def _by_time(self, one: list[_Part], two: list[_Part], after: list[_Part]) -> list[_Part]:
        if not one or not two:
            return [*one, *two]
        end = next((time for each in after if (time := self._time(each)) is not None), None)
        times, others = self._times(one, end), self._times(two, end)
        merged: list[_Part] = []
        i = j = 0
        while i < len(one) and j < len(two):
            is_second = (others[j], self._rank(two[j])) < (times[i], self._rank(one[i]))
            merged.append(two[j] if is_second else one[i])
            i, j = i + (not is_second), j + is_second
        return [*merged, *one[i:], *two[j:]]

    def _times(self, parts: list[_Part], end: int | None) -> list[float]:
        """Return a time of each part: its own, else that of what comes next."""
        times: list[float] = []
        at = float("inf") if end is None else float(end)
        for part in reversed(parts):
            own = self._time(part)
            at = at if own is None else float(own)
            times.append(at)
        return times[::-1]

    def _time(self, part: _Part) -> int | None:
        time: int | None = self._columns["happened_at"][part.row]
        return time

    def _rank(self, part: _Part) -> int:
        role = "result" if self._columns["kind"][part.row] == "result" else self._columns["role"][part.row]
        return _ORDER.get(role, 3)

    def _join(self, one: _Part, two: _Part) -> _Part:
        """Take what both tell of a part into `one`."""
        message, run = (two, one) if self._has(one.row, FROM_SPAN) else (one, two)
        times = self._columns["happened_at"]
        began = sorted(times[row] for row in (message.row, run.row) if times[row] is not None)
        one.row, one.result = self._joined(message.row, run.row), self._answer(message.result, run.result)
        ended = times[one.result] if one.result is not None else None
        if began and ended is not None and times[one.row] is not None and times[one.row] > ended >= began[0]:
            times[one.row] = began[0]   # another run of the tool was taken for this call's
        return one

    def _answer(self, message: int | None, run: int | None) -> int | None:
        """Return the answer of a call that a message tells, and a tool's run: words of the one, the other's error."""
        if message is None or run is None:
            return run if message is None else message
        errors = self._columns["is_error"]
        error = errors[message] if errors[run] is None else errors[run]
        taken = self._joined(message, run)
        errors[taken] = error
        return taken

    def _joined(self, one: int, two: int) -> int:
        """Return the row of the two that tells more, with the facts of both."""
        columns = self._columns
        taken, other = (two, one) if self._worth(two) > self._worth(one) else (one, two)
        times = columns["happened_at"]
        is_of_trace = self._from_trace and _side(one, columns) in _INPUT_ROLES
        is_summary = {row: self._is_summary(row) and not is_of_trace for row in (one, two)}
        if not self._is_summary(one) or not self._is_summary(two):
            self._confirmed.add(taken)
        timed = [row for row in (taken, other) if times[row] is not None and (
            not is_summary[row] or all(is_summary.values()))]
        if not timed:
            times[taken] = times[other] = None
        else:
            chosen = (max if columns["kind"][taken] == "call" else min)(timed, key=lambda row: times[row])
            latency = columns["latency_ms"][chosen]
            times[taken] = times[chosen]
            columns["latency_ms"][taken] = latency if latency is not None else columns["latency_ms"][taken]
        take(taken, other, columns)
        return taken

    def _worth(self, row: int) -> tuple[bool, bool, bool]:
        """Return how good a telling is: by a message, by no summary, by the span that it comes from."""
        columns = self._columns
        is_captured = columns["kind"][row] != "result" or columns["content"][row] is not None
        is_by_message = is_captured and not self._has(row, FROM_SPAN) and not self._has(row, ANSWER_FROM_SPAN)
        is_own = columns["model"][row] is not None and columns["latency_ms"][row] is not None
        return is_by_message, not self._has(row, AROUND), is_own

    def _is_summary(self, row: int) -> bool:
        return self._has(row, AROUND) and row not in self._confirmed

    def _has(self, row: int, note: str) -> bool:
        return note in (self._columns["lossy"][row] or "")

    def _without_summaries(self, parts: list[_Part]) -> list[_Part]:
        """Leave out what a span around others says where those others are there, and answers not captured that are."""
        columns, times = self._columns, self._columns["happened_at"]
        records: dict[str, tuple[int, int]] = {}
        for part in parts:
            if self._is_summary(part.row) and _side(part.row, columns) == "assistant" and times[part.row] is not None:
                lasted = round((columns["latency_ms"][part.row] or 0) * 1000)
                records[columns["record_id"][part.row]] = (times[part.row] - lasted, times[part.row])
        spoken = sorted((times[part.row], columns["kind"][part.row] == "call", _side(part.row, columns)) for part in parts
                        if times[part.row] is not None and not self._is_summary(part.row)
                        and not self._has(part.row, FROM_SPAN) and not self._has(part.row, NOT_CAPTURED))
        dialogue = [(time, is_call) for time, is_call, side in spoken if side != "result"]
        own = [time for time, _, side in spoken if side == "assistant"]
        replaced = {record for record, (begin, end) in records.items()
                    if ((first := bisect_left(own, begin)) < len(own) and own[first] <= end)
                    or ((last := bisect_left(dialogue, (begin, True))) and dialogue[last - 1][1])}   # nobody asks amid a call
        return [part for part in parts if not (
            (self._is_summary(part.row) and columns["record_id"][part.row] in replaced)
            or (self._has(part.row, NOT_CAPTURED) and part is not parts[-1] and own))]


def _side(row: int, columns: Columns) -> str:
    """Return who speaks: a call is what an assistant says."""
    return "result" if columns["kind"][row] == "result" else columns["role"][row] or "assistant"


def _after_calls(rows: list[int], columns: Columns) -> list[int]:
    """Put each result that came before its call right after it."""
    calls = {columns["call_id"][row]: place for place, row in enumerate(rows) if columns["kind"][row] == "call"}
    early = [row for place, row in enumerate(rows) if columns["kind"][row] == "result" and columns["call_id"][row] is not None
             and calls.get(columns["call_id"][row], -1) > place]
    if not early:
        return rows
    ordered = []
    for row in rows:
        if row not in early:
            ordered.append(row)
        if columns["kind"][row] == "call":
            ordered += [each for each in early if columns["call_id"][each] == columns["call_id"][row]]
    return ordered
