"""The guard between reading and storing: it pseudonymises personal data, once all readings of a run are known.

In: readings, as they were read. Out: the same, pseudonymised and in their order, by this process and by the workers that read.
Waiting readings are in memory, and beyond that on the disk, encrypted with a key that only this run has. A worker gets the
dictionary of people once; workers that do not share this machine's files are not used. People who were seen are stored in
`raw.people`, encrypted with the owner's key, so that the next run knows them; quarantined records are encrypted as well.
Until all chunks are committed and settled they are in `raw.new_people` as well: a run that takes up what a killed one left
judges as that one did, without knowing them before.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import orjson
import polars as pl

from extractors.formats.correction import NAME as CORRECTION
from extractors.privacy import KINDS, Cleaner, Finding, People, PersonFact, Policy
from extractors.privacy.letters import is_household, is_listed, is_plain
from extractors.privacy.policy import load
from extractors.reading import Reading
from pipelines import progress
from pipelines.ingestion.readers import no_room
from pipelines.privacy.keys import Owner, OwnerKey, Seal, keyed_hash, owner_key
from pipelines.running.engines import Call, Engine, Turns
from pipelines.settings import Settings
from warehouse.errors import InputError
from warehouse.records import NewPerson, Person, PrivacyState, frame
from warehouse.store import Store

OFF = "off"
_OTHER_KEY = "what it holds was read with another key"
_TOLD_BY_FORM = ("email", "phone", "card", "account", "address", "ip")
_TELLING = 6
"""Letters from which a word that is on no list means somebody where it stands alone."""
_MEMORY = 1 << 27
"""Bytes of readings that wait in memory; further ones wait on the disk."""
_NOT_NEW = "person_id not in (select person_id from raw.new_people)"
T = TypeVar("T")


def wanted(settings: Settings, store: Store | None = None) -> bool:
    """Whether to pseudonymise: as the call says, else the configuration, else as in OUT."""
    if settings.privacy is not None:
        return settings.privacy
    if settings.configuration and "privacy" in settings.configured.model_fields_set:
        return settings.configured.privacy == "on"
    policy = held_policy(store) if store is not None else None
    return settings.configured.privacy == "on" if policy is None else policy != OFF


def held_policy(store: Store) -> str | None:
    """Return the version of the rules by which the warehouse was pseudonymised, `off` if it was not; None: it is empty."""
    rows = store.read("select policy from raw.privacy")
    if rows.height:
        return str(rows["policy"][0])
    return OFF if store.count("raw.files") else None


def stated(store: Store) -> str:
    """Return the privacy setting that manifests state, with the version of its rules: `off`, `on (1)`."""
    policy = held_policy(store)
    return OFF if policy in (None, OFF) else f"on ({policy})"


def policy_of(settings: Settings) -> Policy:
    """Read the policy that the configuration names."""
    path = settings.configured.privacy_policy
    return load(Path(settings.configuration or ".").parent / path) if path else Policy()


def owner() -> Owner:
    """Return the owner whose key the environment names."""
    return Owner(owner_key(os.environ, lambda sentence: progress.warn("extract", sentence)))


def owner_of(store: Store) -> Owner:
    """Return the owner of a pseudonymised warehouse. Raises InputError if the environment's key is another one."""
    candidate = owner()
    if store.read("select key_check from raw.privacy")["key_check"].to_list() != [_check(candidate)]:
        raise InputError(_OTHER_KEY, str(store.path), "set TRACEROOM_KEY or TRACEROOM_KEY_FILE to that key")
    return candidate


def _check(owner: Owner) -> str:
    """Return a value that tells keys apart and reveals nothing of them."""
    return keyed_hash(owner.key, "check", "")


class Cleaning:
    """Pseudonymises readings."""

    def __init__(self, people: People, owner: Owner) -> None:
        self._cleaner, self._owner = Cleaner(people, owner.pseudonyms()), owner

    def of(self, reading: Reading) -> Reading:
        """Return the reading, pseudonymised; people's corrections contain no personal data."""
        if reading.file.format == CORRECTION:
            return reading
        cleaner = self._cleaner
        declared = reading.declarations.with_columns(
            cleaner.texts(reading.declarations[name]).alias(name) for name in ("description", "input_schema", "annotations"))
        quarantine = reading.quarantine.with_columns(pl.Series(
            "content", [self._owner.encrypt(each) for each in reading.quarantine["content"]], pl.Binary()))
        return replace(
            reading, events=cleaner.events(reading.events), declarations=declared, quarantine=quarantine,
            decisions=reading.decisions.with_columns(cleaner.texts(reading.decisions["detail"]).alias("detail")))

    def cleaned(self, reading: Reading) -> _Cleaned:
        """Return the reading, pseudonymised, with what was replaced only because of its form since the last call."""
        clean, matched = self.of(reading), set(self._cleaner.met)
        self._cleaner.met.clear()
        return _Cleaned(clean, matched)


class Guard(Generic[T]):
    """Holds readings, each with its task, and gives them back pseudonymised."""

    def __init__(self, store: Store, settings: Settings, folder: Path) -> None:
        self._store = store
        self._policy = policy_of(settings)
        self._owner = owner()
        self._finding = Finding()
        self._folder, self._seal = folder, Seal()
        self._waiting: deque[_Shard[T]] = deque()
        self._n_bytes = 0
        shutil.rmtree(folder, ignore_errors=True)

    def see(self, reading: Reading) -> None:
        """Note the people in a reading."""
        if reading.file.format != CORRECTION:
            self._finding.see(reading.events)

    def hold(self, task: T, reading: Reading) -> None:
        """Note the people in a reading, and hold it until all are known."""
        self.see(reading)
        n_bytes = int(reading.events.estimated_size() + reading.quarantine.estimated_size())
        self._n_bytes += n_bytes
        held_reading: Reading | Path = reading
        if self._n_bytes > _MEMORY:
            held_reading = self._folder / str(len(self._waiting))
            _write(held_reading, reading, self._seal)
        self._waiting.append(_Shard(task, held_reading, n_bytes))

    def clean(self, engine: Engine | None) -> Iterator[tuple[T, Reading, list[Person]]]:
        """Yield the readings in their order, pseudonymised, by the engine's workers too, each with people that are new in it by
        the form of what tells of them; store the others. Raises the errors of pipelines/running/engines. Afterwards `folder` is
        gone."""
        try:
            stored = stored_people(self._store, self._owner)
            people = People(self._finding, self._policy, stored_people(self._store, self._owner, _NOT_NEW))
            new_people = person_rows(people.facts - stored, self._owner)
            self._store.again(lambda: store_people(self._store, new_people))
            stored |= people.facts
            engine = engine if engine and engine.shares_files else None
            dictionary = self._folder / "people"
            if engine is not None:
                _write(dictionary, (people, (self._owner.key, self._owner.scheme)), self._seal)
            work = _Work(Cleaning(people, self._owner), dictionary, self._seal)
            shards = (self._waiting.popleft() for _ in range(len(self._waiting)))
            for shard, (reading, matched) in Turns[_Shard[T], _Cleaned](work, engine).of(shards):
                new = {each for each in matched if each[0] in _TOLD_BY_FORM} - stored
                stored |= new
                yield shard.task, reading, person_rows(new, self._owner)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def store_people(store: Store, people: list[Person]) -> None:
    """Store people who were met first by the run that is going."""
    store.append_new("raw.people", frame(Person, people))
    store.append_new("raw.new_people", frame(NewPerson, [NewPerson(person_id=each.person_id) for each in people]))


def pseudonymised(reading: Reading, store: Store, settings: Settings) -> Reading:
    """Return a reading without a task, pseudonymised with the people of the warehouse and of the reading; store new ones."""
    own = owner_of(store)
    finding = Finding()
    finding.see(reading.events)
    stored = stored_people(store, own)
    people = People(finding, policy_of(settings), stored)
    clean, matched = Cleaning(people, own).cleaned(reading)
    new = (people.facts | {each for each in matched if each[0] in _TOLD_BY_FORM}) - stored
    store.append_new("raw.people", frame(Person, person_rows(new, own)))
    return clean


def person_rows(facts: set[PersonFact], own: Owner) -> list[Person]:
    """Return rows of `raw.people`, encrypted with the owner's key."""
    return [Person(person_id=keyed_hash(own.key, kind, value)[:32], kind=kind, sealed=own.encrypt(orjson.dumps([kind, value])))
            for kind, value in sorted(facts)]


class _Shard(NamedTuple, Generic[T]):
    task: T
    reading: Reading | Path
    """It, or the path of its encrypted copy."""
    n_bytes: int


class _Cleaned(NamedTuple):
    reading: Reading
    matched: set[PersonFact]
    """What was replaced because of its form for the first time."""


class _Work(NamedTuple):
    """How a reading is pseudonymised."""

    cleaning: Cleaning
    dictionary: Path
    seal: Seal

    def size(self, shard: _Shard[T], /) -> int:
        return shard.n_bytes

    def run_here(self, shard: _Shard[T], /) -> _Cleaned:
        return self.cleaning.cleaned(_loaded(shard.reading, self.seal))

    def remote_call(self, shard: _Shard[T], engine: Engine, /) -> Call | None:
        return _clean, (shard.reading, self.dictionary, self.seal)

    def fetched(self, given: Callable[[], _Cleaned], /) -> _Cleaned:
        return given()


def _clean(reading: Reading | Path, dictionary: Path, seal: Seal) -> _Cleaned:
    """Pseudonymise a reading in another process."""
    return _cleaning(dictionary, seal).cleaned(_loaded(reading, seal))


@lru_cache(1)
def _cleaning(dictionary: Path, seal: Seal) -> Cleaning:
    people, key = pickle.loads(seal.decrypt(dictionary.read_bytes()))
    return Cleaning(people, Owner(OwnerKey(*key)))


def _write(path: Path, content: object, seal: Seal) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(seal.encrypt(pickle.dumps(content, pickle.HIGHEST_PROTOCOL)))
    except OSError as error:
        raise no_room(error, path.parent) from error


def _loaded(reading: Reading | Path, seal: Seal) -> Reading:
    loaded: Reading = pickle.loads(seal.decrypt(reading.read_bytes())) if isinstance(reading, Path) else reading
    return loaded


def stored_people(store: Store, owner: Owner, where: str = "true") -> set[PersonFact]:
    """Return the people who were seen so far, without those that another key encrypted."""
    opened = [owner.decrypt(sealed) for sealed in store.read(f"select sealed from raw.people where {where}")["sealed"]]
    return {(kind, value) for kind, value in (orjson.loads(each) for each in opened if each is not None)}


def pseudonyms_in(store: Store) -> frozenset[str]:
    """Return the pseudonyms of known people: they resemble personal data, and are nobody's. Telephone numbers with and without
    the + before their country, which is kept."""
    if held_policy(store) in (None, OFF):
        return frozenset()
    owned = owner()
    made = owned.pseudonyms()
    pseudonyms = {made.of(kind, value) for kind, value in stored_people(store, owned) if kind in KINDS}
    return frozenset(pseudonyms | {f"+{each}" for each in pseudonyms})


def names_in(store: Store) -> frozenset[str]:
    """Return the names of known people, in lower case, without those that are another's pseudonym, or words of every day; also
    single words of names that are on no list, which nothing else is called."""
    if held_policy(store) in (None, OFF):
        return frozenset()
    owned = owner()
    made = owned.pseudonyms()
    people = stored_people(store, owned)
    names = {value.lower() for kind, value in people if kind == "full" or (kind == "name" and len(value) > 1)}
    names = {name for name in names if not all(is_household(word) or is_plain(word) for word in name.split())}
    words = {value.lower() for kind, value in people if kind == "word" and len(value) >= _TELLING}
    words = {word for word in words if not (is_listed(word) or is_household(word) or is_plain(word))}
    return frozenset((names | words) - {made.of("name", name).lower() for name in names} - {
        made.word(word).lower() for word in words})


def agree(store: Store, settings: Settings) -> None:
    """Check that the warehouse was read with the same privacy settings, key and policy; note them if it is empty. Raises
    InputError."""
    stored, out = held_policy(store), settings.out
    if not wanted(settings, store):
        if stored not in (None, OFF):
            raise InputError("what it holds was read with --privacy on", out, "run into another --out, or with --privacy on")
        return
    policy, check = policy_of(settings).policy_id, _check(owner())
    if stored is None:
        state = frame(PrivacyState, [PrivacyState(policy=policy, key_check=check)])
        store.again(lambda: store.replace("raw.privacy", state))
        return
    if stored == OFF:
        raise InputError("what it holds was read with --privacy off", out, "run into another --out, or with --privacy off")
    row = store.read("select policy, key_check from raw.privacy").row(0)
    if row[1] != check:
        raise InputError(_OTHER_KEY, out, "set TRACEROOM_KEY or TRACEROOM_KEY_FILE to that key, or run into another --out")
    if row[0] != policy:
        raise InputError("what it holds was read by another privacy policy", out, "run into another --out")
