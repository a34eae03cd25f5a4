"""Make one conversation of what several logs tell of it.

In: conversations that are one (`extractors.sameness`). Out: the rows of the richest (most parts, then most text), filled in:
the whole text where it was cut, a result or instructions that it lacks, and times, errors, models and names that it does not
state.
What a log states of a part that the richest states too stays as the richest has it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from extractors.tellings import LoggedTalk, SpokenPart, part_of, same_part
from extractors.threads import Columns, print_of, take

_INSTRUCTIONS = ("system", "developer")


def richest(group: list[LoggedTalk]) -> LoggedTalk:
    """Return the telling that is taken, the same whatever their order."""
    return max(group, key=lambda each: (len(each.parts), each.n_characters, len(each.answers), each.store, each.name))


def unite(taken: LoggedTalk, others: list[LoggedTalk], columns: Columns) -> list[int]:
    """Return the rows of `taken`, filled in from the others; changes the columns of its rows."""
    rows = list(taken.rows)
    for other in sorted(others, key=lambda each: (-each.n_characters, each.store, each.name)):
        same = _aligned(rows, other.rows, columns)
        for row, again in same.items():
            take(row, again, columns)
            _fill_text(row, again, columns)
        _add_results(rows, other.rows, same, columns)
        if not any(columns["role"][row] in _INSTRUCTIONS for row in rows):
            rows[:0] = [row for row in other.rows if columns["role"][row] in _INSTRUCTIONS]
    return rows


def _aligned(rows: list[int], others: list[int], columns: Columns) -> dict[int, int]:
    """Return the other log's row for each message or call that it has too, in order."""
    waiting = deque(row for row in others if _is_part(row, columns))
    same: dict[int, int] = {}
    for row in rows:
        if waiting and _is_part(row, columns):
            ahead = next((at for at, again in enumerate(waiting) if _is_same(row, again, columns)), None)
            if ahead is not None:
                for _ in range(ahead):
                    waiting.popleft()
                same[row] = waiting.popleft()
    return same


def _is_part(row: int, columns: Columns) -> bool:
    return columns["kind"][row] != "result" and columns["role"][row] not in _INSTRUCTIONS


def _is_same(row: int, again: int, columns: Columns) -> bool:
    if columns["kind"][row] != columns["kind"][again]:
        return False
    return print_of(row, columns) == print_of(again, columns) or same_part(
        part_of(row, columns), part_of(again, columns))


def _fill_text(row: int, again: int, columns: Columns) -> None:
    """Take the longer text of two of which one is cut."""
    name = "arguments" if columns["kind"][row] == "call" else "content"
    if len(columns[name][again] or "") > len(columns[name][row] or "") and print_of(row, columns) != print_of(again, columns):
        columns[name][row] = columns[name][again]


def _add_results(rows: list[int], others: list[int], same: dict[int, int], columns: Columns) -> None:
    """Add answers that only the other log has, each after its call."""
    has, of_other = _answers(rows, columns), _answers(others, columns)
    for call, again in same.items():
        answer = of_other.get(again)
        if columns["kind"][call] != "call" or answer is None:
            continue
        if call not in has:
            columns["call_id"][answer] = columns["call_id"][call]
            columns["tool"][answer] = columns["tool"][call]
            rows.insert(rows.index(call) + 1, answer)
        else:
            take(has[call], answer, columns)
            _fill_cut(has[call], answer, columns)


def _fill_cut(row: int, again: int, columns: Columns) -> None:
    one, two = (columns["content"][each] or "" for each in (row, again))
    if len(two) > len(one) and same_part(SpokenPart("", one, one), SpokenPart("", two, two)):
        columns["content"][row] = two


def _answers(rows: list[int], columns: Columns) -> dict[int, int]:
    """Return the result of each call: by its id, else the next of its tool."""
    by_id: dict[Any, deque[int]] = defaultdict(deque)
    answers: dict[int, int] = {}
    for row in rows:
        call_id = columns["call_id"][row]
        if columns["kind"][row] == "call":
            by_id[call_id if call_id is not None else ("", columns["tool"][row])].append(row)
        elif columns["kind"][row] == "result":
            queue = by_id.get(call_id if call_id is not None else ("", columns["tool"][row]))
            if queue:
                answers[queue.popleft()] = row
    return answers
