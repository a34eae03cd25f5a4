"""The sides of the split that pieces of work go to: a whole item to one side, by time.

In: items with the instants of their last acts. Out: the side of each: the latest fifth is held out, the tenth before it is for
validation. All tasks and demonstrations of an item are on its side, and no item in `train` ends after one of another side.
Does not see: that two items are about the same record or the same person; in a company nearly all are, by some path.
"""

from __future__ import annotations

from collections.abc import Iterable

_TENTHS, _VALIDATION_FROM, _HELD_OUT_FROM = 10, 7, 8


def sides_of(ends: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return item -> side. `ends`: (item, instant of its last act). Items that end at one instant are on one side."""
    items = list(ends)
    instants = sorted(at for _, at in items)
    if not instants:
        return {}
    validation, held_out = (instants[len(instants) * tenth // _TENTHS] for tenth in (_VALIDATION_FROM, _HELD_OUT_FROM))
    return {item: "held_out" if at >= held_out else "validation" if at >= validation else "train" for item, at in items}
