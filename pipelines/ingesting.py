"""Log files into the warehouse: each piece that the ledger lacks is read, and committed with its row of the ledger.

A run that was killed goes on with the first piece that is missing; a file that has grown is read on from where its last whole
piece ended. A file that lies where it lay, with the size and the time that the ledger knows, is not opened at all. Pieces are
read on as many cores as the process may use; they are committed in order, several small ones in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import polars as pl

from extractors import configuration, inventory
from extractors.inventory import SourceFile, Stamp
from extractors.pieces import Left, Log, Piece, begins_with, opened
from extractors.reading import Reading
from pipelines import progress
from pipelines.engine import Counts
from pipelines.readers import Readers
from pipelines.settings import Settings
from pipelines.settling import settle
from warehouse.errors import InputError, Unavailable
from warehouse.records import File, Verdict, frame
from warehouse.store import Store

_EXPECTED = ("not_a_log", "truth_folder", "left_by_choice", "empty_file", "duplicate_file", "duplicate_record")
"""Reasons that nobody needs to be told at once; `traceroom show --left` lists them."""
_WARNINGS = 10
"""Sentences said at once about one file."""
_ROWS = 150_000
"""Rows from which on a transaction is committed: DuckDB writes runs of 122,880 rows straight to the file."""
_TABLES = {"records": "raw.records", "events": "core.events", "quarantine": "raw.quarantine"}


class _Task(NamedTuple):
    """A piece to be read, or a file (or the rest of one) that is left."""

    source_file: SourceFile
    log: Log | None
    found: Piece | Left
    number: int
    replaces: tuple[str, ...]
    """Rows of the ledger that tell less of the same file."""


def ingest(store: Store, settings: Settings) -> Counts:
    """Every piece of a file that the ledger lacks to records, events and tool declarations."""
    files, unread = discovered(settings)
    store.append_new("mart.verdicts", unread)
    counts = {"n_files": len(files), "n_new_files": 0, "n_new_records": 0, "n_new_events": 0, "n_later_files": 0}
    ledger, batch = _Ledger(store), _Batch(store)
    new = [file for file in files if not ledger.holds(file)]
    with Readers(_size(new)) as readers:
        for task, reading in readers.readings(_tasks(new, ledger, len(files)), datetime.now(UTC)):
            if settings.until and reading.file.day and reading.file.day > settings.until:
                counts["n_later_files"] += 1
                continue
            counts["n_new_files"] += reading.file.piece == 0
            counts["n_new_records"] += reading.records.height
            counts["n_new_events"] += reading.events.height
            batch.add(reading, task.replaces)
    batch.commit()
    store.append_new("mart.verdicts", frame(Verdict, ledger.verdicts))
    settle(store)
    return counts


def discovered(settings: Settings) -> tuple[list[SourceFile], pl.DataFrame]:
    """Files that the settings name (else the configuration's sources), and verdicts on those left.

    Raises InputError for a path that is not there, Unavailable where privacy is asked for: nothing is read then.
    """
    told = configuration.load(settings.configuration) if settings.configuration else None
    _refuse_privacy(settings, told)
    return inventory.discover(settings.logs, settings.only, settings.without, told)


def all_read(store: Store, settings: Settings) -> bool:
    """Whether the ledger holds all that the settings name; opens no file."""
    files, unread = discovered(settings)
    ledger = _Ledger(store)
    said = set(store.read("select subject from mart.verdicts where stage = 'extract' and not kept")["subject"])
    return all(ledger.holds(file) for file in files) and said.issuperset(unread["subject"])


def _refuse_privacy(settings: Settings, told: configuration.Configuration | None) -> None:
    """Whoever asks for privacy must not get a run without it."""
    asked = settings.privacy if settings.privacy is not None else told is not None and told.privacy == "on"
    if asked:
        where = "--privacy on" if settings.privacy else f'{settings.configuration}, privacy = "on"'
        raise Unavailable(
            "privacy is not there yet", where, "run with --privacy off, on logs that may be read as they are")


def something_to_read(settings: Settings) -> list[str]:
    """Which of --only and --without name no folder (`--without feedbak`): that is said, for it is easily a slip.

    Raises InputError where the settings name no file at all: an inbox may be empty, what a person names may not.
    """
    files, unread = discovered(settings)
    if not files:
        why = f"all {unread.height} files are left by choice or called truth" if unread.height else "there is no file in it"
        raise InputError(
            f"there is nothing to read: {why}", ", ".join(settings.logs) or str(settings.configuration),
            "name files or folders of logs, or change --only and --without")
    paths = [*(each.relative for each in files), *unread["subject"]]
    folders = {folder for path in paths for folder in path.split("/")[:-1]}
    named = [*(("--only", name) for name in settings.only), *(("--without", name) for name in settings.without)]
    return [f"{option} {name}" for option, name in named if name not in folders]


class _Ledger:
    """What was read before."""

    def __init__(self, store: Store) -> None:
        rows = store.read(
            "select file_id, path, piece, format, n_bytes, n_records, file_bytes, modified_ns, last from raw.files")
        self._ids = dict(zip(rows["file_id"], rows["path"], strict=True))
        self._ends: set[tuple[str, Stamp]] = set()
        self._weaker: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for row in rows.filter("last").iter_rows(named=True):
            self._ends.add((row["path"], Stamp(row["file_bytes"], row["modified_ns"])))
            self._weaker.setdefault((row["path"], row["piece"]), []).append(row)
        self._store = store
        self.verdicts: list[Verdict] = []
        """On files that are left because they cannot be opened, or came before."""

    def holds(self, source_file: SourceFile) -> bool:
        """Whether the file was read to its end, by its place and stamp."""
        try:
            return (source_file.place, source_file.stamp()) in self._ends
        except OSError:
            return False

    def lacks(self, source_file: SourceFile, file_id: str, last: bool) -> bool:
        """Whether a piece is new; one that came before under another name has its verdict."""
        first = self._ids.get(file_id)
        if first is None:
            self._ids[file_id] = source_file.place
            return True
        if first != source_file.place and not first.endswith(source_file.relative):
            self.verdicts.append(Verdict(
                stage="extract", subject=source_file.relative, kept=False, reason="duplicate_file", file_id=file_id,
                detail=f"{source_file.relative} holds the same bytes as {first}; nothing to mend."))
        elif first == source_file.place and last:
            self._stamp(file_id, source_file.stamp())
        return False

    def _stamp(self, file_id: str, stamp: Stamp) -> None:
        """Note that a piece which is there already ends the file as it is now."""
        self._store.change(
            "update raw.files set last = true, file_bytes = $n_bytes, modified_ns = $modified_ns where file_id = $file_id",
            n_bytes=stamp.n_bytes, modified_ns=stamp.modified_ns, file_id=file_id)

    def weaker(self, log: Log, piece: Piece) -> tuple[str, ...]:
        """Rows of the same place that held nothing, or only the beginning of the piece."""
        rows = self._weaker.get((log.source_file.place, piece.number), [])
        return tuple(row["file_id"] for row in rows if row["n_records"] == 0 or (
            row["n_bytes"] < len(piece.content) and begins_with(log, piece, row["file_id"], row["n_bytes"])))


def _tasks(files: list[SourceFile], ledger: _Ledger, n_files: int) -> Iterator[_Task]:
    """The pieces that the ledger lacks, file by file; a file that cannot be opened is left, and asked for again next time."""
    for done, source_file in enumerate(files, start=n_files - len(files)):
        progress.tell("extract", done, n_files, source_file.relative)
        try:
            found = opened(source_file)
            if isinstance(found, Left):
                if ledger.lacks(source_file, found.file_id, True):
                    yield _Task(source_file, None, found, 0, ())
                continue
            log, pieces = found
            for number, piece in enumerate(pieces):
                if ledger.lacks(source_file, piece.file_id, isinstance(piece, Left) or piece.last):
                    weaker = ledger.weaker(log, piece) if isinstance(piece, Piece) else ()
                    yield _Task(source_file, log, piece, number, weaker)
        except OSError as error:
            verdict = Verdict(
                stage="extract", subject=source_file.relative, kept=False, reason="unreadable_file", detail=(
                    f"{source_file.relative}: the file cannot be read ({error.strerror}) at {source_file.place}; check its "
                    "permissions."))
            ledger.verdicts.append(verdict)
            _warn(frame(Verdict, [verdict]))


class _Batch:
    """Readings that wait to be committed together."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._readings: list[Reading] = []
        self._replaced: list[str] = []
        self._n_rows = 0

    def add(self, reading: Reading, replaces: tuple[str, ...]) -> None:
        """Take a reading; commit when there are many rows."""
        self._readings.append(reading)
        self._replaced += replaces
        self._n_rows += reading.events.height + reading.records.height
        if self._n_rows >= _ROWS:
            self.commit()

    def commit(self) -> None:
        """Write what waits, in one transaction with its rows of the ledger."""
        if not self._readings:
            return
        readings = self._readings
        with self._store.transaction():
            self._replace()
            self._store.append_new("raw.files", frame(File, [each.file for each in readings]))
            for name, table in _TABLES.items():
                self._store.append(table, pl.concat([getattr(each, name) for each in readings]))
            self._store.append_new("raw.declarations", pl.concat([each.declarations for each in readings]))
            self._store.append_new("mart.verdicts", pl.concat([each.verdicts for each in readings]))
        for each in readings:
            _warn(each.verdicts)
        self._readings, self._replaced, self._n_rows = [], [], 0

    def _replace(self) -> None:
        """Take out what a longer version of the same piece tells again."""
        if not self._replaced:
            return
        gone = pl.DataFrame({"file_id": self._replaced})
        for table in (*_TABLES.values(), "raw.declarations", "mart.verdicts", "raw.files"):
            self._store.change(f"delete from {table} where file_id in (select file_id from incoming)", gone)


def _size(files: list[SourceFile]) -> int:
    """Bytes to be read."""
    total = 0
    for file in files:
        try:
            total += file.stamp().n_bytes
        except OSError:
            continue
    return total


def _warn(verdicts: pl.DataFrame) -> None:
    """Say at once what cannot be read, the first of many."""
    unread = verdicts.filter(~pl.col("kept") & ~pl.col("reason").is_in(_EXPECTED)).sort("line", nulls_last=False)
    for sentence in unread["detail"].head(_WARNINGS):
        progress.warn("extract", sentence)
    if unread.height > _WARNINGS:
        progress.warn("extract", f"{unread.height - _WARNINGS} more lines of this file were left; see traceroom show --left.")
