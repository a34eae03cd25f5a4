"""A company as it stood at an instant, from the exports of its apps (`traceroom show world`, `traceroom show answers`).

In: folders of exports and of logs of agents, or what a run has stored of them. Out: the versions of every field, files that
nothing reads with the reason, rows of an instant, and what the apps' tools would have answered to calls.
Folders are read as they are, without pseudonyms; nothing is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import polars as pl
from pydantic import BaseModel

from env_builder.company.calls import AgentPrompt, RecordedCall
from env_builder.company.content import company_app, company_content
from env_builder.company.conventions import agent_prompts, recorded_calls
from env_builder.people import find_people
from env_builder.runtime.company import CompanyDesk, CompanyState, CompanyWorld, PersonSight
from env_builder.runtime.office.company import CompanyEpisode, CompanySuite
from extractors.apps import AppReading, AppVersion, ExportFile, UnreadPart, installed_apps, read_exports
from extractors.chunks import RejectedFile, log_of
from extractors.formats.instants import microseconds
from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import AssembledSessions, assemble
from pipelines.settings import Settings
from warehouse.errors import InputError, Missing
from warehouse.store import Store

_END = 2**61


class AskedCall(BaseModel):
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]


class CallsRow(BaseModel):
    """Calls that one person would have made one after another from an instant on."""

    id: str | None = None
    probe_id: str | None = None
    """Another name of `id`, which the answer then has too."""
    at: str
    """ISO instant."""
    acting_for: str
    """Address of the person."""
    calls: list[AskedCall]


class StoredCompany(NamedTuple):
    """A company as a run stored it, or as its exports are."""

    versions: Sequence[AppVersion]
    accounts: Mapping[str, Mapping[str, str]]
    calls: Sequence[RecordedCall]
    identities: Mapping[str, str]
    unread: Sequence[UnreadPart] = ()
    prompts: Sequence[AgentPrompt] = ()
    """What people told their agents."""

    @property
    def world(self) -> CompanyWorld:
        """The world of all versions."""
        return CompanyWorld(self.versions)

    @property
    def app(self) -> CompanySuite:
        """The apps of the company."""
        return company_app(company_content(self.versions, self.calls, self.accounts, self.identities))


def stored_company(store: Store) -> StoredCompany:
    """Return the company whose exports a run has read. Errors: Missing."""
    versions = stored_versions(store)
    if not versions:
        raise Missing("the run read no exports of apps", str(store.path), "run over the folder of a company's exports")
    sessions = store.table("core.sessions")
    identities = dict(sessions.filter(pl.col("identity").is_not_null()).select("session_id", "identity").iter_rows())
    turns = store.table("core.turns")
    return StoredCompany(versions, accounts_of(store.table("core.accounts").iter_rows()), recorded_calls(sessions, turns),
                         identities, prompts=agent_prompts(sessions, turns))


def stored_versions(store: Store) -> list[AppVersion]:
    """Return the versions that the stage `apps` has stored, in their order."""
    rows = store.read("""select entity_class, entity_id, field, value, changed_at, sequence, actor, guessed_until, record
                         from core.versions order by position""")
    return [AppVersion(kind, key, field, orjson.loads(value), *rest) for kind, key, field, value, *rest in rows.iter_rows()]


def accounts_of(rows: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    """Return address -> class of accounts -> id, of rows of `core.accounts`."""
    accounts: dict[str, dict[str, str]] = {}
    for address, kind, account in rows:
        accounts.setdefault(address, {})[kind] = account
    return accounts


def company_at(logs: Sequence[Path], out: Path | str) -> StoredCompany:
    """Return the company in folders of exports, or else the one that a run stored. Errors: InputError, Missing."""
    if not logs:
        with Store.published(Settings(logs=(), out=str(out)).warehouse) as store:
            return stored_company(store)
    settings = Settings(logs=tuple(map(str, logs)), out="out")
    reading = read_company(settings)
    accounts = {person.address: person.accounts for person in find_people(CompanyWorld(reading.versions).at(_END))}
    return StoredCompany(reading.versions, accounts, recorded_calls_of(settings, reading), {}, reading.unread)


def read_company(settings: Settings) -> AppReading:
    """Return what the exports in the settings' logs hold. Errors: InputError where there is nothing to read."""
    listed, _ = discover(settings.logs, settings.only, settings.without, settings.configured)
    files = {file.relative: file for each in listed for file in each.parts()}
    exports = []
    for path, file in files.items():
        with file.open() as opened_file:
            exports.append(ExportFile(path, opened_file.read()))

    def log_format(export: ExportFile) -> str | UnreadPart:
        log = log_of(files[export.path])
        return UnreadPart(export.path, "", log.reason, log.detail) if isinstance(log, RejectedFile) else log.format

    return read_exports(exports, log_format)


def recorded_calls_of(settings: Settings, reading: AppReading) -> list[RecordedCall]:
    """Return the calls of agents in the files that log formats read."""
    made = _sessions_of(settings, reading)
    return recorded_calls(made.sessions, made.turns) if made is not None else []


def prompts_of(settings: Settings, reading: AppReading) -> list[AgentPrompt]:
    """Return what people told their agents in the files that log formats read."""
    made = _sessions_of(settings, reading)
    return agent_prompts(made.sessions, made.turns) if made is not None else []


def _sessions_of(settings: Settings, reading: AppReading) -> AssembledSessions | None:
    listed, _ = discover(settings.logs, settings.only, settings.without, settings.configured)
    apps = {app.name for app in installed_apps()}
    files = [file for file in listed if reading.app_of.get(file.relative, next(iter(apps))) not in apps]
    events = [read(file).events for file in files]
    return assemble(pl.concat(events)) if events else None


def answers(company: StoredCompany, calls: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the answers to the rows of a file (`answer_rows`). Errors: InputError, Missing."""
    if calls is None:
        raise InputError("the calls are missing", "--calls", "give a file of JSON lines {id, at, acting_for, calls}")
    try:
        rows = [CallsRow.model_validate_json(line) for line in calls.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise InputError(f"the calls cannot be read: {str(error).splitlines()[0]}", str(calls),
                         "give JSON lines {id, at, acting_for, calls: [{tool, arguments}]}") from error
    return answer_rows(company.app, rows)


def people_rows(company: StoredCompany) -> list[dict[str, Any]]:
    """Return a row for each person: address, and the accounts by class of records."""
    return [{"address": address, "accounts": dict(accounts)} for address, accounts in sorted(company.accounts.items())]


def answer_rows(app: CompanySuite, rows: Iterable[CallsRow]) -> Iterator[dict[str, Any]]:
    """Yield for each row what the tools would have answered, one call after another at one desk: {"id" or "probe_id",
    "answers": [{"content", "is_error", "tier"}]}. Errors: Missing for somebody whom nothing is known of."""
    for row in rows:
        try:
            episode = CompanyEpisode(app, CompanyDesk(app.start_of(row.at, row.acting_for)))
        except LookupError as error:
            raise Missing(str(error), "acting_for", "give the address of an account, a mailbox or an entry of the directory"
                          ) from error
        given = [episode.call(call.tool, call.arguments) for call in row.calls]
        name = {"id": row.id} if row.probe_id is None else {"probe_id": row.probe_id}
        yield {**name, "answers": [
            {"content": answer.content, "is_error": answer.is_error, "tier": answer.tier} for answer in given]}


def instant_of(text: str) -> int:
    """Return an instant in microseconds. Errors: InputError."""
    at = microseconds(text)
    if at is None:
        raise InputError(f"invalid instant '{text}' (expected 2026-03-02T09:30:00Z)", "--at")
    return at


def world_rows(world: CompanyWorld, instant: int, person: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield a row for each field of each record that existed: app, id, field, value (None if unknown), known.

    `person`: the address of somebody; only records that this person could see. Errors: Missing."""
    state_of_world = world.at(instant)
    sight = sight_of(state_of_world, person)
    for state in state_of_world.fields():
        if sight is not None and not sight.sees(state.entity_class, state.entity_id):
            continue
        yield {"app": state.entity_class, "id": state.entity_id, "field": state.field, "value": state.value,
               "known": state.is_known}


def sight_of(state: CompanyState, person: str | None) -> PersonSight | None:
    """Return what a person could see in a state; None: everything. Errors: Missing."""
    try:
        return PersonSight(state, person) if person else None
    except LookupError as error:
        raise Missing(str(error), "--as", "give the address of an account, a mailbox or an entry of the directory") from error


def summary_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each class of records: how many there were, and how many of their fields are known."""
    counts: dict[str, list[int]] = {}
    ids: dict[str, set[str]] = {}
    for row in rows:
        count = counts.setdefault(row["app"], [0, 0])
        count[not row["known"]] += 1
        ids.setdefault(row["app"], set()).add(row["id"])
    return [{"app": name, "records": len(ids[name]), "known_fields": n_known, "unknown_fields": n_unknown}
            for name, (n_known, n_unknown) in counts.items()]


def advice_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each field that was unknown somewhere: how often, and the event stream that would tell its history."""
    streams = {(entity_class, field): stream for app in installed_apps() for entity_class, field, stream in app.advice}
    counts = Counter((row["app"], row["field"]) for row in rows if not row["known"])
    return [{"app": app, "field": field, "unknown": count, "switch_on": streams.get((app, field), "")}
            for (app, field), count in counts.most_common()]


def require_records(world: CompanyWorld, instant: int) -> None:
    """Raise `Missing` if nothing existed at the instant."""
    first = next((version.at for version in world.versions if version.at > 0), None)
    if first is None:
        raise Missing("the exports hold no record with a time", "world", "give the folder of the apps' exports")
    if first > instant:
        began = datetime.fromtimestamp(first / 1_000_000, UTC).isoformat()
        raise InputError(f"the first record of the exports is of {began}", "--at", "give a later instant")
