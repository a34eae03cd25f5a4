"""Read the kind of request of each piece of a conversation from its words.

A piece is what a user says until the agent has answered, with the answer and the calls. Words are counted by kind (naive
Bayes), and the likeliest sequence of kinds through a session is taken, where a change of kind has a cost (Viterbi 1967). Words
of one message depend on each other, so their evidence counts a tenth. The result is counted once more, so that sessions of
several kinds teach too. A call supports its kind only if the words next to it lean to it: what was done is not what was asked.

Where nothing names kinds, groups of sessions teach them (`likeness`). Does not see negation, two kinds in one piece, or kinds
that share most of their words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from extractors.tasks.words import document_words, masked

_LEAST = 3
"""Words of fewer pieces are left: they can tell no kind, where calls teach which kinds there are."""
FEW = 2
"""The same where words alone do: with few sessions of a kind, words that two of them share tell most."""


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
    spelled: list[str]
    """The word of each such number; a pair of words has a space."""


def cut_conversations(turns: pl.DataFrame, least: int = _LEAST) -> Pieces:
    """Pieces of the turns' sessions; a frame without users' words gives none. Words of fewer than `least` pieces are left."""
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
    counted = counted.filter(pl.len().over("word") >= least).select("piece", "word", "n").sort("piece", "word")
    vocabulary = counted.select(pl.col("word").unique().sort()).with_row_index("number")
    regardless = vocabulary.select(pl.col("word").str.slice(2).alias("word"))
    plain = regardless.select(pl.col("word").rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    numbered = counted.join(vocabulary, on="word", maintain_order="left")
    return Pieces(frame, numbered["piece"].to_numpy().astype(np.int64), numbered["number"].to_numpy().astype(np.int64),
                  np.log1p(numbered["n"].to_numpy().astype(np.float64)), vocabulary.height, plain,
                  regardless.unique().sort("word")["word"].to_list())


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
_MOSTLY = 0.5
"""Share of a group's sessions that other groups explain better from which on the group is a combination."""


def read_kinds(pieces: Pieces, initial: np.ndarray, called: np.ndarray, n_kinds: int,
               dependent: float = DEPENDENT) -> np.ndarray:
    """Find the kind of each piece; ties go to the lower number.

    `initial`: first kind of each piece, -1 if unknown. `called`: pieces x kinds, whether a tool of the kind is called in it."""
    kinds = initial
    for _ in range(_ROUNDS):
        scores = _evidence(pieces, kinds, n_kinds, dependent)
        usual = np.median(scores, axis=1, keepdims=True)
        kinds, _ = _course(scores + CALL * (called & (scores > usual + LEAN)), _sizes(pieces))
    return kinds


def drop_combinations(pieces: Pieces, groups: np.ndarray) -> np.ndarray:
    """Return the groups of sessions, numbered from 0, without those that only combine others: their pieces get -1.

    A group is a combination if most of its sessions are likelier as a course through several other groups than as that group
    alone; the other half of all sessions teaches. The clearest combination goes first, and no longer explains others."""
    sizes = _sizes(pieces)
    ends = np.cumsum(sizes)
    of_session = groups[ends - sizes].copy()
    half = np.arange(len(sizes)) % 2
    while len(alive := np.unique(of_session[of_session >= 0])) > 2:   # two others make a combination
        n_better = np.zeros(len(alive))
        for own in (0, 1):
            scores = _evidence(pieces, np.repeat(np.where(half == own, -1, of_session), sizes), int(groups.max()) + 1, 1.0)
            n_better += [_n_combined(scores, sizes, (of_session == group) & (half == own), group, alive) for group in alive]
        shares = n_better / np.bincount(of_session[of_session >= 0])[alive]
        if shares.max() <= _MOSTLY:
            break
        of_session[of_session == alive[int(shares.argmax())]] = -1
    _, numbered = np.unique(of_session, return_inverse=True)   # -1 comes first where there is one
    return np.repeat(numbered - int((of_session < 0).any()), sizes)


def _n_combined(scores: np.ndarray, sizes: np.ndarray, chosen: np.ndarray, group: int, groups: np.ndarray) -> int:
    """Count the chosen sessions that are likelier as a course through several other groups than as the group alone."""
    if not chosen.any():
        return 0
    own_sizes = sizes[chosen]
    own_scores = scores[np.repeat(chosen, sizes)]
    starts = np.cumsum(own_sizes) - own_sizes
    kinds, best = _course(own_scores[:, groups[groups != group]], own_sizes)
    several = np.minimum.reduceat(kinds, starts) != np.maximum.reduceat(kinds, starts)
    return int((several & (best > np.add.reduceat(own_scores[:, group], starts))).sum())


def _evidence(pieces: Pieces, kinds: np.ndarray, n_kinds: int, dependent: float) -> np.ndarray:
    """Return how much the words of each piece speak for each kind, in nats: pieces x kinds."""
    own = kinds[pieces.rows]
    has_kind = own >= 0
    counts = np.bincount(own[has_kind] * pieces.n_words + pieces.words[has_kind], weights=pieces.weights[has_kind],
                         minlength=n_kinds * pieces.n_words).reshape(n_kinds, pieces.n_words) + SMOOTHING
    share = np.log(counts / counts.sum(1, keepdims=True)) - np.log(counts.sum(0) / counts.sum())
    columns = [np.bincount(pieces.rows, weights=pieces.weights * of_kind[pieces.words], minlength=pieces.frame.height)
               for of_kind in share]
    return np.asarray(np.round(np.stack(columns, axis=1) * dependent, 6))


def _sizes(pieces: Pieces) -> np.ndarray:
    """Return the number of pieces of each session."""
    sizes = pieces.frame.group_by("session_id", maintain_order=True).len()["len"]
    return sizes.to_numpy().astype(np.int64)


def _course(evidence: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the likeliest kind of each piece, and each session's score: one pass over places, all sessions at a time."""
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
    scores = np.empty(len(sizes))
    scores[order] = best.max(1)
    return kinds, scores
