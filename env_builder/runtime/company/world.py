"""One world over all apps of a company, at any instant.

In: versions of fields, in the order in which they apply. Out: `CompanyWorld.at(instant)`, a `CompanyState` whose records and
fields are those that existed then; each field says whether its value is known or a guess.
Sees: versions at or before the instant. Does not see: anything later, so no counter, list or order of a state can hold the
future. A value that is a guess comes from a later record: a state gives None for it, and `known` = false.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

PRESENT = "$present"
"""Field of a record's existence: false from its deletion on."""
_NONE = -1
_WORD = re.compile(r"\w+")


class VersionLike(Protocol):
    """A value that a field of a record took (`extractors.apps.AppVersion` and rows of `core.versions` are such)."""

    @property
    def entity_class(self) -> str: ...
    @property
    def entity_id(self) -> str: ...
    @property
    def field(self) -> str: ...
    @property
    def value(self) -> Any: ...
    @property
    def at(self) -> int: ...
    @property
    def actor(self) -> str | None: ...
    @property
    def guessed_until(self) -> int: ...
    @property
    def record(self) -> str: ...


class FieldVersion(NamedTuple):
    """A version as an environment's files hold it."""

    entity_class: str
    entity_id: str
    field: str
    value: Any
    at: int
    """Microseconds since 1970 UTC."""
    actor: str | None = None
    guessed_until: int = 0
    """The value is a guess before this instant (microseconds)."""
    record: str = ""


class FieldState(NamedTuple):
    """A field at an instant."""

    entity_class: str
    entity_id: str
    field: str
    value: Any
    """None where it is not known."""
    is_known: bool
    """False: the export does not show what the value was then."""
    at: int
    """Since when it has been so, as far as the export shows."""
    actor: str | None


class CompanyWorld:
    """All versions, indexed once; states are computed by instant."""

    def __init__(self, versions: Iterable[VersionLike]) -> None:
        self.versions: list[VersionLike] = sorted(versions, key=lambda version: version.at)
        self.instants = [version.at for version in self.versions]
        """Of each version."""
        self.slots: dict[tuple[str, str], dict[str, int]] = {}
        """(class, id) -> field -> number of the field."""
        self.ids: dict[str, list[str]] = {}
        """Class -> ids, in the order of their first versions."""
        self.births: dict[tuple[str, str], int] = {}
        """(class, id) -> instant of the record's first version."""
        self.slot_of: list[int] = []
        """Number of the field of each version."""
        count = 0
        for version in self.versions:
            key = (version.entity_class, version.entity_id)
            fields = self.slots.get(key)
            if fields is None:
                fields = self.slots[key] = {}
                self.births[key] = version.at
                self.ids.setdefault(version.entity_class, []).append(version.entity_id)
            slot = fields.get(version.field)
            if slot is None:
                slot = fields[version.field] = count
                count += 1
            self.slot_of.append(slot)
        self._n_slots = count
        self._values: dict[int, list[Any]] = {}
        """Number of a field -> all values that it ever had."""
        self._by_value: dict[tuple[str, str], dict[Any, list[str]]] = {}
        self._by_word: dict[tuple[str, str], dict[str, list[str]]] = {}
        self._vocabulary: dict[tuple[str, str], list[str]] = {}
        self._by_member: dict[tuple[str, str], dict[Any, list[str]]] = {}
        self._counts: list[int] = []
        self.memory: dict[tuple[str, str], Any] = {}
        """What tools computed of constant records, by the tool's own name of it and the id (`CompanyDesk.of_record`)."""

    def is_constant(self, entity_class: str, entity_id: str) -> bool:
        """Return whether every field of a record had one value alone, known from the beginning."""
        if not self._counts:
            self._counts = [0] * self._n_slots
            for version, slot in zip(self.versions, self.slot_of, strict=True):
                self._counts[slot] += 2 if version.guessed_until > version.at else 1
        return all(self._counts[slot] == 1 for slot in self.slots.get((entity_class, entity_id), {}).values())

    def by_value(self, entity_class: str, field: str) -> dict[Any, list[str]]:
        """Return value -> ids of the records that had it in a field at any time, oldest first; lists and objects are left out.

        An index for candidates alone: whether a record has the value at an instant is asked of the state."""
        return self._index(self._by_value, entity_class, field, _hashable)

    def by_member(self, entity_class: str, field: str) -> dict[Any, list[str]]:
        """Return member -> ids of the records that had it in a list, or as a name in an object, of a field at any time."""
        return self._index(self._by_member, entity_class, field, _members)

    def by_word(self, entity_class: str, field: str) -> dict[str, list[str]]:
        """Return word (folded) -> ids of the records that had it in the text of a field at any time, oldest first."""
        return self._index(self._by_word, entity_class, field, _words)

    def words_with(self, entity_class: str, field: str, prefix: str) -> list[str]:
        """Return the words (folded) of a field's texts that begin with a prefix."""
        words = self._vocabulary.get((entity_class, field))
        if words is None:
            words = self._vocabulary[entity_class, field] = sorted(self.by_word(entity_class, field))
        start = prefix.casefold()
        first = bisect_left(words, start)
        return words[first:bisect_left(words, start + "\U0010ffff", first)]

    def first_value(self, entity_class: str, entity_id: str, field: str) -> Any:
        """Return the first value that a field of a record ever had, at whatever instant; None: there is no such field."""
        values = self._values_of_fields().get(self.slots.get((entity_class, entity_id), {}).get(field, _NONE))
        return values[0] if values else None

    def _values_of_fields(self) -> dict[int, list[Any]]:
        if not self._values:
            for version, slot in zip(self.versions, self.slot_of, strict=True):
                self._values.setdefault(slot, []).append(version.value)
        return self._values

    def _index(self, indexes: dict[tuple[str, str], dict[Any, list[str]]], entity_class: str, field: str,
               keys_of: Callable[[Any], Iterable[Any]]) -> dict[Any, list[str]]:
        """Return the index of a field, made when it is first asked for."""
        index = indexes.get((entity_class, field))
        if index is None:
            all_values = self._values_of_fields()
            index = {}
            for entity_id in self.ids.get(entity_class, ()):
                slot_of = self.slots[entity_class, entity_id].get(field, _NONE)
                for key in dict.fromkeys(key for value in all_values.get(slot_of, ()) for key in keys_of(value)):
                    index.setdefault(key, []).append(entity_id)
            indexes[entity_class, field] = index
        return index

    def at(self, instant: int) -> CompanyState:
        """Return the state at `instant` (microseconds since 1970 UTC), what changed at that very instant included."""
        return CompanyState(self, instant, self.latest(instant))

    def latest(self, instant: int, hidden: Collection[int] = ()) -> list[int]:
        """Return for each slot the place of its last version at `instant`, as `CompanyState` takes them.

        `hidden`: places of versions that count as if they had never been."""
        latest = [_NONE] * self._n_slots
        for index, slot in enumerate(self.slot_of[:bisect_right(self.instants, instant)]):
            if index not in hidden:
                latest[slot] = index
        return latest


class CompanyState:
    """The world at an instant."""

    def __init__(self, world: CompanyWorld, instant: int, latest: list[int], unborn: Collection[tuple[str, str]] = ()) -> None:
        """`unborn`: (class, id) of records that never come to be in this world."""
        self.world, self.instant, self._latest, self._unborn = world, instant, latest, unborn

    def with_later(self, changes: Iterable[int], instant: int, unborn: Collection[tuple[str, str]]) -> CompanyState:
        """Return the state after some of the world's later changes (their places in `CompanyWorld.versions`, in order)."""
        latest = list(self._latest)
        for index in changes:
            latest[self.world.slot_of[index]] = index
        return CompanyState(self.world, instant, latest, unborn)

    def ids(self, entity_class: str) -> Iterator[str]:
        """Yield the ids of the records of a class that existed, oldest first."""
        return (key for key in self.world.ids.get(entity_class, ()) if self.exists(entity_class, key))

    def exists(self, entity_class: str, entity_id: str) -> bool:
        """Return whether a record existed."""
        name = (entity_class, entity_id)
        if self.world.births.get(name, self.instant + 1) > self.instant or (self._unborn and name in self._unborn):
            return False
        slot = self.world.slots[name].get(PRESENT)
        present = None if slot is None else self._version(slot)
        return present is None or bool(present.value)

    def get(self, entity_class: str, entity_id: str) -> dict[str, FieldState]:
        """Return the fields of a record by name; empty if it did not exist."""
        if not self.exists(entity_class, entity_id):
            return {}
        fields: dict[str, FieldState] = {}
        for field in self.world.slots[entity_class, entity_id]:
            if field != PRESENT and (state := self.field(entity_class, entity_id, field)) is not None:
                fields[field] = state
        return fields

    def field(self, entity_class: str, entity_id: str, field: str) -> FieldState | None:
        """Return a field of a record, or None if the record had no such field. Whether it existed is not asked."""
        version = self._version(self.world.slots.get((entity_class, entity_id), {}).get(field, _NONE))
        if version is None:
            return None
        is_known = self.instant >= version.guessed_until
        return FieldState(entity_class, entity_id, field, version.value if is_known else None, is_known, version.at,
                          version.actor)

    def version(self, entity_class: str, entity_id: str, field: str) -> VersionLike | None:
        """Return the latest version of a field, a guess or not; None if the record had no such field."""
        slots = self.world.slots.get((entity_class, entity_id))
        slot = _NONE if slots is None else slots.get(field, _NONE)
        index = _NONE if slot == _NONE else self._latest[slot]
        return None if index == _NONE else self.world.versions[index]

    def values(self, entity_class: str, entity_id: str) -> dict[str, Any]:
        """Return the values of a record's fields that are known."""
        return {field: state.value for field, state in self.get(entity_class, entity_id).items() if state.is_known}

    def guess(self, entity_class: str, entity_id: str, field: str) -> Any:
        """Return a field's value, or the guess where it is not known: for rights and names, never for an answer of a tool."""
        version = self._version(self.world.slots.get((entity_class, entity_id), {}).get(field, _NONE))
        return None if version is None else version.value

    def fields(self) -> Iterator[FieldState]:
        """Yield every field of every record that existed, by class and id."""
        for entity_class in sorted(self.world.ids):
            for entity_id in sorted(self.ids(entity_class)):
                yield from self.get(entity_class, entity_id).values()

    def _version(self, slot: int) -> VersionLike | None:
        index = _NONE if slot == _NONE else self._latest[slot]
        return None if index == _NONE else self.world.versions[index]


def _hashable(value: Any) -> list[Any]:
    return [] if isinstance(value, (list, dict)) else [value]


def _members(value: Any) -> list[Any]:
    return [member for member in value if isinstance(member, str)] if isinstance(value, (list, dict)) else []


def _words(value: Any) -> list[str]:
    return _WORD.findall(value.casefold()) if isinstance(value, str) else []
