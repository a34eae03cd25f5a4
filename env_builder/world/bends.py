"""Where a row of calls bends: one rule explains all before an instant, another one all since.

In: which calls worked, in order of time, and whether one rule explains a stretch of them. Out: the place of the first call of
the other rule. Sees: ten calls that worked on either side, fewer where they prove a rule. Does not see: a rule that came back;
a second change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

MINIMUM_CALLS = 10
"""Calls that worked on each side: fewer may be apart by chance."""
Explained = Callable[[int, int], bool]
"""(first call, the one after the last) -> whether one rule explains them."""


def bend(worked: Sequence[bool], is_explained: Explained, fewest: int = MINIMUM_CALLS) -> int | None:
    """Return the place from which on another rule explains what all before it explains no longer. `fewest`: calls that worked
    on each side at least.

    Calls that were refused say nothing of what a call does, so both ends are counted in calls that worked; an end that is too
    short to show its rule grows by half, until it meets the other one.
    """
    places, n = [place for place, each in enumerate(worked) if each], len(worked)
    if len(places) < 2 * fewest:
        return None
    low = _grown(places[fewest - 1] + 1, n, lambda length: is_explained(0, length))
    n_last = _grown(n - places[-fewest], n - low, lambda length: is_explained(n - length, n))
    if low + n_last > n:
        return None
    high = n - n_last
    while low < high:  # the longest beginning that one rule explains
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_explained(0, middle) else (low, middle - 1)
    return low if is_explained(low, n) else None


def _grown(length: int, most: int, is_explained: Callable[[int], bool]) -> int:
    """Return the first length, half as much more each time, that is explained; one beyond `most` if none is."""
    while length <= most and not is_explained(length):
        length += max(1, length // 2)
    return length
