"""Plain baselines of the mining benchmark, by scikit-learn where it is installed (`pip install traceroom[peers]`).

TF-IDF (1-2 grams) and SVD of texts, grouped by HDBSCAN (number unknown, what it leaves as noise is one group) and by k-means
(number known: more than the miner is told).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Hashable, Mapping, Sequence

from benchmarks.mining_scores import ari, mean_of

SEEDS = range(5)


def available() -> bool:
    """Is scikit-learn installed?"""
    return importlib.util.find_spec("sklearn") is not None


def groupings(texts: Mapping[str, str], truth: Mapping[str, Hashable], least: int) -> dict[str, float]:
    """ARI of both groupings of the texts of `truth`, mean over five seeds; `least`: smallest group of HDBSCAN."""
    if not available():
        return {}
    from sklearn.cluster import HDBSCAN, KMeans

    names = sorted(truth)
    true = [truth[name] for name in names]
    told = []
    for seed in SEEDS:
        points = _points([texts.get(name, "") for name in names], seed)
        density = HDBSCAN(min_cluster_size=least, copy=True).fit_predict(points)
        means = KMeans(len(set(true)), n_init=1, random_state=seed).fit_predict(points)
        told.append({"hdbscan": ari(true, density.tolist()), "kmeans_true_k": ari(true, means.tolist())})
    return mean_of(told)


def _points(texts: Sequence[str], seed: int):  # type: ignore[no-untyped-def]
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, token_pattern=r"\w+").fit_transform(
        [text or "nothing" for text in texts])
    return normalize(TruncatedSVD(min(50, min(words.shape) - 1), random_state=seed).fit_transform(words))
