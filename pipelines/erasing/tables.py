"""Delete a person's data from every table of the warehouse, and store their hashes, in one transaction.

Rows are deleted by lineage (ids of events, sessions, tasks), then every row of any table that still contains one of their
values. Their records stay as pointers into the log (file, line), under a meaningless id. What is fitted to many sessions
(supports, rates, names) stays until the next build computes it again: all stages are marked as stale, and cached results of
the services that the person used are dropped, with the rows of their published directories.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from pipelines.building.environments import names_of
from pipelines.building.sealing import rename_sealed
from pipelines.erasing.accounts import erase_versions
from pipelines.erasing.finding import Theirs, rows_with
from pipelines.erasing.identifiers import Identifiers
from pipelines.erasing.remembered import TABLE, hashed, mark_records, remembered, rows_of, without_events
from pipelines.stages import STAGES
from warehouse.schema import layout
from warehouse.store import Store

_WITHOUT_TEXT = {TABLE, "raw.files", "raw.records", "raw.schema_version"}
"""Tables without texts of a log; a file that is named after the person gets a hash as its name."""


def places_of(store: Store, services: list[str]) -> list[str]:
    """Return the names of services' directories, sorted."""
    all_services = store.read("select distinct service from mart.tasks order by service")["service"].to_list()
    published = store.read("select service, environment from mart.environments")
    named = names_of(all_services) | dict(published.iter_rows())
    return sorted({named[service] for service in services if service in named})


def erase(store: Store, key: bytes, person: Identifiers, theirs: Theirs) -> dict[str, int]:
    """Delete their data from the tables, and store their hashes: both, or neither. Returns the number of deleted rows per
    table, sorted; for raw.records, of pointers whose id is meaningless now."""
    places = places_of(store, theirs.services)
    with store.transaction():
        before = {table: store.count(table) for table in layout().columns}
        gone = without_events(store, theirs.events.select("record_id").unique(), theirs.events["event_id"].to_list())
        n_records = mark_records(store, key, gone)
        goals = store.read("select goal_id from mart.goals where session_id in (select unnest($sessions))",
                           sessions=theirs.sessions)["goal_id"]
        named = {"sessions": theirs.sessions, "tasks": theirs.tasks, "services": theirs.services, "folders": places}
        ids = {"events": theirs.events["event_id"], "goals": goals,
               **{kind: pl.Series(values, dtype=pl.String()) for kind, values in named.items()}}
        _delete_examples(store, theirs)
        rename_sealed(store, theirs.sessions)
        store.change(  # decisions on what was published of the services
            "delete from mart.decisions where stage in ('verify', 'environments', 'image', 'datasets') and (subject in "
            "(select unnest($places)) or subject in (select task_id from mart.tasks where service in (select "
            "unnest($services))) or subject in (select task_id from mart.variants where service in (select "
            "unnest($services))) or subject in (select session_id from core.sessions where service in (select "
            "unnest($services))))", None, places=places, services=theirs.services)
        for table in (table for stage in STAGES for table in stage.tables):
            for kind, column in table.erase:
                if len(ids[kind]):
                    where = f"{column} in (select id from incoming)"
                    store.change(f"delete from {table.name} where {where}", ids[kind].to_frame("id"))
        for name in ("raw.partitions", "raw.audits", "raw.programs"):   # what was learnt from them too
            store.change(f"delete from {name} where service in (select unnest($services))", None, services=theirs.services)
        store.change("delete from raw.cache", None)
        _delete_decisions(store, theirs)
        store.append_new(TABLE, rows_of(key, person, theirs))
        forgotten = remembered(store)
        if forgotten is not None and store.count("core.versions"):
            erase_versions(store, forgotten)
        _delete_mentions(store, key, person)
        store.change("delete from raw.stages")   # each has something to do in the next run
        n_gone = {table: n - store.count(table) for table, n in before.items() if table != "raw.stages"}
    rows = {table: n for table, n in n_gone.items() if n > 0} | ({"raw.records": n_records} if n_records else {})
    return dict(sorted(rows.items()))


def _delete_examples(store: Store, theirs: Theirs) -> None:
    """Delete families whose example is theirs, and conditions and rubrics of other tasks that name one of their sessions or
    events."""
    store.change(
        "delete from mart.families where goal in (select goal from mart.goals where session_id in (select unnest($sessions)) "
        "union select goal from mart.tasks where task_id in (select unnest($tasks)))", None,
        sessions=theirs.sessions, tasks=theirs.tasks)
    store.change(
        "delete from mart.conditions where list_has_any(declined_session_ids || acted_session_ids, $sessions)", None,
        sessions=theirs.sessions)
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


def _delete_decisions(store: Store, theirs: Theirs) -> None:
    """Delete decisions on their records, or that name one of their sessions."""
    lineage = theirs.lineage
    rows = store.read(
        "select rowid as row, subject, detail from mart.decisions where stage != 'extract' or file_id is null").iter_rows()
    _delete_rows(store, "mart.decisions", [row for row, subject, detail in rows if lineage & {
        subject, *subject.split("@"), *subject.split("~"), *detail.replace(";", " ").replace(".", " ").split()}])


def _delete_mentions(store: Store, key: bytes, person: Identifiers) -> None:
    """Delete the rows of any table that still contain a value of theirs."""
    for path in [path for path in store.read("select distinct path from raw.files")["path"] if person.within(path)]:
        store.change("update raw.files set path = $name where path = $path", None, path=path,
                     name=hashed(key, "path", path)[:32])
    for table in layout().columns:
        if table not in _WITHOUT_TEXT:
            _delete_rows(store, table, rows_with(store, table, person))


def _delete_rows(store: Store, table: str, rows: list[int]) -> None:
    if rows:
        store.change(f"delete from {table} where rowid in (from incoming)", pl.DataFrame({"row": rows}))
