"""Results that are kept for texts which come again, within one bound for all of them.

A cache has so many entries; but a client may send texts of any length, each one new. So what all caches were asked to keep is
counted in characters: at `MOST_CHARACTERS` all are emptied, and fill again. A hit costs no more than without the bound.
Sees: the texts that functions are called with. Does not see: how much larger a result is than its text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

MOST_CHARACTERS = 1 << 25
"""Characters of texts that all caches together may have been asked to keep."""
P = ParamSpec("P")
R = TypeVar("R")


class _Caches:
    """All caches, and the characters that they were asked to keep since they were empty."""

    def __init__(self) -> None:
        self._clearing: list[Callable[[], None]] = []
        self._n_characters = 0

    def add(self, clear: Callable[[], None]) -> None:
        """Take in a cache."""
        self._clearing.append(clear)

    def count(self, n_characters: int) -> None:
        """Count the characters of a new entry; empty all caches at the bound."""
        self._n_characters += n_characters
        if self._n_characters > MOST_CHARACTERS:
            self._n_characters = n_characters
            for clear in self._clearing:
                clear()


_CACHES = _Caches()


def cached(n_entries: int) -> Callable[[Callable[P, R]], _lru_cache_wrapper[R]]:
    """Keep the results of a function of texts for its latest calls, at most `n_entries`; they must not be changed."""
    def with_cache(function: Callable[P, R]) -> _lru_cache_wrapper[R]:
        @wraps(function)
        def compute(*args: P.args, **kwargs: P.kwargs) -> R:
            _CACHES.count(_n_characters(args))
            return function(*args, **kwargs)

        keeping = lru_cache(n_entries)(compute)
        _CACHES.add(keeping.cache_clear)
        return keeping

    return with_cache


def _n_characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(map(_n_characters, value)) if isinstance(value, tuple) else 0
