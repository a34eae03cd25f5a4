"""Forgetting a person, from beginning to end; whatever it is killed at, the same call goes on to the end.

Order makes it so: whom to leave out is remembered first; releases and directories go while the tables still tell what came from
the person; the tables give up what they know in one transaction; then the warehouse is written anew, so that no byte is left of
deleted rows. Each step looks for itself what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from extractors.privacy import KINDS, Pseudonyms
from extractors.privacy.fields import guessed
from extractors.privacy.kept import is_listed
from pipelines import privacy
from pipelines.erasing import folders
from pipelines.erasing.finding import Theirs, find, person_is
from pipelines.erasing.identifiers import Identifiers
from pipelines.erasing.known import Known, known_of
from pipelines.erasing.remembered import key_of, remembered, rows_of
from pipelines.erasing.tables import erase, places_of
from pipelines.erasing.tracing import Trace
from pipelines.keys import keyed_hash
from pipelines.releases.registry import Registry
from pipelines.releases.reissuing import Reissued, holding, reissue
from pipelines.settings import Settings
from warehouse.catalogs import catalog_of
from warehouse.errors import InputError, Missing
from warehouse.lock import writing
from warehouse.store import Store


class Forgot(NamedTuple):
    """What forgetting did, or would do."""

    values: list[str]
    """What stands for the person: as it was given, then as their own record tells."""
    name: list[str]
    """Words of their name; with one of the numbers of their record it stands for them too."""
    n_events: int
    n_sessions: int
    n_tasks: int
    rows: dict[str, int]
    """Table -> rows that went; of a dry run those that are told by ids alone."""
    services: list[str]
    """Services whose fitted numbers (supports, rates, calibrations) move at the next build."""
    withdrawn: list[str]
    """Directories of the run's folder that went, to be built anew."""
    images: list[str]
    """Container images that hold the person."""
    n_corrections: int
    releases: list[Reissued]
    """Releases that held the person: a tombstone each, and what was issued anew; of a dry run without the latter."""
    left: list[str]
    """Files in which a value of the person still stands: no run wrote them."""


def forget(
    settings: Settings, registry: Registry, subject: str, also: Iterable[str] = (), dry: bool = False,
    waiting: Callable[[str], None] | None = None,
) -> Forgot:
    """Forget a person. `also`: other values that stand for them. `dry` only says what would go.

    Raises InputError, Missing where there is no warehouse, and what opening one raises.
    """
    if not subject.strip():
        raise InputError("this is no identifier", "--subject", "give the id, the user name or the e-mail address of the person")
    if not catalog_of(settings.warehouse).is_there():
        raise Missing("there is no warehouse here", str(settings.warehouse), "name the folder of a run: --out DIR")
    with writing(settings.warehouse, "forgetting somebody", waiting), Store.open(settings.warehouse) as store:
        known = known_of(store, stored_forms(store, subject))
        person = Identifiers([form for value in (subject, *also) for form in stored_forms(store, value)] + known.values)
        theirs = find(store, person, known)
        return (_would if dry else _forget)(store, settings, registry, person, known, theirs)


def stored_forms(store: Store, value: str) -> list[str]:
    """How a value of a person may stand in the warehouse: as it is, and as its pseudonyms where people are taken out."""
    value = value.strip()
    if privacy.held_policy(store) in (None, privacy.OFF):
        return [value]
    owner = privacy.owner_of(store)
    kinds = {guessed(value), *(kind for kind, seen in privacy.known(store, owner) if seen.lower() == value.lower())}
    made = Pseudonyms(owner.key)
    return [value, *(made.of(kind, value) for kind in sorted(kinds) if kind in KINDS)]


def _unseal(store: Store, person: Identifiers, names: list[str]) -> None:
    """Take out what is kept, sealed, of who was seen: their values, their name, and words of it that are nobody else's.

    `names`: words of their name as they are stored, under their pseudonyms.
    """
    if privacy.held_policy(store) in (None, privacy.OFF):
        return
    owner = privacy.owner_of(store)
    made, seen = Pseudonyms(owner.key), privacy.known(store, owner)
    theirs = {(kind, value) for kind, value in seen if person_is(person, value) or (
        kind in KINDS and person_is(person, made.of(kind, value))) or (
        kind == "full" and len(names) > 1 and {made.word(word) for word in value.split()} <= set(names))}
    others = {word for kind, value in seen - theirs if kind == "full" for word in value.split()}
    words = {word for kind, value in theirs if kind == "full" for word in value.split()} - others
    theirs |= {("word", word) for word in words if not is_listed(word)}
    gone = [keyed_hash(owner.key, kind, value)[:32] for kind, value in theirs]
    store.change("delete from raw.people where list_contains($gone, person_id)", None, gone=gone)


def _would(
    store: Store, settings: Settings, registry: Registry, person: Identifiers, known: Known, theirs: Theirs
) -> Forgot:
    gone = folders.to_withdraw(settings, places_of(store, theirs.services)) if not theirs.is_nothing else []
    rows = {"core.events": theirs.events.height, "core.sessions": len(theirs.sessions), "mart.tasks": len(theirs.tasks)}
    held = holding(registry, Trace(person, theirs.lineage).in_file)
    told = _told(store, person, known, theirs, gone)
    return told._replace(rows={table: n for table, n in rows.items() if n},
                         releases=[Reissued(release, None, sorted(paths)) for release, paths in held.items()])


def _forget(
    store: Store, settings: Settings, registry: Registry, person: Identifiers, known: Known, theirs: Theirs
) -> Forgot:
    out, key = Path(settings.out), key_of()
    remembered(store)   # whoever has another key is refused before anything goes
    store.append_new("raw.forgotten", rows_of(key, person, theirs))
    gone = folders.to_withdraw(settings, places_of(store, theirs.services)) if not theirs.is_nothing else []
    told = _told(store, person, known, theirs, gone)
    releases = reissue(registry, Trace(person, theirs.lineage).in_file)
    folders.withdraw(settings, gone)
    n_corrections = folders.correct(settings, person, theirs.lineage)
    rows = erase(store, key, person, theirs).rows
    _unseal(store, person, known.names)
    store.compact()
    store.publish()
    left = folders.still_there(out, person)
    return told._replace(rows=rows, n_corrections=n_corrections, releases=releases, left=left)


def _told(store: Store, person: Identifiers, known: Known, theirs: Theirs, withdrawn: list[str]) -> Forgot:
    """What is known before anything goes."""
    images = store.read("select image_id from mart.environments where image_id is not null and service in "
                        "(select unnest($services))", services=theirs.services)["image_id"].to_list()
    name = known.names if len(known.names) > 1 and known.numbers else []
    return Forgot(person.values, name, theirs.events.height, len(theirs.sessions), len(theirs.tasks), {}, theirs.services,
                  withdrawn, sorted(images), 0, [], [])
