"""Which format a file is in, how sure that is, what is read of it; and a mapping for an envelope that no format knows.

In: the path of a file. Out: `Sniffed`. A large file of lines is read by its first `_MOST_BYTES` bytes alone.
What it sees: the content. What it does not see: the configuration; it proposes what to write there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from extractors.chunks import Chunk, Log, RejectedFile, opened
from extractors.configuration import Source
from extractors.content import head_of
from extractors.field_uses import FieldReading, field_uses
from extractors.formats import Format, Head, named, registered
from extractors.formats.mapped import TABLES
from extractors.inventory import SourceFile
from extractors.proposing import Fields, candidates
from extractors.reading import Reading, read_chunk
from extractors.wrappings import find_wrapped
from warehouse.errors import Unreadable

_MOST_BYTES = 4 << 20
_MOST_TRIES = 60
_GENERAL_RANK = 60
"""From this rank on a format goes by a general shape, which a mapping may know better."""
_BETTER = 1.2
"""How much more a mapping must tell than a general format does."""
_LEAST_WORTH = 0.5
"""Least worth a record of a mapping that is proposed."""
_WEIGHTS = {"message": 3.0, "call": 3.0, "result": 2.0, "request": 3.0, "feedback": 2.0, "outcome": 2.0, "business": 1.0,
            "page": 2.0, "reasoning": 1.0, "log": 0.0}
_GOOD_WORTH = 2.0
"""Worth a record of a general reading that no mapping needs to better."""
_A_FIELD = 0.01
_WITH_FIELDS = ("lines", "document", "table")
_MOST_RECORDS = 1000


@dataclass(frozen=True)
class Sniffed:
    """What is known of a file."""

    layout: str
    format: str | None
    """The format that would read it; None: none does."""
    certainty: str
    """certain, likely, general (by a general shape alone), or unknown."""
    claimed_by: list[str]
    """All formats that claim it, in the order in which they are asked."""
    is_whole: bool
    """Whether all of it was read."""
    reading: Reading | None
    """What that format reads."""
    fields: Fields = field(default_factory=dict)
    """A proposed mapping."""
    mapped: Reading | None = None
    """What the mapping reads."""
    uses: list[FieldReading] = field(default_factory=list)
    """What each field of the records is read as, where records have fields."""
    note: str = ""
    """Why nothing could be read."""
    wrapping: str = ""
    """Where in the file's own records those of the format lie; empty: they are those of the file."""

    @property
    def snippet(self) -> str:
        return self.configuration() if self.fields else ""

    def configuration(self, paths: Sequence[str] = ()) -> str:
        """Return the proposed mapping as a source of the configuration; `paths`: its files, else it holds all files."""
        lines = ["[[sources]]", 'name = "main"', *([f"paths = [{', '.join(map(_quoted, paths))}]"] if paths else []),
                 'format = "mapped"', "", "[sources.fields]"]
        lines += [f"{key} = {_quoted(value)}" for key, value in self.fields.items() if key not in TABLES]
        for table in TABLES:
            if words := self.fields.get(table):
                lines += ["", f"[sources.fields.{table}]", *(f"{_quoted(key)} = {_quoted(words[key])}" for key in words)]
        return "\n".join(lines) + "\n"


def sniff(path: Path | str) -> Sniffed:
    """Recognise the format of one file. Errors: `Unreadable`."""
    path = Path(path)
    return sniff_file(SourceFile(path, path.name))


def sniff_file(file: SourceFile) -> Sniffed:
    """Recognise the format of one file, whatever its source says. Errors: `Unreadable`."""
    file = replace(file, source=Source(format="mapped"))
    try:
        opening = opened(file)
        if isinstance(opening, RejectedFile):
            return Sniffed("", None, "unknown", [], True, None, note=opening.detail)
        log, chunks = opening
        chunk = next(chunks)
    except OSError as error:
        raise Unreadable(f"the file cannot be read ({error.strerror})", str(file.path),
                         "check its path and permissions") from error
    if isinstance(chunk, RejectedFile):
        return Sniffed(log.layout, None, "unknown", [], True, None, note=chunk.detail)
    chunk, is_whole = _shortened(chunk, log)
    head = head_of(chunk.content)
    assert head is not None, "what is whole has a head"
    claimed = [each for each in registered() if each.claims(head)]
    wrapped = find_wrapped(head, chunk.content, claimed[0] if claimed else None)
    chosen = wrapped.format if wrapped else claimed[0] if claimed else None
    if wrapped is not None:
        claimed = [wrapped.format]
        log = replace(log, wrapping=wrapped.wrapping)
    reading = _read(log, chosen, chunk, Source()) if chosen else None
    is_general = chosen is not None and chosen.rank >= _GENERAL_RANK and chosen.name != "mapped"
    fields, mapped = _proposed(log, chunk, head, reading) if chosen is None or is_general else ({}, None)
    if reading is None:
        certainty = "unknown"
    elif is_general:
        certainty = "general"
    else:
        rivals = [each for each in claimed if each.rank < _GENERAL_RANK]   # a general shape fits what a format knows, too
        certainty = "certain" if len(rivals) == 1 and not _n_rejected(reading) else "likely"
    uses = _uses(log, chunk, named("mapped"), Source.model_validate({"fields": fields, "format": "mapped"})) if fields else (
        _uses(log, chunk, chosen, Source()) if chosen is not None else [])
    return Sniffed(head.layout, chosen.name if chosen else None, certainty, [each.name for each in claimed], is_whole, reading,
                   fields, mapped, uses, wrapping=wrapped.wrapping.description if wrapped else "")


def read_beginning(file: SourceFile) -> tuple[Reading, bool] | None:
    """Read the beginning of a file as its source states; whether that is all of it. None if it cannot be read."""
    try:
        opening = opened(file)
        if isinstance(opening, RejectedFile):
            return None
        log, chunks = opening
        chunk = next(chunks)
    except OSError:
        return None
    if isinstance(chunk, RejectedFile):
        return None
    chunk, is_whole = _shortened(chunk, log)
    return read_chunk(log, chunk, datetime.now(UTC)), is_whole


def field_readings(file: SourceFile) -> list[FieldReading]:
    """Return what is read of each field at the beginning of a file, by the format and the mapping that its source states.

    Nothing where the file is in no known format, cannot be parsed, or has no fields. Errors: OSError."""
    opening = opened(file)
    if isinstance(opening, RejectedFile):
        return []
    log, chunks = opening
    chunk = next(chunks)
    if isinstance(chunk, RejectedFile):
        return []
    return _uses(log, _shortened(chunk, log)[0], named(log.format), file.source)


def worth(reading: Reading) -> float:
    """How much a reading tells: events by kind for each record, less what was rejected."""
    counts = dict(reading.events.group_by("kind").len().iter_rows())
    points: float = sum(_WEIGHTS.get(kind, 0.0) * n for kind, n in counts.items())
    points -= 1.5 * reading.events.filter((pl.col("kind") == "message") & ~pl.col("role").is_in(
        ["user", "assistant", "system", "developer"]).fill_null(False)).height
    if reading.events["session_id"].null_count() < reading.events.height:
        points *= 1.2
    return points - _n_rejected(reading)


def _n_rejected(reading: Reading) -> int:
    return reading.decisions.filter(~pl.col("kept")).height


def _quoted(text: Any) -> str:
    return orjson.dumps(str(text)).decode().replace("\x7f", "\\u007f")


def _shortened(chunk: Chunk, log: Log) -> tuple[Chunk, bool]:
    """Return the chunk, or the first lines of a long one; whether that is all of the file."""
    if log.document is not None or log.layout not in ("lines", "table", "text") or len(chunk.content) <= _MOST_BYTES:
        return chunk, chunk.last
    end = chunk.content.rfind(b"\n", 0, _MOST_BYTES) + 1
    return (replace(chunk, content=chunk.content[:end]), False) if end else (chunk, chunk.last)


def _read(log: Log, chosen: Format, chunk: Chunk, source: Source) -> Reading:
    log = replace(log, source_file=replace(log.source_file, source=source), format=chosen.name,
                  whole=chosen.whole and log.wrapping is None)
    return read_chunk(log, chunk, datetime.now(UTC))


def _uses(log: Log, chunk: Chunk, log_format: Format, source: Source) -> list[FieldReading]:
    """Return what a format reads of the records' fields, and which of those around them go with the records."""
    if log.layout not in _WITH_FIELDS and log.wrapping is None:
        return []
    log = replace(log, whole=log_format.whole and log.wrapping is None)
    records = log.records(chunk)
    values = (records.value(index)[0] for index in range(min(len(records.contents), _MOST_RECORDS)))
    inside = field_uses([each for each in values if each is not None], log_format, source)
    if log.wrapping is None:
        return inside
    place = log.wrapping.place
    around = log.wrapping.around(chunk.content, log.layout, log.document)
    return sorted([*around, *(replace(each, path=f"{place}.{each.path}" if place else each.path) for each in inside)],
                  key=lambda each: each.path)


def _proposed(log: Log, chunk: Chunk, head: Head, reading: Reading | None) -> tuple[Fields, Reading | None]:
    if head.layout not in _WITH_FIELDS and log.wrapping is None:
        return {}, None
    records = replace(log, whole=False).records(chunk)
    values = [records.value(index)[0] for index in range(min(len(records.contents), _MOST_RECORDS))]
    if reading is not None and worth(reading) >= _GOOD_WORTH * reading.records.height:
        return {}, None
    least = _LEAST_WORTH * len(values)
    best: tuple[float, Fields, Reading | None] = (max(worth(reading) * _BETTER, least) if reading else least, {}, None)
    for fields, _ in zip(candidates([each for each in values if each is not None]), range(_MOST_TRIES), strict=False):
        mapped = _read(log, named("mapped"), chunk, Source.model_validate({"fields": fields, "format": "mapped"}))
        if (score := worth(mapped) + _A_FIELD * len(fields)) > best[0]:
            best = (score, fields, mapped)
    return best[1], best[2]
