"""Which act of a change stream a recorded call brought about.

In: calls of all in-house tools, acts. Out: number of a call -> its act. An act belongs to the call within the time around it
whose arguments hold most of what changed; of equals, the latest. Does not see: acts that share nothing with a call's arguments.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from env_builder.company.row_changes import RowAct

BEFORE, AFTER = 10_000_000, 1_000_000
"""Microseconds by which a call may come before its act, and after it."""


class DatedCall(Protocol):
    """A recorded call, as far as it matters here."""

    @property
    def at(self) -> int: ...
    @property
    def arguments(self) -> dict[str, Any]: ...


def acts_of(calls: Sequence[DatedCall], acts: Sequence[RowAct]) -> dict[int, RowAct]:
    """Return the acts of calls, which are in the order of time."""
    instants = [call.at for call in calls]
    assigned: dict[int, RowAct] = {}
    for act in acts:
        near = range(bisect_left(instants, act.at - BEFORE), bisect_right(instants, act.at + AFTER))
        scored = [(score, number) for number in near if number not in assigned
                  and (score := _common(calls[number].arguments, act)) > 0]
        if scored:
            assigned[max(scored)[1]] = act
    return assigned


def _common(arguments: Any, act: RowAct) -> int:
    """Return how many of the act's values the arguments hold; a value that the act wrote counts more than the key."""
    spelled_leaves = {_spelled(value) for value in leaves(arguments)}
    root = act.changes[0]
    written = sum(2 for value in root.values.values() if value is not None and _spelled(value) in spelled_leaves)
    return written + (_spelled(root.key) in spelled_leaves)


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values inside a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for own in value:
            yield from leaves(own)
    else:
        yield value


def _spelled(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
