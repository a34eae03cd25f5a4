"""A thread of events to turns: each call with its result, positions without gaps.

A result answers the latest unanswered call of its id, without an id the oldest unanswered call (of its tool, where it names
one). What it does not see: whether an answer is an error where the log does not say so.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.overlap import canonical
from extractors.threads import Columns
from warehouse.records import Verdict

_RESOLUTION_US = 1_000_000
Row = dict[str, Any]


def turns_of(session_id: str, service: str, rows: list[int], columns: Columns) -> tuple[list[Row], list[Verdict]]:
    """Turns of the session in order, and verdicts on results that answer no call and calls without an answer."""
    turns: list[Row] = []
    waiting: list[Row] = []
    verdicts: list[Verdict] = []
    answered: set[str] = set()
    for row in rows:
        if columns["kind"][row] == "result":
            call = _asked(waiting, columns["call_id"][row], columns["tool"][row])
            if call is None:
                verdicts.append(_orphan(session_id, row, columns, answered))
            else:
                waiting.remove(call)
                answered.add(str(call["call_id"]))
                _answer(call, row, columns)
        else:
            turn = _turn(session_id, service, len(turns), row, columns)
            turns.append(turn)
            if turn["kind"] == "call":
                waiting.append(turn)
    verdicts += [_unanswered(call) for call in waiting]
    return turns, verdicts


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


def _asked(waiting: list[Row], call_id: str | None, tool: str | None) -> Row | None:
    """The call that a result answers."""
    if call_id is not None:
        for call in reversed(waiting):
            if call["call_id"] == call_id:
                return call
        waiting = [call for call in waiting if call["call_id"] is None]
    return next((call for call in waiting if tool and call["tool"] == tool), None) or (
        next(iter(waiting), None) if call_id is None else None)


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
