"""Acts that are to be done again: what one person changed in one record at one instant, with the versions that say so.

In: the events of a piece of work (`extractors.work.events`), the kinds of records, the places of versions in a world.
Out: `RecordAct`s, by time. The time of a change that an export knows only from a stretch of time is the stretch's end: by
then it had been made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from env_builder.runtime.company.world import PRESENT
from env_builder.work.going_on import Record, VersionPlaces

LONGEST_GUESS = 86_400_000_000
"""A change that is known within a day, in microseconds, has a time; of other guesses the last export alone tells."""


class ChangeLike(Protocol):
    """A field that took another value (`extractors.work.events.ActChange`)."""

    @property
    def field(self) -> str: ...
    @property
    def before(self) -> Any: ...
    @property
    def after(self) -> Any: ...


class EventLike(Protocol):
    """An act in an app (`extractors.work.events.WorkEvent`)."""

    @property
    def ref(self) -> str: ...
    @property
    def at(self) -> int: ...
    @property
    def record(self) -> Record: ...
    @property
    def verb(self) -> str: ...
    @property
    def actor(self) -> str: ...
    @property
    def addressees(self) -> Sequence[str]: ...
    @property
    def texts(self) -> Sequence[str]: ...
    @property
    def changes(self) -> Sequence[ChangeLike]: ...


class KindLike(Protocol):
    """How records of a class take part in work (`extractors.apps.version.RecordKind`)."""

    @property
    def name(self) -> str: ...
    @property
    def texts(self) -> Sequence[str]: ...
    @property
    def follows(self) -> Sequence[str]: ...
    @property
    def part_of(self) -> str: ...
    @property
    def setting(self) -> bool: ...


class ItemLike(Protocol):
    """A piece of work (`extractors.work.items.WorkItem`)."""

    @property
    def item_id(self) -> str: ...
    @property
    def refs(self) -> Sequence[str]: ...


class ActCall(NamedTuple):
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]


class RecordAct(NamedTuple):
    """What changed in a record at an instant."""

    at: int
    """Microseconds since 1970 UTC."""
    record: Record
    is_new: bool
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    actor: str
    """Address of a listed person; else an id of the product's, or empty."""
    refs: tuple[str, ...]
    """Of the events."""
    hidden: tuple[int, ...]
    """Places of all versions of the act, those of the record's parts among them."""
    parts: Mapping[Record, Mapping[str, Any]]
    """Records that belong to it and hold words, with their fields: the files of a commit."""
    guessed: frozenset[str]
    """Fields whose values the exports show only from a later time."""

    @property
    def entity_class(self) -> str:
        """The record's class."""
        return self.record[0]

    @property
    def key(self) -> str:
        """The record's id."""
        return self.record[1]

    @property
    def is_gone(self) -> bool:
        """Whether the record was deleted."""
        return self.after.get(PRESENT) is False


def acts_of(events: Sequence[EventLike], places: VersionPlaces, kinds: Sequence[KindLike]) -> list[RecordAct]:
    """Return the acts of events, by time: the changes of one record at one instant are one."""
    groups: dict[tuple[Record, int], list[EventLike]] = {}
    for event in events:
        groups.setdefault((event.record, event.at), []).append(event)
    return sorted((_act(group, places, kinds) for group in groups.values()), key=lambda act: act.at)


def _act(group: Sequence[EventLike], places: VersionPlaces, kinds: Sequence[KindLike]) -> RecordAct:
    first = group[0]
    versions = places.world.versions
    own = [place for place in places.of_record.get(first.record, ()) if versions[place].at == first.at]
    of_record = {kind.name: kind for kind in kinds if kind.part_of == first.record[0]}
    sources = {versions[place].record for place in own}
    own += [place for source in sources for place in places.parts.get((first.at, source), ())
            if versions[place].entity_class in of_record]
    parts: dict[Record, dict[str, Any]] = {}
    for version in (versions[place] for place in own):
        if version.entity_class in of_record and of_record[version.entity_class].texts:
            parts.setdefault((version.entity_class, version.entity_id), {})[version.field] = version.value
    changes = [change for event in group for change in event.changes]
    guessed = {versions[place].field: versions[place].guessed_until for place in own
               if versions[place].entity_class == first.record[0] and versions[place].guessed_until > first.at}
    until = [guessed.get(change.field, first.at) for change in changes]
    is_new = any(event.verb.endswith(" created") for event in group)
    at = max(until) if not is_new and 0 < max(until) - first.at <= LONGEST_GUESS else first.at
    return RecordAct(
        at, first.record, is_new, {change.field: change.before for change in reversed(changes)},
        {change.field: change.after for change in changes}, next((event.actor for event in group if event.actor), ""),
        tuple(event.ref for event in group), tuple(sorted(set(own))), parts,
        frozenset() if at != first.at else frozenset(guessed))
