"""One conversation told twice: which parts of one telling are parts of the other, and what each knows more.

In: rows of two tellings. Out: pairs of rows; facts that only the other one has are filled in. A call and a result are the same
by their call id, all else by what is said (`formats.overlap`), in the order in which it is said.
Does not see: that two parts without an equal id or equal words mean the same.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable
from typing import Any

from extractors.formats.overlap import Print, fingerprint

Columns = dict[str, list[Any]]
"""Events by column: all that follows speaks of rows by number."""
_FILLED = ("happened_at", "latency_ms", "model", "is_error", "service", "name")


def print_of(row: int, columns: Columns) -> Print:
    """What makes two rows the same part of a conversation."""
    return fingerprint(columns["kind"][row], columns["role"][row], columns["content"][row], columns["tool"][row],
                       columns["arguments"][row])


def take(row: int, other: int, columns: Columns) -> None:
    """Facts that only `other`, the same part told again, has."""
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
    found: dict[int, int] = {}
    taken: set[int] = set()
    for other in others:
        for key in _keys(other, columns):
            same = waiting.get(key, deque())
            while same and same[0] in taken:
                same.popleft()
            if same:
                found[other] = same.popleft()
                taken.add(found[other])
                break
    return found


def is_partial(rows: Iterable[int], columns: Columns) -> bool:
    """Whether rows tell one side alone, without a word of the user: calls and results (spans without content), or answers
    (a server's list of them) of a conversation that something else tells.
    """
    kinds = {columns["role"][row] if columns["kind"][row] == "message" else columns["kind"][row] for row in rows}
    return "user" not in kinds and (kinds <= {"call", "result", "system", "developer"} or "result" not in kinds)


def is_bare(rows: Iterable[int], columns: Columns) -> bool:
    """Whether rows are calls and results without a word."""
    return all(columns["kind"][row] != "message" for row in rows)


def _keys(row: int, columns: Columns) -> list[Hashable]:
    """What the row may be known by, the surest first."""
    kind, call_id = columns["kind"][row], columns["call_id"][row]
    by_words = print_of(row, columns)
    if kind == "call" and call_id is not None:
        return [("id", kind, call_id, columns["tool"][row]), by_words]
    return [("id", kind, call_id), by_words] if kind == "result" and call_id is not None else [by_words]
