"""Remember the calls that were made in a state, so that they are not computed again in another episode or fork.

In: a state of an app and a call. Out: its answer and the state after it, from memory if the call was made there before.
"""

from __future__ import annotations

from typing import Any

from .apps import AppState
from .records import Result


class MemoryNode(dict[tuple[str, str], tuple[Result, Any, "MemoryNode"]]):
    """One state: call (tool, canonical arguments) made from it -> answer, snapshot of the state after it, and its node."""

    __slots__ = ()


class Memory:
    """The calls of all episodes as a tree, so that forks of one episode and the rollouts of a group do not compute them again.

    A call that was made from the same node before gives the same answer and leads to the same state (an answer that repeats an
    argument has its fields in the order of the first caller). Bounded, and dropped whole when it is full.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._starts: dict[Any, MemoryNode] = {}
        self._n_calls = 0

    def begin(self, start: Any) -> MemoryNode:
        if self._n_calls >= self._most:
            self._starts, self._n_calls = {}, 0
        return self._starts.setdefault(start, MemoryNode())

    def call(self, node: MemoryNode, state: AppState, tool: str, arguments: Any, key: str) -> tuple[Result, MemoryNode]:
        """Take a call that was made from this node before from memory; let `state` answer any other, and keep it."""
        reached = node.get((tool, key))
        if reached is not None:
            state.restore(reached[1])
        else:
            result = state.call(tool, arguments, key)
            self._n_calls += 1
            reached = node[tool, key] = result, state.snapshot(), MemoryNode()
        return reached[0], reached[2]
