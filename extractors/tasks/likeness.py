"""How alike documents are, and which belong together.

Sees: the words two documents share, weighed by how rare they are. Does not see: synonyms, order, negation.
All sums are of whole numbers: the order in which threads add them up can't change a result.
"""

from __future__ import annotations

import heapq
from collections import defaultdict

import polars as pl

ONE = 1_000_000
"""Likeness 1.0 as a whole number."""

_FAINT = 0.04
"""Pairs less alike than this count as not alike at all."""


def weigh(counts: pl.DataFrame) -> pl.DataFrame:
    """TF-IDF weights with unit length per document (Salton and Buckley 1988, `ltc`), in thousandths.

    Takes columns document, word, n; gives document, word, weight (whole numbers). Words of a single document are kept:
    they make a document less like all the others.
    """
    n_documents = counts["document"].n_unique()
    n_with_word = pl.len().over("word")
    weighed = counts.with_columns(((1.0 + pl.col("n").log()) * ((n_documents + 1.0) / n_with_word).log()).alias("weight"))
    length = pl.col("weight").pow(2).sum().sqrt().over("document")
    return weighed.select("document", "word", (pl.col("weight") / length * 1000).round().cast(pl.Int64).alias("weight"))


def pairs(weights: pl.DataFrame, most: int = 400) -> pl.DataFrame:
    """Documents that share words: columns a, b (a before b), likeness (whole number, `ONE` = the same).

    Words of more than `most` documents are not looked at: they say little and cost the square of their number.
    """
    shared = weights.filter((pl.len().over("word") > 1) & (pl.len().over("word") <= most))
    joined = shared.join(shared, on="word", suffix="_b").filter(pl.col("document") < pl.col("document_b"))
    return (
        joined.group_by(pl.col("document").alias("a"), pl.col("document_b").alias("b"))
        .agg((pl.col("weight") * pl.col("weight_b")).sum().alias("likeness"))
        .filter(pl.col("likeness") >= int(_FAINT * ONE))
        .sort("a", "b")
    )


def group(documents: list[str], alike: pl.DataFrame, least: float, sizes: dict[str, int] | None = None) -> dict[str, str]:
    """Group documents by average linkage until no two groups are `least` alike: document -> its group's first document.

    `alike` has columns a, b, likeness as `pairs` gives; pairs that it does not name are not alike. `sizes` says how
    many equal documents stand behind each. The number of groups is found, not given. Ties go to the groups that come
    first.
    """
    members = {document: [document] for document in documents}
    weight = {document: (sizes or {}).get(document, 1) for document in documents}
    links: dict[str, dict[str, int]] = defaultdict(dict)
    heap: list[tuple[float, str, str]] = []
    for a, b, likeness in alike.select("a", "b", "likeness").iter_rows():
        links[a][b] = links[b][a] = likeness * weight[a] * weight[b]
        heap.append((-likeness / ONE, a, b))
    heapq.heapify(heap)
    while heap and -heap[0][0] >= least:
        score, a, b = heapq.heappop(heap)
        if a not in members or b not in members or -score != _average(links, weight, a, b):
            continue
        members[a] += members.pop(b)
        weight[a] += weight[b]
        for other, total in links.pop(b).items():
            links[other].pop(b, None)
            if other != a:
                links[a][other] = links[other][a] = links[a].get(other, 0) + total
        for other in links[a]:
            first, second = (a, other) if a < other else (other, a)
            heapq.heappush(heap, (-_average(links, weight, first, second), first, second))
    return {document: min(group) for group in members.values() for document in group}


def _average(links: dict[str, dict[str, int]], weight: dict[str, int], a: str, b: str) -> float:
    return links[a].get(b, 0) / (weight[a] * weight[b]) / ONE
