"""Which kind of request each piece of a conversation belongs to, read from its words.

Words are counted by kind (naive Bayes, against the words of all kinds), and the likeliest course of kinds through a session is
taken where changing the kind costs something (Viterbi 1967). Words of one message are far from independent, so their evidence
counts a tenth. Then the pieces as read are counted again, once, so that sessions of several kinds teach too.

A call speaks for its kind where the words beside it lean to it too; alone it makes no goal: what was done is not what was
asked. Does not see: negation, two kinds in one piece, a kind that comes up in a piece of other words.
"""

from __future__ import annotations

import numpy as np

from extractors.tasks.pieces import Pieces

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


def read(pieces: Pieces, told: np.ndarray, called: np.ndarray, n_kinds: int, dependent: float = DEPENDENT) -> np.ndarray:
    """Kind of each piece.

    `told`: kind that each piece is taken for at first, -1: not known. `called`: pieces x kinds, whether a tool that stands for
    the kind is called in it. Deterministic; ties go to the kind of the lower number.
    """
    kinds = told
    for _ in range(_ROUNDS):
        scores = _scores(pieces, kinds, n_kinds, dependent)
        usual = np.median(scores, axis=1, keepdims=True)
        kinds = _course(pieces, scores + CALL * (called & (scores > usual + LEAN)))
    return kinds


def _scores(pieces: Pieces, kinds: np.ndarray, n_kinds: int, dependent: float) -> np.ndarray:
    """Evidence of each piece's words for each kind, in nats: pieces x kinds."""
    own = kinds[pieces.rows]
    known = own >= 0
    counts = np.bincount(own[known] * pieces.n_words + pieces.words[known], weights=pieces.weights[known],
                         minlength=n_kinds * pieces.n_words).reshape(n_kinds, pieces.n_words) + SMOOTHING
    share = np.log(counts / counts.sum(1, keepdims=True)) - np.log(counts.sum(0) / counts.sum())
    n_pieces = pieces.frame.height
    columns = [np.bincount(pieces.rows, weights=pieces.weights * of_kind[pieces.words], minlength=n_pieces)
               for of_kind in share]
    return np.asarray(np.round(np.stack(columns, axis=1) * dependent, 6))


def _course(pieces: Pieces, evidence: np.ndarray) -> np.ndarray:
    """The likeliest kinds of all sessions' pieces: one pass over places, all sessions at a time."""
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
