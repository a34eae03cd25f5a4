"""A chunk of a log file in; its row of the ledger, its records, its events, the tools it declares and decisions out.

Ids are content hashes (law 4): a chunk's over source, the chunk before it and content, a record's over source, bytes and its
ordinal among equal records of the chunk; equal records of different chunks are told apart when all are in
(`pipelines.ingestion.settle`). The path and the clock reach the ledger alone.
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

from extractors.chunks import Chunk, Log, RejectedFile, opened
from extractors.content import Records, parsed
from extractors.formats import Block, Emit, LogRecord, named
from extractors.formats.envelope import Envelope
from extractors.inventory import SourceFile
from extractors.privacy.credentials import record_without_credentials, without_credentials
from warehouse.errors import Unreadable
from warehouse.records import Decision, Declaration, Event, File, Quarantined, RawRecord, empty, frame, frame_schema

_GENERIC = ("tools", "tool", "functions", "tool_list", "tools_list")
_WITH_FIELDS = ("lines", "document", "table")
"""Layouts whose records have fields; what lies in an archive is not unpacked again."""
_MOST_KEPT = 1 << 20
"""Bytes kept of a record in quarantine."""


@dataclass(frozen=True)
class Reading:
    """What one chunk of a file holds."""

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
    decisions: pl.DataFrame
    """`mart.decisions` of stage extract: one on the chunk, and one for each record that (in part) became no event."""


def read(source_file: SourceFile, read_at: datetime | None = None) -> Reading:
    """Read one file, all its chunks together; what cannot be read becomes a decision.

    `read_at`: instant for the ledger, default now. Errors: `Unreadable`, `Missing` for an unknown format."""
    parts = list(readings(source_file, read_at))
    if len(parts) == 1:
        return parts[0]
    first = parts[0].file
    file = first.model_copy(update={
        "n_bytes": sum(each.file.n_bytes for each in parts), "n_records": sum(each.file.n_records for each in parts)})
    columns = ("records", "events", "declarations", "quarantine", "decisions")
    return Reading(file, *(pl.concat([getattr(each, name) for each in parts]) for name in columns))


def readings(source_file: SourceFile, read_at: datetime | None = None) -> Iterator[Reading]:
    """Yield the readings of a file's chunks, in order; errors as of `read`."""
    read_at = read_at or datetime.now(UTC)
    try:
        opening = opened(source_file)
        if isinstance(opening, RejectedFile):
            yield rejected_reading(source_file, opening, 0, read_at)
            return
        log, chunks = opening
        for number, chunk in enumerate(chunks):
            if isinstance(chunk, RejectedFile):
                yield rejected_reading(source_file, chunk, number, read_at)
            else:
                yield read_chunk(log, chunk, read_at)
    except OSError as error:
        raise Unreadable(f"the file cannot be read ({error.strerror})", source_file.place, "check its permissions") from error


def rejected_reading(source_file: SourceFile, why: RejectedFile, number: int, read_at: datetime) -> Reading:
    """Make the reading of a rejected file, or of the rejected rest of one."""
    decision = Decision(stage="extract", subject=why.file_id, kept=False, reason=why.reason,
                      detail=f"{source_file.relative} {why.detail}.", file_id=why.file_id)
    file = File(file_id=why.file_id, previous=why.previous, source=source_file.source.name, path=source_file.place,
                chunk=number, byte_offset=0, format=why.reason, n_bytes=why.n_bytes, n_records=0, day=None, read_at=read_at,
                settled=False)
    return Reading(file, empty(RawRecord), empty(Event), empty(Declaration), empty(Quarantined), frame(Decision, [decision]))


def read_chunk(log: Log, chunk: Chunk, read_at: datetime) -> Reading:
    """Read one chunk of a file."""
    return _Reader(log, chunk, read_at).read()


class _Reader:
    def __init__(self, log: Log, chunk: Chunk, read_at: datetime) -> None:
        self._log, self._chunk = log, chunk
        self._source_file = log.source_file
        self._format = named(log.format)
        source = self._source_file.source
        self._read_at = read_at
        self._emit = Emit(chunk.file_id, source.name, log.format, Envelope(source.fields, source.service))
        self._decisions: dict[tuple[int, str], Decision] = {}

    def read(self) -> Reading:
        chunk, log = self._chunk, self._log
        if chunk.too_long:
            records = Records([chunk.line], [chunk.byte_offset], [chunk.content], problems={
                0: f"it is a line of {chunk.too_long} bytes, longer than any that is read"})
        else:
            records = log.records(chunk)
        ids, firsts = _record_ids(self._source_file.source.name, records.contents)
        block = Block(ids, records.lines, records.contents, partial(self._record, records, ids))
        if self._format.read_block is not None and records.values is None:
            self._format.read_block(block, self._emit)
        else:
            self._format.read(block.records(), self._emit)
        if log.wrapping is not None and log.wrapping.carrier:
            self._read_carrier(records, ids, log.wrapping.carrier)
        for record, reason, detail in self._emit.rejects:
            self._say(record.line, reason, detail)
        return self._reading(records, ids, firsts, self._emit.frame())

    def _read_carrier(self, records: Records, ids: list[str], name: str) -> None:
        """Read what holds no record of the wrapped format as the format reads it that claims the file as it is."""
        read_ids = {row["record_id"] for row in self._emit.events}
        rejected = {record.record_id for record, _, _ in self._emit.rejects}
        indexes = [n for n, each in enumerate(ids) if each not in read_ids and (each in rejected or n in records.problems)]
        others = []
        for index in indexes:
            content = records.contents[index]
            is_text = self._log.layout == "text"
            value, problem = (content.decode("utf-8", "replace"), None) if is_text else parsed(content)[:2]
            if problem is None:
                others.append(LogRecord(ids[index], records.lines[index], value))
                self._decisions.pop((records.lines[index], "unreadable_record"), None)
        other_ids = {each.record_id for each in others}
        self._emit.rejects = [each for each in self._emit.rejects if each[0].record_id not in other_ids]
        if others:
            named(name).read(others, self._emit)

    def _record(self, records: Records, ids: list[str], index: int) -> LogRecord | None:
        value, problem, note = records.value(index)
        if problem is not None:
            self._say(records.lines[index], "unreadable_record", f"{problem}; repair or remove it")
            return None
        if note is not None:
            self._say(records.lines[index], "mended_record", note, kept=True)
        return LogRecord(ids[index], records.lines[index], value)

    def _say(self, line: int, reason: str, detail: str, kept: bool = False) -> None:
        self._decisions.setdefault((line, reason), Decision(
            stage="extract", subject=f"{self._chunk.file_id}:{line}", kept=kept, reason=reason,
            detail=f"{self._source_file.relative}, line {line}: {detail}.", file_id=self._chunk.file_id, line=line))

    def _reading(self, records: Records, ids: list[str], firsts: list[str | None], events: pl.DataFrame) -> Reading:
        chunk, file_id, events = self._chunk, self._chunk.file_id, without_credentials(events)
        n_records = len(ids)
        day = events.get_column("happened_at").min()
        read = Decision(stage="extract", subject=file_id, kept=True, reason="read", file_id=file_id, detail=(
            f"{self._source_file.relative}: {n_records} records in format {self._log.format}, {len(events)} events."))
        skipped = [Decision(stage="extract", subject=file_id, kept=False, reason="zero_bytes", file_id=file_id, detail=(
            f"{self._source_file.relative}: {chunk.n_zero} zero bytes were skipped, where nothing was written; do not truncate "
            "a log under its writer."))] if chunk.n_zero else []
        rows = pl.DataFrame({
            "record_id": ids, "file_id": file_id, "line": records.lines, "byte_offset": records.byte_offsets,
            "n_bytes": list(map(len, records.contents)), "first_id": firsts, "reject_reason": None},
            schema=frame_schema(RawRecord))
        file = File(
            file_id=file_id, previous=chunk.previous, source=self._source_file.source.name, path=self._source_file.place,
            chunk=chunk.number, byte_offset=chunk.byte_offset, format=self._log.format,
            n_bytes=chunk.too_long or len(chunk.content), n_records=n_records,
            day=day.strftime("%Y-%m-%d") if isinstance(day, datetime) else None, read_at=self._read_at, settled=False)
        # a tool list that states no service is named after its file: desk.json -> desk
        stem = PurePosixPath(self._source_file.relative).name.split(".")[0]
        hint = stem if self._format.whole and stem.lower() not in _GENERIC else None
        declared = {row["declaration_id"]: {**row, "service": row["service"] or hint} for row in self._emit.declarations}
        rejected_lines = {line for (line, _), decision in self._decisions.items() if not decision.kept}
        read_ids = set(events.get_column("record_id")) if rejected_lines else set()
        unread = ((i, line, record_without_credentials(
            records.contents[i], records.value(i)[0] if self._log.layout in _WITH_FIELDS else None, _MOST_KEPT))
                  for i, line in enumerate(records.lines) if line in rejected_lines and ids[i] not in read_ids)
        quarantine = [(ids[i], file_id, line, records.byte_offsets[i], content) for i, line, content in unread]
        return Reading(
            file, rows, events, frame(Declaration, list(declared.values())),
            pl.DataFrame(quarantine, schema=frame_schema(Quarantined), orient="row") if quarantine else empty(Quarantined),
            frame(Decision, [read, *skipped, *self._decisions.values()]))

def _record_ids(source: str, contents: list[bytes]) -> tuple[list[str], list[str | None]]:
    """Return an id for each record, and of equal ones after the first, the id of the first."""
    sha256, prefix = hashlib.sha256, f"{source}\0".encode()
    ids = [sha256(prefix + content).hexdigest()[:32] for content in contents]
    firsts: list[str | None] = [None] * len(ids)
    if len(set(ids)) == len(ids):
        return ids, firsts
    counts: Counter[str] = Counter()
    for index, record_id in enumerate(ids):
        nth = counts[record_id]
        counts[record_id] += 1
        if nth:
            ids[index], firsts[index] = nth_id(record_id, nth), record_id
    return ids, firsts


def nth_id(record_id: str, nth: int) -> str:
    """Id of the n-th (0-based) of a file's equal records, of which the first has `record_id`."""
    return record_id if nth == 0 else hashlib.sha256(f"{record_id}@{nth + 1}".encode()).hexdigest()[:32]
