"""Read the kind of request of each piece of a conversation from its words.

A piece is what a user says until the agent has answered, with the answer and the calls. Words are counted by kind (naive
Bayes), and the likeliest sequence of kinds through a session is taken, where a change of kind has a cost (Viterbi 1967). Words
of one message depend on each other, so their evidence counts a tenth. The result is counted once more, so that sessions of
several kinds teach too. A call supports its kind only if the words next to it lean to it: what was done is not what was asked.

Where nothing names kinds, sessions are clustered: TF-IDF, randomised SVD (Halko, Martinsson and Tropp 2011), nearest neighbours
by cosine, communities of that graph (Louvain; Blondel et al. 2008). Does not see negation, two kinds in one piece, or kinds
that share most of their words."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import polars as pl

from extractors.tasks.words import document_words, masked

_LEAST = 3
"""Words of fewer pieces are left: they can tell no kind."""


class Pieces(NamedTuple):
    """Pieces of one service's conversations, by session and in order."""

    frame: pl.DataFrame
    """piece (row number), session_id, place, begins, ends (positions of turns, end exclusive), tools, said (by the user)."""
    rows: np.ndarray
    """Piece of each counted word."""
    words: np.ndarray
    """Number of the word, 0-based."""
    weights: np.ndarray
    """log(1 + how often it stands in the piece)."""
    n_words: int
    plain: np.ndarray
    """Number of each word regardless of who said it."""


def cut_conversations(turns: pl.DataFrame) -> Pieces:
    """Pieces of the turns' sessions; a frame without users' words gives none."""
    spoken = turns.filter(pl.col("role").is_null() | pl.col("role").is_in(["user", "assistant"])).sort("session_id", "position")
    user = (pl.col("kind") == "message") & (pl.col("role") == "user")
    begins = user & ~user.shift(1, fill_value=False).over("session_id")
    placed = spoken.with_columns(user.alias("user"), begins.cast(pl.Int64).cum_sum().over("session_id").alias("place"))
    placed = placed.with_columns((pl.col("place") - 1).clip(0).alias("place"))
    last = placed.group_by("session_id").agg((pl.col("position").max() + 1).alias("end"))
    frame = (
        placed.group_by("session_id", "place")
        .agg(pl.col("position").min().alias("begins"), pl.col("tool").filter(pl.col("kind") == "call").unique().alias("tools"),
             pl.col("content").filter("user").sort_by(pl.col("position").filter("user")).str.join("\n").alias("said"))
        .sort("session_id", "place").join(last, on="session_id", maintain_order="left")
        .with_columns(pl.coalesce(pl.col("begins").shift(-1).over("session_id"), "end").alias("ends")).drop("end")
        .with_row_index("piece"))
    texts = (
        placed.filter((pl.col("kind") == "message") & pl.col("content").is_not_null())
        .join(frame.select("piece", "session_id", "place"), on=["session_id", "place"]).group_by("piece", "user")
        .agg(pl.col("content").sort_by("position").str.join("\n"))
        .with_columns(masked(pl.col("content")).alias("text"), (pl.col("piece") * 2 + pl.col("user")).alias("document")))
    side = pl.when(pl.col("document") % 2 == 1).then(pl.lit("u ")).otherwise(pl.lit("a "))
    counted = document_words(texts.select("document", "text")).with_columns(
        (pl.col("document") // 2).alias("piece"), (side + pl.col("word")).alias("word"))
    counted = counted.filter(pl.len().over("word") >= _LEAST).select("piece", "word", "n").sort("piece", "word")
    vocabulary = counted.select(pl.col("word").unique().sort()).with_row_index("number")
    plain = vocabulary.select(pl.col("word").str.slice(2).rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    numbered = counted.join(vocabulary, on="word", maintain_order="left")
    return Pieces(frame, numbered["piece"].to_numpy().astype(np.int64), numbered["number"].to_numpy().astype(np.int64),
                  np.log1p(numbered["n"].to_numpy().astype(np.float64)), vocabulary.height, plain)


SMOOTHING = 0.1
"""Added to every count (Lidstone)."""
DEPENDENT = 0.1
"""Share of a word's evidence that counts: its neighbours say the same again."""
CHANGE = 5.0
"""What it costs to change the kind between two pieces, in nats."""
CALL = 9.0
"""What a call speaks for its kind: less than there and back again."""
LEAN = 0.5
"""How much the words of a piece must lean to a kind, in nats, for a call to speak for it."""
LOOSE = 0.17
"""The same share where sessions of several kinds taught together: their kinds come apart only where words count more."""
_ROUNDS = 3


def read_kinds(pieces: Pieces, initial: np.ndarray, called: np.ndarray, n_kinds: int,
               dependent: float = DEPENDENT) -> np.ndarray:
    """Find the kind of each piece; ties go to the lower number.

    `initial`: first kind of each piece, -1 if unknown. `called`: pieces x kinds, whether a tool of the kind is called in it."""
    kinds = initial
    for _ in range(_ROUNDS):
        own = kinds[pieces.rows]
        has_kind = own >= 0
        counts = np.bincount(own[has_kind] * pieces.n_words + pieces.words[has_kind], weights=pieces.weights[has_kind],
                             minlength=n_kinds * pieces.n_words).reshape(n_kinds, pieces.n_words) + SMOOTHING
        share = np.log(counts / counts.sum(1, keepdims=True)) - np.log(counts.sum(0) / counts.sum())
        n_pieces = pieces.frame.height
        columns = [np.bincount(pieces.rows, weights=pieces.weights * of_kind[pieces.words], minlength=n_pieces)
                   for of_kind in share]
        scores = np.asarray(np.round(np.stack(columns, axis=1) * dependent, 6))
        usual = np.median(scores, axis=1, keepdims=True)
        kinds = _course(pieces, scores + CALL * (called & (scores > usual + LEAN)))
    return kinds


def _course(pieces: Pieces, evidence: np.ndarray) -> np.ndarray:
    """Return the likeliest kinds of all sessions' pieces: one pass over places, all sessions at a time."""
    sizes = pieces.frame.group_by("session_id", maintain_order=True).len()["len"].to_numpy().astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    order = np.argsort(-sizes, kind="stable")
    starts, sizes = starts[order], sizes[order]
    best = evidence[starts].copy()
    came = np.zeros(evidence.shape, dtype=np.int64)
    for place in range(1, int(sizes[0])):
        n = int((sizes > place).sum())
        top = best[:n].argmax(1)
        changed = best[np.arange(n), top] - CHANGE
        here = starts[:n] + place
        took = changed[:, None] > best[:n]
        came[here] = np.where(took, top[:, None], np.arange(evidence.shape[1]))
        best[:n] = np.where(took, changed[:, None], best[:n]) + evidence[here]
    kinds = np.empty(len(evidence), dtype=np.int64)
    state = best.argmax(1)
    for place in range(int(sizes[0]) - 1, -1, -1):
        n = int((sizes > place).sum())
        here = starts[:n] + place
        kinds[here] = state[:n]
        state[:n] = came[here, state[:n]] if place else state[:n]
    return kinds


_MOST_WORDS = 4000
_MOST_SESSIONS = 5000
"""More sessions than this are sampled evenly; the others are read afterwards by what these taught."""
_DIRECTIONS = 60
_NEAREST = 40
_SMALL = 0.004
"""A group with less than this share of the sessions joins another."""


def group_sessions(pieces: Pieces, unsure_share: float) -> np.ndarray:
    """Group each piece's session, from 0; -1: not sampled, or among the `unsure_share` of its group that lie between groups."""
    _, owner = np.unique(pieces.frame["session_id"].to_numpy(), return_inverse=True)
    n_sessions = int(owner.max()) + 1
    step = -(-n_sessions // _MOST_SESSIONS)
    vectors = _directions(_weighed(pieces, owner, n_sessions)[::step])
    groups = np.full(n_sessions, -1)
    groups[::step] = _sure(vectors, _settled(vectors, _communities(_nearest(vectors))), unsure_share)
    return np.asarray(groups[owner])


def _sure(points: np.ndarray, groups: np.ndarray, unsure_share: float) -> np.ndarray:
    """Assign points to the nearest centre; -1 if the next one is about as near."""
    centres = np.stack([points[groups == name].mean(0) for name in range(int(groups.max()) + 1)])
    likeness = points @ (centres / np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)).T
    if likeness.shape[1] < 2:
        return groups
    ordered = np.sort(likeness, axis=1)
    margin, best = ordered[:, -1] - ordered[:, -2], likeness.argmax(1)
    bounds = np.array(
        [np.quantile(margin[best == name], unsure_share) if (best == name).any() else 0 for name in range(len(centres))])
    return np.asarray(np.where(margin >= bounds[best], best, -1))


def _weighed(pieces: Pieces, owner: np.ndarray, n_sessions: int) -> np.ndarray:
    """TF-IDF of the most common words that fewer than half of the sessions hold: sessions x words."""
    plain = pieces.plain[pieces.words]
    often = np.argsort(-np.bincount(plain), kind="stable")[:2 * _MOST_WORDS]
    number = np.full(int(plain.max()) + 1, -1)
    number[often] = np.arange(len(often))
    is_counted = number[plain] >= 0
    cells = owner[pieces.rows[is_counted]] * len(often) + number[plain[is_counted]]
    frequency = np.bincount(cells, weights=np.expm1(pieces.weights[is_counted]), minlength=n_sessions * len(often))
    counts = np.where(frequency > 0, 1 + np.log(np.maximum(frequency, 1)), 0).reshape(n_sessions, -1)
    n_with_word = (counts > 0).sum(0)
    usual = np.where(n_with_word <= 0.5 * n_sessions, n_with_word, 0)
    chosen = np.sort(np.argsort(-usual, kind="stable")[:_MOST_WORDS])
    chosen = chosen[usual[chosen] > 0]
    rows = counts[:, chosen] * np.log((n_sessions + 1) / usual[chosen])
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), dtype=np.float32)


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
    """Communities of a weighed graph by greedy modularity, level upon level."""
    membership = list(range(len(links)))
    graph = links
    while True:
        placed = _moved(graph)
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
