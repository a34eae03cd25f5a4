"""How often something happened, and between which rates that leaves the truth: Wilson's interval for a share of few."""

from __future__ import annotations

import math

Z = 1.959964
"""Standard normal quantile of 95 %."""


def wilson(k: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of which k of n were seen; (0, 1) where nothing was.

    Source: Wilson 1927, Probable inference, the law of succession, and statistical inference.
    """
    if n == 0:
        return 0.0, 1.0
    share, square = k / n, Z * Z
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = Z * math.sqrt(share * (1 - share) / n + square / (4 * n * n)) / (1 + square / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def rate(k: int, n: int) -> dict[str, float]:
    """{"n", "k", "rate", "low", "high"}: k of n, to six decimals; a rate of nothing is 0 within (0, 1)."""
    low, high = wilson(k, n)
    return {"n": n, "k": k, "rate": round(k / n, 6) if n else 0.0, "low": round(low, 6), "high": round(high, 6)}
