"""The sides of the split that pieces of work go to: a whole item to one side, by time.

In: items with the instants of their last acts, and on which sides acts of them were sealed before. Out: the side of each. At
first the latest fifth is held out, and the tenth before it is for validation; later, items keep their sides, and the latest of
the new ones fill what these shares lack. An item with acts of several sides is `TIED`: on none.
All tasks and demonstrations of an item are on its side. In a first build no item in `train` ends after one of another side.
Does not see: that two items are about the same record or the same person; in a company nearly all are, by some path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

TIED = "tied_across_sides"
"""In the place of a side: acts of the item were sealed on several ones."""
_TENTHS, _VALIDATION_FROM, _HELD_OUT_FROM = 10, 7, 8


def sides_of(ends: Iterable[tuple[str, int]], sealed: Mapping[str, Collection[str]] | None = None) -> dict[str, str]:
    """Return item -> side. `ends`: (item, instant of its last act). `sealed`: item -> sides that acts of it are on; empty:
    it is the first build. Items of a first build that end at one instant are on one side."""
    items = sorted(ends, key=lambda each: (each[1], each[0]))
    kept = {item: next(iter(sides)) if len(sides) == 1 else TIED for item, _ in items if (sides := (sealed or {}).get(item))}
    if not sealed:
        return _by_time(items)
    new = [item for item, _ in reversed(items) if item not in kept]
    n_of = Counter(kept.values())
    for side, tenths in (("held_out", _TENTHS - _HELD_OUT_FROM), ("validation", _HELD_OUT_FROM - _VALIDATION_FROM)):
        lacking = max(0, len(items) * tenths // _TENTHS - n_of[side])
        kept |= dict.fromkeys(new[:lacking], side)
        del new[:lacking]
    return kept | dict.fromkeys(new, "train")


def _by_time(items: list[tuple[str, int]]) -> dict[str, str]:
    if not items:
        return {}
    validation, held_out = (items[len(items) * tenth // _TENTHS][1] for tenth in (_VALIDATION_FROM, _HELD_OUT_FROM))
    return {item: "held_out" if at >= held_out else "validation" if at >= validation else "train" for item, at in items}
