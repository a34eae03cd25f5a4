"""The stage `apps`: exports of a company's apps become the values that each field of their records had over time.

Exports are read together, as one app's files explain another's. What they hold passes through the same privacy as events do:
every value stands there under its field's name. A file of them that has changed has them read again, all of them; so have
people who were forgotten or whom privacy has come to know. Any other new log changes nothing here.
Without a file that only an app reads the stage has nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import polars as pl

from env_builder.people import CompanyPerson, find_people
from env_builder.runtime.company import CompanyWorld
from extractors.apps import AppReading, AppVersion, ExportFile, UnreadPart, installed_apps, read_exports
from extractors.apps.rows import ROW
from extractors.privacy.listed_names import ListedNames
from extractors.reading import Reading
from pipelines.building.decisions import replace_decisions
from pipelines.erasing.remembered import Remembered, remembered
from pipelines.ingestion.app_exports import MAYBE, REASON, export_of
from pipelines.ingestion.listing import discovered
from pipelines.privacy import guard as privacy
from pipelines.running.cache import partitions_of, record_partitions
from pipelines.running.code import code_digest
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import (
    Decision,
    Declaration,
    Event,
    FieldValue,
    File,
    PersonAccount,
    Quarantined,
    RawRecord,
    empty,
    frame,
)
from warehouse.store import Store

STAGE = "apps"
"""Also the source and the format of what passes through privacy."""
TABLES = ("core.versions", "core.accounts")
_ACCOUNT = "$account"
_COMPANY = "the company"
"""What the stage's one partition is called."""
_END = 2**61
_A_DAY = 86_400 * 1_000_000
_READ = "select path, any_value(format) as format from raw.files group by path order by path"


def apps(store: Store, settings: Settings) -> Counts:
    """Read the exports of apps that the settings name into `core.versions`, and whose accounts are whose."""
    read = dict(store.read(_READ).iter_rows())
    code = code_digest(__name__)
    if partitions_of(store, STAGE, code, {_COMPANY: _inputs(store, settings, read)}, ()).standing:
        return {f"n_{table.partition('.')[2]}": store.count(table) for table in TABLES}
    decisions: list[Decision] = []
    tables = _tables([])
    if REASON in read.values():
        reading = read_exports(_exports(settings, read))
        decisions = _decisions(reading)
        people = find_people(CompanyWorld(reading.versions).at(_END))
        versions = [*within(reading.versions, settings.configured.company.window_days), *_accounts(people)]
        events = _without_people(_reading_of(versions), people, store, settings)
        tables = _tables(_values(events, versions))
    replace_decisions(store, STAGE, frame(Decision, decisions))
    after = partitions_of(store, STAGE, code, {_COMPANY: _inputs(store, settings, read)}, ())   # with the people found just now
    record_partitions(store, STAGE, after, {_COMPANY: frame(Decision, [])})
    return {f"n_{name.partition('.')[2]}": store.replace(name, rows) for name, rows in tables.items()}


def _inputs(store: Store, settings: Settings, read: dict[str, str]) -> list[object]:
    """Return what the stage is made from: the exports' files, who must not stand in it, and under which settings."""
    chunks: dict[str, list[str]] = {}
    for path, chunk in store.read("select path, file_id from raw.files order by path, file_id").iter_rows():
        chunks.setdefault(path, []).append(chunk)
    own = {path for path, name in read.items() if name in _formats()} if REASON in read.values() else set()
    files = discovered(settings)[0] if own else []
    people = store.read("select person_id from raw.people order by person_id")["person_id"].to_list()
    forgotten = store.read("select * from raw.forgotten order by all").write_csv()
    return [sorted((file.place, chunks[file.place]) for file in files if file.place in own), people, forgotten,
            privacy.wanted(settings, store), [settings.value_of(name) for name in ("[company]", "[privacy]")]]


def _formats() -> set[str]:
    """Return the formats, and reasons to reject a file, of files that apps may read."""
    return {REASON, *MAYBE, *(name for app in installed_apps() for name in app.formats)}


def within(versions: Sequence[AppVersion], days: int | None) -> list[AppVersion]:
    """Return the versions that say how the company stood in its last days: those of then, and the last ones before.

    `days`: how many before the last change; None: all."""
    if days is None:
        return list(versions)
    begin = max((version.at for version in versions), default=0) - days * _A_DAY
    last = {(version.entity_class, version.entity_id, version.field): number for number, version in enumerate(versions)
            if version.at <= begin}
    kept = set(last.values())
    return [version for number, version in enumerate(versions) if version.at > begin or number in kept]


def _accounts(people: list[CompanyPerson]) -> list[AppVersion]:
    """Return whose accounts are whose, so that they pass through the same privacy."""
    return [AppVersion(_ACCOUNT, person.address, kind, account, 0)
            for person in people for kind, account in person.accounts.items()]


def _exports(settings: Settings, read: dict[str, str]) -> list[ExportFile]:
    """Return the files that apps may read: `read` says by place what became of each file as a log."""
    files, _ = discovered(settings)
    return [export_of(member) for file in files if read.get(file.place) in _formats() for member in file.parts()]


def _decisions(reading: AppReading) -> list[Decision]:
    kept = [Decision(stage=STAGE, subject=path, kept=True, reason=REASON, detail=f"{path} is part of an export of {app}.")
            for path, app in sorted(reading.app_of.items())]
    return [*kept, *(_rejection(part, number) for number, part in enumerate(reading.unread)
                     if part.where or part.reason != "no_reader")]


def _rejection(part: UnreadPart, number: int) -> Decision:
    subject = f"{part.path}#{part.where or number}"
    return Decision(stage=STAGE, subject=subject, kept=False, reason=part.reason, detail=f"{subject}: {part.detail}.")


def _reading_of(versions: Sequence[AppVersion]) -> Reading:
    """Return versions as events, one each, in their order: who changed it, and the value under its field."""
    events = [Event(
        event_id=str(number), record_id=str(number), file_id=STAGE, source=STAGE, format=STAGE, service=None, session_id=None,
        position=number, happened_at=None, kind="business", role=None, content=version.record, call_id=None,
        tool=version.entity_class, arguments=_text({"id": version.entity_id}), is_error=None,
        requestor=None, name=version.actor,
        value=_text({"after": {version.field: version.value}}), latency_ms=None, model=None, usage=None, lossy=None)
        for number, version in enumerate(versions)]
    file = File(file_id=STAGE, previous=None, source=STAGE, path=STAGE, chunk=0, byte_offset=0, format=STAGE, n_bytes=0,
                n_records=len(events), day=None, read_at=datetime.now(UTC), settled=True)
    return Reading(file, empty(RawRecord), frame(Event, events), empty(Declaration), empty(Quarantined), empty(Decision))


def _without_people(reading: Reading, people: list[CompanyPerson], store: Store, settings: Settings) -> pl.DataFrame:
    """Return the events without the data of forgotten people, and pseudonymised if the settings ask for it."""
    forgotten = remembered(store)
    if forgotten is not None:
        reading = replace(reading, events=_leave_out(reading, forgotten))
    if not privacy.wanted(settings, store):
        return reading.events
    clean = privacy.pseudonymised(reading, store, settings).events
    clean = _consistent(reading.events, clean, {person.name for person in people})
    return clean if forgotten is None else _leave_out(replace(reading, events=clean), forgotten)   # known by pseudonyms alone


def _leave_out(reading: Reading, forgotten: Remembered) -> pl.DataFrame:
    """Return the events without those that name a forgotten person, and without the records of the person's accounts.

    Of a list, such as the members of a channel or the cells of a workbook, only what names the person goes."""
    accounts = [(orjson.loads(text)["id"], *next(iter(orjson.loads(value)["after"].items()))) for text, value in
                reading.events.filter(pl.col("tool") == _ACCOUNT).select("arguments", "value").iter_rows()]
    addresses = {address for address, _, account in accounts
                 if forgotten.speaks(address) or (not account.isdecimal() and forgotten.speaks(account))}
    gone = {(kind, account) for address, kind, account in accounts if address in addresses}
    gone |= {(ROW, f"{kind}/{account}") for kind, account in gone}   # where the account is a row of a table
    gone |= {(_ACCOUNT, address) for address in addresses}
    events = reading.events.with_columns(pl.Series("value", [
        _text(_cleaned(orjson.loads(text), forgotten)) if forgotten.speaks(text) else text
        for text in reading.events["value"]], pl.String()))
    others = forgotten.leave_out(replace(reading, events=events.filter(pl.col("tool") != _ACCOUNT))).reading.events
    kept = pl.concat([others, events.filter(pl.col("tool") == _ACCOUNT)])
    rows = kept.select("tool", "arguments").iter_rows()
    return kept.filter(pl.Series([(kind, orjson.loads(text)["id"]) not in gone for kind, text in rows], dtype=pl.Boolean))


def _cleaned(after: dict[str, dict[str, Any]], forgotten: Remembered) -> dict[str, dict[str, Any]]:
    """Return the value of an event without what names a forgotten person in its lists and objects."""
    return {"after": {field: _without(value, forgotten) for field, value in after["after"].items()}}


def _without(value: Any, forgotten: Remembered) -> Any:
    if isinstance(value, dict):
        return {name: _without(each, forgotten) for name, each in value.items() if not forgotten.speaks(name)}
    if not isinstance(value, list):
        return value
    if any(isinstance(each, list) for each in value):   # rows of cells, whose places count
        return [["" if isinstance(cell, str) and forgotten.speaks(cell) else cell for cell in row]
                if isinstance(row, list) else row for row in value]
    return [_without(each, forgotten) for each in value if not (isinstance(each, str) and forgotten.speaks(each))]


def without_forgotten(store: Store, forgotten: Remembered) -> dict[str, pl.DataFrame]:
    """Return what is stored without forgotten people, as a run that reads the exports again would store it."""
    stored = store.table("core.versions").sort("position")
    versions = [AppVersion(kind, key, field, orjson.loads(value), at, sequence, actor, until, record)
                for _, kind, key, field, value, at, actor, until, record, sequence in stored.iter_rows()]
    accounts = [AppVersion(_ACCOUNT, row["address"], row["entity_class"], row["account"], 0)
                for row in store.table("core.accounts").to_dicts()]
    events = _leave_out(_reading_of([*versions, *accounts]), forgotten)
    kept = _tables(_values(events, [*versions, *accounts]))
    rows = kept["core.versions"]
    return {**kept, "core.versions": rows.with_columns(stored["position"].gather(rows["position"]).alias("position"))}


def _consistent(before: pl.DataFrame, after: pl.DataFrame, names: set[str]) -> pl.DataFrame:
    """Make accounts the same wherever they stand, and replace listed people's names that stand alone."""
    became: dict[str, str] = {}
    for text, clean in zip(before["value"], after["value"], strict=True):
        value = next(iter(orjson.loads(text)["after"].values()))
        if isinstance(value, str) and value in names:
            became.setdefault(value, str(next(iter(orjson.loads(clean)["after"].values()))))
    listed = ListedNames(became.items(), {
        was: made for was, made in zip(before["name"], after["name"], strict=True) if was is not None})
    columns = {"arguments": "id", "value": "after"}
    return after.with_columns(pl.Series(column, [
        _text({field: listed.replaced(orjson.loads(text)[field], orjson.loads(clean)[field])})
        for text, clean in zip(before[column], after[column], strict=True)], pl.String()) for column, field in columns.items())


def _values(events: pl.DataFrame, versions: Sequence[AppVersion]) -> list[FieldValue]:
    """Return the values of the events that are left."""
    rows = []
    columns = events.select("position", "arguments", "name", "value", "content")
    for position, text, actor, value, record in columns.iter_rows():
        version = versions[position]
        after = orjson.loads(value)["after"]
        rows.append(FieldValue(
            position=position, entity_class=version.entity_class, entity_id=orjson.loads(text)["id"], field=version.field,
            value=_text(next(iter(after.values()))), changed_at=version.at, actor=actor, guessed_until=version.guessed_until,
            record=record, sequence=version.sequence))
    return rows


def _tables(values: Sequence[FieldValue]) -> dict[str, pl.DataFrame]:
    """Return the rows of the stage's tables."""
    return {"core.versions": frame(FieldValue, [row for row in values if row.entity_class != _ACCOUNT]),
            "core.accounts": frame(PersonAccount, [
                PersonAccount(address=row.entity_id, entity_class=row.field, account=orjson.loads(row.value))
                for row in values if row.entity_class == _ACCOUNT])}


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
