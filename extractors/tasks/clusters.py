"""Sessions in groups by their words alone, where nothing else tells their kind; the number of groups is found.

TF-IDF of words and neighbours, the main directions of it (randomised SVD; Halko, Martinsson and Tropp 2011), the nearest
sessions by cosine, and the communities of that graph (Louvain; Blondel et al. 2008). Groups of a few sessions join the nearest
large one. Does not see: kinds that share most of their words (they become one group).
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from extractors.tasks.pieces import Pieces

_MOST_WORDS = 4000
_MOST_SESSIONS = 5000
"""More sessions than this are sampled evenly; the others are read afterwards by what these taught."""
_DIRECTIONS = 60
_NEAREST = 40
_SMALL = 0.004
"""A group with less than this share of the sessions joins another."""


def group_sessions(pieces: Pieces, left: float) -> np.ndarray:
    """Group of each piece's session, numbered from 0; -1: the session was not looked at, or lies between groups.

    `left`: share of each group's sessions that are taken to lie between groups.
    """
    _, owner = np.unique(pieces.frame["session_id"].to_numpy(), return_inverse=True)
    n_sessions = int(owner.max()) + 1
    step = -(-n_sessions // _MOST_SESSIONS)
    vectors = _directions(_weighed(pieces, owner, n_sessions)[::step])
    groups = np.full(n_sessions, -1)
    groups[::step] = _sure(vectors, _settled(vectors, _communities(_nearest(vectors))), left)
    return np.asarray(groups[owner])


def _sure(points: np.ndarray, groups: np.ndarray, left: float) -> np.ndarray:
    """The group whose centre is nearest, for the points that are much nearer to it than to the next."""
    centres = np.stack([points[groups == name].mean(0) for name in range(int(groups.max()) + 1)])
    likeness = points @ (centres / np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)).T
    if likeness.shape[1] < 2:
        return groups
    ordered = np.sort(likeness, axis=1)
    margin, best = ordered[:, -1] - ordered[:, -2], likeness.argmax(1)
    bounds = np.array([np.quantile(margin[best == name], left) if (best == name).any() else 0 for name in range(len(centres))])
    return np.asarray(np.where(margin >= bounds[best], best, -1))


def _weighed(pieces: Pieces, owner: np.ndarray, n_sessions: int) -> np.ndarray:
    """TF-IDF of the most common words that fewer than half of the sessions hold: sessions x words."""
    plain = pieces.plain[pieces.words]
    often = np.argsort(-np.bincount(plain), kind="stable")[:2 * _MOST_WORDS]
    number = np.full(int(plain.max()) + 1, -1)
    number[often] = np.arange(len(often))
    known = number[plain] >= 0
    cells = owner[pieces.rows[known]] * len(often) + number[plain[known]]
    said = np.bincount(cells, weights=np.expm1(pieces.weights[known]), minlength=n_sessions * len(often))
    counts = np.where(said > 0, 1 + np.log(np.maximum(said, 1)), 0).reshape(n_sessions, -1)
    held = (counts > 0).sum(0)
    usual = np.where(held <= 0.5 * n_sessions, held, 0)
    chosen = np.sort(np.argsort(-usual, kind="stable")[:_MOST_WORDS])
    chosen = chosen[usual[chosen] > 0]
    rows = counts[:, chosen] * np.log((n_sessions + 1) / usual[chosen])
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def _directions(rows: np.ndarray) -> np.ndarray:
    """The rows in their main directions, of unit length."""
    rank = min(_DIRECTIONS, min(rows.shape))
    chance = np.random.default_rng(0)
    basis = rows @ chance.standard_normal((rows.shape[1], min(rank + 20, rows.shape[1]))).astype(np.float32)
    for _ in range(4):
        basis = rows @ (rows.T @ np.linalg.qr(basis)[0])
    basis = np.linalg.qr(basis)[0]
    left, size, _ = np.linalg.svd(basis.T @ rows, full_matrices=False)
    points = basis @ left[:, :rank] * size[:rank]
    return np.asarray(points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12))


def _nearest(points: np.ndarray) -> list[dict[int, float]]:
    """A graph of each point and its nearest ones, weighed by their cosine."""
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
    """Communities of a weighed graph by greedy modularity, level upon level."""
    found = list(range(len(links)))
    graph = links
    while True:
        placed = _moved(graph)
        names = {name: i for i, name in enumerate(sorted(set(placed)))}
        placed = [names[name] for name in placed]
        found = [placed[group] for group in found]
        if len(names) == len(graph):
            return np.array(found)
        merged: list[defaultdict[int, float]] = [defaultdict(float) for _ in names]
        for node, others in enumerate(graph):
            for other, weight in others.items():
                merged[placed[node]][placed[other]] += weight
        graph = [dict(sorted(each.items())) for each in merged]


def _moved(graph: list[dict[int, float]]) -> list[int]:
    """Each node in the community of its neighbours that gains most, until none moves."""
    degree = [sum(others.values()) for others in graph]
    total = sum(degree) or 1.0
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
    large = names[sizes >= max(2, _SMALL * len(groups))]
    if len(large):
        centres = np.stack([points[groups == name].mean(0) for name in large])
        nearest = large[(points @ centres.T).argmax(1)]
        groups = np.where(np.isin(groups, large), groups, nearest)
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse])
