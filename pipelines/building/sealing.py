"""The ledger of epochs: which sessions arrived together, and what was decided of each when it was sealed. So for work in a
company: its acts keep the side of the split that they were sealed with.

An epoch is an arrival of logs: the sessions that a run of the stage `sessions` sees first. The first one stays open until there
are `ENOUGH` sessions: until then nothing is sealed, and a small log gives the same in whatever pieces it arrives. Rows are
added, and none is taken away but by `traceroom forget`; they are part of the warehouse, and another run can take them over
(`--ledger`), which gives the same tables from the same logs at once.
"""

from __future__ import annotations

import polars as pl

from env_builder.work.sides import TIED, sides_of
from extractors.tasks.sealed import LEDGER
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


def word_ledger_of(store: Store) -> pl.DataFrame:
    """Return the ledger without sides, which goals are mined before."""
    rows = store.read("select session_id, epoch, word_group from raw.epochs left join raw.word_groups using (session_id) "
                      "order by session_id")
    return pl.concat([pl.DataFrame(schema=LEDGER), rows], how="diagonal")


def seal(store: Store, table: str, rows: pl.DataFrame) -> None:
    """Record in a table of the ledger what was decided of the sessions of sealed epochs."""
    sealed = rows.join(store.table("raw.epochs").select("session_id"), on="session_id", how="semi")
    store.change(f"delete from {table} where session_id in (select session_id from incoming)", sealed)
    store.append(table, sealed)


def seal_work(store: Store, settings: Settings) -> list[str]:
    """Seal the sides of the pieces of work that are in no epoch yet, once there are enough, and return those on several sides.

    Acts that are no more (forgotten, before the window) leave the ledger."""
    take_over(store, settings, "raw.work_sides")
    store.change("delete from raw.work_sides where ref not in (select ref from core.work_events)")
    items = store.read("select work_item_id, refs, epoch_us(closed_at) as at from mart.work_items where reason = '' "
                       "order by work_item_id")
    if not store.count("raw.work_sides") and items.height < ENOUGH:
        return []
    sides = sides_of(items.select("work_item_id", "at").iter_rows(), sealed_work(store))
    acts = items.select("work_item_id", pl.col("refs").alias("ref")).explode("ref")
    acts = acts.with_columns(pl.col("work_item_id").replace_strict(sides, return_dtype=pl.String).alias("split"))
    new = acts.filter(pl.col("split") != TIED).select("ref", "split").join(
        store.table("raw.work_sides").select("ref"), on="ref", how="anti").unique("ref").sort("ref")
    store.append("raw.work_sides", new)
    return sorted(item for item, side in sides.items() if side == TIED)


def sealed_work(store: Store) -> dict[str, set[str]]:
    """Return piece of work -> sides on which acts of it are sealed."""
    sealed: dict[str, set[str]] = {}
    for item, side in store.read(
            "select work_item_id, split from (select work_item_id, unnest(refs) as ref from mart.work_items where reason = '') "
            "join raw.work_sides using (ref) order by all").iter_rows():
        sealed.setdefault(item, set()).add(side)
    return sealed


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
