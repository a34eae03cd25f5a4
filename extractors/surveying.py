"""What a folder of logs holds: its files by folder and format, with rows, sessions, period, and fields that are not read.

In: a path. Out: `Survey`. Files below it that are in one folder and one format (or, where no format knows them, that begin with
the same fields) are a group; the first of a group is sniffed. Of each file the beginning is read, and of a group at most
`_MOST_FILES` files and `_MOST_BYTES`: counts of a group that is not read to its end are lower bounds.
Does not see: the configuration; conversations that two groups share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import polars as pl

from extractors.chunks import RejectedFile, log_of
from extractors.configuration import Source
from extractors.inventory import SourceFile, discover
from extractors.reading import Reading
from extractors.sessions import assemble
from extractors.sniffing import Sniffed, read_beginning, sniff_file
from warehouse.errors import InputError

_MOST_FILES = 20
_MOST_BYTES = 16 << 20
_MOST_EVENTS = 200_000
"""Beyond, sessions are counted by their ids."""


@dataclass(frozen=True)
class FileGroup:
    """Files of one folder in one format."""

    files: tuple[SourceFile, ...]
    sniffed: Sniffed
    """The first file."""
    n_rows: int
    n_sessions: int
    first_at: datetime | None
    last_at: datetime | None
    is_whole: bool
    """Whether every file was read to its end."""
    pattern: str | None
    """Glob below the surveyed path that fits these files and no others; None: there is none."""

    @property
    def name(self) -> str:
        if len(self.files) == 1:
            return self.files[0].relative
        return self.pattern or f"{self.files[0].relative} …"

    @property
    def format(self) -> str:
        """Name of the format that reads the files, `mapped` where a mapping is proposed, else `unknown`."""
        return "mapped" if self.sniffed.fields else self.sniffed.format or "unknown"


class RejectedPath(NamedTuple):
    """A file that a run would not read."""

    name: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Survey:
    """All files below a path."""

    groups: list[FileGroup]
    rejected: list[RejectedPath]


def survey(path: Path | str) -> Survey:
    """Group the files below a path, and read the beginning of each group. Errors: `InputError` where there is none."""
    files, decisions = discover([path])
    if not files and decisions.is_empty():
        raise InputError("there is no file in it", str(path), "name a folder with logs")
    rejected = [RejectedPath(row["subject"], row["reason"], row["detail"].removeprefix(f"{row['subject']} "))
                for row in decisions.to_dicts()]
    members: dict[tuple[str, object], list[SourceFile]] = {}
    for file in files:
        kind = _kind(file)
        if isinstance(kind, RejectedPath):
            rejected.append(kind)
        else:
            members.setdefault((file.relative.rpartition("/")[0], kind), []).append(file)
    patterns = _patterns(files, list(members.values()))
    groups = [_group(tuple(each), pattern) for each, pattern in zip(members.values(), patterns, strict=True)]
    return Survey(groups, sorted(rejected))


def _kind(file: SourceFile) -> object:
    """Return the format of a file, else the fields that it begins with; a file that no run reads: why."""
    try:
        log = log_of(file)
        if isinstance(log, RejectedFile) and log.reason == "unknown_format":
            by_mapping = log_of(replace(file, source=Source(format="mapped")))
            if not isinstance(by_mapping, RejectedFile) and by_mapping.first_fields:
                return by_mapping.first_fields
    except OSError as error:
        return RejectedPath(file.relative, "unreadable_file", f"cannot be read ({error.strerror}); check its permissions.")
    return RejectedPath(file.relative, log.reason, f"{log.detail}.") if isinstance(log, RejectedFile) else log.format


def _patterns(files: list[SourceFile], groups: list[list[SourceFile]]) -> Iterator[str | None]:
    """Yield a pattern for each group: by folder and suffix, where it fits the files of the group alone."""
    for group in groups:
        pattern = _suffix_pattern(group[0])
        fits = {file.relative for file in files if fnmatch(file.relative, pattern)}
        yield pattern if fits == {file.relative for file in group} else None


def _suffix_pattern(file: SourceFile) -> str:
    folder, _, name = file.relative.rpartition("/")
    suffix = "".join(PurePosixPath(name).suffixes[-2:]) if name.endswith((".gz", ".zst")) else PurePosixPath(name).suffix
    return f"{folder}/*{suffix}" if folder else f"*{suffix}"


def _group(files: tuple[SourceFile, ...], pattern: str | None) -> FileGroup:
    sniffed = sniff_file(files[0])
    source = Source.model_validate({"fields": sniffed.fields, "format": "mapped"}) if sniffed.fields else Source(
        format=sniffed.format)
    first = sniffed.mapped or sniffed.reading
    readings: list[Reading] = [] if first is None else [first]
    is_whole, n_bytes = sniffed.is_whole, 0 if first is None else first.file.n_bytes
    for number, file in enumerate(files[1:], 1):
        if first is None or number >= _MOST_FILES or n_bytes >= _MOST_BYTES:
            is_whole = False
            break
        beginning = read_beginning(replace(file, source=source))
        if beginning is not None:
            reading, is_all = beginning
            readings.append(reading)
            n_bytes, is_whole = n_bytes + reading.file.n_bytes, is_whole and is_all
    events = pl.concat([each.events for each in readings]) if readings else pl.DataFrame(schema={
        "happened_at": pl.Datetime("us", "UTC"), "session_id": pl.String()})
    n_sessions = events["session_id"].drop_nulls().n_unique()
    if readings and events.height <= _MOST_EVENTS:
        n_sessions = assemble(events, pl.concat([each.declarations for each in readings])).sessions.height
    first_at, last_at = events["happened_at"].min(), events["happened_at"].max()
    return FileGroup(files, sniffed, sum(each.records.height for each in readings), n_sessions,
                     first_at if isinstance(first_at, datetime) else None, last_at if isinstance(last_at, datetime) else None,
                     is_whole, pattern)
