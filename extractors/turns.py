"""A thread of events to turns: each call with its result, positions without gaps.

A result answers the latest unanswered call of its id, without an id the oldest unanswered call (of its tool, where it names
one). What it does not see: whether an answer is an error where the log does not say so.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from extractors.formats.overlap import canonical
from extractors.tellings import Columns
from warehouse.records import Verdict

_RESOLUTION_US = 1_000_000
Row = dict[str, Any]


def turns_of(session_id: str, service: str, rows: list[int], columns: Columns) -> tuple[list[Row], list[Verdict]]:
    """Turns of the session in order, and verdicts on results that answer no call and calls without an answer."""
    turns: list[Row] = []
    waiting = _Waiting()
    verdicts: list[Verdict] = []
    answered: set[str] = set()
    for row in rows:
        if columns["kind"][row] == "result":
            call = waiting.asked(columns["call_id"][row], columns["tool"][row])
            if call is None:
                verdicts.append(_orphan(session_id, row, columns, answered))
            else:
                answered.add(str(call["call_id"]))
                _answer(call, row, columns)
        else:
            turn = _turn(session_id, service, len(turns), row, columns)
            turns.append(turn)
            if turn["kind"] == "call":
                waiting.add(turn)
    verdicts += [_unanswered(call) for call in waiting.left()]
    return turns, verdicts


class _Waiting:
    """Calls without an answer, found by id and by tool."""

    def __init__(self) -> None:
        self._calls: dict[int, Row] = {}
        self._all: deque[int] = deque()
        self._by_id: defaultdict[str, list[int]] = defaultdict(list)
        self._by_tool: defaultdict[str | None, deque[int]] = defaultdict(deque)
        self._nameless: defaultdict[str | None, deque[int]] = defaultdict(deque)

    def add(self, call: Row) -> None:
        """A call that waits from now on."""
        place, call_id, tool = call["position"], call["call_id"], call["tool"]
        self._calls[place] = call
        self._all.append(place)
        if call_id is not None:
            self._by_id[call_id].append(place)
        else:
            self._nameless[tool].append(place)
        self._by_tool[tool].append(place)

    def left(self) -> list[Row]:
        """Those that still wait, in order."""
        return list(self._calls.values())

    def asked(self, call_id: str | None, tool: str | None) -> Row | None:
        """The call that a result answers; it waits no longer."""
        place = None
        if call_id is not None:
            place = self._latest(self._by_id.get(call_id, []))
        if place is None and tool:
            place = self._oldest((self._by_tool if call_id is None else self._nameless).get(tool, deque()))
        if place is None and call_id is None:
            place = self._oldest(self._all)
        return None if place is None else self._calls.pop(place)

    def _latest(self, places: list[int]) -> int | None:
        while places and places[-1] not in self._calls:
            places.pop()
        return places[-1] if places else None

    def _oldest(self, places: deque[int]) -> int | None:
        while places and places[0] not in self._calls:
            places.popleft()
        return places[0] if places else None


def _turn(session_id: str, service: str, position: int, row: int, columns: Columns) -> Row:
    kind, arguments = columns["kind"][row], columns["arguments"][row]
    is_call = kind == "call"
    return {"turn_id": columns["event_id"][row], "session_id": session_id, "service": service, "position": position,
            "happened_at": columns["happened_at"][row], "kind": kind, "role": columns["role"][row],
            "content": None if is_call else columns["content"][row], "call_id": columns["call_id"][row],
            "tool": columns["tool"][row], "arguments": canonical(arguments) if is_call else None,
            "arguments_raw": arguments if is_call else None, "is_error": None, "requestor": columns["requestor"][row],
            "answered_at": None, "result_id": None, "latency_ms": columns["latency_ms"][row],
            "model": columns["model"][row]}


def _answer(call: Row, row: int, columns: Columns) -> None:
    call["content"] = columns["content"][row]
    call["is_error"] = columns["is_error"][row]
    call["answered_at"] = _not_before(call["happened_at"], columns["happened_at"][row])
    call["result_id"] = columns["event_id"][row]


def _not_before(asked_at: int | None, answered_at: int | None) -> int | None:
    """The answer's time; logs that cut times to seconds can put it up to one second before the question."""
    if asked_at is not None and answered_at is not None and 0 < asked_at - answered_at <= _RESOLUTION_US:
        return asked_at
    return answered_at


def _orphan(session_id: str, row: int, columns: Columns, answered: set[str]) -> Verdict:
    call_id = columns["call_id"][row]
    again = call_id is not None and call_id in answered
    reason = "duplicate_result" if again else "orphan_result"
    says = "was answered already" if again else "is not in the session"
    return Verdict(stage="sessions", subject=columns["event_id"][row], kept=False, reason=reason,
                   detail=f"session {session_id}: a result for call {call_id!r}, which {says}; it stays in the events.",
                   file_id=columns["file_id"][row])


def _unanswered(call: Row) -> Verdict:
    return Verdict(stage="sessions", subject=call["turn_id"], kept=True, reason="unanswered_call",
                   detail=f"session {call['session_id']}: call {call['position']} has no result in the log; "
                   "it is kept without an answer.")
