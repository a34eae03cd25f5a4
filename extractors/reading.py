"""A piece of a log file in; its row of the ledger, its records, its events, the tools it declares and verdicts out.

Ids are content hashes (law 4): a piece's over source, the piece before it and content, a record's over source, bytes and its
ordinal among equal records of the piece; equal records of different pieces are told apart when all are in
(`pipelines.settling`). The path and the clock reach the ledger alone.
What it sees: the content. What it does not see: other files; sessions are put together in `extractors.sessions`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePosixPath

import polars as pl

from extractors.content import Records, records_of
from extractors.formats import Block, Emit, LogRecord, named
from extractors.formats.envelope import Envelope
from extractors.inventory import SourceFile
from extractors.pieces import Left, Log, Piece, opened
from warehouse.errors import Unreadable
from warehouse.records import Declaration, Event, File, Quarantined, RawRecord, Verdict, empty, frame, frame_schema

_GENERIC = ("tools", "tool", "functions", "tool_list", "tools_list")
_MOST_KEPT = 1 << 20
"""Bytes kept of a record in quarantine."""


@dataclass(frozen=True)
class Reading:
    """What one piece of a file holds."""

    file: File
    """Its row of `raw.files`."""
    records: pl.DataFrame
    """`raw.records`."""
    events: pl.DataFrame
    """`core.events`."""
    declarations: pl.DataFrame
    """`raw.declarations`."""
    quarantine: pl.DataFrame
    """`raw.quarantine`: the bytes of the records that gave nothing."""
    verdicts: pl.DataFrame
    """`mart.verdicts` of stage extract: one on the piece, and one for each record that (in part) became no event."""


def read(source_file: SourceFile, read_at: datetime | None = None) -> Reading:
    """Read one file, all its pieces together.

    A file that is no log, and a line that cannot be read, become verdicts; all else goes on. `read_at`: instant for the
    ledger, default now. Errors: `Unreadable` where the file itself cannot be opened, `Missing` for an unknown format.
    """
    found = list(readings(source_file, read_at))
    if len(found) == 1:
        return found[0]
    first = found[0].file
    file = first.model_copy(update={
        "n_bytes": sum(each.file.n_bytes for each in found), "n_records": sum(each.file.n_records for each in found)})
    columns = ("records", "events", "declarations", "quarantine", "verdicts")
    return Reading(file, *(pl.concat([getattr(each, name) for each in found]) for name in columns))


def readings(source_file: SourceFile, read_at: datetime | None = None) -> Iterator[Reading]:
    """The readings of a file's pieces, in order; errors as of `read`."""
    read_at = read_at or datetime.now(UTC)
    try:
        found = opened(source_file)
        if isinstance(found, Left):
            yield left(source_file, found, 0, read_at)
            return
        log, pieces = found
        for number, piece in enumerate(pieces):
            yield (left(source_file, piece, number, read_at) if isinstance(piece, Left) else read_piece(log, piece, read_at))
    except OSError as error:
        raise Unreadable(f"the file cannot be read ({error.strerror})", source_file.place, "check its permissions") from error


def left(source_file: SourceFile, why: Left, number: int, read_at: datetime) -> Reading:
    """The reading of a file, or of the rest of one, that is left alone."""
    verdict = Verdict(stage="extract", subject=why.file_id, kept=False, reason=why.reason,
                      detail=f"{source_file.relative} {why.detail}.", file_id=why.file_id)
    file = File(file_id=why.file_id, previous=why.previous, source=source_file.source.name, path=source_file.place,
                piece=number, byte_offset=0, format=why.reason, n_bytes=why.n_bytes, n_records=0, day=None, read_at=read_at,
                settled=False)
    return Reading(file, empty(RawRecord), empty(Event), empty(Declaration), empty(Quarantined), frame(Verdict, [verdict]))


def read_piece(log: Log, piece: Piece, read_at: datetime) -> Reading:
    """Read one piece of a file."""
    return _Reader(log, piece, read_at).read()


class _Reader:
    """Runs a format over the records of one piece."""

    def __init__(self, log: Log, piece: Piece, read_at: datetime) -> None:
        self._log, self._piece = log, piece
        self._source_file = log.source_file
        self._format = named(log.format)
        source = self._source_file.source
        self._read_at = read_at
        self._emit = Emit(piece.file_id, source.name, log.format, Envelope(source.fields, source.service))
        self._verdicts: dict[tuple[int, str], Verdict] = {}
        self._quarantine: list[tuple[str, str, int, int, bytes]] = []

    def read(self) -> Reading:
        """The piece's reading."""
        piece, log = self._piece, self._log
        if piece.too_long:
            records = Records([piece.line], [piece.byte_offset], [piece.content], problems={
                0: f"it is a line of {piece.too_long} bytes, longer than any that is read"})
        else:
            records = records_of(piece.content, log.layout, log.whole, log.document, log.header if piece.number else b"",
                                 piece.line, piece.byte_offset)
        ids, firsts = _record_ids(self._source_file.source.name, records.contents)
        block = Block(ids, records.lines, records.contents, partial(self._record, records, ids))
        if self._format.read_block is not None and records.values is None:
            self._format.read_block(block, self._emit)
        else:
            self._format.read(block.records(), self._emit)
        for record, reason, detail in self._emit.rejects:
            self._say(record.line, reason, detail)
        events = self._emit.frame()
        self._keep_what_gave_nothing(records, ids, events)
        return self._reading(records, ids, firsts, events)

    def _record(self, records: Records, ids: list[str], index: int) -> LogRecord | None:
        """A record that can be read, else None and a verdict."""
        value, problem, note = records.value(index)
        if problem is not None:
            self._say(records.lines[index], "unreadable_record", f"{problem}; repair or remove it")
            return None
        if note is not None:
            self._say(records.lines[index], "mended_record", note, kept=True)
        return LogRecord(ids[index], records.lines[index], value)

    def _say(self, line: int, reason: str, detail: str, kept: bool = False) -> None:
        """One verdict a record and reason."""
        self._verdicts.setdefault((line, reason), Verdict(
            stage="extract", subject=f"{self._piece.file_id}:{line}", kept=kept, reason=reason,
            detail=f"{self._source_file.relative}, line {line}: {detail}.", file_id=self._piece.file_id, line=line))

    def _keep_what_gave_nothing(self, records: Records, ids: list[str], events: pl.DataFrame) -> None:
        """The bytes of records with a verdict that became no event."""
        said = {line for (line, _), verdict in self._verdicts.items() if not verdict.kept}
        if not said:
            return
        told = set(events.get_column("record_id"))
        self._quarantine = [
            (ids[i], self._piece.file_id, line, records.byte_offsets[i], records.contents[i][:_MOST_KEPT])
            for i, line in enumerate(records.lines) if line in said and ids[i] not in told]

    def _reading(self, records: Records, ids: list[str], firsts: list[str | None], events: pl.DataFrame) -> Reading:
        piece, file_id = self._piece, self._piece.file_id
        n_records = len(ids)
        day = events.get_column("happened_at").min()
        read = Verdict(stage="extract", subject=file_id, kept=True, reason="read", file_id=file_id, detail=(
            f"{self._source_file.relative}: {n_records} records in format {self._log.format}, {len(events)} events."))
        schema = frame_schema(RawRecord)
        rows = pl.DataFrame({
            "record_id": ids, "file_id": file_id, "line": records.lines, "byte_offset": records.byte_offsets,
            "n_bytes": list(map(len, records.contents)), "first_id": firsts, "left_as": None}, schema=schema)
        file = File(
            file_id=file_id, previous=piece.previous, source=self._source_file.source.name, path=self._source_file.place,
            piece=piece.number, byte_offset=piece.byte_offset, format=self._log.format,
            n_bytes=piece.too_long or len(piece.content), n_records=n_records,
            day=day.strftime("%Y-%m-%d") if isinstance(day, datetime) else None, read_at=self._read_at, settled=False)
        return Reading(
            file, rows, events, self._declared(),
            pl.DataFrame(self._quarantine, schema=frame_schema(Quarantined), orient="row") if self._quarantine
            else empty(Quarantined),
            frame(Verdict, [read, *self._verdicts.values()]))

    def _declared(self) -> pl.DataFrame:
        """Declarations, each once; a tool list that states no service is named after its file (`desk.json` -> desk)."""
        stem = PurePosixPath(self._source_file.relative).name.split(".")[0]
        hint = stem if self._format.whole and stem.lower() not in _GENERIC else None
        rows = {row["declaration_id"]: {**row, "service": row["service"] or hint} for row in self._emit.declarations}
        return frame(Declaration, list(rows.values()))


def _record_ids(source: str, contents: list[bytes]) -> tuple[list[str], list[str | None]]:
    """An id for each record, and of equal ones after the first, the id of the first."""
    sha256, prefix = hashlib.sha256, f"{source}\0".encode()
    ids = [sha256(prefix + content).hexdigest()[:32] for content in contents]
    firsts: list[str | None] = [None] * len(ids)
    if len(set(ids)) == len(ids):
        return ids, firsts
    seen: Counter[str] = Counter()
    for index, record_id in enumerate(ids):
        nth = seen[record_id]
        seen[record_id] += 1
        if nth:
            ids[index], firsts[index] = nth_id(record_id, nth), record_id
    return ids, firsts


def nth_id(record_id: str, nth: int) -> str:
    """Id of the n-th (0-based) of a file's equal records, of which the first has `record_id`."""
    return record_id if nth == 0 else hashlib.sha256(f"{record_id}@{nth + 1}".encode()).hexdigest()[:32]
