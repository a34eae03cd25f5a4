"""What is a person's, out of every table of the warehouse, in one transaction; and what to remember of them, into it.

Rows go by lineage (ids of events, sessions, tasks), then every row of any table in which one of their values still stands.
Their records stay as pointers into the log (file, line), under an id that says nothing. What is fitted to many sessions
(supports, rates, names) stays as it is until the next build computes it anew: all stages are marked to be done again, and what
was kept of the services that the person was seen in is dropped. Published directories of these services are rows no more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl

from pipelines.bundling import names_of
from pipelines.erasing.finding import Theirs, speaks
from pipelines.erasing.identifiers import Identifiers
from pipelines.erasing.remembered import REASON, TABLE, forgotten_id, hashed, rows_of, verdicts_on
from warehouse.schema import layout
from warehouse.store import Store

_EVENTS, _SESSIONS, _TASKS, _GOALS = "events", "sessions", "tasks", "goals"


class _Way(NamedTuple):
    """Rows of a table that go."""

    table: str
    ids: str
    """Which ids tell them."""
    where: str
    """The rows, where `incoming` holds the ids."""


_WAYS = (
    _Way("core.events", _EVENTS, "event_id in (from incoming)"),
    _Way("core.sessions", _SESSIONS, "session_id in (from incoming)"),
    _Way("core.turns", _SESSIONS, "session_id in (from incoming)"),
    _Way("core.turns", _EVENTS, "turn_id in (from incoming) or result_id in (from incoming)"),
    _Way("core.feedback", _SESSIONS, "session_id in (from incoming)"),
    _Way("core.feedback", _EVENTS, "feedback_id in (from incoming)"),
    _Way("core.corrections", _SESSIONS, "subject in (from incoming)"),
    _Way("core.corrections", _EVENTS, "correction_id in (from incoming)"),
    _Way("core.row_changes", _EVENTS, "change_id in (from incoming)"),
    _Way("mart.sentences", _GOALS, "goal_id in (from incoming)"),
    _Way("mart.goals", _GOALS, "goal_id in (from incoming)"),
    _Way("mart.outcomes", _SESSIONS, "session_id in (from incoming)"),
    _Way("mart.facts", _EVENTS, "event_id in (from incoming)"),
    _Way("mart.facts", _SESSIONS, "session_id in (from incoming)"),
    _Way("mart.recorded", _EVENTS, "event_id in (from incoming)"),
    _Way("mart.recorded", _SESSIONS, "session_id in (from incoming)"),
    _Way("mart.rubrics", _TASKS, "task_id in (from incoming)"),
    _Way("mart.variants", _TASKS, "task_id in (from incoming)"),
    _Way("mart.tasks", _TASKS, "task_id in (from incoming)"),
)
_WITHOUT_TEXT = {TABLE, "raw.files", "raw.records", "raw.schema_version"}
"""Tables that hold no text of a log; files may be named after somebody, and are called by a hash then."""


class Erased(NamedTuple):
    """What went."""

    rows: dict[str, int]
    """Table -> rows that are not there any more, sorted; raw.records: pointers whose id says nothing now."""
    places: list[str]
    """Names of the directories of the services that the person was seen in, sorted."""


def places_of(store: Store, services: list[str]) -> list[str]:
    """Names of the directories of services, as runs name them."""
    known = store.read("select distinct service from mart.tasks order by service")["service"].to_list()
    published = store.read("select service, environment from mart.environments")
    named = names_of(known) | dict(published.iter_rows())
    return sorted({named[service] for service in services if service in named})


def erase(store: Store, key: bytes, person: Identifiers, theirs: Theirs) -> Erased:
    """Take everything of theirs out of the tables, and remember to leave it out from now on: both, or neither."""
    places = places_of(store, theirs.services)
    with store.transaction():
        before = {table: store.count(table) for table in layout().columns}
        n_records = _mark_records(store, key, theirs)
        ids = _ids(store, theirs)
        _delete_examples(store, theirs)
        for way in _WAYS:
            if len(ids[way.ids]):
                store.change(f"delete from {way.table} where {way.where}", ids[way.ids].to_frame("id"))
        _withdraw(store, theirs, places)
        _delete_verdicts(store, theirs)
        _delete_speaking(store, key, person)
        store.append_new(TABLE, rows_of(key, person, theirs))
        store.change("delete from raw.stages")   # each has something to do in the next run
        gone = {table: n - store.count(table) for table, n in before.items() if table != "raw.stages"}
    rows = {table: n for table, n in gone.items() if n > 0} | ({"raw.records": n_records} if n_records else {})
    return Erased(dict(sorted(rows.items())), places)


def erase_sessions(store: Store, record_id: Callable[[str], str], sessions: pl.DataFrame) -> None:
    """Take sessions (source, session_id) out of what was read; `record_id` names records that have no event any more."""
    named = "(source, session_id) in (select (unnest($sources), unnest($names)))"
    told = {"sources": sessions["source"].to_list(), "names": sessions["session_id"].to_list()}
    with store.transaction():
        records = store.read(f"select distinct record_id from core.events where {named}", **told)
        store.change(f"delete from core.events where {named}", None, **told)
        _mark(store, record_id, _without_events(store, records, []))


def _mark_records(store: Store, key: bytes, theirs: Theirs) -> int:
    """Records all of whose events go, and those that told the same, lose their ids."""
    gone = _without_events(store, theirs.events.select("record_id").unique(), theirs.events["event_id"].to_list())
    return _mark(store, lambda each: forgotten_id(key, each), gone)


def _without_events(store: Store, records: pl.DataFrame, gone: list[str]) -> pl.DataFrame:
    """Those of the records that have no event beside the `gone` ones."""
    kept = store.read("select distinct record_id from core.events where record_id in (select unnest($records)) "
                      "and event_id not in (select unnest($gone))", records=records["record_id"].to_list(), gone=gone)
    return records.join(kept, on="record_id", how="anti")


def _mark(store: Store, record_id: Callable[[str], str], records: pl.DataFrame) -> int:
    """Make pointers of records that say nothing, with a verdict each."""
    lines = store.read("select file_id, line from raw.records where record_id in (select unnest($ids))",
                       ids=records["record_id"].to_list())
    if lines.is_empty():
        return 0
    named = records.with_columns(pl.col("record_id").map_elements(record_id, return_dtype=pl.String()).alias("new_id"))
    store.change("delete from mart.verdicts v using incoming i where v.stage = 'extract' and v.file_id = i.file_id "
                 "and v.line = i.line", lines)
    store.change("update raw.records as r set record_id = i.new_id, first_id = null, "
                 f"left_as = '{REASON}' from incoming i where r.record_id = i.record_id", named)
    store.append_new("mart.verdicts", verdicts_on(lines))
    return lines.height


def _ids(store: Store, theirs: Theirs) -> dict[str, pl.Series]:
    goals = store.read("select goal_id from mart.goals where session_id in (select unnest($sessions))",
                       sessions=theirs.sessions)["goal_id"]
    return {_EVENTS: theirs.events["event_id"], _SESSIONS: pl.Series(theirs.sessions, dtype=pl.String()),
            _TASKS: pl.Series(theirs.tasks, dtype=pl.String()), _GOALS: goals}


def _delete_examples(store: Store, theirs: Theirs) -> None:
    """Families whose example is theirs; rubrics of other tasks that name one of their sessions or events as a witness."""
    store.change(
        "delete from mart.families where goal in (select goal from mart.goals where session_id in (select unnest($sessions)) "
        "union select goal from mart.tasks where task_id in (select unnest($tasks)))", None,
        sessions=theirs.sessions, tasks=theirs.tasks)
    lineage = theirs.lineage
    for table in ("mart.rubrics", "mart.variants"):
        rows = store.read(f"select task_id, checks from {table}")
        named = [task for task, checks in rows.iter_rows() if lineage & _strings(json.loads(checks))]
        if named:
            store.change(f"delete from {table} where task_id in (from incoming)", pl.DataFrame({"task_id": named}))


def _strings(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {each for part in parts for each in _strings(part)}


def _withdraw(store: Store, theirs: Theirs, places: list[str]) -> None:
    """What was published of the services is not there any more; what was kept of them, to be made faster, neither."""
    services = theirs.services
    store.change("delete from mart.verdicts where stage in ('verify', 'environments', 'image', 'datasets') and (subject in "
                 "(select unnest($places)) or subject in (select task_id from mart.tasks where service in (select "
                 "unnest($services))) or subject in (select task_id from mart.variants where service in (select "
                 "unnest($services))) or subject in (select session_id from core.sessions where service in (select "
                 "unnest($services))))", None, places=places, services=services)
    store.change("delete from mart.environments where service in (select unnest($services))", None, services=services)
    store.change("delete from mart.datasets where split_part(path, '/', 2) in (select unnest($places))", None, places=places)
    for table in ("raw.parts", "raw.audits"):
        store.change(f"delete from {table} where service in (select unnest($services))", None, services=services)
    store.change("delete from raw.kept", None)


def _delete_verdicts(store: Store, theirs: Theirs) -> None:
    """Verdicts on something of theirs, or that name one of their sessions."""
    ids = sorted(theirs.lineage)
    rows = store.read(
        "select rowid as row, subject, detail from mart.verdicts where stage != 'extract' or file_id is null").iter_rows()
    known = set(ids)
    gone = [row for row, subject, detail in rows
            if known & {subject, *subject.split("@"), *subject.split("~"), *detail.replace(";", " ").replace(".", " ").split()}]
    _delete_rows(store, "mart.verdicts", gone)


def _delete_speaking(store: Store, key: bytes, person: Identifiers) -> None:
    """Rows of any table in which a value of theirs still stands."""
    for path in [path for path in store.read("select distinct path from raw.files")["path"] if person.within(path)]:
        store.change("update raw.files set path = $name where path = $path", None, path=path,
                     name=hashed(key, "path", path)[:32])
    for table in layout().columns:
        if table not in _WITHOUT_TEXT:
            _delete_rows(store, table, speaks(store, table, person))


def _delete_rows(store: Store, table: str, rows: list[int]) -> None:
    if rows:
        store.change(f"delete from {table} where rowid in (from incoming)", pl.DataFrame({"row": rows}))

