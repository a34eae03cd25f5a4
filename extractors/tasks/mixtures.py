"""Decide how many groups there are: merge them for as long as that explains their words better.

In: which session contains which word, and groups that are too many. Out: fewer groups, each with its sessions. Each group uses
words at rates of its own, which lie around the common rates (a Dirichlet prior; a word counts once a session). The marginal
likelihood of all words, with a uniform prior over the sizes of groups, decides without a threshold (Heller and Ghahramani,
"Bayesian hierarchical clustering", 2005; Côme and Latouche 2015): two groups become one if that makes it larger, the best pair
first. How near the rates of groups are to the common ones is estimated from the groups themselves (empirical Bayes). Then each
session joins the group that explains its words best.

One concentration for all words is wrong where there are few sessions of each kind: common words, which are alike in all groups,
then outweigh the few that tell kinds apart. `merge_by_words` gives each word its own: how often it occurs in a group is
beta-binomial, around its common rate (empirical Bayes again). Sizes say nothing there. It parts the ways of asking for one kind
where there are many sessions, so `likeness` chooses between the two. Does not see word order, or that words of one sentence
depend on each other."""

from __future__ import annotations

import numpy as np

_CONCENTRATIONS = 2.0 ** np.arange(10)
"""How near the groups' rates may be to the common ones: as if they had been estimated from so many words. With more, one group
would explain everything."""


def merge_groups(present: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Merge groups and reassign sessions; numbers from 0, by first appearance.

    `present`: sessions x words, whether the session contains the word. `groups`: one number a session."""
    if not present.any():
        return _numbered(groups)
    present = np.asarray(present, dtype=np.float64)
    common = (present.sum(0) + 0.5) / (present.sum() + 0.5 * present.shape[1])
    groups, results = _numbered(groups), []
    for concentration in _CONCENTRATIONS:
        merged = _numbered(_merged(present, groups, concentration * common))
        results.append((_likelihood(present, merged, concentration * common), merged, concentration * common))
    _, merged, pseudo = max(results, key=lambda result: result[0])
    return _numbered(_reassigned(present, merged, pseudo))


_OWN_CONCENTRATIONS = 2.0 ** np.arange(-1, 11)
"""How near a word's rates in the groups may be to its common rate; with the highest it tells no kind."""


def merge_by_words(present: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Merge groups for as long as that makes the words likelier, with a concentration of each word's own.

    Arguments as in `merge_groups`; numbers from 0, by first appearance."""
    groups = _numbered(groups)
    counts, sizes = _counts(np.asarray(present, dtype=np.float64), groups), np.bincount(groups).astype(np.float64)
    rates = (counts.sum(0) + 0.5) / (len(groups) + 1.0)
    concentrations = _own_concentrations(counts, sizes, rates)
    telling = concentrations < _OWN_CONCENTRATIONS[-1]
    if not telling.any():
        return np.zeros_like(groups)
    counts, with_word = counts[:, telling], (rates * concentrations)[telling]
    priors = (with_word, concentrations[telling] - with_word)
    own = _by_word(counts, sizes, *priors).sum(1)
    gains = np.full((len(sizes), len(sizes)), -np.inf)
    for group in range(1, len(sizes)):
        others = np.arange(group)
        merged = _by_word(counts[group] + counts[others], sizes[group] + sizes[others], *priors).sum(1)
        gains[group, :group] = np.round(merged - own[group] - own[others], 6)
    alive = np.ones(len(sizes), dtype=bool)
    while alive.sum() > 1:
        one, other = np.unravel_index(int(gains.argmax()), gains.shape)
        if gains[one, other] <= 0:
            break
        counts[other] += counts[one]
        sizes[other] += sizes[one]
        own[other] = _by_word(counts[[other]], sizes[[other]], *priors).sum()
        groups = np.where(groups == one, other, groups)
        alive[one] = False
        gains[one, :] = gains[:, one] = -np.inf
        others = np.flatnonzero(alive & (np.arange(len(sizes)) != other))
        merged = _by_word(counts[other] + counts[others], sizes[other] + sizes[others], *priors).sum(1)
        gains[np.maximum(others, other), np.minimum(others, other)] = np.round(merged - own[other] - own[others], 6)
    return _numbered(groups)


def _own_concentrations(counts: np.ndarray, sizes: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the likeliest concentration of each word, of `_OWN_CONCENTRATIONS`."""
    likelihoods = np.stack([_by_word(counts, sizes, concentration * rates, concentration * (1 - rates)).sum(0)
                            for concentration in _OWN_CONCENTRATIONS])
    return np.asarray(_OWN_CONCENTRATIONS[np.round(likelihoods, 6).argmax(0)])


def _by_word(counts: np.ndarray, sizes: np.ndarray, with_word: np.ndarray, without: np.ndarray) -> np.ndarray:
    """Return the log marginal likelihood of each word in each group: groups x words."""
    n = np.broadcast_to(sizes[:, None], counts.shape)
    words = _rises(with_word[None, :], counts) + _rises(without[None, :], n - counts)
    return np.asarray(words - _rises((with_word + without)[None, :], n))


def _numbered(groups: np.ndarray) -> np.ndarray:
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse])


def _counts(present: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return in how many sessions of each group each word occurs: groups x words."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
    return np.asarray(np.add.reduceat(present[order], starts, axis=0))


def _likelihood(present: np.ndarray, groups: np.ndarray, pseudo: np.ndarray) -> float:
    """Return the log marginal likelihood of all words and of the groups' sizes, but for a constant."""
    counts, sizes, one = _counts(present, groups), np.bincount(groups).astype(np.float64), np.ones(1)
    words = _rises(pseudo[None, :], counts).sum() - _rises(pseudo.sum()[None], counts.sum(1)).sum()
    return round(float(words + _rises(one, sizes).sum() - _rises(one * len(sizes), np.array([float(len(groups))])).sum()), 3)


def _merged(present: np.ndarray, groups: np.ndarray, pseudo: np.ndarray) -> np.ndarray:
    """Merge the pair that gains most, until none gains."""
    counts, sizes = _counts(present, groups), np.bincount(groups).astype(np.float64)
    n_groups = len(sizes)
    gains = np.full((n_groups, n_groups), -np.inf)
    alive = np.ones(n_groups, dtype=bool)
    for group in range(1, n_groups):
        gains[group, :group] = _gains(counts, sizes, group, np.arange(group), pseudo)
    while alive.sum() > 1:
        one, other = np.unravel_index(int(gains.argmax()), gains.shape)
        n_now = alive.sum()
        if gains[one, other] + np.log((len(groups) + n_now - 1) / (n_now - 1)) <= 0:   # fewer groups have fewer sizes
            break
        counts[other] += counts[one]
        sizes[other] += sizes[one]
        groups = np.where(groups == one, other, groups)
        alive[one] = False
        gains[one, :] = gains[:, one] = -np.inf
        others = np.flatnonzero(alive & (np.arange(n_groups) != other))
        gained = _gains(counts, sizes, int(other), others, pseudo)
        gains[np.maximum(others, other), np.minimum(others, other)] = gained
    return groups


def _gains(counts: np.ndarray, sizes: np.ndarray, group: int, others: np.ndarray, pseudo: np.ndarray) -> np.ndarray:
    """Return what the log likelihood gains if the group is merged with each of the others."""
    columns = np.flatnonzero(counts[group])   # any other word is as likely after the merge as before
    own, theirs = counts[group, columns], counts[np.ix_(others, columns)]
    begin = pseudo[columns][None, :]
    words = (_rises(begin, own + theirs) - _rises(begin, theirs)).sum(1) - _rises(begin, own[None, :]).sum()
    total, totals = counts[group].sum(), counts[others].sum(1)
    whole = pseudo.sum()[None]
    lengths = _rises(whole, total + totals) - _rises(whole, totals) - _rises(whole, np.array([total]))
    one = np.ones(1)
    places = _rises(one, sizes[group] + sizes[others]) - _rises(one, sizes[others]) - _rises(one, sizes[group][None])
    return np.asarray(np.round(words - lengths + places, 6))


def _reassigned(present: np.ndarray, groups: np.ndarray, pseudo: np.ndarray) -> np.ndarray:
    """Put each session into the group that explains its words best, its own without it."""
    counts, sizes = _counts(present, groups), np.bincount(groups).astype(np.float64)
    rates = np.log((counts + pseudo) / (counts.sum(1, keepdims=True) + pseudo.sum()))
    scores = present @ rates.T + np.log(sizes)
    without = counts[groups] - present
    own_rates = np.log((without + pseudo) / (without.sum(1, keepdims=True) + pseudo.sum()))
    scores[np.arange(len(groups)), groups] = (present * own_rates).sum(1) + np.log(np.maximum(sizes[groups] - 1, 0.5))
    return np.asarray(np.round(scores, 6).argmax(1))


def _rises(start: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return log(start (start + 1) … (start + steps - 1)): a ratio of gamma functions."""
    return np.asarray(_log_gamma(start + steps) - _log_gamma(start))


_SHIFT = 7


def _log_gamma(value: np.ndarray) -> np.ndarray:
    """Logarithm of the gamma function of positive numbers, by Stirling's series after a shift (error below 1e-9)."""
    product = value.copy()
    for step in range(1, _SHIFT):
        product = product * (value + step)
    far = value + _SHIFT
    series = (1 / 12 - (1 / 360 - 1 / (1260 * far ** 2)) / far ** 2) / far
    return np.asarray((far - 0.5) * np.log(far) - far + 0.5 * np.log(2 * np.pi) + series - np.log(product))
