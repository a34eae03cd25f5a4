"""The world that goes on while an episode runs: what else happened, but nothing of the episode's own piece of work.

In: the beginning of an episode, and names of what belongs to its piece of work: records (`class:id`) or source records of the
exports. Out: the beginning as of a later instant. A call takes a minute, so that something can happen between two calls.
Left out: every later change of a named record, or that a named source record reports; what the same source record reported at
that instant (the places of a mail in mailboxes); and all changes of a record whose first one is left out.
Sees: changes after the episode's beginning, in their order. Does not see: that a change would not have happened, or otherwise,
after what the episode did; which rows of a shared document belong to the work, unless a source record names them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection

from .world import CompanyState

SECONDS_OF_A_CALL = 60


class OngoingWorld:
    """What happens after an instant, but for one piece of work; shared by all episodes of it."""

    def __init__(self, begin: CompanyState, own: Collection[str]) -> None:
        world, names = begin.world, frozenset(own)
        later = range(bisect_right(world.instants, begin.instant), len(world.versions))
        versions = world.versions
        reported = {(versions[index].record, versions[index].at) for index in later if versions[index].record and (
            versions[index].record in names or f"{versions[index].entity_class}:{versions[index].entity_id}" in names)}
        self._unborn: set[tuple[str, str]] = set()
        self._changes: list[int] = []
        for index in later:
            version = versions[index]
            name = (version.entity_class, version.entity_id)
            is_own = f"{name[0]}:{name[1]}" in names or (version.record, version.at) in reported or version.record in names
            if is_own and version.at == world.births[name]:
                self._unborn.add(name)
            if not is_own and name not in self._unborn:
                self._changes.append(index)
        self._instants = [versions[index].at for index in self._changes]
        self._states = {0: begin}

    def state_at(self, instant: int) -> CompanyState:
        """Return the state at an instant of the episode; the same one until something happens."""
        count = bisect_right(self._instants, instant)
        state = self._states.get(count)
        if state is None:
            state = self._states[count] = self._states[0].with_later(
                self._changes[:count], self._instants[count - 1], self._unborn)
        return state
