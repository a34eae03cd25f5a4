"""Contrast: how surely two pieces belong to one piece of work, learnt without labels.

In: pieces (groups of acts that surely belong together) and pairs of acts. Out: pairs of pieces with a probability.
Method: what is near in time in the log itself is compared with what is near when the later acts' clocks are moved by whole
weeks (the control of cross-correlograms; learning from positive and unlabelled examples, Elkan and Noto 2008). Moved pairs
are near by chance only; so where pairs of some description are r times as frequent as among moved ones, a share 1 - 1/r of
them is near because they belong together. r is a logistic regression over levels of evidence, each with a weight of its own,
held near weights that say only that the same thread and rare words in common speak for one piece of work.
Sees: words that recur in the trade, people who always meet, and containers are as frequent when moved, and weigh nothing.
Does not see: two pieces of work that always come close together (a release and the bugs that it names); grouping parts them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from extractors.work.nearness import FAR, WEEK, ActPairs, Ints, Nearness

Floats = np.ndarray[Any, np.dtype[np.float64]]

_LEVELS = np.array([0.01, 1.5, 3, 4.5, 6, 7.5, 9, 11, 13])
"""Borders of the levels of what words in common weigh."""
_RIDGE = 5.0
"""How strongly the weights are held near zero."""
_STEPS = 150
_BASE = FAR + 1
_BEFORE = 0.35
"""Weight of one level of words in common, where nothing can be learnt."""


class PiecePairs(NamedTuple):
    """Pairs of pieces."""

    one: Ints
    other: Ints
    levels: Ints
    """A row a pair, a column a kind of evidence."""
    before: Floats
    """The fixed weight of each pair, where nothing can be learnt."""


class PieceContents(NamedTuple):
    """What pieces hold: number of the piece -> ..."""

    own: Mapping[int, Mapping[str, float]]
    every: Mapping[int, Mapping[str, float]]
    types: Mapping[int, frozenset[int]]
    sizes: Mapping[int, int]


def piece_pairs(near: Nearness, piece_of: Ints) -> tuple[PiecePairs, Floats]:
    """Return pairs of pieces, and the probability that they belong together by contrast with a moved clock."""
    pieces = _pieces(near, piece_of)
    real = _piece_pairs(near, near.pairs(), piece_of, pieces)
    weeks = int(near.at[-1] - near.at[0]) // WEEK if len(near.at) else 0
    moves = list(range(weeks // 3, weeks - weeks // 3 + 1)) if weeks >= 6 else []
    weights = _ratio(real, [_piece_pairs(near, near.pairs(move), piece_of, pieces) for move in moves])
    return real, 1 - np.exp(-np.maximum(weights, 0))


def learnt(pairs: PiecePairs, together: Floats) -> Floats:
    """Return the probability that pairs belong together, learnt from a first grouping (1: one group has both).

    Pairs of a description that it mostly parts (a release and the bugs that it names) come to weigh less."""
    index, size = _columns(pairs.levels)
    probability: Floats = 1 / (1 + np.exp(-_fitted(index, size, np.ones(len(together)), together)))
    return probability


def _columns(levels: Ints) -> tuple[Ints, int]:
    """Return levels as numbers that differ between the kinds of evidence, and how many there are."""
    columns, size = [], 0
    for column in levels.T:
        values, places = np.unique(column, return_inverse=True)
        columns.append(places + size)
        size += len(values)
    return np.stack(columns, axis=1), size


def _pieces(near: Nearness, piece_of: Ints) -> PieceContents:
    own: dict[int, dict[str, float]] = {}
    every: dict[int, dict[str, float]] = {}
    types: dict[int, set[int]] = {}
    sizes: dict[int, int] = {}
    for number, piece in enumerate(piece_of.tolist()):
        mine, all_words = own.setdefault(piece, {}), every.setdefault(piece, {})
        for word, weight in near.information[number].items():
            all_words[word] = max(all_words.get(word, 0.0), weight)
            if word in near.words[number].own:
                mine[word] = max(mine.get(word, 0.0), weight)
        types.setdefault(piece, set()).add(int(near.fine[number]))
        sizes[piece] = sizes.get(piece, 0) + 1
    return PieceContents(own, every, {piece: frozenset(contents) for piece, contents in types.items()}, sizes)


def _shared(one: Mapping[str, float], other: Mapping[str, float]) -> tuple[float, int]:
    """Return what words in common weigh, the rarest whole and each further one half as much, and how many there are."""
    if len(one) > len(other):
        one, other = other, one
    weights = sorted((min(weight, other[word]) for word, weight in one.items() if word in other), reverse=True)[:8]
    return sum(weight * 0.5 ** place for place, weight in enumerate(weights)), len(weights)


def _piece_pairs(near: Nearness, pairs: ActPairs, piece_of: Ints, pieces: PieceContents) -> PiecePairs:
    """Return the pairs of pieces that pairs of acts make, with the levels of evidence."""
    one_side, right = piece_of[pairs.earlier], piece_of[pairs.later]
    order = np.nonzero(one_side != right)[0]
    key = np.minimum(one_side, right) * len(piece_of) + np.maximum(one_side, right)
    order = order[np.lexsort((order, pairs.gap[order], key[order]))]
    if not len(order):
        return PiecePairs(one_side[:0], one_side[:0], np.zeros((0, 13), dtype=np.int64), np.zeros(0))
    keys, first = np.unique(key[order], return_index=True)
    closest = order[first]
    one, other = keys // len(piece_of), keys % len(piece_of)

    def most(values: Ints) -> Ints:
        return np.maximum.reduceat(values[order], first)

    def least(values: Ints) -> Ints:
        return np.minimum.reduceat(values[order], first)

    own, other_words, counts, alike, sizes = _words_and_types(one, other, pieces)
    lag, same_actor, thread = pairs.lag[closest], most(pairs.same_actor), most(pairs.thread)
    telling = most(pairs.telling & 1) + 2 * most(pairs.telling >> 1)
    place = most((pairs.place > 0).astype(np.int64)) * (1 + np.minimum(2, _size(near, pairs, closest)))
    begin, end = pairs.earlier[closest], pairs.later[closest]
    kinds = len(near.fine) + 1
    levels = np.stack([
        lag, least(pairs.burst) * _BASE + lag, telling * _BASE + lag, thread, place * _BASE + lag, own * _BASE + lag,
        other_words * 2 + (own > 0), alike * 4 + sizes, near.coarse[begin] * kinds + near.coarse[end],
        near.fine[begin] * kinds + near.fine[end], same_actor * 10 + alike * 3 + (own > 3), counts * 10 + own,
        least(pairs.told_burst) * _BASE + sizes], axis=1).astype(np.int64)
    return PiecePairs(one, other, levels, _BEFORE * own + 1.0 * (thread > 0))


def _size(near: Nearness, pairs: ActPairs, closest: Ints) -> Ints:
    sizes = near.place_sizes[pairs.earlier[closest]]
    both: Ints = (sizes > 30).astype(np.int64)
    return both


def _words_and_types(one: Ints, other: Ints, pieces: PieceContents) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    rows = []
    for one_side, right in zip(one.tolist(), other.tolist(), strict=True):
        own, count = _shared(pieces.own[one_side], pieces.own[right])
        every, _ = _shared(pieces.every[one_side], pieces.every[right])
        size = min(pieces.sizes[one_side], pieces.sizes[right])
        rows.append((own, max(0.0, every - own), min(count, 4), min(2, len(pieces.types[one_side] & pieces.types[right])),
                     min(3, int(math.log2(size)))))
    table = np.array(rows)
    whole = table.astype(np.int64)
    return (np.searchsorted(_LEVELS, table[:, 0]), np.searchsorted(_LEVELS, table[:, 1]), whole[:, 2], whole[:, 3], whole[:, 4])


def _ratio(real: PiecePairs, moved: Sequence[PiecePairs]) -> Floats:
    """Return for each real pair the logarithm of how much more frequent its like is than among moved ones."""
    if not moved:
        return real.before
    levels = np.vstack([real.levels, *(each.levels for each in moved)])
    count = len(real.levels)
    target = np.arange(len(levels)) < count
    share = np.where(target, 1.0, 1 / len(moved))
    index, size = _columns(levels)
    return _fitted(index, size, share, target.astype(np.float64))[:count]


def _fitted(index: Ints, size: int, share: Floats, target: Floats) -> Floats:
    """Return the logits of a ridge-held logistic regression whose columns are levels (accelerated scaled gradient steps)."""
    curvature = np.full(size, _RIDGE)
    for column in index.T:
        curvature += np.bincount(column, share * 0.25 * 3, size)
    weights = point = np.zeros(size)
    speed = 1.0
    for _ in range(_STEPS):
        guess: Floats = np.clip(point[index].sum(axis=1), -30, 30)
        rest = share * (1 / (1 + np.exp(-guess)) - target)
        slope = _RIDGE * point
        for column in index.T:
            slope = slope + np.bincount(column, rest, size)
        moved, faster = point - slope / curvature, (1 + math.sqrt(1 + 4 * speed * speed)) / 2
        point = moved + (speed - 1) / faster * (moved - weights)
        weights, speed = moved, faster
    fitted: Floats = weights[index].sum(axis=1)
    return fitted
