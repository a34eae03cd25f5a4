"""When an episode's documents changed first, and last.

In: a state, and how it was before each step. Out: by document the place of the step after which it was another than before.
The order of changes is no part of any document: two episodes that reach the same end by different paths differ in nothing, and
still a check can tell what was done after what. Sees: each app's own difference, so it holds for every kind of app. Does not
see: a step that leaves all as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .apps import AppState


def last_changes(state: AppState, marks: Sequence[tuple[Any, ...]]) -> dict[str, int]:
    """Return by the name of a document the place of the step that changed it last; also of one that is as it was again.

    `marks`: of each step, first the snapshot before it.
    """
    changes: dict[str, int] = {}
    for place, names in _changed(state, marks):
        changes.update(dict.fromkeys(names, place))
    return changes


def first_changes(state: AppState, marks: Sequence[tuple[Any, ...]]) -> dict[str, int]:
    """Return by the name of a document the place of the step that changed it first, as `last_changes`."""
    changes: dict[str, int] = {}
    for place, names in _changed(state, marks):
        for name in names:
            changes.setdefault(name, place)
    return changes


def _changed(state: AppState, marks: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the place of each step with the names of the documents that it changed."""
    twin = state.fork()
    end = state.difference()["documents"]
    before: dict[str, Any] = {}
    for place in range(len(marks)):
        if place + 1 < len(marks):
            twin.restore(marks[place + 1][0])
            after = twin.difference()["documents"]
        else:
            after = end
        yield place, [name for name in {*before, *after} if before.get(name) != after.get(name)
                      or (name in before) != (name in after)]
        before = after
