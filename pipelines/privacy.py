"""The guard: between what was read and what is stored, it holds back the texts of people.

In: readings, as they were read. Out: the same, clean, when all of the run were seen: then it is known who stands in them. What
waits meanwhile is sealed with a key that this process alone has. People who were seen lie in `raw.people`, sealed with the
owner's key, so that another night knows them; what could not be read is quarantined sealed as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

import orjson

from extractors.formats.correction import NAME as CORRECTION
from extractors.privacy import KINDS, Finding, Known, People, Policy, Pseudonyms
from extractors.privacy.policy import load
from extractors.reading import Reading
from pipelines import progress
from pipelines.cleaning import Waiting
from pipelines.engines import Engine
from pipelines.keys import keyed_hash, owner_key
from pipelines.seals import Owner
from pipelines.settings import Settings
from warehouse.errors import InputError
from warehouse.records import Person, PrivacyState, frame
from warehouse.store import Store

OFF = "off"
_TOLD_BY_FORM = ("email", "phone", "card", "account", "address", "ip")
T = TypeVar("T")


def wanted(settings: Settings, store: Store | None = None) -> bool:
    """Whether people are to be taken out: as the call says, else the configuration, else what OUT holds already."""
    if settings.privacy is not None:
        return settings.privacy
    if settings.configuration and "privacy" in settings.configured.model_fields_set:
        return settings.configured.privacy == "on"
    held = held_policy(store) if store is not None else None
    return settings.configured.privacy == "on" if held is None else held != OFF


def held_policy(store: Store) -> str | None:
    """Version of the rules by which what the warehouse holds was cleaned, `off` where it was not; None: it holds nothing."""
    found = store.read("select policy from raw.privacy")
    if found.height:
        return str(found["policy"][0])
    return OFF if store.count("raw.files") else None


def stated(store: Store) -> str:
    """What manifests say: whether people were taken out, and by which rules: `off`, `on (1)`."""
    held = held_policy(store)
    return OFF if held in (None, OFF) else f"on ({held})"


def policy_of(settings: Settings) -> Policy:
    """The policy that the configuration names."""
    path = settings.configured.privacy_policy
    return load(Path(settings.configuration or ".").parent / path) if path else Policy()


def owner() -> Owner:
    """The owner, by the environment."""
    return Owner(owner_key(os.environ, lambda sentence: progress.warn("extract", sentence)))


def owner_of(store: Store) -> Owner:
    """The owner of what a cleaned warehouse holds. Raises InputError where the key of the environment is another one."""
    found = owner()
    if store.read("select key_check from raw.privacy")["key_check"].to_list() != [_check(found)]:
        raise _another_key(str(store.path), "set TRACEROOM_KEY or TRACEROOM_KEY_FILE to that key")
    return found


def _check(owner: Owner) -> str:
    """What tells keys apart and says nothing of them."""
    return keyed_hash(owner.key, "check", "")


def _another_key(where: str, mend: str) -> InputError:
    return InputError("what it holds was read with another key", where, mend)


class Guard(Generic[T]):
    """Readings on one side, clean ones on the other."""

    def __init__(self, store: Store, settings: Settings, folder: Path) -> None:
        self._store = store
        self._policy = policy_of(settings)
        self._owner = owner()
        _agree(store, self._policy.policy_id, _check(self._owner), settings.out)
        self._finding, self._waiting = Finding(), Waiting[T](folder)

    def hold(self, task: T, reading: Reading) -> None:
        """See a reading, and keep it until all are seen."""
        if reading.file.format != CORRECTION:
            self._finding.see(reading.events)
        self._waiting.put(task, reading)

    def clean(self, engine: Engine | None) -> Iterator[tuple[T, Reading]]:
        """Those that wait, clean, in their order, by the engine's workers too; what is known of people is in the warehouse
        then."""
        with self._waiting as waiting:
            before = known(self._store, self._owner)
            people = People(self._finding, self._policy, before)
            self._remember(people.known - before)
            met = set[Known]()
            yield from waiting.cleaned(people, self._owner, engine, met)
            self._remember({each for each in met if each[0] in _TOLD_BY_FORM} - before - people.known)

    def _remember(self, known: set[Known]) -> None:
        key = self._owner.key
        people = frame(Person, [
            Person(person_id=keyed_hash(key, kind, value)[:32], kind=kind, sealed=self._owner.shut(orjson.dumps([kind, value])))
            for kind, value in sorted(known)])
        self._store.again(lambda: self._store.append_new("raw.people", people))


def known(store: Store, owner: Owner) -> set[Known]:
    """Who was seen so far; of those that another key sealed, nobody."""
    opened = [owner.opened(sealed) for sealed in store.read("select sealed from raw.people")["sealed"]]
    return {(kind, value) for kind, value in (orjson.loads(each) for each in opened if each is not None)}


def pseudonyms_in(store: Store) -> frozenset[str]:
    """The pseudonyms of what is known of people: they look like personal data, and are nobody's. Telephone numbers with and
    without the + before their country, which stays where it stands."""
    if held_policy(store) in (None, OFF):
        return frozenset()
    owned = owner()
    made = Pseudonyms(owned.key)
    told = {made.of(kind, value) for kind, value in known(store, owned) if kind in KINDS}
    return frozenset(told | {f"+{each}" for each in told})


def _agree(store: Store, policy: str, check: str, out: str) -> None:
    """One warehouse is cleaned by one key and one policy, or it is not."""
    held = held_policy(store)
    if held is None:
        state = frame(PrivacyState, [PrivacyState(policy=policy, key_check=check)])
        store.again(lambda: store.replace("raw.privacy", state))
        return
    if held == OFF:
        raise InputError("what it holds was read with --privacy off", out, "run into another --out, or with --privacy off")
    told = store.read("select policy, key_check from raw.privacy").row(0)
    if told[1] != check:
        raise _another_key(out, "set TRACEROOM_KEY or TRACEROOM_KEY_FILE to that key, or run into another --out")
    if told[0] != policy:
        raise InputError("what it holds was read by another privacy policy", out, "run into another --out")


def refuse_otherwise(store: Store, settings: Settings) -> None:
    """Raises InputError where what is held was read in another way than is asked for now."""
    if held_policy(store) is None:
        return
    if wanted(settings, store):
        _agree(store, policy_of(settings).policy_id, _check(owner()), settings.out)
    else:
        agree_to_none(store, settings.out)


def agree_to_none(store: Store, out: str) -> None:
    """Nothing is taken out: then nothing was before. Raises InputError."""
    if held_policy(store) not in (None, OFF):
        raise InputError("what it holds was read with --privacy on", out, "run into another --out, or with --privacy on")
