"""Equal records of different pieces, told apart or left.

Within a piece equal records have different ids already. Over pieces, a record that a file holds for the n-th time is another
record, and gets an id of its own; the n-th one of another file is the same record (a log that was rotated, exports that
overlap): its events are left, with a verdict. Files count in the order of their places, those that were settled before first.
In: what was committed since the last time. One transaction; a run that was killed before it settles all the same.
"""

from __future__ import annotations

import hashlib

import polars as pl

from warehouse.records import Verdict, frame_schema
from warehouse.store import Store

_TWICE = """
    with fresh as (
        select coalesce(first_id, record_id) as known_as from raw.records
        where file_id in (select file_id from raw.files where not settled)),
    alike as (
        select file_id, record_id, byte_offset, line, coalesce(first_id, record_id) as known_as, left_as from raw.records
        where coalesce(first_id, record_id) in (select known_as from fresh)),
    twice as (select known_as from alike group by known_as having count(*) > 1)
    select alike.*, path, settled from alike join twice using (known_as) join raw.files using (file_id)
    order by known_as, settled desc, path, byte_offset, line"""


def settle(store: Store) -> None:
    """Make the ids of records and events unique over all that is there."""
    if store.read("select count(*) from raw.files where not settled").item() == 0:
        return
    with store.transaction():
        changes = _changes(store.read(_TWICE))
        if changes.height:
            _carry_out(store, changes)
        store.change("update raw.files set settled = true where not settled")


def _changes(alike: pl.DataFrame) -> pl.DataFrame:
    """Rows that change: their new id, and whether they are left."""
    if alike.is_empty():
        return alike
    ordered = alike.with_columns(pl.int_range(pl.len()).over("known_as", "path").alias("nth"))
    ordered = ordered.with_columns(
        pl.struct("known_as", "nth").map_elements(_name, return_dtype=pl.String).alias("new_id"))
    ordered = ordered.with_columns(
        pl.when(pl.int_range(pl.len()).over("new_id") > 0).then(pl.lit("duplicate_record")).alias("becomes"),
        pl.col("path").first().over("new_id").alias("first_path"), pl.col("line").first().over("new_id").alias("first_line"))
    return ordered.filter((pl.col("new_id") != pl.col("record_id")) | pl.col("becomes").ne_missing(pl.col("left_as")))


def _name(row: dict[str, object]) -> str:
    if row["nth"] == 0:
        return str(row["known_as"])
    return hashlib.sha256(f"{row['known_as']}@{row['nth']}".encode()).hexdigest()[:32]


def _carry_out(store: Store, changes: pl.DataFrame) -> None:
    store.change(
        "update raw.records as r set record_id = i.new_id, first_id = nullif(i.known_as, i.new_id), left_as = i.becomes "
        "from incoming i where r.file_id = i.file_id and r.record_id = i.record_id and r.byte_offset = i.byte_offset", changes)
    gone = changes.filter(pl.col("becomes").is_not_null())
    for table in ("core.events", "raw.quarantine"):
        store.change(
            f"delete from {table} e using incoming i where e.file_id = i.file_id and e.record_id = i.record_id", gone)
    store.append_new("mart.verdicts", gone.select(
        stage=pl.lit("extract"), subject=pl.format("{}:{}", "file_id", "line"), kept=pl.lit(False),
        reason=pl.lit("duplicate_record"),
        detail=pl.format("The same record stands in {}, line {}; nothing to mend.", "first_path", "first_line"),
        file_id="file_id", line="line").select(list(frame_schema(Verdict))))
    renamed = changes.filter(pl.col("becomes").is_null())
    store.change(
        "update core.events as e set record_id = i.new_id, event_id = case when e.event_id = e.record_id then i.new_id "
        "else left(sha256(e.event_id || i.new_id), 32) end from incoming i "
        "where e.file_id = i.file_id and e.record_id = i.record_id", renamed)
    store.change("update raw.quarantine as e set record_id = i.new_id from incoming i "
                 "where e.file_id = i.file_id and e.record_id = i.record_id", renamed)
