"""Who was forgotten, as keyed hashes (`raw.forgotten`): enough to leave out what is read of them again, and nothing else.

| kind | hash of | form |
|---|---|---|
| identifier | a value that stands for the person | what it looks like: so many letters, so many digits |
| session | source and session id | |
| event | event id | |
| key | nothing: which key the others were made with | |

A piece of a log goes in as it was read, and comes out without their events. Their records stay as pointers without an id that
says anything, each with a verdict `forgotten`. Sees what `identifiers` sees, without knowing whom it looks for.
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
from pipelines.erasing.identifiers import Identifiers, is_word, looks, pattern, spellings
from pipelines.keys import keyed_hash, owner_key
from warehouse.errors import InputError
from warehouse.records import Forgotten, Verdict, frame
from warehouse.store import Store

TABLE = "raw.forgotten"
REASON = "forgotten"
_TEXTS = ("content", "call_id", "arguments", "name", "value", "usage", "session_id", "tool")
_SPOKEN = ("message", "reasoning", "call", "result", "request")
_RECORD_ID = 32


class Kept(NamedTuple):
    """A reading without what is of forgotten persons."""

    reading: Reading
    sessions: pl.DataFrame = pl.DataFrame()
    """source and session_id of sessions that were found to be theirs just now: what is stored of them must go too."""
    rows: pl.DataFrame = pl.DataFrame()
    """What to remember of these (`raw.forgotten`)."""


def key_of() -> bytes:
    """The owner's key, from the environment."""
    return owner_key(os.environ, lambda sentence: progress.warn("forget", sentence))


def hashed(key: bytes, kind: str, *parts: str) -> str:
    """Hash of something of a person."""
    return keyed_hash(key, f"forgotten {kind}", json.dumps(parts))


def rows_of(key: bytes, person: Identifiers, theirs: Theirs) -> pl.DataFrame:
    """What to remember of a person (`raw.forgotten`)."""
    rows = [_row("key", hashed(key, "key"))]
    for value in person.values:
        kind = "word" if is_word(value) else "field"
        rows += [_row("identifier", hashed(key, "identifier", each), f"{kind} {looks(each)}") for each in spellings(value)]
    rows += [_row("session", hashed(key, "session", source, name)) for source, name in theirs.names]
    rows += [_row("event", hashed(key, "event", event_id)) for event_id in theirs.events["event_id"]]
    return frame(Forgotten, rows).unique(maintain_order=True)


def remembered(store: Store) -> Remembered | None:
    """Who was forgotten, None where nobody was. Raises InputError where the key is another one than it was then."""
    rows = store.read(f"select * from {TABLE}")
    return Remembered(key_of(), rows) if rows.height else None


class Remembered:
    """Hashes of what is left out."""

    def __init__(self, key: bytes, rows: pl.DataFrame) -> None:
        self._key = key
        self._hashes: dict[str, set[str]] = {
            kind: set(rows.filter(pl.col("kind") == kind)["hash"]) for kind in ("key", "identifier", "session", "event")}
        if self._hashes["key"] and hashed(key, "key") not in self._hashes["key"]:
            raise InputError("this is not the key that people were forgotten with, so they cannot be told", "TRACEROOM_KEY",
                             "give the key of then: without it they would be read again")
        forms = rows.filter(pl.col("kind") == "identifier")["form"].unique().sort()
        self._forms = [(looks, pattern(looks, kind == "word")) for kind, _, looks in (form.partition(" ") for form in forms)]

    def speaks(self, text: str | None) -> bool:
        """Does a value of somebody who was forgotten stand in the text?"""
        if not text:
            return False
        lowered = text.lower()
        return any(self._is_identifier(found) for _, each in self._forms for found in each.findall(lowered))

    def leave_out(self, reading: Reading) -> Kept:
        """The reading without their events, and what it tells of them anew."""
        events = reading.events
        named, spoken = self._by_name(events), self._by_words(events)
        found = events.filter(spoken).filter(pl.col("session_id").is_not_null()).select("source", "session_id").unique()
        gone = named | spoken | self._of_sessions(events, found, spoken)
        quarantine = reading.quarantine.filter(self._mask(
            [content.decode("utf-8", "replace") for content in reading.quarantine["content"]]).not_())
        kept = replace(
            reading, events=events.filter(~gone), quarantine=quarantine,
            declarations=reading.declarations.filter(~self._in_any(reading.declarations, ("description", "input_schema"))))
        known = found.sort("source", "session_id")
        rows = [_row("session", hashed(self._key, "session", *each)) for each in known.iter_rows()]
        if gone.any() or quarantine.height < reading.quarantine.height:
            unread = reading.quarantine.join(quarantine, on=["file_id", "line"], how="anti")
            kept = self._marked(kept, events.filter(gone), unread)
        return Kept(self._without_words(kept), known, frame(Forgotten, rows))

    def record_id(self, record_id: str) -> str:
        """What a record of theirs is called: the same one for the same record, and without the key no digest of it."""
        return forgotten_id(self._key, record_id)

    def _marked(self, kept: Reading, gone: pl.DataFrame, unread: pl.DataFrame) -> Reading:
        """The reading in which records without an event any more are left, with a verdict each."""
        theirs = (gone.select("record_id").join(kept.events, on="record_id", how="anti")["record_id"].to_list()
                  + unread["record_id"].to_list())
        is_theirs = pl.col("record_id").is_in(theirs)
        lines = kept.records.filter(is_theirs).select("file_id", "line")
        ids = {each: self.record_id(each) for each in set(theirs)}
        records = kept.records.with_columns(
            pl.when(is_theirs).then(pl.lit(REASON)).otherwise("left_as").alias("left_as"),
            pl.when(is_theirs).then(pl.lit(None, pl.String())).otherwise("first_id").alias("first_id"),
            pl.col("record_id").replace(ids))
        verdicts = kept.verdicts.join(lines, on=["file_id", "line"], how="anti")
        return replace(kept, records=records, verdicts=pl.concat([verdicts, verdicts_on(lines)]))

    def _without_words(self, kept: Reading) -> Reading:
        """Verdicts may quote a name of a file or a session."""
        return replace(kept, verdicts=kept.verdicts.filter(~self._in_any(kept.verdicts, ("subject", "detail"))))

    def _by_name(self, events: pl.DataFrame) -> pl.Series:
        """Events whose session or whose own id is remembered."""
        names = events.select("source", "session_id").unique().drop_nulls()
        theirs = names.filter(pl.Series(
            [hashed(self._key, "session", *each) in self._hashes["session"] for each in names.iter_rows()], dtype=pl.Boolean))
        row = events.with_row_index("row").join(theirs, on=["source", "session_id"], how="semi")["row"]
        of_session = pl.Series([False]).new_from_index(0, events.height).scatter(row, True)
        known = self._hashes["event"]
        own = pl.Series([hashed(self._key, "event", each) in known for each in events["event_id"]], dtype=pl.Boolean)
        return of_session | own

    def _by_words(self, events: pl.DataFrame) -> pl.Series:
        """Events in which a value of theirs stands, or of which they are who did it."""
        names = {name for name in events["name"].unique().drop_nulls() if self._is_identifier(name.strip().lower())}
        return self._in_any(events, _TEXTS) | events["name"].is_in(list(names)).fill_null(False)

    def _of_sessions(self, events: pl.DataFrame, found: pl.DataFrame, spoken: pl.Series) -> pl.Series:
        """Events of the same sessions; of events without a session id, those of the same file and identity."""
        keys = ["file_id", "format", "name"]
        row = events.with_row_index("row")
        by_id = row.join(found, on=["source", "session_id"], how="semi")["row"]
        nameless = row.filter(pl.col("session_id").is_null() & pl.col("kind").is_in(_SPOKEN))
        by_file = nameless.join(nameless.filter(pl.col("row").is_in(spoken.arg_true().implode())).select(keys).unique(),
                                on=keys, how="semi", nulls_equal=True)["row"]
        theirs = {*by_id, *by_file}
        return pl.Series([number in theirs for number in range(events.height)], dtype=pl.Boolean)

    def _in_any(self, rows: pl.DataFrame, columns: Iterable[str]) -> pl.Series:
        """Rows in which a value of theirs stands in one of the columns."""
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

    def _mask(self, texts: list[str]) -> pl.Series:
        return pl.Series([self.speaks(text) for text in texts], dtype=pl.Boolean)

    def _is_identifier(self, spelling: str) -> bool:
        return hashed(self._key, "identifier", spelling) in self._hashes["identifier"]


def verdicts_on(lines: pl.DataFrame) -> pl.DataFrame:
    """A verdict on each record (file_id, line) of somebody who was forgotten."""
    return frame(Verdict, [
        Verdict(stage="extract", subject=f"{file_id}:{line}", kept=False, reason=REASON, file_id=file_id, line=line,
                detail="A record of somebody who was forgotten; nothing to mend.")
        for file_id, line in lines.unique().sort("file_id", "line").iter_rows()])


def forgotten_id(key: bytes, record_id: str) -> str:
    """What a record of somebody who was forgotten is called."""
    return hashed(key, "record", record_id)[:_RECORD_ID]


def _row(kind: Literal["key", "identifier", "session", "event"], text: str, form: str = "") -> Forgotten:
    return Forgotten(kind=kind, hash=text, form=form)
