"""What was read before: which pieces of files there are (`raw.files`), and what lies where (`raw.places`).

In: the files of a run. Out: whether one must be opened, which of its pieces are new, and which rows tell only the beginning of
what lies there now: of a file that has grown, or was moved and grew (a log that was rotated). What it does not see: content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from extractors.inventory import SourceFile, Stamp
from extractors.objects import is_url
from extractors.pieces import Left, Piece
from warehouse.records import Place, Verdict, frame
from warehouse.store import Store

_Ends = dict[str | None, dict[int, set[str]]]


class Ledger:
    """The ledger as it was when the run began, and what the run adds to it."""

    def __init__(self, store: Store, files: Sequence[SourceFile]) -> None:
        rows = store.read("select file_id, previous, path, n_bytes, n_records from raw.files")
        self._ids = dict(rows.select("file_id", "path").iter_rows())
        self._places = {
            path: (file_id, Stamp(n_bytes, modified_ns)) for path, file_id, n_bytes, modified_ns in store.read(
                "select path, file_id, n_bytes, modified_ns from raw.places").iter_rows()}
        self._stamps = {file.place: stamp for file in files if (stamp := _stamp(file)) is not None}
        self._held = {file_id: path for path, (file_id, _) in self._places.items() if not self._is_gone(path)}
        self._ends, self._nothings = self._ended(rows.to_dicts())
        self.places: dict[str, Place] = {}
        """Of files whose pieces were all there already."""
        self.verdicts: list[Verdict] = []
        """On files that cannot be opened, or hold the same as others."""

    def holds(self, source_file: SourceFile) -> bool:
        """Whether the file was read to its end, by its place and stamp."""
        known = self._places.get(source_file.place)
        return known is not None and known[1] == self._stamps.get(source_file.place) and known[0] in self._ids

    def lacks(self, source_file: SourceFile, found: Piece | Left) -> bool:
        """Whether a piece is new; from now on it is not."""
        if found.file_id in self._ids:
            self._stands(found.previous, found.file_id)
            return False
        self._ids[found.file_id] = source_file.place
        return True

    def ended(self, source_file: SourceFile, file_id: str, stamp: Stamp, is_new: bool) -> Place:
        """The place of a file whose last piece is `file_id`; one that another file holds too has its verdict."""
        place = Place(path=source_file.place, file_id=file_id, n_bytes=stamp.n_bytes, modified_ns=stamp.modified_ns)
        first = self._held.setdefault(file_id, place.path)
        is_elsewhere = first not in self._stamps and first.endswith(f"/{source_file.relative}")   # a copy of the whole folder
        if first != place.path and not is_elsewhere:
            self.verdicts.append(Verdict(
                stage="extract", subject=source_file.relative, kept=False, reason="duplicate_file", file_id=file_id,
                detail=f"{source_file.relative} holds the same bytes as {first}; nothing to mend."))
        if not is_new:
            self.places[place.path] = place
        return place

    def shorter(self, previous: str | None) -> Mapping[int, set[str]]:
        """Pieces after `previous` that ended a file which is not there any more as it was, by their bytes."""
        return self._ends.get(previous, {})

    def replaced(self, source_file: SourceFile, found: Piece | Left) -> tuple[str, ...]:
        """Rows whose place a new piece takes; those that say why the file (or its rest) could not be read are among them."""
        gone = list(found.replaces) if isinstance(found, Piece) else []
        gone += [file_id for before in (found.previous, *gone) for file_id, path in self._nothings.get(before, [])
                 if path == source_file.place]
        if source_file.members and (known := self._places.get(source_file.place)) and known[0] not in self._held:
            gone.append(known[0])   # a folder that has changed is told anew as a whole
        for file_id in gone:
            self._ids.pop(file_id, None)
            self._stands(found.previous, file_id)
        return tuple(each for each in dict.fromkeys(gone) if each != found.file_id)

    def _stands(self, previous: str | None, file_id: str) -> None:
        """From now on the piece is no end of something that is gone."""
        for ids in self._ends.get(previous, {}).values():
            ids.discard(file_id)

    def _ended(self, rows: list[dict[str, Any]]) -> tuple[_Ends, dict[str | None, list[tuple[str, str]]]]:
        """By the piece before: pieces that ended what is gone, with their bytes; rows without records, with their paths."""
        nothings: dict[str | None, list[tuple[str, str]]] = {}
        for row in rows:
            if row["n_records"] == 0:
                nothings.setdefault(row["previous"], []).append((row["file_id"], row["path"]))
        empty = {file_id for found in nothings.values() for file_id, _ in found}
        followed = {row["previous"] for row in rows if row["file_id"] not in empty}
        stay = followed | empty | self._held.keys()
        ends: _Ends = {}
        for row in rows:
            if row["file_id"] not in stay:
                ends.setdefault(row["previous"], {}).setdefault(row["n_bytes"], set()).add(row["file_id"])
        return ends, nothings

    def _is_gone(self, path: str) -> bool:
        """Whether the file that was read there does not lie there any more as it was."""
        known, stamp = self._places.get(path), self._stamps.get(path)
        if stamp is not None:
            return known is None or known[1] != stamp
        return not is_url(path) and not Path(path).exists()


def write_places(store: Store, places: Iterable[Place]) -> None:
    """Put what lies where in the place of what lay there."""
    rows = frame(Place, list(places))
    if rows.height:
        store.change("delete from raw.places where path in (select path from incoming)", rows)
        store.append("raw.places", rows)


def forget_verdicts(store: Store, files: Iterable[str], *reasons: str) -> None:
    """Take back what was said of files by their names: a run says it anew."""
    names = pl.DataFrame({"subject": list(files)}, schema={"subject": pl.String()})
    if names.height:
        store.change("delete from mart.verdicts where stage = 'extract' and list_contains($reasons, reason) "
                     "and subject in (select subject from incoming)", names, reasons=list(reasons))


def _stamp(source_file: SourceFile) -> Stamp | None:
    try:
        return source_file.stamp()
    except OSError:
        return None
