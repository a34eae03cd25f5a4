"""The ledger: which chunks of files were read (`raw.files`), and where the files are (`raw.locations`).

In: the files of a run. Out: whether one must be opened, which of its chunks are new, and which rows cover only the beginning
of a file: one that has grown, or was moved and has grown (log rotation). Does not see content.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from extractors.chunks import Chunk, RejectedFile
from extractors.inventory import SourceFile, Stamp
from extractors.objects import is_url
from warehouse.records import Decision, FileLocation, frame
from warehouse.store import Store

_Ends = dict[str | None, dict[int, set[str]]]


class Ledger:
    """The ledger at the start of the run, and what the run adds to it."""

    def __init__(self, store: Store, files: Sequence[SourceFile]) -> None:
        rows = store.read("select file_id, previous, path, n_bytes, n_records, settled from raw.files")
        self._ids = dict(rows.select("file_id", "path").iter_rows())
        self.unsettled = dict(rows.filter(~pl.col("settled")).select("file_id", "path").iter_rows())
        """Chunks that a run has stored which did not end, with their paths."""
        self._locations = {
            path: (file_id, Stamp(n_bytes, modified_ns)) for path, file_id, n_bytes, modified_ns in store.read(
                "select path, file_id, n_bytes, modified_ns from raw.locations").iter_rows()}
        self._stamps: dict[str, Stamp] = {}
        for file in files:
            with contextlib.suppress(OSError):
                self._stamps[file.place] = file.stamp()
        self._present = {file_id: path for path, (file_id, _) in self._locations.items() if not self._is_gone(path)}
        self._ends, self._nothings = self._ended(rows.to_dicts())
        self.locations: dict[str, FileLocation] = {}
        """Of files without a new chunk."""
        self.decisions: list[Decision] = []
        """On files that cannot be opened, or are equal to others."""

    def holds(self, source_file: SourceFile) -> bool:
        """Whether the file was read to its end, by its path and stamp."""
        entry = self._locations.get(source_file.place)
        return entry is not None and entry[1] == self._stamps.get(source_file.place) and entry[0] in self._ids

    def lacks(self, source_file: SourceFile, chunk: Chunk | RejectedFile) -> bool:
        """Whether a chunk is new; afterwards it is not."""
        if chunk.file_id in self._ids:
            self._stands(chunk.previous, chunk.file_id)
            return False
        self._ids[chunk.file_id] = source_file.place
        return True

    def ended(self, source_file: SourceFile, file_id: str, stamp: Stamp, is_new: bool) -> FileLocation:
        """Return the location of a file whose last chunk is `file_id`; add a decision if another file is equal."""
        location = FileLocation(path=source_file.place, file_id=file_id, n_bytes=stamp.n_bytes, modified_ns=stamp.modified_ns)
        first = self._present.setdefault(file_id, location.path)
        is_elsewhere = first not in self._stamps and first.endswith(f"/{source_file.relative}")   # a copy of the whole folder
        if first != location.path and not is_elsewhere:
            self.decisions.append(Decision(
                stage="extract", subject=source_file.relative, kept=False, reason="duplicate_file", file_id=file_id,
                detail=f"{source_file.relative} is identical to {first}; no action needed."))
        if not is_new:
            self.locations[location.path] = location
        return location

    def shorter(self, previous: str | None) -> Mapping[int, set[str]]:
        """Return chunks after `previous` that ended a file which has changed or is gone, by their bytes."""
        return self._ends.get(previous, {})

    def replaced(self, source_file: SourceFile, chunk: Chunk | RejectedFile) -> tuple[str, ...]:
        """Return the rows that a new chunk replaces, with those about a file (or its rest) that could not be read."""
        gone = list(chunk.replaces) if isinstance(chunk, Chunk) else []
        gone += [file_id for before in (chunk.previous, *gone) for file_id, path in self._nothings.get(before, [])
                 if path == source_file.place]
        if source_file.members and (entry := self._locations.get(source_file.place)) and entry[0] not in self._present:
            gone.append(entry[0])   # a changed folder is read again as a whole
        for file_id in gone:
            self._ids.pop(file_id, None)
            self._stands(chunk.previous, file_id)
        return tuple(each for each in dict.fromkeys(gone) if each != chunk.file_id)

    def _stands(self, previous: str | None, file_id: str) -> None:
        """Note that the chunk is not the end of a file that is gone."""
        for ids in self._ends.get(previous, {}).values():
            ids.discard(file_id)

    def _ended(self, rows: list[dict[str, Any]]) -> tuple[_Ends, dict[str | None, list[tuple[str, str]]]]:
        """Return by the chunk before: chunks that ended gone files, with their bytes; rows without records, with their
        paths."""
        nothings: dict[str | None, list[tuple[str, str]]] = {}
        for row in rows:
            if row["n_records"] == 0:
                nothings.setdefault(row["previous"], []).append((row["file_id"], row["path"]))
        empty = {file_id for entries in nothings.values() for file_id, _ in entries}
        followed = {row["previous"] for row in rows if row["file_id"] not in empty}
        stay = followed | empty | self._present.keys()
        ends: _Ends = {}
        for row in rows:
            if row["file_id"] not in stay:
                ends.setdefault(row["previous"], {}).setdefault(row["n_bytes"], set()).add(row["file_id"])
        return ends, nothings

    def _is_gone(self, path: str) -> bool:
        """Whether the file that was read there has changed or is gone."""
        entry, stamp = self._locations.get(path), self._stamps.get(path)
        if stamp is not None:
            return entry is None or entry[1] != stamp
        return not is_url(path) and not Path(path).exists()


def write_locations(store: Store, locations: Iterable[FileLocation]) -> None:
    """Replace the locations of these paths."""
    rows = frame(FileLocation, list(locations))
    if rows.height:
        store.change("delete from raw.locations where path in (select path from incoming)", rows)
        store.append("raw.locations", rows)


def forget_decisions(store: Store, files: Iterable[str], *reasons: str) -> None:
    """Delete the decisions on files by name, which each run takes again."""
    names = pl.DataFrame({"subject": list(files)}, schema={"subject": pl.String()})
    if names.height:
        store.change("delete from mart.decisions where stage = 'extract' and list_contains($reasons, reason) "
                     "and subject in (select subject from incoming)", names, reasons=list(reasons))
