"""Forget a person, from beginning to end; if it is killed, the same call completes it.

The order ensures that: the person's hashes are stored first; releases and directories are deleted while the tables still tell
what came from the person; the tables are changed in one transaction; then the warehouse is rewritten, so that no byte of
deleted rows remains. Each step finds out by itself what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from extractors.privacy import KINDS
from extractors.privacy.fields import guessed
from extractors.privacy.letters import is_listed
from pipelines.erasing import folders
from pipelines.erasing.accounts import accounts_of, environments_of
from pipelines.erasing.finding import find
from pipelines.erasing.folders import Trace
from pipelines.erasing.identifiers import Identifiers, known_of
from pipelines.erasing.remembered import key_of, remembered, rows_of
from pipelines.erasing.tables import erase, places_of
from pipelines.privacy import guard as privacy
from pipelines.privacy.keys import keyed_hash
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
    """What identifies the person: as it was given, then from their own record."""
    name: list[str]
    """Words of their name; together with one of the numbers of their record, it identifies them too."""
    n_events: int
    n_sessions: int
    n_tasks: int
    rows: dict[str, int]
    """Table -> deleted rows; for a dry run those that are known by ids alone."""
    services: list[str]
    """Services whose fitted numbers (supports, rates, calibrations) change at the next build."""
    withdrawn: list[str]
    """Deleted directories of the run's folder, to be rebuilt."""
    images: list[str]
    """Container images with their data."""
    n_corrections: int
    releases: list[Reissued]
    """Releases with their data: a tombstone each, and what was reissued; for a dry run without the latter."""
    remaining: list[str]
    """Files that still contain a value of the person: no run wrote them."""


def forget(
    settings: Settings, registry: Registry, subject: str, also: Iterable[str] = (), dry: bool = False,
    waiting: Callable[[str], None] | None = None,
) -> Forgot:
    """Forget a person. `also`: other values that identify them. `dry` only reports what would be deleted. Raises InputError,
    Missing if there is no warehouse, and the errors of opening one."""
    if not subject.strip():
        raise InputError("this is no identifier", "--subject", "give the id, the user name or the e-mail address of the person")
    if not catalog_of(settings.warehouse).is_there():
        raise Missing("there is no warehouse here", str(settings.warehouse), "name the folder of a run: --out DIR")
    with writing(settings.warehouse, "forgetting somebody", waiting), Store.open(settings.warehouse) as store:
        settings.rename_old_folders()
        name_match = known_of(store, stored_forms(store, subject))
        forms = [form for value in (subject, *also) for form in stored_forms(store, value)]
        accounts = accounts_of(store, forms)
        person = Identifiers(forms + name_match.values, accounts)
        theirs = find(store, person, name_match)
        in_file = Trace(person, theirs.lineage).in_file
        names = [*places_of(store, theirs.services), *(environments_of(store) if accounts else ())]
        gone = folders.to_withdraw(settings, names) if accounts or not theirs.is_nothing else []
        images = store.read("select image_id from mart.environments where image_id is not null and service in "
                            "(select unnest($services))", services=theirs.services)["image_id"].to_list()
        report = Forgot(
            person.values, name_match.names if len(name_match.names) > 1 and name_match.numbers else [], theirs.events.height,
            len(theirs.sessions), len(theirs.tasks), {}, theirs.services, gone, sorted(images), 0, [], [])
        if dry:
            n = {"core.events": report.n_events, "core.sessions": report.n_sessions, "mart.tasks": report.n_tasks}
            return report._replace(
                rows={table: n_rows for table, n_rows in n.items() if n_rows},
                releases=[Reissued(release, None, sorted(paths)) for release, paths in holding(registry, in_file).items()])
        key = key_of()
        remembered(store)   # another key is rejected before anything is deleted
        store.append_new("raw.forgotten", rows_of(key, person, theirs))
        releases = reissue(registry, in_file)
        settings.receipt.unlink(missing_ok=True)
        folders.withdraw(settings, gone)
        n_corrections = folders.correct(settings, person, theirs.lineage)
        rows = erase(store, key, person, theirs)
        _delete_people(store, person, name_match.names)
        store.compact()
        store.publish()
        return report._replace(rows=rows, n_corrections=n_corrections, releases=releases,
                               remaining=folders.still_there(Path(settings.out), person))


def stored_forms(store: Store, value: str) -> list[str]:
    """Return the forms of a person's value in the warehouse: as it is, and its pseudonyms if people are pseudonymised."""
    value = value.strip()
    if privacy.held_policy(store) in (None, privacy.OFF):
        return [value]
    owner = privacy.owner_of(store)
    kinds = {guessed(value), *(kind for kind, text in privacy.stored_people(store, owner) if text.lower() == value.lower())}
    made = owner.pseudonyms()
    return [value, *(made.of(kind, value) for kind in sorted(kinds) if kind in KINDS)]


def _delete_people(store: Store, person: Identifiers, names: list[str]) -> None:
    """Delete the person's encrypted values, their name, and words of it that are nobody else's. `names`: words of their name as
    they are stored, as pseudonyms."""
    if privacy.held_policy(store) in (None, privacy.OFF):
        return
    owner = privacy.owner_of(store)
    made, people = owner.pseudonyms(), privacy.stored_people(store, owner)
    theirs = {(kind, value) for kind, value in people if person.is_called(value) or (
        kind in KINDS and person.is_called(made.of(kind, value))) or (
        kind == "full" and len(names) > 1 and {made.word(word) for word in value.split()} <= set(names))}
    others = {word for kind, value in people - theirs if kind == "full" for word in value.split()}
    words = {word for kind, value in theirs if kind == "full" for word in value.split()} - others
    theirs |= {("word", word) for word in words if not is_listed(word)}
    gone = [keyed_hash(owner.key, kind, value)[:32] for kind, value in theirs]
    for table in ("raw.people", "raw.new_people"):
        store.change(f"delete from {table} where list_contains($gone, person_id)", None, gone=gone)
