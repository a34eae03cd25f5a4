"""Equal records of different chunks: distinguished, or rejected as duplicates.

Within a chunk equal records have different ids already. Across chunks, the n-th occurrence of a record in a file is a
different record, with the id of the n-th; the n-th one of another file is the same record (log rotation, overlapping exports):
its events are rejected, with a decision. Files count in the order of their paths, those whose records are kept already first.
So the result does not depend on where a file was cut, nor in which order and how often files came. In: what was committed
since the last time. One transaction; a run that was killed before it is settled by the next one.
"""

from __future__ import annotations

import polars as pl

from extractors.reading import nth_id
from warehouse.records import Decision, frame_schema
from warehouse.store import Store

_TWICE = """
    with known as (
        select coalesce(first_id, record_id) as known_as, * from raw.records where reject_reason is distinct from 'forgotten'),
    suspects as (
        select hash(known_as) as print from known where {fresh} group by print
        having min(hash(file_id)) <> max(hash(file_id))),
    twice as (
        select known_as from known where hash(known_as) in (select print from suspects)
        group by known_as having min(file_id) <> max(file_id))
    select file_id, record_id, known.byte_offset, line, known_as, reject_reason, path, settled
    from known join twice using (known_as) join raw.files using (file_id)"""
"""Hashes first, ids only where these are equal: the ids of all records at once take five times the memory."""
_FRESH = """hash(known_as) in (
    select hash(known_as) from known where file_id in (select file_id from raw.files where not settled))"""
_HEIRS = """
    select g.file_id, g.record_id, t.file_id as heir, t.line, t.byte_offset
    from raw.records g join raw.files f using (file_id) join raw.records t using (record_id)
    where g.file_id in (select unnest($gone)) and f.settled and g.reject_reason is null and t.reject_reason is not null
    and t.file_id not in (select unnest($gone))
    qualify row_number() over (partition by g.record_id order by t.file_id) = 1"""


def settle(store: Store) -> None:
    """Make the ids of records and events unique in the whole warehouse."""
    store.again(lambda: _settle(store))


def _settle(store: Store) -> None:
    n_fresh, n_files = store.read("select count(*) filter (not settled), count(*) from raw.files").row(0)
    if store.count("raw.new_people"):   # also where the logs of a killed run are gone before their first chunk was committed
        store.change("delete from raw.new_people")
    if n_fresh == 0:
        return
    if store.has_many_writers:
        twice = store.read("select file_id from raw.files group by file_id having count(*) > 1 order by file_id")["file_id"]
        for table in ("raw.records", "core.events", "raw.quarantine"):
            if len(twice):
                store.keep_one(table, "list_contains($twice, file_id)", twice=twice.to_list())
        for table in ("raw.declarations", "raw.locations", "mart.decisions", "raw.files"):
            store.keep_one(table)
    alike = store.read(_TWICE.format(fresh=_FRESH if n_fresh < n_files else "true"))
    if alike.height:
        _carry_out(store, _changes(alike, _times(store)))
    store.change("update raw.files set settled = true where not settled")


def transfer_records(store: Store, gone: list[str]) -> None:
    """Give the events of chunks that are about to be deleted to other chunks with the same records, rejected as duplicates."""
    heirs = store.read(_HEIRS, gone=gone)
    if heirs.is_empty():
        return
    of_record = "e.file_id = i.file_id and e.record_id = i.record_id"
    store.change(f"update core.events as e set file_id = i.heir from incoming i where {of_record}", heirs)
    store.change("update raw.quarantine as e set file_id = i.heir, line = i.line, byte_offset = i.byte_offset "
                 f"from incoming i where {of_record}", heirs)
    store.change("update raw.records as r set reject_reason = null from incoming i "
                 "where r.file_id = i.heir and r.record_id = i.record_id", heirs)
    store.change("delete from mart.decisions v using incoming i where v.stage = 'extract' and v.reason = 'duplicate_record' "
                 "and v.subject = i.heir || ':' || i.line", heirs)


def _times(store: Store) -> pl.DataFrame:
    """Return when a walk over the files, from each chunk to those that follow it, enters a chunk, and when it leaves it."""
    rows = store.read("select file_id, previous from raw.files order by chunk, file_id")
    file_ids = set(rows["file_id"])
    after: dict[str | None, list[str]] = {}
    for file_id, previous in rows.iter_rows():
        after.setdefault(previous if previous in file_ids else None, []).append(file_id)
    entered: dict[str, int] = {}
    gone: dict[str, int] = {}
    clock, waiting = 0, [(file_id, False) for file_id in after.get(None, [])]
    while waiting:
        file_id, is_done = waiting.pop()
        (gone if is_done else entered)[file_id] = clock
        clock += 1
        if not is_done:
            waiting.append((file_id, True))
            waiting += [(each, False) for each in after.get(file_id, [])]
    return pl.DataFrame({"file_id": list(entered), "entered": list(entered.values()), "gone": [gone[each] for each in entered]},
                        schema={"file_id": pl.String(), "entered": pl.Int64(), "gone": pl.Int64()})


def _changes(alike: pl.DataFrame, times: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that change: their new id, and whether they are rejected."""
    alike = alike.join(times, on="file_id").sort("known_as", "file_id", "byte_offset", "line")
    chunks = alike.group_by("known_as", "file_id", "entered", "gone").len("n")
    n = pl.col("n").cast(pl.Int64)
    walk = pl.concat([
        chunks.select("known_as", "file_id", pl.col("entered").alias("at"), n, is_entry=pl.lit(True)),
        chunks.select("known_as", "file_id", pl.col("gone").alias("at"), -n, is_entry=pl.lit(False))]).sort("known_as", "at")
    before = walk.with_columns(  # how often a record occurs in the chunks before a chunk of its file
        (pl.col("n").cum_sum().over("known_as") - pl.col("n")).alias("n_before")
    ).filter("is_entry").select("known_as", "file_id", "n_before")
    named = alike.join(before, on=["known_as", "file_id"]).with_columns(
        pl.int_range(pl.len()).over("known_as", "file_id").add(pl.col("n_before")).alias("nth"))
    named = named.with_columns(pl.Series("final_id", [
        nth_id(known_as, nth) for known_as, nth in named.select("known_as", "nth").iter_rows()], pl.String()))
    is_kept = pl.col("settled") & pl.col("reject_reason").is_null()
    named = named.sort("final_id", is_kept.not_(), pl.col("settled"), "path", "byte_offset", "line")
    named = named.with_columns(
        pl.when(pl.int_range(pl.len()).over("final_id") > 0).then(pl.lit("duplicate_record")).alias("becomes"),
        pl.col("path").first().over("final_id").alias("first_path"),
        pl.col("line").first().over("final_id").alias("first_line"))
    return named.filter((pl.col("final_id") != pl.col("record_id")) | pl.col("becomes").ne_missing(pl.col("reject_reason")))


def _carry_out(store: Store, changes: pl.DataFrame) -> None:
    if changes.is_empty():
        return
    store.change(
        "update raw.records as r set record_id = i.final_id, first_id = nullif(i.known_as, i.final_id), "
        "reject_reason = i.becomes from incoming i "
        "where r.file_id = i.file_id and r.record_id = i.record_id and r.byte_offset = i.byte_offset", changes)
    gone = changes.filter(pl.col("becomes").is_not_null())
    for table in ("core.events", "raw.quarantine"):
        store.change(f"delete from {table} e using incoming i where e.file_id = i.file_id and e.record_id = i.record_id", gone)
    store.append_new("mart.decisions", gone.select(
        stage=pl.lit("extract"), subject=pl.format("{}:{}", "file_id", "line"), kept=pl.lit(False),
        reason=pl.lit("duplicate_record"),
        detail=pl.format("The same record is in {}, line {}; no action needed.", "first_path", "first_line"),
        file_id="file_id", line="line").select(list(frame_schema(Decision))))
    renamed = changes.filter(pl.col("becomes").is_null())
    store.change(
        "update core.events as e set record_id = i.final_id, event_id = case when e.event_id = e.record_id then i.final_id "
        "else left(sha256(e.event_id || i.final_id), 32) end from incoming i "
        "where e.file_id = i.file_id and e.record_id = i.record_id", renamed)
    store.change("update raw.quarantine as e set record_id = i.final_id from incoming i "
                 "where e.file_id = i.file_id and e.record_id = i.record_id", renamed)
