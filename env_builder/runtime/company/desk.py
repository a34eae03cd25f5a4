"""A person's desk: the world of an instant as one person works in it, with what the episode wrote on top.

In: a state of the world, the person's address, the accounts of all people. Out: values, records and indexes for the tools of
the apps (`runtime.office`), and their writes.
Sees: what had happened by the instant, and the episode's own writes. A value that the exports do not tell raises `Undecided`:
the tool's answer is then `unknown`, unless what was asked leaves the value out. Does not see: anything later.
An act takes a second of the desk's clock, so that the order of writes is the order of their instants.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from ..canonical import canonical
from ..world import Overlay
from .sight import PersonSight
from .world import PRESENT, CompanyState

Accounts = Mapping[str, Mapping[str, str]]
"""Address of a person -> class of accounts (`slack_user`, `jira_user`, `login` …) -> id."""
_SECOND = 1_000_000
_WRITTEN = "$written"
"""Of a record in the overlay: field -> instant of the write."""
_NOTHING: dict[str, Any] = {}


class Undecided(Exception):
    """The answer depends on what the exports do not hold; the text says on what."""


class ProductRefusal(Exception):
    """The product refuses a call; the text is its answer."""


class DeskStart(NamedTuple):
    """Where an episode begins; shared by all that begin there."""

    state: CompanyState
    address: str
    accounts: Accounts
    sight: PersonSight
    conventions: Mapping[str, Any] = {}
    """Product -> what the traces show of how this company has set it up (env_builder/company/conventions.py)."""


class CompanyDesk:
    """The world as one person works in it; a fork copies nothing."""

    __slots__ = ("_overlay", "_start", "address", "n_acts")

    def __init__(self, start: DeskStart, overlay: Overlay | None = None, n_acts: int = 0) -> None:
        self._start = start
        self._overlay = overlay or Overlay()
        self.n_acts = n_acts
        self.address = start.address
        """Of the acting person."""

    # Who and when

    @property
    def now(self) -> float:
        """The desk's instant, in seconds since 1970 UTC."""
        return (self._start.state.instant + self.n_acts * _SECOND) / _SECOND

    def account(self, kind: str, address: str | None = None) -> str:
        """Return the id of somebody's account; of the acting person's without an address. Errors: Undecided."""
        account = self.account_of(kind, self.address if address is None else address)
        if account is None:
            raise Undecided(f"no account of the class {kind} is known of {address or self.address}")
        return account

    def account_of(self, kind: str, address: str) -> str | None:
        """Return the id of the account of a person, or None if none is known."""
        return self._start.accounts.get(address.strip().lower(), {}).get(kind)

    def address_of(self, kind: str, account: str) -> str | None:
        """Return the address of the person whose account it is, or None."""
        owners = [address for address, own in self._start.accounts.items() if own.get(kind) == account]
        return owners[0] if len(owners) == 1 else None

    def convention(self, product: str, name: str, otherwise: Any = None) -> Any:
        """Return what the traces show of how the company has set up a product, or `otherwise`."""
        return self._start.conventions.get(product, _NOTHING).get(name, otherwise)

    def sees(self, entity_class: str, entity_id: str) -> bool:
        """Return whether the person can see a record; the episode's own records always."""
        return not self._start.state.exists(entity_class, entity_id) or self._start.sight.sees(entity_class, entity_id)

    # Reading

    def exists(self, entity_class: str, entity_id: str) -> bool:
        """Return whether a record is there now."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        present = own.get(PRESENT)
        return self._start.state.exists(entity_class, entity_id) if present is None else bool(present)

    def ids(self, entity_class: str) -> Iterator[str]:
        """Yield the ids of the records of a class that are there now: oldest first, the episode's own last."""
        state = self._start.state
        for key in state.world.ids.get(entity_class, ()):
            if self.exists(entity_class, key):
                yield key
        for key in self._own(entity_class):
            if (entity_class, key) not in state.world.slots and self.exists(entity_class, key):
                yield key

    def is_known(self, entity_class: str, entity_id: str, field: str) -> bool:
        """Return whether a field's value is known, or the record has no such field."""
        if field in self._overlay.get((entity_class, entity_id), _NOTHING):
            return True
        state = self._start.state.field(entity_class, entity_id, field)
        return state is None or state.is_known

    def value(self, entity_class: str, entity_id: str, field: str, otherwise: Any = None) -> Any:
        """Return a field's value now; `otherwise` if the record has no such field. Errors: Undecided if it is not known."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        if field in own:
            return own[field]
        state = self._start.state
        version = state.version(entity_class, entity_id, field)
        if version is None:
            return otherwise
        if state.instant < version.guessed_until:
            raise Undecided(f"the exports do not tell {field!r} of {entity_class} {entity_id} at this instant")
        return version.value

    def last_on_record(self, entity_class: str, entity_id: str, field: str) -> Any:
        """Return a field's value, or the last one on record where it is not known: for values that a product's module shows to
        have been settled long before now, and for nothing else."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        return own[field] if field in own else self._start.state.guess(entity_class, entity_id, field)

    def last_born_where(self, entity_class: str, field: str, value: Any) -> float | None:
        """Return when the newest record began that ever had a value in a field, in seconds; None: there is none.

        It may lie after now: it tells how long a value may still have changed, and must not show in an answer."""
        world = self._start.state.world
        keys = world.by_value(entity_class, field).get(value)
        return world.born[entity_class, keys[-1]] / _SECOND if keys else None

    def changed_at(self, entity_class: str, entity_id: str, field: str) -> float | None:
        """Return since when a field has its value, in seconds; None: no field."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        if field in own:
            return float(own[_WRITTEN][field])
        state = self._start.state.field(entity_class, entity_id, field)
        return None if state is None else state.at / _SECOND

    def where(self, entity_class: str, field: str, value: Any) -> list[str]:
        """Return the ids of the records that have a value in a field, oldest first, by an index.

        Errors: Undecided if the field of a record is not known that the exports show with this value at some time.
        """
        index = self._start.state.world.by_value(entity_class, field)
        keys = [*index.get(value, ()), *(key for key in self._own(entity_class) if key not in index.get(value, ()))]
        return [key for key in keys if self.exists(entity_class, key) and self.value(entity_class, key, field) == value]

    def with_word(self, entity_class: str, field: str, word: str) -> list[str]:
        """Return the ids of the records whose text in a field had a word at any time, or that the episode wrote: candidates,
        oldest first, by an index. `word`: letters and digits in any case."""
        keys = self._start.state.world.by_word(entity_class, field).get(word.casefold(), ())
        return [key for key in (*keys, *(key for key in self._own(entity_class) if key not in keys))
                if self.exists(entity_class, key)]

    def with_prefix(self, entity_class: str, field: str, prefix: str) -> set[str]:
        """Return the ids of the records whose text in a field had a word that begins so at any time, or that the episode wrote:
        candidates, by an index. `prefix`: letters and digits in any case."""
        world = self._start.state.world
        index = world.by_word(entity_class, field)
        return {key for word in world.words_with(entity_class, field, prefix) for key in index[word]
                } | set(self._own(entity_class))

    def newest_where(self, entity_class: str, field: str, value: Any) -> Iterator[str]:
        """Yield the ids of the records that have a value in a field, newest first, lazily, by an index.

        Errors: as `where`."""
        state = self._start.state
        born = state.world.born
        own = [key for key in self._own(entity_class) if born.get((entity_class, key), state.instant + 1) > state.instant]
        keys = state.world.by_value(entity_class, field).get(value, ())
        end = bisect_right(keys, state.instant, key=lambda key: born[entity_class, key])
        for key in chain(reversed(own), (keys[place] for place in range(end - 1, -1, -1))):
            if self.exists(entity_class, key) and self.value(entity_class, key, field) == value:
                yield key

    # Writing

    def made_id(self, kind: str, length: int = 16) -> str:
        """Return hexadecimal digits for a new id: the same for the same start, number of acts and kind."""
        name = canonical([self._start.state.instant, self.address, self.n_acts, kind])
        return hashlib.sha256(name.encode()).hexdigest()[:length]

    def write(self, entity_class: str, entity_id: str, **values: Any) -> None:
        """Set fields of a record, which exists from then on. A tool writes only when nothing can be refused any more."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        present = _NOTHING if self.exists(entity_class, entity_id) else {PRESENT: True}
        written = {**own.get(_WRITTEN, _NOTHING), **dict.fromkeys(values, self.now)}
        self._overlay = self._overlay.over({(entity_class, entity_id): {**own, **present, **values, _WRITTEN: written}})

    def remove(self, entity_class: str, entity_id: str) -> None:
        """Delete a record."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        self._overlay = self._overlay.over({(entity_class, entity_id): {**own, PRESENT: False}})

    def _own(self, entity_class: str) -> list[str]:
        """Return the ids of a class that the episode wrote, in the order of their first writes."""
        return [key for kind, key in self._overlay.items() if kind == entity_class]

    # Episodes

    def snapshot(self) -> tuple[Overlay, int]:
        """Return what the episode wrote, as a value that nobody changes."""
        return self._overlay, self.n_acts

    def restore(self, snapshot: tuple[Overlay, int]) -> None:
        """Return to a snapshot of this start."""
        self._overlay, self.n_acts = snapshot

    def fork(self) -> CompanyDesk:
        """Return the same desk, independent from here on."""
        return CompanyDesk(self._start, self._overlay, self.n_acts)

    def record(self, entity_class: str, entity_id: str, is_start: bool = False) -> dict[str, Any] | None:
        """Return a record's known fields now, or as the episode began; None: it is not there."""
        state = self._start.state
        if not (state.exists(entity_class, entity_id) if is_start else self.exists(entity_class, entity_id)):
            return None
        own = {} if is_start else self._overlay.get((entity_class, entity_id), _NOTHING)
        written = {name: value for name, value in own.items() if name not in (PRESENT, _WRITTEN)}
        return {**state.values(entity_class, entity_id), **written}

    def changed(self) -> list[tuple[str, str]]:
        """Return (class, id) of the records that differ from the start."""
        return sorted(name for name in self._overlay.items() if self.record(*name) != self.record(*name, is_start=True))
