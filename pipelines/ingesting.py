"""Log files into the warehouse: each piece that the ledger lacks is read, and committed with its row of the ledger.

A run that was killed goes on with the first piece that is missing; a file that has grown is read on from where its last whole
piece ended. A file that lies where it lay, with the size and the time that the ledger knows, is not opened at all. Pieces are
read on as many cores as the process may use; they are committed in order, several small ones in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

import polars as pl

from extractors import configuration, inventory
from extractors.formats.correction import NAME as CORRECTION
from extractors.inventory import SourceFile
from extractors.pieces import Left, Log, Piece, opened
from extractors.reading import Reading
from pipelines import memory, privacy, progress
from pipelines.engine import Counts
from pipelines.engines.processes import n_cores
from pipelines.erasing.remembered import TABLE as FORGOTTEN
from pipelines.erasing.remembered import Kept, Remembered, remembered
from pipelines.erasing.tables import erase_sessions
from pipelines.ledger import Ledger, forget_verdicts, write_places
from pipelines.readers import Readers
from pipelines.seals import Seal
from pipelines.settings import Settings
from pipelines.settling import hand_over, settle
from warehouse.errors import InputError
from warehouse.records import File, Place, Verdict, empty, frame
from warehouse.store import Store

_EXPECTED = ("not_a_log", "truth_folder", "left_by_choice", "empty_file", "duplicate_file", "duplicate_record")
"""Reasons that nobody needs to be told at once; `traceroom show --left` lists them."""
_OF_NAMES = ("unreadable_file", "unreadable_folder", "truth_folder", "left_by_choice")
"""Reasons that are said of a name again in each run."""
_WARNINGS = 10
"""Sentences said at once about one file."""
_EVENTS = 122_880
"""Events from which on a transaction is committed: so many rows DuckDB writes straight to the file, fewer to its log first."""
_MEMORY = 320
"""MB that DuckDB may hold while pieces are read: they and the readers need the rest."""
_MEMORY_TO_SETTLE = 512
"""MB that it may hold when they are done."""
_BYTES = 1 << 28
"""Bytes of logs from which on a transaction is committed, however few records they are."""
_TABLES = {"records": "raw.records", "events": "core.events", "quarantine": "raw.quarantine"}


class _Task(NamedTuple):
    """A piece to be read, or a file (or the rest of one) that is left."""

    source_file: SourceFile
    log: Log | None
    found: Piece | Left
    number: int
    replaces: tuple[str, ...]
    """Rows of the ledger that tell less of the same file."""
    place: Place | None
    """Of its last piece: where the file lies."""


def ingest(store: Store, settings: Settings) -> Counts:
    """Every piece of a file that the ledger lacks to records, events and tool declarations."""
    files, unread = discovered(settings)
    counts = {"n_files": len(files), "n_new_files": 0, "n_new_records": 0, "n_new_events": 0, "n_later_files": 0}
    forgotten = remembered(store)
    files = _unforgotten(files, forgotten)
    ledger, batch, later = Ledger(store, files), _Batch(store, forgotten), set[str]()
    new = [file for file in files if not ledger.holds(file)]
    guard = _guard(store, settings)
    _say_anew(store, files, new, unread)
    with store.holding(memory.of_duckdb(_MEMORY), n_threads=1):
        folder = store.path.with_name(f"{store.path.name}.readings")
        with Readers(_size(new), folder, Seal() if guard else None) as readers:
            for task, reading in readers.readings(_tasks(new, ledger, len(files)), datetime.now(UTC)):
                place = task.source_file.place
                if settings.until and reading.file.day and reading.file.day > settings.until:
                    counts["n_later_files"] += place not in later
                    later.add(place)   # its rest is of days that are not over either
                if place in later:
                    continue
                kept = forgotten.leave_out(reading) if forgotten else Kept(reading)
                counts["n_new_files"] += reading.file.piece == 0
                counts["n_new_records"] += reading.records.height
                counts["n_new_events"] += kept.reading.events.height
                if guard is None:
                    batch.add(kept, task.replaces, task.place)
                else:
                    guard.hold((task, kept[1:]), kept.reading)
            for (task, rest), reading in guard.clean(readers.engine) if guard else ():
                batch.add(Kept(reading, *rest), task.replaces, task.place)
        batch.commit()
    with store.holding(memory.of_duckdb(_MEMORY_TO_SETTLE), n_cores()):
        store.again(lambda: _end(store, ledger, later))
        settle(store)
    if batch.n_erased:
        store.compact()
    return counts


def _unforgotten(files: list[SourceFile], forgotten: Remembered | None) -> list[SourceFile]:
    """The files that are not named after somebody who was forgotten."""
    return [file for file in files if forgotten is None or not forgotten.speaks(file.relative)]


def _guard(store: Store, settings: Settings) -> privacy.Guard[tuple[_Task, tuple[pl.DataFrame, pl.DataFrame]]] | None:
    """Who takes people out before anything is stored; None where nobody shall. Raises InputError where OUT is otherwise."""
    if privacy.wanted(settings, store):
        return privacy.Guard(store, settings, store.path.with_name(f"{store.path.name}.waiting"))
    privacy.agree_to_none(store, settings.out)
    return None


def _end(store: Store, ledger: Ledger, later: set[str]) -> None:
    """Note where files lie that hold nothing new, and what is said of them."""
    write_places(store, [place for path, place in ledger.places.items() if path not in later])
    store.append_new("mart.verdicts", frame(Verdict, ledger.verdicts))


def _say_anew(store: Store, files: list[SourceFile], new: list[SourceFile], unread: pl.DataFrame) -> None:
    """Put what is said of names in the place of what was said of them before."""
    folders = {str(folder) for file in files for folder in PurePosixPath(file.relative).parents}

    def say() -> None:
        forget_verdicts(store, [*folders, *(file.relative for file in files), *unread["subject"]], *_OF_NAMES)
        forget_verdicts(store, [file.relative for file in new], "duplicate_file")
        store.append_new("mart.verdicts", unread)

    store.again(say)


def discovered(settings: Settings) -> tuple[list[SourceFile], pl.DataFrame]:
    """Files that the settings name (else the configuration's sources), and verdicts on those left.

    What persons corrected of the run's own results lies beside these, and is read with the logs.
    Raises InputError for a path that is not there.
    """
    files, left = _logs(settings)
    own, beside = _corrections(settings)
    return [*(file for file in files if file.place not in {each.place for each in own}), *own], pl.concat([left, beside])


def _logs(settings: Settings) -> tuple[list[SourceFile], pl.DataFrame]:
    told = configuration.load(settings.configuration) if settings.configuration else None
    return inventory.discover(settings.logs, settings.only, settings.without, told)


def _corrections(settings: Settings) -> tuple[list[SourceFile], pl.DataFrame]:
    """Files of corrections in the folder that a run writes: a source of their own, whatever the configuration says."""
    if not settings.corrections.is_dir():
        return [], empty(Verdict)
    files, left = inventory.discover([settings.corrections])
    source = configuration.Source(name=settings.corrections.name, format=CORRECTION)
    return [replace(file, relative=f"{source.name}/{file.relative}", source=source) for file in files], left


def all_read(store: Store, settings: Settings) -> bool:
    """Whether the ledger holds all that the settings name; opens no file."""
    files, unread = discovered(settings)
    files = _unforgotten(files, remembered(store))
    ledger = Ledger(store, files)
    said = set(store.read("select subject from mart.verdicts where stage = 'extract' and not kept")["subject"])
    return all(ledger.holds(file) for file in files) and said.issuperset(unread["subject"])


def something_to_read(settings: Settings) -> list[str]:
    """Which of --only and --without name no folder (`--without feedbak`): that is said, for it is easily a slip.

    Raises InputError where the settings name no file at all: an inbox may be empty, what a person names may not.
    """
    files, unread = _logs(settings)
    if not files:
        why = f"all {unread.height} files are left by choice or called truth" if unread.height else "there is no file in it"
        raise InputError(
            f"there is nothing to read: {why}", ", ".join(settings.logs) or str(settings.configuration),
            "name files or folders of logs, or change --only and --without")
    paths = [*(each.relative for each in files), *unread["subject"]]
    folders = {folder for path in paths for folder in path.split("/")[:-1]}
    named = [*(("--only", name) for name in settings.only), *(("--without", name) for name in settings.without)]
    return [f"{option} {name}" for option, name in named if name not in folders]


def _tasks(files: list[SourceFile], ledger: Ledger, n_files: int) -> Iterator[_Task]:
    """The pieces that the ledger lacks, file by file; a file that cannot be opened is left, and asked for again next time."""
    for done, source_file in enumerate(files, start=n_files - len(files)):
        progress.tell("extract", done, n_files, source_file.relative)
        try:
            stamp = source_file.stamp()   # before it is read: it may grow meanwhile
            found = opened(source_file, ledger.shorter)
            log, pieces = (None, iter((found,))) if isinstance(found, Left) else found
            for number, piece in enumerate(pieces):
                is_new = ledger.lacks(source_file, piece)
                replaces = ledger.replaced(source_file, piece) if is_new else ()
                is_last = isinstance(piece, Left) or piece.last
                place = ledger.ended(source_file, piece.file_id, stamp, is_new) if is_last else None
                if is_new:
                    yield _Task(source_file, log, piece, number, replaces, place)
        except OSError as error:
            verdict = Verdict(
                stage="extract", subject=source_file.relative, kept=False, reason="unreadable_file", detail=(
                    f"{source_file.relative}: the file cannot be read ({error.strerror}) at {source_file.place}; check its "
                    "permissions."))
            ledger.verdicts.append(verdict)
            _warn(frame(Verdict, [verdict]))


class _Batch:
    """Readings that wait to be committed together."""

    def __init__(self, store: Store, forgotten: Remembered | None) -> None:
        self._store = store
        self._forgotten = forgotten
        self.n_erased = 0
        """Sessions of forgotten persons of which something was stored before they could be told."""
        self._kept: list[Kept] = []
        self._replaced: list[str] = []
        self._places: list[Place] = []
        self._n_events = self._n_bytes = 0

    @property
    def _readings(self) -> list[Reading]:
        return [each.reading for each in self._kept]

    def add(self, kept: Kept, replaces: tuple[str, ...], place: Place | None) -> None:
        """Take a reading; commit when there are many rows, or much in them."""
        reading = kept.reading
        self._kept.append(kept)
        self._replaced += replaces
        self._places += [place] if place else []
        self._n_events += reading.events.height
        self._n_bytes += reading.file.n_bytes
        if self._n_events >= _EVENTS or self._n_bytes >= _BYTES:
            self.commit()

    def commit(self) -> None:
        """Write what waits, in one transaction with its rows of the ledger."""
        if not self._kept:
            return
        self._store.again(self._write)
        for each in self._readings:
            _warn(each.verdicts)
        self._kept, self._replaced, self._places, self._n_events, self._n_bytes = [], [], [], 0, 0

    def _write(self) -> None:
        self._replace()
        if readings := self._lacking():
            self._store.append_new("raw.files", frame(File, [each.file for each in readings]))
            for name, table in _TABLES.items():
                self._store.append(table, _together([getattr(each, name) for each in readings]))
            self._store.append_new("raw.declarations", _together([each.declarations for each in readings]))
            self._store.append_new("mart.verdicts", _together([each.verdicts for each in readings]))
        write_places(self._store, self._places)
        self._erase()

    def _erase(self) -> None:
        """Take out what was stored of sessions that turn out to be of somebody who was forgotten."""
        told = [each for each in self._kept if each.sessions.height]
        if self._forgotten and told:
            self._store.append_new(FORGOTTEN, pl.concat([each.rows for each in told]))
            sessions = pl.concat([each.sessions for each in told]).unique()
            erase_sessions(self._store, self._forgotten.record_id, sessions)
            self.n_erased += sessions.height

    def _lacking(self) -> list[Reading]:
        """Those that no other writer has committed since the ledger was read."""
        if not self._store.has_many_writers:
            return self._readings
        there = set(self._store.read("select file_id from raw.files")["file_id"])
        return [each for each in self._readings if each.file.file_id not in there]

    def _replace(self) -> None:
        """Take out what a longer version of the same piece tells again."""
        if not self._replaced:
            return
        hand_over(self._store, self._replaced)
        gone = pl.DataFrame({"file_id": self._replaced})
        for table in (*_TABLES.values(), "raw.declarations", "mart.verdicts", "raw.files"):
            self._store.change(f"delete from {table} where file_id in (select file_id from incoming)", gone)


def _together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of many frames, in one chunk: DuckDB reads thousands of small ones slowly."""
    return pl.concat([each for each in frames if each.height] or frames[:1], rechunk=True)


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
    """Say at once what cannot be read and can be mended, the first of many."""
    unread = verdicts.filter(
        ~pl.col("kept") & ~pl.col("reason").is_in(_EXPECTED) & ~pl.col("detail").str.ends_with("nothing to mend.")
    ).sort("line", nulls_last=False)
    for sentence in unread["detail"].head(_WARNINGS):
        progress.warn("extract", sentence)
    if unread.height > _WARNINGS:
        progress.warn("extract", f"{unread.height - _WARNINGS} more lines of this file were left; see traceroom show --left.")
