"""Near-duplicates: requests in nearly the same words about the same things.

MinHash signatures of the sets of words (Broder 1997), banded so that likely pairs meet; each pair is then compared exactly.
Sees: words and names of things. Does not see: the same request in other words.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise

import numpy as np
import polars as pl

from extractors.tasks.words import is_identifier, split_words

ALIKE = 0.8
"""Share of words in common (Jaccard) from which on two requests that name the same things are near-duplicates."""

_BANDS, _ROWS = 10, 4
_PRIME = (1 << 31) - 1


def near_duplicates(asked: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, words: equal for sessions of one service whose goals are near-duplicates of each other.

    `asked` has session_id, service, goal. Groups grow by chains; the id is that of the group's first session.
    """
    told = asked.select("session_id", "service", split_words(pl.col("goal")).list.unique().list.sort().alias("word"))
    names = told.explode("word").filter(is_identifier(pl.col("word"))).group_by("session_id").agg(
        pl.col("word").sort().str.join(" ").alias("names"))
    sets: dict[tuple[str, str, tuple[str, ...]], str] = {}
    group: dict[str, tuple[str, str, tuple[str, ...]]] = {}
    for session, service, words, named in told.join(names, on="session_id", how="left").sort("session_id").iter_rows():
        key = (service, named or "", tuple(words or ()))
        sets.setdefault(key, session)
        group[session] = key
    first = _merged({session: key for key, session in sets.items()})
    rows = [(session, first[sets[key]]) for session, key in sorted(group.items())]
    return pl.DataFrame(rows, schema={"session_id": pl.String, "words": pl.String}, orient="row")


def _merged(sets: Mapping[str, tuple[str, str, tuple[str, ...]]]) -> dict[str, str]:
    """First session of each set of words -> first session of its group."""
    parent = {session: session for session in sets}

    def root(session: str) -> str:
        while parent[session] != session:
            session = parent[session]
        return session

    for one, two in _pairs(sets):
        a, b = sorted((root(one), root(two)))
        parent[b] = a
    return {session: root(session) for session in sets}


def _pairs(sets: Mapping[str, tuple[str, str, tuple[str, ...]]]) -> Iterator[tuple[str, str]]:
    met: set[tuple[str, str]] = set()
    buckets: dict[tuple[str, str, int, bytes], list[str]] = defaultdict(list)
    for session, (service, names, words) in sorted(sets.items()):
        for band, signature in enumerate(_signature(words)):
            buckets[service, names, band, signature].append(session)
    for _, sessions in sorted(buckets.items()):
        for one, two in combinations(sessions, 2) if len(sessions) < 200 else pairwise(sessions):
            if (one, two) not in met:
                met.add((one, two))
                a, b = set(sets[one][2]), set(sets[two][2])
                if len(a & b) >= ALIKE * len(a | b):
                    yield one, two


def _signature(words: tuple[str, ...]) -> list[bytes]:
    """One hash a band."""
    if not words:
        return [b""] * _BANDS
    numbers = np.array([int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest()) % _PRIME for word in words])
    turns = np.arange(1, _BANDS * _ROWS + 1, dtype=np.int64)
    hashed = (numbers[:, None] * (turns * 2654435 % _PRIME)[None, :] + turns * 40503) % _PRIME
    least = hashed.min(axis=0).reshape(_BANDS, _ROWS)
    return [band.tobytes() for band in least]
