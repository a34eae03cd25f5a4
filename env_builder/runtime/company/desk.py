"""A person's desk: the world of an instant as one person works in it, with what the episode wrote on top.

In: a state of the world, the person's address, the accounts of all people. Out: values, records and indexes for the tools of
the apps (`runtime.office`), and their writes.
Sees: what had happened by the instant, and the episode's own writes. A value that the exports do not tell raises `Undecided`:
the tool's answer is then `unknown`, unless what was asked leaves the value out. Does not see: anything later.
What an act with an unknown answer may have written is open (`open_up`, from `supposing`): a field raises `Undecided` until it
is written again, a record that may be there raises it wherever it could be listed.
An act takes a second of the desk's clock, so that the order of writes is the order of their instants. Where the world goes on
(`ongoing`), a call takes a minute, and what others do shows as it happens; of one field, the last change counts.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from ..canonical import canonical
from ..world import Overlay
from .ongoing import SECONDS_OF_A_CALL, OngoingWorld
from .sight import PersonSight
from .world import PRESENT, CompanyState

Accounts = Mapping[str, Mapping[str, str]]
"""Address of a person -> class of accounts (`slack_user`, `jira_user`, `login` …) -> id."""
UNDECIDED = object()
"""Value that a tool writes into a field of which it only knows that it may have changed."""
_SECOND = 1_000_000
V = TypeVar("V")
_WRITTEN = "$written"
"""Of a record in the overlay: field -> instant of the write."""
_NOTHING: dict[str, Any] = {}
_KEPT = "kept"
"""Existence of a record of the world that an act may have removed before, and that is written again."""
_NO_CLASSES: frozenset[str] = frozenset()
_WHEN = ("modified", "updated")
"""Fields that say when a record was written last: no part of what it is."""


class Undecided(Exception):
    """The answer depends on what the exports do not hold; the text says on what."""


class UnwordedRefusal(Undecided):
    """The product refuses a call in words that are not on record: the answer is unknown, and nothing has changed."""


class PossibleWrite(NamedTuple):
    """What an act may have written of a record."""

    entity_class: str
    entity_id: str
    values: Mapping[str, Any]
    """Field -> what it may have become; `PRESENT`: false if the record may be gone."""


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
    began_at: int | None = None
    """Where the world has gone on since: when the episode began (microseconds)."""
    goes_on: OngoingWorld | None = None
    """What else happens during the episode; None: nothing, the world stands still."""


class CompanyDesk:
    """The world as one person works in it; a fork copies nothing."""

    __slots__ = ("_open", "_overlay", "_start", "address", "n_acts")

    def __init__(self, start: DeskStart, overlay: Overlay | None = None, n_acts: int = 0, opened: frozenset[str] = _NO_CLASSES,
                 ) -> None:
        self._start = start
        self._overlay = overlay or Overlay()
        self.n_acts = n_acts
        self._open = opened
        """Classes of which any record may have changed, and new ones may be there."""
        self.address = start.address
        """Of the acting person."""

    # Who and when

    @property
    def now(self) -> float:
        """The desk's instant, in seconds since 1970 UTC."""
        return self._instant() / _SECOND

    def _instant(self) -> int:
        start = self._start
        if start.goes_on is None:
            return start.state.instant + self.n_acts * _SECOND
        return self._began_at() + self.n_acts * SECONDS_OF_A_CALL * _SECOND

    def _began_at(self) -> int:
        return self._start.state.instant if self._start.began_at is None else self._start.began_at

    def tick(self, has_acted: bool) -> None:
        """Move the clock after a call: by an act, or by every call where the world goes on."""
        if has_acted or self._start.goes_on is not None:
            self.n_acts += 1

    def pass_time(self, seconds: float) -> None:
        """Move the clock as if somebody only waited: a second longer at most, a minute where the world goes on."""
        self.n_acts += int(max(0.0, seconds) / (SECONDS_OF_A_CALL if self._start.goes_on is not None else 1)) + 1

    def go_on(self) -> None:
        """Let happen what happens until now, if the world goes on."""
        start = self._start
        if start.goes_on is not None:
            state = start.goes_on.state_at(self._instant())
            if state is not start.state:
                self._start = start._replace(state=state, sight=start.sight.at(state), began_at=self._began_at())

    @property
    def accounts(self) -> Mapping[str, str]:
        """Class of accounts -> id, of the acting person."""
        return self._start.accounts.get(self.address.strip().lower(), {})

    def account(self, kind: str, address: str | None = None) -> str:
        """Return the id of somebody's account; of the acting person's without an address. Errors: Undecided."""
        account = self.account_of(kind, self.address if address is None else address)
        if account is None:
            raise Undecided(f"no account of the class {kind} is known of {address or self.address}")
        return account

    def account_of(self, kind: str, address: str) -> str | None:
        """Return the id of the account of a person, or None if none is known."""
        return self._start.accounts.get(address.strip().lower(), {}).get(kind)

    def convention(self, product: str, name: str, otherwise: Any = None) -> Any:
        """Return what the traces show of how the company has set up a product, or `otherwise`."""
        return self._start.conventions.get(product, _NOTHING).get(name, otherwise)

    def sees(self, entity_class: str, entity_id: str) -> bool:
        """Return whether the person can see a record; the episode's own records always. Errors: Undecided."""
        if not self._start.state.exists(entity_class, entity_id) or self._start.sight.sees(entity_class, entity_id):
            return True
        if self._start.sight.is_open(entity_class, entity_id):
            raise Undecided(f"no directory tells in which groups {self.address} is, and {entity_class} {entity_id} is for some")
        return False

    def exists(self, entity_class: str, entity_id: str) -> bool:
        """Return whether a record is there now. Errors: Undecided."""
        present = self._presence(entity_class, entity_id)
        if present is UNDECIDED:
            raise _open_record(entity_class, entity_id)
        return bool(present)

    def _presence(self, entity_class: str, entity_id: str) -> Any:
        """Return whether a record is there; `UNDECIDED` if an act may have made or removed it."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        present = own.get(PRESENT)
        if present is not None:
            return True if present == _KEPT else present
        if self._open and entity_class in self._open:
            return UNDECIDED
        return self._start.state.exists(entity_class, entity_id)

    def _check_listed(self, entity_class: str) -> None:
        """Raise Undecided if records of a class may be there that nothing names."""
        if self._open and entity_class in self._open:
            raise Undecided(f"which records of the class {entity_class} are there after what this episode did is not on record")

    def _has(self, entity_class: str, entity_id: str, field: str, value: Any) -> bool:
        """Return whether a record is there with a value. A record that may be there is none if it had another value.

        Errors: Undecided."""
        present = self._presence(entity_class, entity_id)
        if present is False or self.value(entity_class, entity_id, field) != value:
            return False
        if present is UNDECIDED:
            raise _open_record(entity_class, entity_id)
        return True

    def _may_hold(self, entity_class: str, entity_id: str, field: str, text: str) -> bool:
        """Return whether a record is there. Errors: Undecided if that is open, unless the record would not hold a text."""
        present = self._presence(entity_class, entity_id)
        if present is UNDECIDED:
            own = self._overlay.get((entity_class, entity_id), _NOTHING).get(field, UNDECIDED)
            if own is not UNDECIDED and text not in str(own).casefold():
                return False
            raise _open_record(entity_class, entity_id)
        return bool(present)

    def ids(self, entity_class: str) -> Iterator[str]:
        """Yield the ids of the records of a class that are there now: oldest first, the episode's own last.

        Errors: Undecided."""
        self._check_listed(entity_class)
        state = self._start.state
        for key in state.world.ids.get(entity_class, ()):
            if self.exists(entity_class, key):
                yield key
        for key in self._own(entity_class):
            if (entity_class, key) not in state.world.slots and self.exists(entity_class, key):
                yield key

    def visible(self, entity_class: str) -> list[str]:
        """Return the ids of the records of a class that are there now and that the person can see, by an index: oldest first,
        the episode's own last. Errors: Undecided."""
        self._check_listed(entity_class)
        own = self._own(entity_class)
        keys = self._start.sight.visible(entity_class)
        if not own:
            return list(keys)
        state = self._start.state
        return [*(key for key in keys if self.exists(entity_class, key)),
                *(key for key in own if not state.exists(entity_class, key) and self.exists(entity_class, key))]

    def own(self, entity_class: str) -> list[str]:
        """Return the ids of the records of a class that the episode wrote and that are there, in the order of first writes.

        Errors: Undecided."""
        self._check_listed(entity_class)
        return [key for key in self._own(entity_class) if self.exists(entity_class, key)]

    def of_start(self, name: str, compute: Callable[[CompanyDesk], V]) -> V:
        """Return what `compute` makes of the beginning alone, computed once for all episodes that begin there.

        `name` starts with the product's."""
        memory = self._start.sight.memory
        if name not in memory:
            memory[name] = compute(CompanyDesk(self._start))
        value: V = memory[name]
        return value

    def of_world(self, name: str, compute: Callable[[Mapping[str, Sequence[str]]], V]) -> V:
        """Return what `compute` makes of the ids of all times by class, computed once: an index, never an answer."""
        world = self._start.state.world
        if (name, "") not in world.memory:
            world.memory[name, ""] = compute(world.ids)
        value: V = world.memory[name, ""]
        return value

    def of_record(self, name: str, entity_class: str, entity_id: str, compute: Callable[[], V]) -> V:
        """Return what `compute` makes of a record; of a record that never changes, it is computed once for all episodes."""
        if self._overlay.get((entity_class, entity_id), None) is not None:
            return compute()
        memory = self._start.state.world.memory
        if (name, entity_id) not in memory:
            computed = compute()
            if not self._start.state.world.is_constant(entity_class, entity_id):
                return computed
            memory[name, entity_id] = computed
        value: V = memory[name, entity_id]
        return value

    def is_known(self, entity_class: str, entity_id: str, field: str) -> bool:
        """Return whether a field's value is known, or the record has no such field."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        if field in own and not (self._start.began_at and self._is_overtaken(own, entity_class, entity_id, field)):
            return own[field] is not UNDECIDED
        if self._open and entity_class in self._open:
            return False
        if own.get(PRESENT) is True:
            return True
        state = self._start.state.field(entity_class, entity_id, field)
        return state is None or state.is_known

    def value(self, entity_class: str, entity_id: str, field: str, otherwise: Any = None) -> Any:
        """Return a field's value now; `otherwise` if the record has no such field. Errors: Undecided if it is not known."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        if field in own:
            if own[field] is UNDECIDED:
                raise _open_field(entity_class, entity_id, field)
            if not (self._start.began_at and self._is_overtaken(own, entity_class, entity_id, field)):
                return own[field]
        elif self._open and entity_class in self._open:
            raise _open_field(entity_class, entity_id, field)
        elif own and own.get(PRESENT) is True:
            return otherwise   # the episode made it, whatever the world makes of this id
        state = self._start.state
        version = state.version(entity_class, entity_id, field)
        if version is None:
            return otherwise
        if state.instant < version.guessed_until:
            raise Undecided(f"the exports do not tell {field!r} of {entity_class} {entity_id} at this instant")
        return version.value

    def _is_overtaken(self, own: Mapping[str, Any], entity_class: str, entity_id: str, field: str) -> bool:
        """Return whether a field took another value while the world went on, since the episode wrote it.

        Errors: Undecided for a list or an object: the later change need not have undone what the episode did."""
        version = self._start.state.version(entity_class, entity_id, field)
        if own.get(PRESENT) is True or version is None or version.at <= own[_WRITTEN].get(field, 0) * _SECOND:
            return False
        if isinstance(version.value, (list, dict)):
            raise Undecided(f"both this episode and others changed {field!r} of {entity_class} {entity_id}")
        return True

    def last_born_where(self, entity_class: str, field: str, value: Any) -> float | None:
        """Return when the newest record began that ever had a value in a field, in seconds; None: there is none.

        It may lie after now: it tells how long a value may still have changed, and must not show in an answer."""
        world = self._start.state.world
        keys = world.by_value(entity_class, field).get(value)
        return world.births[entity_class, keys[-1]] / _SECOND if keys else None

    def fields(self, entity_class: str, entity_id: str) -> list[str]:
        """Return the names of a record's fields, in the order in which they came, the episode's own last."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        names = {} if own.get(PRESENT) is True else dict.fromkeys(self._start.state.get(entity_class, entity_id))
        return [*names, *(name for name in own if name not in names and name not in (PRESENT, _WRITTEN))]

    def last_known(self, entity_class: str, entity_id: str, field: str) -> Any:
        """Return a field's value, or where it is not known the one that the exports show later: to see whether an answer
        depends on it, or where a law says that it has been so for long."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        value = own.get(field, UNDECIDED)
        return self._start.state.guess(entity_class, entity_id, field) if value is UNDECIDED else value

    def changed_at(self, entity_class: str, entity_id: str, field: str) -> float | None:
        """Return since when a field has its value, in seconds; None: no field. Errors: Undecided."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        if own.get(field) is UNDECIDED or (self._open and entity_class in self._open and field not in own):
            raise _open_field(entity_class, entity_id, field)
        if field in own and not (self._start.began_at and self._is_overtaken(own, entity_class, entity_id, field)):
            return float(own[_WRITTEN][field])
        if own.get(PRESENT) is True:
            return None
        state = self._start.state.field(entity_class, entity_id, field)
        return None if state is None else state.at / _SECOND

    def where(self, entity_class: str, field: str, value: Any) -> list[str]:
        """Return the ids of the records that have a value in a field, oldest first, by an index.

        Errors: Undecided if the field of a record is not known that the exports show with this value at some time.
        """
        self._check_listed(entity_class)
        index = self._start.state.world.by_value(entity_class, field)
        keys = [*index.get(value, ()), *(key for key in self._own(entity_class) if key not in index.get(value, ()))]
        return [key for key in keys if self._has(entity_class, key, field, value)]

    def with_word(self, entity_class: str, field: str, word: str) -> list[str]:
        """Return the ids of the records whose text in a field had a word at any time, or that the episode wrote: candidates,
        oldest first, by an index. `word`: letters and digits in any case. Errors: Undecided."""
        self._check_listed(entity_class)
        keys = self._start.state.world.by_word(entity_class, field).get(word.casefold(), ())
        return [key for key in (*keys, *(key for key in self._own(entity_class) if key not in keys))
                if self._may_hold(entity_class, key, field, word.casefold())]

    def with_member(self, entity_class: str, field: str, member: str) -> list[str]:
        """Return the ids of the records that had a member in a list or object of a field at any time, or that the episode
        wrote: candidates, oldest first, by an index. Errors: Undecided."""
        self._check_listed(entity_class)
        keys = self._start.state.world.by_member(entity_class, field).get(member, ())
        return [key for key in (*keys, *(key for key in self._own(entity_class) if key not in keys))
                if self._may_hold(entity_class, key, field, member.casefold())]

    def with_prefix(self, entity_class: str, field: str, prefix: str) -> set[str]:
        """Return the ids of the records whose text in a field had a word that begins so at any time, or that the episode wrote:
        candidates, by an index. `prefix`: letters and digits in any case. Errors: Undecided."""
        self._check_listed(entity_class)
        world = self._start.state.world
        index = world.by_word(entity_class, field)
        own = {key for key in self._own(entity_class) if self._may_hold(entity_class, key, field, prefix.casefold())}
        return {key for word in world.words_with(entity_class, field, prefix) for key in index[word]} | own

    def newest_where(self, entity_class: str, field: str, value: Any) -> Iterator[str]:
        """Yield the ids of the records that have a value in a field, newest first, lazily, by an index.

        Errors: as `where`."""
        self._check_listed(entity_class)
        state = self._start.state
        births = state.world.births
        own = [key for key in self._own(entity_class) if births.get((entity_class, key), state.instant + 1) > state.instant]
        keys = state.world.by_value(entity_class, field).get(value, ())
        end = bisect_right(keys, state.instant, key=lambda key: births[entity_class, key])
        for key in chain(reversed(own), (keys[place] for place in range(end - 1, -1, -1))):
            if self._has(entity_class, key, field, value):
                yield key

    # Writing

    def assigned(self, entity_class: str, entity_id: str, field: str) -> Any:
        """Return what a product gave a record of this id when it came to be, even later: for numbers that products assign
        alone, so that a record which the episode makes in its place gets the recorded number. None: there is none."""
        return self._start.state.world.first_value(entity_class, entity_id, field)

    def next_id(self, entity_class: str, field: str = "", value: Any = None) -> str | None:
        """Return the id that the product gave next to a record of a class, with a value in a field if one is named.

        For ids that a product counts: a record which the episode makes takes the place of the recorded one. Errors: Undecided.
        """
        self._check_listed(entity_class)
        for key in self._own(entity_class):
            self.exists(entity_class, key)   # a record that may be there may have taken the next id
        world = self._start.state.world
        ids = world.by_value(entity_class, field).get(value, ()) if field else world.ids.get(entity_class, ())
        begun = bisect_right(ids, self._began_at(), key=lambda key: world.births[entity_class, key])
        return next((key for key in ids[begun:] if self._overlay.get((entity_class, key), None) is None
                     and not self._start.state.exists(entity_class, key)), None)

    def made_id(self, kind: str, length: int = 16) -> str:
        """Return hexadecimal digits for a new id: the same for the same start, number of acts and kind."""
        name = canonical([self._began_at(), self.address, self.n_acts, kind])
        return hashlib.sha256(name.encode()).hexdigest()[:length]

    def write(self, entity_class: str, entity_id: str, **values: Any) -> None:
        """Set fields of a record, which exists from then on. A tool writes only when nothing can be refused any more."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        before = self._presence(entity_class, entity_id)
        is_kept = before is UNDECIDED and self._start.state.exists(entity_class, entity_id)
        present = _NOTHING if before is True else {PRESENT: _KEPT if is_kept else True}
        written = {**own.get(_WRITTEN, _NOTHING), **dict.fromkeys(values, self.now)}
        self._overlay = self._overlay.over({(entity_class, entity_id): {**own, **present, **values, _WRITTEN: written}})

    def remove(self, entity_class: str, entity_id: str) -> None:
        """Delete a record."""
        own = self._overlay.get((entity_class, entity_id), _NOTHING)
        self._overlay = self._overlay.over({(entity_class, entity_id): {**own, PRESENT: False}})

    def open_up(self, touches: Iterable[PossibleWrite], classes: frozenset[str] = _NO_CLASSES, is_sure_of_new: bool = False,
                ) -> None:
        """Take records as an act with an unknown answer may have left them. A field is known again when it is written again.

        `classes`: any record of them may have changed, and new ones may be there. `is_sure_of_new`: a record that the act may
        have made has these values if it is there."""
        self._open |= classes
        opened: dict[tuple[str, str], dict[str, Any]] = {}
        for name, own in self._overlay.items().items():
            if name[0] in classes:
                opened[name] = {**dict.fromkeys(own, UNDECIDED), _WRITTEN: own.get(_WRITTEN, _NOTHING)}
        for touch in touches:
            name = (touch.entity_class, touch.entity_id)
            own = opened.get(name) or self._overlay.get(name, _NOTHING)
            keeps = is_sure_of_new and self._presence(*name) is False
            values = {field: value if keeps and field != PRESENT else UNDECIDED for field, value in touch.values.items()}
            present = {} if self._presence(*name) is True and PRESENT not in touch.values else {PRESENT: UNDECIDED}
            written = {**own.get(_WRITTEN, _NOTHING), **dict.fromkeys(touch.values, self.now)}
            opened[name] = {**own, **values, **present, _WRITTEN: written}
        if opened:
            self._overlay = self._overlay.over(opened)

    def written_since(self, before: CompanyDesk) -> list[tuple[str, str]]:
        """Return (class, id) of the records that were written since a copy was made of the desk, by their first writes."""
        earlier = before._overlay.items()
        return [name for name, own in self._overlay.items().items() if earlier.get(name) is not own]

    def has_acted_since(self, earlier: Overlay) -> bool:
        """Return whether records are other than they were: what is written once more as it was is no act, but for its time."""
        before = earlier.items()
        return any(before.get(name) is not own and _content(own) != _content(before.get(name, _NOTHING))
                   for name, own in self._overlay.items().items())

    def is_there(self, entity_class: str, entity_id: str) -> bool:
        """Return whether a record is there for sure."""
        return self._presence(entity_class, entity_id) is True

    def doubt(self, text: str) -> None:
        """Leave the call undecided: it is not on record whether the product goes on. Errors: Undecided, always.

        A tool says it here, and not by raising, if it can go on: `supposing` then finds what the act may have written."""
        raise Undecided(text)

    def acted(self) -> None:
        """Say that a tool has written all that it writes: what follows only makes the answer."""

    def one_of(self, entity_ids: Sequence[str], text: str) -> str | None:
        """Leave undecided which of some records a call means; None where there is none at all. Errors: Undecided.

        To find what the act may have written, `supposing` takes one of them, and opens what it writes there of all."""
        if entity_ids:
            raise Undecided(text)
        return None

    def _own(self, entity_class: str) -> list[str]:
        """Return the ids of a class that the episode wrote, in the order of their first writes."""
        return [key for kind, key in self._overlay.items() if kind == entity_class]

    # Episodes

    def snapshot(self) -> tuple[Overlay, int, frozenset[str]]:
        """Return what the episode wrote, as a value that nobody changes."""
        return self._overlay, self.n_acts, self._open

    def restore(self, snapshot: tuple[Overlay, int, frozenset[str]]) -> None:
        """Return to a snapshot of this start."""
        self._overlay, self.n_acts, self._open = snapshot
        self.go_on()

    def fork(self) -> CompanyDesk:
        """Return the same desk, independent from here on."""
        return CompanyDesk(self._start, self._overlay, self.n_acts, self._open)

    def record(self, entity_class: str, entity_id: str, is_start: bool = False) -> dict[str, Any] | None:
        """Return a record's known fields now, or as the episode began; None: it is not there.

        A record that an act may have made or removed is there if it was there before."""
        state = self._start.state
        present = state.exists(entity_class, entity_id) if is_start else self._presence(entity_class, entity_id)
        if not (state.exists(entity_class, entity_id) if present is UNDECIDED else present):
            return None
        own = {} if is_start else self._overlay.get((entity_class, entity_id), _NOTHING)
        fields = {**({} if own.get(PRESENT) is True else state.values(entity_class, entity_id)), **own}
        return {name: value for name, value in fields.items()
                if name not in (PRESENT, _WRITTEN, *_WHEN) and value is not UNDECIDED}

    def changed(self) -> list[tuple[str, str]]:
        """Return (class, id) of the records that differ from the start."""
        return sorted(name for name in self._overlay.items() if self.record(*name) != self.record(*name, is_start=True))


def _content(own: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in own.items() if name not in (_WRITTEN, *_WHEN)}


def _open_field(entity_class: str, entity_id: str, field: str) -> Undecided:
    return Undecided(f"whether this episode changed {field!r} of {entity_class} {entity_id} is not on record")


def _open_record(entity_class: str, entity_id: str) -> Undecided:
    return Undecided(f"whether {entity_class} {entity_id} is there after what this episode did is not on record")
