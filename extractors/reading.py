"""One log file in; its row of the ledger, its records, its events, the tools it declares and verdicts out.

Ids are content hashes (law 4): a file's over source and content, a record's over source, bytes and its ordinal among equal
records of the file. The path and the clock reach the ledger alone.
What it sees: the content. What it does not see: other files; sessions are put together in `extractors.sessions`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import orjson
import polars as pl

from extractors import content as contents
from extractors.formats import Emit, Format, LogRecord, named, recognise
from extractors.formats.envelope import Envelope
from extractors.inventory import SourceFile, content_id
from warehouse.errors import Unreadable
from warehouse.records import Declaration, Event, File, RawRecord, Verdict, empty, frame, frame_schema

_PROSE = (".md", ".rst", ".pdf", ".html")
_PROSE_NAMES = ("licence", "license", "notice", "readme", "source", "changelog", "copying", "authors")
_GENERIC = ("tools", "tool", "functions", "tool_list", "tools_list")


@dataclass(frozen=True)
class Reading:
    """What one file holds."""

    file: File
    """Its row of `raw.files`."""
    records: pl.DataFrame
    """`raw.records`."""
    events: pl.DataFrame
    """`core.events`."""
    declarations: pl.DataFrame
    """`raw.declarations`."""
    verdicts: pl.DataFrame
    """`mart.verdicts` of stage extract: one on the file, and one for each record that (in part) became no event."""


def read(source_file: SourceFile, read_at: datetime | None = None) -> Reading:
    """Read one file.

    A file that is no log, and a line that cannot be read, become verdicts; all else goes on. `read_at`: instant for the
    ledger, default now. Errors: `Unreadable` where the file itself cannot be opened, `Missing` for an unknown format.
    """
    try:
        content = source_file.path.read_bytes()
    except OSError as error:
        raise Unreadable(f"the file cannot be read ({error.strerror})", str(source_file.path),
                         "check its permissions") from error
    ledger = _Ledger(source_file, content, read_at or datetime.now(UTC))
    if _is_prose(source_file):
        return ledger.left("not_a_log", "is prose beside the logs; nothing to mend")
    try:
        body = contents.unpacked(content)
    except ValueError as error:
        return ledger.left("unreadable_file", f"cannot be unpacked: {error}; copy it again")
    if not body.strip():
        return ledger.left("empty_file", "is empty; nothing to mend")
    head = contents.head_of(body)
    chosen = source_file.source.format
    log_format = named(chosen) if chosen else recognise(head)
    if log_format is None:
        return ledger.left("unknown_format", "is in no format that is known; name one under `format` in the "
                           "configuration, or add a format (docs/configuration.md)")
    return _Reader(ledger, log_format).read(contents.pieces(body, head, log_format.whole))


class _Ledger:
    """Facts of the file that its rows share."""

    def __init__(self, source_file: SourceFile, content: bytes, read_at: datetime) -> None:
        self.source_file = source_file
        self.source = source_file.source.name
        self.file_id = content_id(self.source, content)
        self._n_bytes = len(content)
        self._read_at = read_at

    def file(self, format_name: str, n_records: int, day: str | None) -> File:
        """The file's row."""
        return File(file_id=self.file_id, source=self.source, path=str(self.source_file.path), format=format_name,
                    n_bytes=self._n_bytes, n_records=n_records, day=day, read_at=self._read_at)

    def verdict(self, subject: str, kept: bool, reason: str, detail: str, line: int | None = None) -> Verdict:
        """A verdict of this stage on something of this file."""
        place = self.source_file.relative + (f", line {line}" if line is not None else "")
        return Verdict(stage="extract", subject=subject, kept=kept, reason=reason, detail=f"{place}: {detail}.",
                       file_id=self.file_id, line=line)

    def left(self, reason: str, detail: str) -> Reading:
        """The reading of a file that is left alone."""
        verdict = Verdict(stage="extract", subject=self.file_id, kept=False, reason=reason,
                          detail=f"{self.source_file.relative} {detail}.", file_id=self.file_id)
        return Reading(self.file(reason, 0, None), empty(RawRecord), empty(Event), empty(Declaration),
                       frame(Verdict, [verdict]))


class _Reader:
    """Runs a format over the records of one file."""

    def __init__(self, ledger: _Ledger, log_format: Format) -> None:
        source = ledger.source_file.source
        self._ledger, self._format = ledger, log_format
        self._emit = Emit(ledger.file_id, ledger.source, log_format.name, Envelope(source.fields, source.service))
        self._records: list[tuple[str, str, int, int, int, str]] = []
        self._verdicts: dict[tuple[str, str], Verdict] = {}

    def read(self, found: Iterator[contents.Piece]) -> Reading:
        self._format.read(self._parsed(found), self._emit)
        events = event_frame(self._emit.events)
        for record, reason, detail in self._emit.rejects:
            self._say(record.record_id, reason, detail, record.line)
        day = events.get_column("happened_at").dt.strftime("%Y-%m-%d").min()
        name = self._format.name
        self._verdicts[(self._ledger.file_id, "read")] = self._ledger.verdict(
            self._ledger.file_id, True, "read", f"{len(self._records)} records in format {name}, {len(events)} events")
        records = pl.DataFrame(self._records, schema=frame_schema(RawRecord), orient="row")
        return Reading(self._ledger.file(name, len(self._records), str(day) if day is not None else None),
                       records, events, self._declared(),
                       frame(Verdict, list(self._verdicts.values())))

    def _parsed(self, found: Iterator[contents.Piece]) -> Iterator[LogRecord]:
        """The readable records; each is noted, and each unreadable one has its verdict."""
        seen: Counter[bytes] = Counter()
        source = self._ledger.source.encode()
        for piece in found:
            digest = hashlib.sha256(piece.content)
            key = digest.digest()
            seen[key] += 1
            record_id = hashlib.sha256(b"%s\0%s\0%d" % (source, key, seen[key])).hexdigest()
            self._records.append((record_id, self._ledger.file_id, piece.line, piece.byte_offset, len(piece.content),
                                  digest.hexdigest()))
            if piece.problem is not None:
                self._say(record_id, "unreadable_record", f"{piece.problem}; repair or remove it", piece.line)
                continue
            if piece.note is not None:
                self._say(record_id, "mended_record", piece.note, piece.line, kept=True)
            yield LogRecord(record_id, piece.line, piece.value)

    def _say(self, subject: str, reason: str, detail: str, line: int, kept: bool = False) -> None:
        self._verdicts.setdefault((subject, reason), self._ledger.verdict(subject, kept, reason, detail, line))

    def _declared(self) -> pl.DataFrame:
        """Declarations, each once; a tool list that states no service is named after its file (`desk.json` -> desk)."""
        stem = PurePosixPath(self._ledger.source_file.relative).name.split(".")[0]
        hint = stem if self._format.whole and stem.lower() not in _GENERIC else None
        rows = {row["declaration_id"]: {**row, "service": row["service"] or hint} for row in self._emit.declarations}
        return frame(Declaration, list(rows.values()))


def event_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows told to `Emit` as a frame of `core.events`: times from integers, losses as JSON text."""
    schema = frame_schema(Event)
    if not rows:
        return empty(Event)
    used = set().union(*rows)
    found = pl.DataFrame([
        _column(name, kind, [row.get(name) for row in rows]) for name, kind in schema.items() if name in used])
    found = found.with_columns(pl.lit(None, kind).alias(name) for name, kind in schema.items() if name not in used)
    return found.select(list(schema))


def _column(name: str, kind: pl.DataType, values: list[Any]) -> pl.Series:
    if name == "happened_at":
        return pl.Series(name, values, pl.Int64()).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    if name == "lossy":
        values = [orjson.dumps(lossy).decode() if lossy else None for lossy in values]
    try:
        return pl.Series(name, values, kind)
    except TypeError:   # a log holds a value of another kind there: text keeps it, a number cannot
        texts = [value if value is None or isinstance(value, str) else orjson.dumps(value).decode() for value in values]
        return pl.Series(name, texts, pl.String()).cast(kind, strict=False)


def _is_prose(source_file: SourceFile) -> bool:
    path = PurePosixPath(source_file.relative.lower())
    return path.suffix in _PROSE or (path.suffix in ("", ".txt") and path.stem in _PROSE_NAMES)
