"""Calls of former episodes, so that what was played before is not worked out again: forks of one episode, a group's rollouts.

A room answers one way from one state, and its state is its view, its seed and the calls so far: so the calls are kept as a
tree, and a call that was made from the same place before gives the same answer and leads to the same state (an answer that
repeats an argument has its fields in the order of who asked first). In: a place of the tree, a call. Out: its answer and the
state after it. Off unless asked for; bounded, and dropped whole when it is full.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from .records import Result

Call = tuple[str, str]
"""Tool and canonical arguments."""


class Reached(NamedTuple):
    """What a call gave."""

    result: Result
    mark: Any
    """The room's state after it."""


class Place(dict[Call, Reached]):
    """Where an episode has come to, and the calls that were made from here."""

    __slots__ = ("_memory",)

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory

    def next(self) -> Place:
        """The place after one more call."""
        self._memory.n_calls += 1
        return Place(self._memory)


class Memory:
    """The calls of all episodes of an environment."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._begins: dict[Any, Place] = {}
        self.n_calls = 0
        """How many are kept."""

    def begin(self, beginning: Any) -> Place:
        """The place where all episodes with the same beginning begin."""
        if self.n_calls >= self._most:
            self._begins, self.n_calls = {}, 0
        if beginning not in self._begins:
            self._begins[beginning] = Place(self)
        return self._begins[beginning]


class Remembering(ABC):
    """What answers calls, and takes those that were made before from memory; `Room` is one, and has the state."""

    __slots__ = ("_place",)
    _place: Place | None

    def _from_memory(self, place: Place, tool: str, arguments: dict[str, Any], key: str) -> Result:
        """Take a call that was made from this place before from memory; answer any other, and keep it."""
        known = place.get((tool, key))
        if known is None:
            self._place = None
            result = self.call(tool, arguments, key)
            self._place = place.next()
            place[tool, key] = Reached(result, self.mark)
            return result
        self.back(known.mark)
        return known.result

    def remember(self, memory: Memory, beginning: Any) -> None:
        """From here on, where an episode begins, take calls from memory; `beginning`: all that its answers hang on."""
        self._place = memory.begin(beginning)

    @property
    @abstractmethod
    def mark(self) -> Any:
        """The state as it is now, to come back to."""

    @abstractmethod
    def back(self, mark: Any) -> None:
        """The state as it was."""

    @abstractmethod
    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        """Answer a call and take on what it changes. `key`: the canonical arguments, where they are at hand."""
