"""Who was forgotten, as keyed hashes (`raw.forgotten`): enough to skip their data in later runs, and nothing else.

| kind | hash of | form |
|---|---|---|
| identifier | a value that identifies the person | its shape: numbers of letters and of digits |
| session | source and session id | |
| event | event id | |
| key | nothing: which key the others were made with | |

A chunk of a log goes in as it was read, and comes out without their events. Their records stay as pointers with a meaningless
id, each with a decision `forgotten`. Sees what `identifiers` sees, without knowing whom it searches for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, NamedTuple

import polars as pl

from extractors.reading import Reading
from pipelines import progress
from pipelines.erasing.finding import Theirs
from pipelines.erasing.identifiers import Identifiers, pattern, shape_of, spellings
from pipelines.privacy.keys import keyed_hash, owner_key
from warehouse.errors import InputError
from warehouse.records import Decision, Forgotten, frame
from warehouse.store import Store

TABLE = "raw.forgotten"
REASON = "forgotten"
_TEXTS = ("content", "call_id", "arguments", "name", "value", "usage", "session_id", "tool")
_SPOKEN = ("message", "reasoning", "call", "result", "request")
_RECORD_ID = 32


class Kept(NamedTuple):
    """A reading without the data of forgotten people."""

    reading: Reading
    sessions: pl.DataFrame = pl.DataFrame()
    """source and session_id of sessions that turned out to be theirs just now: their stored events must be deleted too."""
    rows: pl.DataFrame = pl.DataFrame()
    """Hashes of these (`raw.forgotten`)."""


def key_of() -> bytes:
    """Return the owner's key, from the environment."""
    return owner_key(os.environ, lambda sentence: progress.warn("forget", sentence)).secret


def hashed(key: bytes, kind: str, *parts: str) -> str:
    """Hash something of a person."""
    return keyed_hash(key, f"forgotten {kind}", json.dumps(parts))


def rows_of(key: bytes, person: Identifiers, theirs: Theirs) -> pl.DataFrame:
    """Return the hashes of a person (`raw.forgotten`)."""
    rows = [_row(key, "key")]
    for value in person.values:
        kind = "word" if person.is_word(value) else "field"
        rows += [_row(key, "identifier", each, form=f"{kind} {shape_of(each)}") for each in spellings(value)]
    rows += [_row(key, "session", source, name) for source, name in theirs.names]
    rows += [_row(key, "event", event_id) for event_id in theirs.events["event_id"]]
    return frame(Forgotten, rows).unique(maintain_order=True)


def remembered(store: Store) -> Remembered | None:
    """Return who was forgotten, None if no one was. Raises InputError if the key is not the one of then."""
    rows = store.read(f"select * from {TABLE}")
    return Remembered(key_of(), rows) if rows.height else None


class Remembered:
    """Hashes of what is skipped."""

    def __init__(self, key: bytes, rows: pl.DataFrame) -> None:
        self.key = key
        self._hashes: dict[str, set[str]] = {
            kind: set(rows.filter(pl.col("kind") == kind)["hash"]) for kind in ("key", "identifier", "session", "event")}
        if self._hashes["key"] and hashed(key, "key") not in self._hashes["key"]:
            raise InputError("this is not the key that people were forgotten with, so they cannot be recognized",
                             "TRACEROOM_KEY", "use the key of then: without it they would be read again")
        forms = rows.filter(pl.col("kind") == "identifier")["form"].unique().sort()
        self._forms = [(shape, pattern(shape, kind == "word")) for kind, _, shape in (form.partition(" ") for form in forms)]

    def speaks(self, text: str | None) -> bool:
        """Whether the text contains a value of a forgotten person."""
        if not text:
            return False
        lowered = text.lower()
        return any(self._is_identifier(match) for _, each in self._forms for match in each.findall(lowered))

    def leave_out(self, reading: Reading) -> Kept:
        """Return the reading without their events, with the sessions that it shows to be theirs."""
        events = reading.events
        names = {name for name in events["name"].unique().drop_nulls() if self._is_identifier(name.strip().lower())}
        spoken = self._in_any(events, _TEXTS) | events["name"].is_in(list(names)).fill_null(False)
        sessions = events.filter(spoken).filter(pl.col("session_id").is_not_null()).select("source", "session_id").unique()
        gone = self._by_name(events) | spoken | self._of_sessions(events, sessions, spoken)
        quarantine = reading.quarantine.filter(pl.Series(
            [not self.speaks(content.decode("utf-8", "replace")) for content in reading.quarantine["content"]],
            dtype=pl.Boolean))
        kept = replace(
            reading, events=events.filter(~gone), quarantine=quarantine,
            declarations=reading.declarations.filter(~self._in_any(reading.declarations, ("description", "input_schema"))))
        ordered = sessions.sort("source", "session_id")
        rows = [_row(self.key, "session", *each) for each in ordered.iter_rows()]
        if gone.any() or quarantine.height < reading.quarantine.height:
            unread = reading.quarantine.join(quarantine, on=["file_id", "line"], how="anti")
            kept = self._marked(kept, events.filter(gone), unread)
        decisions = kept.decisions.filter(~self._in_any(kept.decisions, ("subject", "detail")))  # they may quote a name
        return Kept(replace(kept, decisions=decisions), ordered, frame(Forgotten, rows))

    def _marked(self, kept: Reading, gone: pl.DataFrame, unread: pl.DataFrame) -> Reading:
        """Reject the records that have no event any more, with a decision each."""
        theirs = (gone.select("record_id").join(kept.events, on="record_id", how="anti")["record_id"].to_list()
                  + unread["record_id"].to_list())
        is_theirs = pl.col("record_id").is_in(theirs)
        lines = kept.records.filter(is_theirs).select("file_id", "line")
        ids = {each: _forgotten_id(self.key, each) for each in set(theirs)}
        records = kept.records.with_columns(
            pl.when(is_theirs).then(pl.lit(REASON)).otherwise("reject_reason").alias("reject_reason"),
            pl.when(is_theirs).then(pl.lit(None, pl.String())).otherwise("first_id").alias("first_id"),
            pl.col("record_id").replace(ids))
        decisions = kept.decisions.join(lines, on=["file_id", "line"], how="anti")
        return replace(kept, records=records, decisions=pl.concat([decisions, decisions_on(lines)]))

    def _by_name(self, events: pl.DataFrame) -> pl.Series:
        """Find events whose session or own id is among the hashes."""
        names = events.select("source", "session_id").unique().drop_nulls()
        theirs = names.filter(pl.Series(
            [hashed(self.key, "session", *each) in self._hashes["session"] for each in names.iter_rows()], dtype=pl.Boolean))
        row = events.with_row_index("row").join(theirs, on=["source", "session_id"], how="semi")["row"]
        of_session = pl.Series([False]).new_from_index(0, events.height).scatter(row, True)
        event_hashes = self._hashes["event"]
        own = pl.Series([hashed(self.key, "event", each) in event_hashes for each in events["event_id"]], dtype=pl.Boolean)
        return of_session | own

    def _of_sessions(self, events: pl.DataFrame, sessions: pl.DataFrame, spoken: pl.Series) -> pl.Series:
        """Find events of the same sessions; without a session id, those of the same file and identity."""
        keys = ["file_id", "format", "name"]
        row = events.with_row_index("row")
        by_id = row.join(sessions, on=["source", "session_id"], how="semi")["row"]
        nameless = row.filter(pl.col("session_id").is_null() & pl.col("kind").is_in(_SPOKEN))
        by_file = nameless.join(nameless.filter(pl.col("row").is_in(spoken.arg_true().implode())).select(keys).unique(),
                                on=keys, how="semi", nulls_equal=True)["row"]
        theirs = {*by_id, *by_file}
        return pl.Series([number in theirs for number in range(events.height)], dtype=pl.Boolean)

    def _in_any(self, rows: pl.DataFrame, columns: Iterable[str]) -> pl.Series:
        """Find rows with a value of theirs in one of the columns."""
        mask = pl.repeat(False, rows.height, eager=True)
        for column in columns:
            texts = rows[column]
            likely = pl.repeat(False, rows.height, eager=True)
            for shape, _ in self._forms:
                likely |= texts.str.contains(f"(?i){shape}").fill_null(False)
            if likely.any():
                theirs = set(texts.filter(likely).unique().to_list())
                mask |= likely & texts.is_in([text for text in theirs if self.speaks(text)])
        return mask.fill_null(False)

    def _is_identifier(self, spelling: str) -> bool:
        return hashed(self.key, "identifier", spelling) in self._hashes["identifier"]


def decisions_on(lines: pl.DataFrame) -> pl.DataFrame:
    """Return a decision on each record (file_id, line) of a forgotten person."""
    return frame(Decision, [
        Decision(stage="extract", subject=f"{file_id}:{line}", kept=False, reason=REASON, file_id=file_id, line=line,
                detail="A record of a forgotten person; no action needed.")
        for file_id, line in lines.unique().sort("file_id", "line").iter_rows()])


def _forgotten_id(key: bytes, record_id: str) -> str:
    """Return the id of a forgotten person's record: always the same, and without the key no digest of the record."""
    return hashed(key, "record", record_id)[:_RECORD_ID]


def _row(key: bytes, kind: Literal["key", "identifier", "session", "event"], *parts: str, form: str = "") -> Forgotten:
    return Forgotten(kind=kind, hash=hashed(key, kind, *parts), form=form)


def erase_sessions(store: Store, key: bytes, sessions: pl.DataFrame) -> None:
    """Delete stored events of sessions (source, session_id)."""
    named = "(source, session_id) in (select (unnest($sources), unnest($names)))"
    parameters = {"sources": sessions["source"].to_list(), "names": sessions["session_id"].to_list()}
    with store.transaction():
        records = store.read(f"select distinct record_id from core.events where {named}", **parameters)
        store.change(f"delete from core.events where {named}", None, **parameters)
        mark_records(store, key, without_events(store, records, []))


def without_events(store: Store, records: pl.DataFrame, gone: list[str]) -> pl.DataFrame:
    """Return the records that have no event but the `gone` ones."""
    kept = store.read("select distinct record_id from core.events where record_id in (select unnest($records)) "
                      "and event_id not in (select unnest($gone))", records=records["record_id"].to_list(), gone=gone)
    return records.join(kept, on="record_id", how="anti")


def mark_records(store: Store, key: bytes, records: pl.DataFrame) -> int:
    """Turn records into pointers with a meaningless id, with a decision each."""
    lines = store.read("select file_id, line from raw.records where record_id in (select unnest($ids))",
                       ids=records["record_id"].to_list())
    if lines.is_empty():
        return 0
    final_ids = [_forgotten_id(key, each) for each in records["record_id"]]
    named = records.with_columns(pl.Series("final_id", final_ids, pl.String()))
    store.change("delete from mart.decisions v using incoming i where v.stage = 'extract' and v.file_id = i.file_id "
                 "and v.line = i.line", lines)
    store.change("update raw.records as r set record_id = i.final_id, first_id = null, "
                 f"reject_reason = '{REASON}' from incoming i where r.record_id = i.record_id", named)
    store.append_new("mart.decisions", decisions_on(lines))
    return lines.height
