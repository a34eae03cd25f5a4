"""What is made of parts of programs, or told of an object, once, however often it is asked.

In: a JSON list or object that nobody changes any more, or an object. Out: what is made of it, the same at each question.
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


class Once(Generic[V]):
    """A property that is worked out when it is first asked for: `functools.cached_property`, without the lock that it takes
    before Python 3.12."""

    def __init__(self, work: Callable[[Any], V]) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, holder: Any, owner: type) -> V:
        value: V = self._work(holder)
        holder.__dict__[self._name] = value
        return value
