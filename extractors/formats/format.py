"""What a log format is: a name, a test on the first objects of a file, and one function that turns records to events.

In: the records of one file (`LogRecord`), in file order. Out: events, tool declarations and rejects, given to an `Emit`.
A format of another package is one function `read(records, emit)` and one test `claims(head)`, held by a `Format` that an entry
point of the group `traceroom.formats` names (docs/configuration.md tells how).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

import orjson
import polars as pl

from extractors.formats.envelope import Envelope
from extractors.formats.values import dumped, written
from warehouse.records import Event, empty, frame_schema

Layout = Literal["lines", "document", "table", "text", "archive", "database", "xml"]
History = Literal["full", "once", "answers", "spans", "traces"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One parsed record of a file."""

    record_id: str
    line: int
    """1-based line, or element of a file that is one document."""
    value: Any
    """Of a line or a document of JSON: the value. Of a row: its fields by name. Of a line of text: the line as str, without its
    end; of a text read as a whole: all of it. Of an archive: its members' bytes by name. Of a database: the rows of each table,
    as objects. Of XML: the whole document as bytes."""


LogRecords = Iterable[LogRecord]


@dataclass(frozen=True, slots=True)
class Block:
    """The records of a chunk of a file in columns of equal length, for a format that reads many at once."""

    record_ids: list[str]
    lines: list[int]
    """1-based line of each."""
    contents: list[bytes]
    """Bytes of each, as they lie there."""
    record: Callable[[int], LogRecord | None]
    """Parses the record at an index; None: it cannot be read, and has its decision."""

    def records(self) -> Iterator[LogRecord]:
        return (record for index in range(len(self.lines)) if (record := self.record(index)) is not None)


@dataclass(frozen=True)
class Head:
    """What a file begins with: all that a format may use to claim the file."""

    layout: Layout
    """lines: a JSON value a line; document: one JSON value; table: comma-separated rows with a header, or Parquet; archive:
    zip; database: SQLite; xml; text: none of these, or lines of which only some are JSON."""
    objects: list[Row]
    """First JSON objects (of the lines, of lists a line or at the top, or the document itself); first rows of a table."""
    document: Any = None
    """The whole value where the file is one document, an archive (members by name) or a database (rows by table)."""
    text: list[str] = field(default_factory=list)
    """First lines of text, where the layout is text or xml."""

    @property
    def is_json(self) -> bool:
        """Whether it is JSON: a value a line, or one document."""
        return self.layout in ("lines", "document")

    @property
    def first(self) -> Row:
        return self.objects[0] if self.objects else {}


class RejectedRecord(ValueError):
    """Rejects the record that `Emit.guarded` reads: a reason and a detail, as `Emit.reject` takes them."""


class Emit:
    """Collects what a format finds in one file.

    Times are integers: microseconds since 1970 UTC (`extractors.formats.instants.microseconds`).
    """

    def __init__(self, file_id: str, source: str, format_name: str, envelope: Envelope) -> None:
        self.envelope = envelope
        self.events: list[Row] = []
        self.declarations: list[Row] = []
        self.rejects: list[tuple[LogRecord, str, str]] = []
        self._fixed = {"file_id": file_id, "source": source, "format": format_name}
        self._counts: dict[str, int] = {}
        self._ratings: set[tuple[str, str, str]] = set()
        self._blocks: list[pl.DataFrame] = []

    def event(self, record: LogRecord, kind: str, place: int | str | None = None, **fields: Any) -> Row:
        """Add an event of `record`; `fields` are columns of `core.events`.

        `place` is the event's place in the record (default: its ordinal there). Returns the row, which may still be
        amended until the file ends.
        """
        if place is None:
            place = self._counts.get(record.record_id, 0)
            self._counts[record.record_id] = place + 1
        event_id = record.record_id if place == 0 and type(place) is int else hashlib.sha256(
            f"{record.record_id}:{place}".encode()).hexdigest()[:32]
        if isinstance(usage := fields.get("usage"), dict):
            fields["usage"] = orjson.dumps(usage, option=orjson.OPT_SORT_KEYS).decode()
        row = {"event_id": event_id, "record_id": record.record_id, "kind": kind, **self._fixed, **fields}
        self.events.append(row)
        return row

    def is_new_rating(self, rating: tuple[str, str, str]) -> bool:
        """Return whether a rating (session, name, answer) is the first such of the file; from now on it is not."""
        is_new = rating not in self._ratings
        self._ratings.add(rating)
        return is_new

    def block(self, record_ids: list[str] | pl.Series, kind: str, **columns: Any) -> None:
        """Add one event for each of many records, with its record's id; `columns`: a list as long, or one value for all
        (JSON text for `lossy`)."""
        rows = {"event_id": record_ids, "record_id": record_ids, **columns}
        given = {name: values for name, values in rows.items() if isinstance(values, list | pl.Series)}
        frame = pl.DataFrame([_column(name, _SCHEMA[name], values) for name, values in given.items()])
        shared = {"kind": kind, **self._fixed, **{name: value for name, value in rows.items() if name not in given}}
        frame = frame.with_columns(
            pl.lit(shared.get(name), kind_).alias(name) for name, kind_ in _SCHEMA.items() if name not in given)
        self._blocks.append(frame.select(list(_SCHEMA)))

    def frame(self) -> pl.DataFrame:
        return pl.concat([event_frame(self.events), *self._blocks]) if self._blocks else event_frame(self.events)

    def reject(self, record: LogRecord, reason: str, detail: str) -> None:
        """Say that (a part of) `record` became no event: why in one word or two, and one sentence with the hint."""
        self.rejects.append((record, reason, detail))

    @contextmanager
    def guarded(self, *records: LogRecord) -> Iterator[None]:
        """Reject the records as a whole, and take back what the block emitted, where the block does not know their shape."""
        n_before = len(self.events)
        try:
            yield
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            del self.events[n_before:]
            reason, detail = error.args if isinstance(error, RejectedRecord) else (
                "malformed_record", f"the record is not shaped as its format says ({type(error).__name__}: {error}); repair it")
            for record in records:
                self.reject(record, reason, detail)

    def declare(self, tool: str, description: str | None, schema: Any, annotations: Any = None,
                service: str | None = None) -> None:
        """Add a tool as the file declares it; `schema`, `annotations` are JSON values or None; only a text names a service."""
        service = service if isinstance(service, str) else None
        text = dumped(schema) if isinstance(schema, dict) else None
        hints = dumped(annotations) if isinstance(annotations, dict) else None
        identity = orjson.dumps([self._fixed["source"], service, tool, description, text, hints])
        self.declarations.append({
            "declaration_id": hashlib.sha256(identity).hexdigest(), "file_id": self._fixed["file_id"],
            "source": self._fixed["source"], "service": service, "tool": tool, "description": description,
            "input_schema": text, "annotations": hints})


@dataclass(frozen=True)
class Format:
    """A log format."""

    name: str
    claims: Callable[[Head], bool]
    """Whether a file that begins so is of this format; sees content only, never the file's name."""
    read: Callable[[LogRecords, Emit], None]
    """Turns the records of one file into events; keeps what it must remember between records in local variables."""
    sample: Callable[[], bytes]
    """A small file in this format, to test that it is recognised, and by no other."""
    read_block: Callable[[Block, Emit], None] | None = None
    """The same as `read` for lines of JSON or text, many at once: for formats that come in gigabytes."""
    whole: bool = False
    """A file that is one document (or text) is one record (else each element of its top-level list, each line, is one)."""
    apart: bool = True
    """A big file in lines may be read in chunks of some 16 MiB, each by itself; False: what a line means hangs on lines far
    before it, and only a file of more than 128 MiB is cut."""
    history: History = "full"
    """What its records tell of a conversation. full: all of it, again and again; once: what is new, so that what another file
    goes on with follows what came before; answers: one file lists the answers, another what was asked; spans: any of its spans,
    so that another file may hold those between; traces: the same, and a user's words are as of when their trace began."""
    routines: bool = True
    """Business events are what somebody did step by step, so that a stream of them may show a routine; False: they are what
    became of something else that was done, as the files of a page's download."""
    rank: int = 50
    """Formats are asked in order of rank, then name: a stricter test first."""


def each_record(read_record: Callable[[LogRecord, Emit], None]) -> Callable[[LogRecords, Emit], None]:
    """Return the `read` of a format whose records are read one by one, each guarded."""

    def read(records: LogRecords, emit: Emit) -> None:
        for record in records:
            with emit.guarded(record):
                read_record(record, emit)

    return read


def sample(name: str) -> Callable[[], bytes]:
    """Return a function that reads one of our samples: small files with invented content in the folder `samples`."""
    return lambda: files("extractors.formats").joinpath("samples", name).read_bytes()


_SCHEMA = frame_schema(Event)
_NOTHING = {name: pl.Series(name, [None], kind) for name, kind in _SCHEMA.items()}


def event_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return the rows of `Emit` as a frame of `core.events`: times from integers, losses as JSON text."""
    if not rows:
        return empty(Event)
    used = set().union(*rows)
    return pl.DataFrame([   # a column that no row names at once: small files have more columns than values
        _column(name, kind, [row.get(name) for row in rows]) if name in used
        else _NOTHING[name].new_from_index(0, len(rows)) for name, kind in _SCHEMA.items()])


def _column(name: str, kind: pl.DataType, values: list[Any] | pl.Series) -> pl.Series:
    if name == "happened_at":
        return pl.Series(name, values, pl.Int64()).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    if isinstance(values, pl.Series):
        return values.cast(kind).alias(name)
    if name == "lossy":
        values = [dumped(lossy) if lossy else None for lossy in values]
    try:
        return pl.Series(name, values, kind)
    except TypeError:   # a log holds a value of another kind there: text keeps it, a number cannot
        return pl.Series(name, [written(value) for value in values], pl.String()).cast(kind, strict=False)
