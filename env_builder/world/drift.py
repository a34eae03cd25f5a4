"""How soon values change by themselves: by class, field and (where a field takes few values) value, forward and backward.

In: pairs of looks with nothing logged between them that explains a change. Out: how long a value may be carried beyond a look
before the chance that something unlogged changed it passes `STALE`.
Method: the chance of a change within a gap is the share of changed pairs, monotone in the gap (pool adjacent violators), with a
little doubt added for few pairs. Does not see: a drift that came and went between looks, hours of the day.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from functools import cache
from typing import Any, NamedTuple

STALE = 0.04
"""Chance of an unlogged change up to which a value is carried beyond its looks."""
DOUBT = 0.1
"""Changes added to what was counted: five pairs without any change are just enough, thirty with one are not."""
FEW_VALUES = 20
MINIMUM_PAIRS = 5


class Pair(NamedTuple):
    """A field of one thing, looked at twice."""

    kind: str
    field: str
    gap_s: float
    before: Any
    after: Any


class Drift:
    """How long values keep."""

    def __init__(self, pairs: list[Pair]) -> None:
        few = _few_values(pairs)
        seen: dict[tuple[Any, ...], list[tuple[float, bool]]] = defaultdict(list)
        for pair in pairs:
            changed = pair.before != pair.after
            for direction, value in (("forward", pair.before), ("backward", pair.after)):
                seen[direction, pair.kind, pair.field].append((pair.gap_s, changed))
                if (pair.kind, pair.field) in few:
                    seen[direction, pair.kind, pair.field, value].append((pair.gap_s, changed))
        self._few = few
        self._seen = seen
        self._limit = cache(self._limit_of)

    def limit_s(self, direction: str, kind: str, field: str, value: Any) -> float:
        """Seconds beyond a look for which the value may be taken to hold; infinite where it was never seen to change."""
        exact = (direction, kind, field, flat(value)) if (kind, field) in self._few else (direction, kind, field)
        return self._limit(exact if len(self._seen.get(exact, ())) >= MINIMUM_PAIRS else (direction, kind, field))

    def _limit_of(self, place: tuple[Any, ...]) -> float:
        return carried(sorted(self._seen.get(place, ())))


def flat(value: Any) -> Any:
    """A value that can be compared and counted."""
    return json.dumps(value) if isinstance(value, dict | list) else value


def carried(seen: list[tuple[float, bool]]) -> float:
    """The longest gap up to which values hardly ever changed; `seen`: (gap, changed), sorted."""
    if len(seen) < MINIMUM_PAIRS:
        return 0.0
    blocks: list[list[float]] = []  # [pairs, changes, longest gap]
    for gap, changed in seen:
        blocks.append([1, changed, gap])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            n, k, longest = blocks.pop()
            blocks[-1] = [blocks[-1][0] + n, blocks[-1][1] + k, longest]
    limit = 0.0
    for n, k, longest in blocks:
        if (k + DOUBT) / (n + 1) > STALE:
            return limit
        limit = longest
    return math.inf


def _few_values(pairs: list[Pair]) -> set[tuple[str, str]]:
    values: dict[tuple[str, str], set[Any] | None] = {}
    for pair in pairs:
        known = values.setdefault((pair.kind, pair.field), set())
        if known is None:
            continue
        known.update(value for value in (pair.before, pair.after) if isinstance(value, str | int | bool))
        if len(known) > FEW_VALUES or not all(isinstance(value, str | int | bool) for value in (pair.before, pair.after)):
            values[pair.kind, pair.field] = None
    return {place for place, known in values.items() if known is not None and place[1]}
