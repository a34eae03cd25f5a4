"""What is made of parts of programs once, however often they are asked.

In: a JSON list or object that nobody changes any more. Out: what is made of it, the same at each further question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

V = TypeVar("V")
MOST = 16384


class Kept(Generic[V]):
    """A function of JSON lists and objects that keeps what it made of each, by identity; all is dropped when it is too much."""

    def __init__(self, make: Callable[[Any], V], most: int = MOST) -> None:
        self._make = make
        self._most = most
        self._made: dict[int, tuple[Any, V]] = {}
        """Identity -> the value itself, which so lives as long, and what was made of it."""

    def __call__(self, value: Any) -> V:
        kept = self._made.get(id(value))
        if kept is None or kept[0] is not value:
            if len(self._made) >= self._most:
                self._made.clear()
            kept = self._made[id(value)] = (value, self._make(value))
        return kept[1]
