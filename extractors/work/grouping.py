"""Grouping: which pieces make one piece of work, given how surely any two belong together.

In: sizes of pieces, and pairs of pieces with a probability; a pair that is not named has none. Out: groups.
Method: average linkage: the two groups whose acts belong together most surely on average become one, while that is more likely
than not. A piece with one strong tie to a group, and none to the rest of it, stays outside: a release and a bug that it names.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping

Pairs = Iterable[tuple[int, int, float]]


def grouped(sizes: Mapping[int, int], pairs: Pairs, least: float = 0.5) -> dict[int, int]:
    """Return for each piece the smallest number of a piece of its group."""
    size = dict(sizes)
    ties: dict[int, dict[int, float]] = defaultdict(dict)
    for one, other, probability in pairs:
        ties[one][other] = ties[other][one] = probability * size[one] * size[other]
    joined = {piece: piece for piece in size}
    queue = [(-total / (size[one] * size[other]), one, other) for one, row in ties.items() for other, total in row.items()
             if one < other and total >= least * size[one] * size[other]]
    heapq.heapify(queue)
    while queue:
        mean, one, other = heapq.heappop(queue)
        current = ties[one].get(other) if joined[one] == one and joined[other] == other else None
        if current is None or abs(current / (size[one] * size[other]) + mean) > 1e-12:
            continue
        joined[other] = one
        size[one] += size[other]
        for third, total in ties.pop(other).items():
            del ties[third][other]
            if third != one:
                ties[one][third] = ties[third][one] = ties[one].get(third, 0.0) + total
        for third, total in ties[one].items():
            mean = total / (size[one] * size[third])
            if mean >= least:
                heapq.heappush(queue, (-mean, min(one, third), max(one, third)))
    return {piece: _root(joined, piece) for piece in joined}


def _root(joined: dict[int, int], piece: int) -> int:
    while joined[piece] != piece:
        piece = joined[piece]
    return piece
