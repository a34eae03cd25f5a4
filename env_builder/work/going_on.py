"""A company that goes on while a piece of work is done again: the recorded world without the acts of that work, at any instant.

In: the company's suite, versions that are hidden (those of the work's acts). Out: desks of any listed person at any instant,
over one common set of writes; recorded changes are applied to what was written at their instants.
Sees: the rest of the company as recorded. Does not see: what others would have done had the work gone otherwise.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from env_builder.runtime.company import CompanyDesk, CompanyState, CompanyWorld, DeskStart, PersonSight
from env_builder.runtime.company.world import PRESENT, VersionLike
from env_builder.runtime.office.company import CompanyEpisode, CompanySuite
from env_builder.runtime.world import Overlay

Record = tuple[str, str]
MOST_KEPT = 8
"""Starts of desks that are kept."""


class PartialState(CompanyState):
    """A state of a world some of whose versions are hidden."""

    def __init__(self, world: CompanyWorld, instant: int, latest: list[int], absent: frozenset[Record]) -> None:
        super().__init__(world, instant, latest)
        self._absent = absent

    def exists(self, entity_class: str, entity_id: str) -> bool:
        return (entity_class, entity_id) not in self._absent and super().exists(entity_class, entity_id)


class VersionPlaces:
    """Where the versions of each record lie in a world, computed once for all that is done again in it."""

    def __init__(self, world: CompanyWorld) -> None:
        self.world = world
        self.instants = [version.at for version in world.versions]
        self.nothing = world.latest(-1)
        self.of_record: dict[Record, list[int]] = {}
        self.parts: dict[tuple[int, str], list[int]] = {}
        """(instant, source record) -> places."""
        for place, version in enumerate(world.versions):
            self.of_record.setdefault((version.entity_class, version.entity_id), []).append(place)
            if version.record:
                self.parts.setdefault((version.at, version.record), []).append(place)


class GoingOn:
    """One company in which a piece of work is done again."""

    def __init__(self, suite: CompanySuite, places: VersionPlaces, accounts: Mapping[str, Mapping[str, str]],
                 conventions: Mapping[str, Any], begin: int, stands_at: int | None = None) -> None:
        """`begin`: microseconds; recorded changes from then on reach what is written. `stands_at`: the instant at which the
        company stands still instead: nothing on record happens after it, as in an episode."""
        self._suite, self._places, self._accounts, self._conventions = suite, places, accounts, conventions
        self._stands_at = stands_at
        self._hidden: set[int] = set()
        self._absent: frozenset[Record] = frozenset()
        self.overlay = Overlay()
        self._open: frozenset[str] = frozenset()
        self.names: dict[str, str] = {}
        """Id on record -> id in this episode, where they differ."""
        self._applied = bisect_right(places.instants, begin)
        self._starts: dict[tuple[int, str], DeskStart] = {}
        self._n_acts: dict[tuple[int, str], int] = {}

    def hide(self, hidden: Iterable[int]) -> None:
        """Hide versions by their places: what they say is done again, or applied by hand."""
        new = set(hidden)
        self._hidden |= new
        versions = [self._places.world.versions[place] for place in new]
        records = {(version.entity_class, version.entity_id) for version in versions}
        self._absent |= {record for record in records if self._places.of_record[record][0] in self._hidden}
        self._starts.clear()

    def state(self, instant: int) -> PartialState:
        """Return the recorded rest of the company at an instant."""
        world = self._places.world
        return PartialState(world, instant, world.latest(instant, self._hidden), self._absent)

    def desk(self, instant: int, address: str) -> CompanyDesk:
        """Return somebody's desk at an instant (microseconds), over what was written. Errors: LookupError."""
        instant = instant if self._stands_at is None else self._stands_at
        start = self._starts.get((instant, address))
        if start is None:
            state = self.state(instant)
            start = DeskStart(state, address, self._accounts, PersonSight(state, address), self._conventions)
            if len(self._starts) >= MOST_KEPT:
                self._starts.clear()
            self._starts[instant, address] = start
        return CompanyDesk(start, self.overlay, self._n_acts.get((instant, address), 0), self._open)

    def episode(self, instant: int, address: str) -> CompanyEpisode:
        """Return an episode at somebody's desk; `keep` makes its writes those of all. Errors: LookupError."""
        return CompanyEpisode(self._suite, self.desk(instant, address))

    def keep(self, instant: int, episode: CompanyEpisode) -> None:
        """Take over what an episode wrote."""
        instant = instant if self._stands_at is None else self._stands_at
        self.overlay, n_acts, self._open = episode.desk.snapshot()
        self._n_acts[instant, episode.desk.address] = n_acts

    def go_on(self, until: int) -> None:
        """Apply the recorded changes until an instant to the records that were written."""
        if self._stands_at is not None:
            return
        end = bisect_right(self._places.instants, until)
        versions = self._places.world.versions
        for place in range(self._applied, end):
            version = versions[place]
            name = (version.entity_class, self.renamed(version.entity_id))
            own = None if place in self._hidden else self.overlay.get(name, None)
            if own is not None and (version.field in own or (version.entity_class, version.entity_id) in self._absent):
                self._apply(version)
        self._applied = max(self._applied, end)

    def apply(self, hidden: Iterable[int]) -> None:
        """Apply hidden versions as they are on record: what somebody did who is not played."""
        if self._stands_at is not None:
            return
        for place in sorted(hidden):
            self._apply(self._places.world.versions[place])

    def _apply(self, version: VersionLike) -> None:
        state = PartialState(self._places.world, version.at, self._places.nothing, self._absent)
        desk = CompanyDesk(DeskStart(state, "", {}, _NO_SIGHT), self.overlay)
        entity_id = self.renamed(version.entity_id)
        if version.field == PRESENT and not version.value:
            desk.remove(version.entity_class, entity_id)
        elif version.field == PRESENT:
            desk.write(version.entity_class, entity_id)
        else:
            desk.write(version.entity_class, entity_id, **{version.field: self.renamed(version.value)})
        self.overlay = desk.snapshot()[0]

    def renamed(self, value: Any) -> Any:
        """Return a value with ids of this episode in the place of those on record."""
        return renamed(value, self.names)


class _NoSight(PersonSight):
    """Whoever applies what is on record looks at nothing."""

    def __init__(self) -> None:
        self.address = ""


_NO_SIGHT = _NoSight()


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with other names in it, the longest first."""
    if isinstance(value, str):
        for old in sorted((name for name in names if name in value), key=len, reverse=True):
            value = value.replace(old, names[old])
        return value
    if not names or not isinstance(value, (list, dict)):
        return value
    text = json.dumps(value)
    return value if not any(name in text for name in names) else _within(value, names)


def _within(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [renamed(each, names) for each in value]
    return {renamed(name, names): renamed(each, names) for name, each in value.items()}
