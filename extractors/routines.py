"""Find where the runs of a routine begin in a stream of actions, and which request opened a case.

A run ends with one of some symbols and the next begins with one of others; these sets are the shortest description of the
stream (minimum description length; Rissanen 1978): a first symbol is coded afresh, each further one follows from the one
before, and every kind of step costs its mention. The search is greedy, from what the stream begins and ends with, in both
orders. A request of another identity that made what a run takes up first joins that run, as a step of its user.

Sees order only, no times. Does not see: a stream that begins in the middle of a run, alternating runs, runs without a common
shape (not cut), a case of two people in turns or taken up again."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from extractors.content import object_of

LEAST_STREAM = 40
"""A shorter stream shows no routine."""
_RUNS, _LONGEST, _MOST = 4, 200, 300
"""Fewer runs, runs of more steps on average, or more different symbols are no routine."""
_REGULAR = 0.5
"""Share of the bits of a step on its own that it costs after the one before it, at most: else there is no routine."""
_ENDS, _STARTS = 0, 1
_NOTHING = 1e-6
Pair = tuple[str, str]


def run_begins(stream: Sequence[str]) -> list[bool] | None:
    """Whether a run begins with each action of a stream; None where it shows no routine."""
    pairs = Counter(pairwise(stream))
    if len(stream) < LEAST_STREAM or len(set(stream)) > _MOST or not _regular(pairs):
        return None
    ends, starts = _sets(stream, pairs)
    cut = [True, *(a in ends and b in starts for a, b in pairwise(stream))]
    n_runs = sum(cut)
    inside = Counter(pair for pair, new in zip(pairwise(stream), cut[1:], strict=True) if not new)
    if n_runs < _RUNS or len(stream) > _LONGEST * n_runs or n_runs > len(stream) / 2 or not _regular(inside):
        return None
    return cut


def _sets(stream: Sequence[str], pairs: Counter[Pair]) -> tuple[set[str], set[str]]:
    """Symbols that runs end and begin with: the shorter of two descriptions, else the one with more runs that begin alike."""
    candidates = [_grown(stream, pairs, first) for first in (_STARTS, _ENDS)]
    return min(candidates, key=lambda sets: (_length(stream, pairs, *sets), -sum(pairs[end, stream[0]] for end in sets[_ENDS])))


def _grown(stream: Sequence[str], pairs: Counter[Pair], first: int) -> tuple[set[str], set[str]]:
    """Add symbols while that costs nothing (where it is all the same those of side `first`), then drop those that cost."""
    sets = ({stream[-1]}, {stream[0]})
    current, symbols = _length(stream, pairs, *sets), set(stream)
    while True:
        moves = []
        for side in (_ENDS, _STARTS):
            for symbol in symbols - sets[side]:
                steps = [(symbol, each) if side == _ENDS else (each, symbol) for each in sets[1 - side]]
                if any(step in pairs for step in steps):   # it cuts something
                    grown = (sets[0] | {symbol}, sets[1]) if side == _ENDS else (sets[0], sets[1] | {symbol})
                    moves.append((_length(stream, pairs, *grown), side != first, symbol, side))
        best = min(moves, default=None)
        if best is None or best[0] > current + _NOTHING:
            break
        current = best[0]
        sets[best[3]].add(best[2])
    for side in (_ENDS, _STARTS):
        for symbol in sorted(sets[side] - {stream[-1] if side == _ENDS else stream[0]}):
            without = (sets[0] - {symbol}, sets[1]) if side == _ENDS else (sets[0], sets[1] - {symbol})
            length = _length(stream, pairs, *without)
            if length < current - _NOTHING:
                sets, current = without, length
    return sets


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


def _regular(pairs: Counter[Pair]) -> bool:
    first: Counter[str] = Counter()
    second: Counter[str] = Counter()
    for (a, b), n in pairs.items():
        first[a] += n
        second[b] += n
    alone = -sum(n * math.log(n / pairs.total()) for n in second.values())
    following = -sum(n * math.log(n / first[a]) for (a, _), n in pairs.items())
    return alone > 0 and following <= _REGULAR * alone


_NAME = re.compile(r"(?=.*\d)[\w#.-]{4,64}").fullmatch
"""A value that may name one entity: a digit in it, no blanks."""
READS = ("GET", "HEAD", "OPTIONS")


def mark_runs(requests: pl.DataFrame) -> pl.DataFrame:
    """Return requests with `_begins`: a run of the identity's routine begins here."""
    ordered = requests.sort("source", "service", "name", "happened_at", "event_id", nulls_last=False)
    marks: list[bool] = []
    for _, part in ordered.group_by("source", "service", "name", maintain_order=True):
        named = part.height >= LEAST_STREAM and part["name"][0] is not None
        marks += (run_begins(part["_tool"].to_list()) if named else None) or [False] * part.height
    return ordered.with_columns(pl.Series("_begins", marks, pl.Boolean()))


def join_cases(requests: pl.DataFrame) -> pl.DataFrame:
    """Return requests of which those that opened a case of another identity are in its session, with `user` as requestor."""
    taken: dict[str, tuple[Any, ...]] = {}
    first = requests.filter("_begins").sort("happened_at", "event_id").select(
        "session_id", "name", "happened_at", "_canonical", "value")
    for session, name, at, arguments, answer in first.iter_rows():
        for value in {*_values(object_of(arguments)), *_values(object_of(answer).get("body"))}:
            taken.setdefault(value, (session, name, at))
    if not taken:
        return requests
    made = requests.filter(~pl.col("_begins") & ~pl.col("_method").is_in(READS)).sort("happened_at", "event_id")
    moved: dict[str, str] = {}
    earlier: set[str] = set()
    for event, name, at, arguments, answer in made.select("event_id", "name", "happened_at", "_canonical", "value").iter_rows():
        given = set(_values(object_of(arguments)))
        new = sorted(set(_values(object_of(answer).get("body"))) - given - earlier)
        earlier |= given | set(new)
        for value in new:
            session, other, when = taken.get(value, (None, None, None))
            if session is not None and other != name and (at is None or when is None or at <= when):
                moved[event] = session
                break
    return requests.with_columns(
        pl.col("event_id").replace_strict(moved, default=None, return_dtype=pl.String).alias("_moved")).with_columns(
        pl.coalesce("_moved", "session_id").alias("session_id"),
        pl.when(pl.col("_moved").is_not_null()).then(pl.lit("user")).otherwise("requestor").alias("requestor"),
    ).drop("_moved") if moved else requests


def _values(document: Any) -> Iterator[str]:
    values = document.values() if isinstance(document, dict) else ()
    return (value for value in values if isinstance(value, str) and _NAME(value))
