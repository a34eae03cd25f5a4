"""Group sessions by their words, where nothing else tells what was asked.

In: pieces of conversations (`courses.Pieces`). Out: a group of each piece's session. Sessions are TF-IDF vectors of words and
of runs of four letters inside words (one stem, one misspelling), reduced by randomised SVD (Halko, Martinsson and Tropp 2011)
to 150 directions. Each is linked to its nearest ones by cosine; communities of that graph (Louvain; Blondel et al. 2008) are
groups. They are made too many on purpose: a link within one must be `_RESOLUTION` times as likely as by chance (Reichardt and
Bornholdt 2006). `mixtures` merges those that use words alike, and so decides how many there are, in two ways; the one whose
groups are better separated is taken (simplified silhouette; Hruschka, de Castro and Campello 2004). `drop_combinations` takes
out those that only go through several others. Does not see synonyms, negation, or kinds that differ in one word among many
that they share. A kind that people ask for in two wholly different ways comes out as two."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import polars as pl

from extractors.tasks.courses import Pieces, drop_combinations
from extractors.tasks.mixtures import merge_by_words, merge_groups

_MOST_FEATURES = 6000
_MOST_SESSIONS = 5000
"""More sessions than this are sampled evenly; the others are read afterwards by what these taught."""
_DIRECTIONS = 150
_NEAREST = 20
_RESOLUTION, _RESOLUTION_OF_FEW, _FEW = 12.0, 20.0, 1000
"""The second holds below so many sessions: of a kind with few of them most of the `_NEAREST` are of other kinds."""
_LETTERS = 4
"""Letters in a run, the word's edges included."""
_PAIR = 3
"""Characters of a pair of single characters: in scripts without spaces such pairs are the words."""
_COMMON = 0.5
"""A word or run in more of the sessions tells nothing."""
_LEAST = 2
"""Sessions that hold a feature, and sessions of a group, at least."""


def group_sessions(pieces: Pieces) -> np.ndarray:
    """Group each piece's session, from 0; -1: not sampled, or of a group that only combines others."""
    _, first, owner = np.unique(pieces.frame["session_id"].to_numpy(), return_index=True, return_inverse=True)
    step = -(-len(first) // _MOST_SESSIONS)
    cells = _cells(pieces, owner, step)
    vectors = _directions(_weighed(cells))
    groups = np.full(len(first), -1)
    present, communities = _present(cells), _communities(_nearest(vectors))
    merged = (_settled(vectors, merge(present, communities)) for merge in (merge_groups, merge_by_words))
    groups[::step] = max(merged, key=lambda numbers: _separation(vectors, numbers))
    return drop_combinations(pieces, groups[owner])


def group_rows(present: np.ndarray) -> np.ndarray:
    """Group rows by their features, with one concentration of all features; numbers from 0, by first appearance.

    `present`: rows x features, whether the row has the feature; each feature in few enough of the rows to tell them apart."""
    weights = np.log((len(present) + 1) / np.maximum(present.sum(0), 1))
    rows = (present * weights).astype(np.float32)
    points = _directions(np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)))
    return _settled(points, merge_groups(present, _communities(_nearest(points))))


class _Cells(NamedTuple):
    """Which features the sampled sessions have, and how often."""

    frame: pl.DataFrame
    """row, feature, is_word, n."""
    n_rows: int


def _cells(pieces: Pieces, owner: np.ndarray, step: int) -> _Cells:
    """Features that enough and few enough of every `step`-th session hold."""
    sampled = owner[pieces.rows] % step == 0
    n_rows = len(range(0, int(owner.max()) + 1, step))
    counted = pl.DataFrame({
        "row": owner[pieces.rows[sampled]] // step, "word": pieces.plain[pieces.words[sampled]],
        "n": np.expm1(pieces.weights[sampled])}).group_by("row", "word").agg(pl.col("n").sum())
    cells = counted.join(_features(pieces.spelled), on="word").group_by("row", "feature", "is_word").agg(pl.col("n").sum())
    often = pl.len().over("feature", "is_word")
    return _Cells(cells.filter(often.is_between(_LEAST, max(_COMMON * n_rows, _LEAST))), n_rows)


def _columns(cells: pl.DataFrame) -> pl.DataFrame:
    """Return the cells of the most common features, with `column` and `n_with` (sessions that have the feature)."""
    often = cells.group_by("feature", "is_word").agg(pl.len().alias("n_with")).sort(
        "n_with", "feature", descending=[True, False]).head(_MOST_FEATURES).with_row_index("column")
    return cells.join(often, on=["feature", "is_word"])


def _weighed(cells: _Cells) -> np.ndarray:
    """TF-IDF of the sampled sessions: sessions x features."""
    placed = _columns(cells.frame)
    rows = np.zeros((cells.n_rows, placed["column"].n_unique() or 1), dtype=np.float32)
    weights = placed.select((1 + pl.col("n").log()) * ((cells.n_rows + 1) / pl.col("n_with")).log()).to_series()
    rows[placed["row"].to_numpy(), placed["column"].to_numpy()] = weights.to_numpy()
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def _present(cells: _Cells) -> np.ndarray:
    """Whether each sampled session contains each word: sessions x words."""
    placed = _columns(cells.frame.filter("is_word"))
    present = np.zeros((cells.n_rows, placed["column"].n_unique() or 1), dtype=bool)
    present[placed["row"].to_numpy(), placed["column"].to_numpy()] = True
    return present


def _features(spelled: list[str]) -> pl.DataFrame:
    """word (its number), feature, is_word: the word itself and its runs of letters; pairs only of single characters."""
    single = [(number, word) for number, word in enumerate(spelled) if " " not in word or len(word) == _PAIR]
    features = [(number, feature, feature == word) for number, word in single for feature in (word, *_runs(word))]
    return pl.DataFrame(features, schema={"word": pl.Int64(), "feature": pl.String(), "is_word": pl.Boolean()}, orient="row")


def _runs(word: str) -> set[str]:
    edged = f"<{word}>" if " " not in word else ""
    return {"…" + edged[i:i + _LETTERS] for i in range(len(edged) - _LETTERS + 1)}


def _directions(rows: np.ndarray) -> np.ndarray:
    rank = min(_DIRECTIONS, min(rows.shape))
    chance = np.random.default_rng(0)
    basis = rows @ chance.standard_normal((rows.shape[1], min(rank + 20, rows.shape[1]))).astype(np.float32)
    for _ in range(4):
        basis = rows @ (rows.T @ np.linalg.qr(basis)[0])
    basis = np.linalg.qr(basis)[0]
    left_vectors, size, _ = np.linalg.svd(basis.T @ rows, full_matrices=False)
    points = basis @ left_vectors[:, :rank] * size[:rank]
    return np.asarray(points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12))


def _nearest(points: np.ndarray) -> list[dict[int, float]]:
    """Return a graph of each point and its nearest ones, weighed by their cosine."""
    links: list[dict[int, float]] = [{} for _ in points]
    count = min(_NEAREST, len(points) - 1)
    for begin in range(0, len(points), 1000):
        likeness = points[begin:begin + 1000] @ points.T
        likeness[np.arange(len(likeness)), np.arange(begin, begin + len(likeness))] = -1
        near = np.argpartition(-likeness, count - 1, axis=1)[:, :count] if count else np.empty((len(likeness), 0), dtype=int)
        for i, others in enumerate(near, begin):
            for other in others.tolist():
                weight = float(round(max(likeness[i - begin, other], 0.0), 4))
                links[i][other] = links[other][i] = weight
    return links


def _communities(links: list[dict[int, float]]) -> np.ndarray:
    """Communities of a weighed graph by greedy modularity at `_RESOLUTION`, level upon level."""
    resolution = _RESOLUTION if len(links) >= _FEW else _RESOLUTION_OF_FEW
    membership = list(range(len(links)))
    graph = links
    while True:
        placed = _moved(graph, resolution)
        names = {name: i for i, name in enumerate(sorted(set(placed)))}
        placed = [names[name] for name in placed]
        membership = [placed[group] for group in membership]
        if len(names) == len(graph):
            return np.array(membership)
        merged: list[defaultdict[int, float]] = [defaultdict(float) for _ in names]
        for node, others in enumerate(graph):
            for other, weight in others.items():
                merged[placed[node]][placed[other]] += weight
        graph = [dict(sorted(each.items())) for each in merged]


def _moved(graph: list[dict[int, float]], resolution: float) -> list[int]:
    """Each node in the community of its neighbours that gains most, until none moves."""
    degree = [sum(others.values()) for others in graph]
    total = (sum(degree) or 1.0) / resolution
    placed, within = list(range(len(graph))), list(degree)
    moving = True
    while moving:
        moving = False
        for node, others in enumerate(graph):
            near: defaultdict[int, float] = defaultdict(float)
            for other, weight in others.items():
                if other != node:
                    near[placed[other]] += weight
            own = placed[node]
            within[own] -= degree[node]
            gains = {name: weight - within[name] * degree[node] / total for name, weight in near.items()}
            stay = gains.get(own, -within[own] * degree[node] / total)
            best = min(gains, key=lambda name: (-gains[name], name), default=own)
            if gains.get(best, 0.0) > stay + 1e-9:
                placed[node], moving = best, True
            within[placed[node]] += degree[node]
    return placed


def _settled(points: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Small groups joined to the nearest large one, numbered by first appearance."""
    names, sizes = np.unique(groups, return_counts=True)
    large = names[sizes >= _LEAST]
    if len(large):
        centres = np.stack([points[groups == name].mean(0) for name in large])
        nearest = large[(points @ centres.T).argmax(1)]
        groups = np.where(np.isin(groups, large), groups, nearest)
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse])


def _separation(points: np.ndarray, groups: np.ndarray) -> float:
    """Return how much nearer points are to the others of their group than to the nearest other group, by cosine, on average."""
    n_groups = int(groups.max()) + 1
    if n_groups < 2:
        return -1.0
    sums = np.zeros((n_groups, points.shape[1]))
    np.add.at(sums, groups, points)
    others = sums[groups] - points
    own = (points * others).sum(1) / np.maximum(np.linalg.norm(others, axis=1), 1e-9)
    own[np.bincount(groups)[groups] == 1] = 0.0
    likeness = points @ (sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)).T
    likeness[np.arange(len(points)), groups] = -np.inf
    return round(float((own - likeness.max(1)).mean()), 6)
