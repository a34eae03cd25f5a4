"""The ledger of epochs: which sessions arrived together, and what was decided of each when it was sealed.

An epoch is an arrival of logs: the sessions that a run of the stage `sessions` sees first. The first one stays open until there
are `ENOUGH` sessions: until then nothing is sealed, and a small log gives the same in whatever pieces it arrives. Rows are
added, and none is taken away but by `traceroom forget`; they are part of the warehouse, and another run can take them over
(`--ledger`), which gives the same tables from the same logs at once.
"""

from __future__ import annotations

import polars as pl

from pipelines.settings import Settings
from warehouse.records import SealedSession, frame_schema
from warehouse.store import Store

ENOUGH = 100
"""Sessions of all services from which on the first epoch is sealed: about twenty of them are held out then."""


def seal_epoch(store: Store, settings: Settings, sessions: pl.Series) -> None:
    """Seal the sessions that are in no epoch yet as the next one."""
    take_over(store, settings, "raw.epochs")
    epochs = store.table("raw.epochs")
    new = sessions.filter(~sessions.is_in(epochs["session_id"].implode())).sort()
    if (epochs.is_empty() and len(new) < ENOUGH) or new.is_empty():
        return
    last = epochs["epoch"].max() or 0
    rows = pl.DataFrame({"session_id": new}).with_columns(pl.lit(last, pl.Int64()).alias("epoch") + 1)
    store.append("raw.epochs", rows.cast(pl.Schema(frame_schema(SealedSession))))


def take_over(store: Store, settings: Settings, table: str) -> None:
    """Take a table of the ledger that the settings name, where there are no rows of it."""
    if settings.ledger is None or store.count(table):
        return
    other = Settings(logs=(), out=settings.ledger).warehouse
    with Store.published(other) as source:
        rows = source.table(table)
    store.append(table, rows)


def ledger_of(store: Store) -> pl.DataFrame:
    """Return the ledger (`extractors.tasks.sealed.LEDGER`)."""
    return store.read("select session_id, epoch, service, first_session_id, component, split, method, word_group "
                      "from raw.epochs left join raw.sides using (session_id) left join raw.word_groups using (session_id) "
                      "order by session_id")


def seal(store: Store, table: str, rows: pl.DataFrame) -> None:
    """Record in a table of the ledger what was decided of the sessions of sealed epochs."""
    sealed = rows.join(store.table("raw.epochs").select("session_id"), on="session_id", how="semi")
    store.change(f"delete from {table} where session_id in (select session_id from incoming)", sealed)
    store.append(table, sealed)


def rename_sealed(store: Store, sessions: list[str]) -> None:
    """Name tasks, components and kinds after the session that settled next, where they are named after one of `sessions`, which
    are about to be deleted."""
    for table, column, within in (("raw.sides", "first_session_id", "service"), ("raw.sides", "component", "service"),
                                  ("raw.word_groups", "word_group", "word_group")):
        store.change(
            f"update {table} as s set {column} = n.next from (select {column} as named, {within} as place, "
            f"first(session_id order by epoch, session_id) as next from {table} join raw.epochs using (session_id) "
            f"where list_contains($sessions, {column}) and not list_contains($sessions, session_id) group by all) as n "
            f"where s.{column} = n.named and s.{within} = n.place", None, sessions=sessions)
