"""Where the runs of a routine begin in a stream of actions that nobody cut.

In: streams (one person's actions in order, each a symbol). Out: for each action whether a run begins with it. A run ends with
one of some symbols and the next begins with one of others; between them the stream forgets. Which symbols these are is the
shortest description of the stream (minimum description length; Rissanen 1978): a run's first symbol is drawn afresh, each
further one or the end follows from the one before, every kind of step costs its mention. It is looked for greedily, from what
the stream itself begins and ends with, once with starts before ends and once the other way.

Sees order alone, no times. Does not see: where a stream begins in the middle of a run (where always the same comes again, that
middle is taken for the beginning); steps of two runs that alternate; runs without a common shape, which it leaves uncut.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

LEAST = 40
"""A shorter stream shows no routine."""

_RUNS = 4
"""Fewer runs than this are no routine."""

_REGULAR = 0.5
"""Share of the bits of a step on its own that it costs after the one before it, at most: else there is no routine."""

_LONGEST = 200
"""Runs of more steps on average are no routine."""

_MOST = 300
"""A stream of more different symbols is no routine's."""

_ENDS, _STARTS = 0, 1
_NOTHING = 1e-6

Pair = tuple[str, str]


def begins(stream: Sequence[str]) -> list[bool] | None:
    """Whether a run begins with each action of a stream; None where it shows no routine."""
    pairs = Counter(pairwise(stream))
    if len(stream) < LEAST or len(set(stream)) > _MOST or not _regular(pairs):
        return None
    ends, starts = _sets(stream, pairs)
    cut = [True, *(a in ends and b in starts for a, b in pairwise(stream))]
    n_runs = sum(cut)
    if n_runs < _RUNS or len(stream) > _LONGEST * n_runs or n_runs > len(stream) / 2 or not _regular(_within(stream, cut)):
        return None
    return cut


def _sets(stream: Sequence[str], pairs: Counter[Pair]) -> tuple[set[str], set[str]]:
    """Symbols that runs end and begin with: the shorter of two descriptions; of two as short the one that begins more runs with
    what the stream begins with.
    """
    found = [_grown(stream, pairs, first) for first in (_STARTS, _ENDS)]
    return min(found, key=lambda sets: (_length(stream, pairs, *sets), -sum(pairs[end, stream[0]] for end in sets[_ENDS])))


def _grown(stream: Sequence[str], pairs: Counter[Pair], first: int) -> tuple[set[str], set[str]]:
    """Symbols are added while that costs nothing, those of side `first` first where it is all the same, then taken out again
    where the description gets shorter without them.
    """
    sets = ({stream[-1]}, {stream[0]})
    known = _length(stream, pairs, *sets)
    symbols = sorted(set(stream))
    while True:
        moves = [(_length(stream, pairs, *_with(sets, side, symbol)), side != first, symbol, side)
                 for side in (_ENDS, _STARTS) for symbol in symbols
                 if symbol not in sets[side] and _touches(symbol, side, sets[1 - side], pairs)]
        best = min(moves, default=None)
        if best is None or best[0] > known + _NOTHING:
            break
        known = best[0]
        sets[best[3]].add(best[2])
    for side in (_ENDS, _STARTS):
        for symbol in sorted(sets[side] - {stream[-1] if side == _ENDS else stream[0]}):
            without = (sets[0] - {symbol}, sets[1]) if side == _ENDS else (sets[0], sets[1] - {symbol})
            length = _length(stream, pairs, *without)
            if length < known - _NOTHING:
                sets, known = without, length
    return sets


def _with(sets: tuple[set[str], set[str]], side: int, symbol: str) -> tuple[set[str], set[str]]:
    return (sets[0] | {symbol}, sets[1]) if side == _ENDS else (sets[0], sets[1] | {symbol})


def _touches(symbol: str, side: int, other: set[str], pairs: Counter[Pair]) -> bool:
    """Would it cut anything?"""
    return any((symbol, each) in pairs if side == _ENDS else (each, symbol) in pairs for each in other)


def _length(stream: Sequence[str], pairs: Counter[Pair], ends: set[str], starts: set[str]) -> float:
    """Nats that the stream takes with these ends and starts: its steps, and the mention of every kind of step."""
    after: Counter[str] = Counter()
    ended: Counter[str] = Counter({stream[-1]: 1})
    begun: Counter[str] = Counter({stream[0]: 1})
    inner: list[int] = []
    nats = 0.0
    for (a, b), n in pairs.items():
        after[a] += n
        if a in ends and b in starts:
            ended[a] += n
            begun[b] += n
        else:
            inner.append(n)
    after[stream[-1]] += 1
    for counts in (inner, ended.values(), begun.values()):
        nats -= sum(n * math.log(n) for n in counts)
    nats += sum(n * math.log(n) for n in after.values()) + begun.total() * math.log(begun.total())
    return round(nats + 0.5 * math.log(len(stream)) * (len(inner) + len(ended) + len(begun)), 6)


def _within(stream: Sequence[str], cut: Sequence[bool]) -> Counter[Pair]:
    """Steps inside runs."""
    return Counter(pair for pair, new in zip(pairwise(stream), cut[1:], strict=True) if not new)


def _regular(pairs: Counter[Pair]) -> bool:
    """Do the steps follow from each other?"""
    first: Counter[str] = Counter()
    second: Counter[str] = Counter()
    for (a, b), n in pairs.items():
        first[a] += n
        second[b] += n
    alone = -sum(n * math.log(n / pairs.total()) for n in second.values())
    following = -sum(n * math.log(n / first[a]) for (a, _), n in pairs.items())
    return alone > 0 and following <= _REGULAR * alone
