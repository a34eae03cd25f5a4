"""Log files into the warehouse: each chunk that the ledger lacks is read, and committed with its row of the ledger.

A run that was killed continues with the first missing chunk; a file that has grown is read from where its last whole chunk
ended. A file with the path, size and time that the ledger has is not opened. Chunks are read on as many cores as the process
may use, and committed in order, several small ones in one transaction.

Whom texts name is judged from all chunks of a run together. So with privacy on, chunks that are committed and not settled, as
a killed run leaves them, are read once more, for the people in them alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePosixPath

import polars as pl

from extractors.chunks import RejectedFile, opened
from extractors.inventory import SourceFile
from pipelines import progress
from pipelines.erasing.remembered import TABLE as FORGOTTEN
from pipelines.erasing.remembered import Kept, Remembered, erase_sessions, remembered
from pipelines.ingestion.app_exports import MAYBE, with_apps
from pipelines.ingestion.ledger import Ledger, forget_decisions, write_locations
from pipelines.ingestion.listing import discovered
from pipelines.ingestion.readers import Readers, ReadTask
from pipelines.ingestion.settle import settle, transfer_records
from pipelines.privacy import guard as privacy
from pipelines.privacy.keys import Seal
from pipelines.running import memory
from pipelines.running.engines import n_cores
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import Decision, File, FileLocation, Person, frame
from warehouse.store import Store

_EXPECTED = ("not_a_log", "truth_folder", "left_by_choice", "empty_file", "duplicate_file", "duplicate_record",
             "read_by_app")
"""Reasons that need no warning; `traceroom show --rejected` lists them."""
_OF_NAMES = ("unreadable_file", "unreadable_folder", "truth_folder", "left_by_choice")
"""Reasons that each run gives again, by name."""
_WARNINGS = 10
"""Warnings about one file."""
_EVENTS = 122_880
"""Events from which on a transaction is committed: DuckDB writes that many rows directly to the file, fewer to its log
first."""
_MEMORY = 320
"""MB that DuckDB may use while chunks are read: they and the readers need the rest."""
_MEMORY_TO_SETTLE = 512
"""MB that it may use afterwards."""
_BYTES = 1 << 28
"""Bytes of logs from which on a transaction is committed, however few records they are."""
_TABLES = {"records": "raw.records", "events": "core.events", "quarantine": "raw.quarantine"}


def ingest(store: Store, settings: Settings) -> Counts:
    """Read every chunk that the ledger lacks into records, events and tool declarations; fetch repositories of servers."""
    settings.fetch_repositories(partial(progress.warn, "extract"))
    files, unread = discovered(settings)
    counts = {"n_files": len(files), "n_new_files": 0, "n_new_records": 0, "n_new_events": 0, "n_later_files": 0}
    forgotten = remembered(store)
    files = [file for file in files if forgotten is None or not forgotten.speaks(file.relative)]
    ledger, batch, later = Ledger(store, files), _Batch(store, forgotten), set[str]()
    privacy.agree(store, settings)
    guard: privacy.Guard[tuple[ReadTask, tuple[pl.DataFrame, pl.DataFrame]]] | None = None
    if privacy.wanted(settings, store):
        guard = privacy.Guard(store, settings, store.path.with_name(f"{store.path.name}.waiting"))
    seen_again = ledger.unsettled if guard else {}
    places = set(seen_again.values())
    new = [file for file in files if file.place in places or not ledger.holds(file)]
    _replace_decisions(store, files, new, unread)
    with store.holding(memory.of_duckdb(_MEMORY), n_threads=1):
        folder = store.path.with_name(f"{store.path.name}.readings")
        with Readers(_size(new), folder, Seal() if guard else None) as readers:
            for task, reading in readers.readings(
                    _tasks(new, ledger, len(files), seen_again), datetime.now(UTC)):
                if guard and task.is_stored:
                    guard.see(forgotten.leave_out(reading).reading if forgotten else reading)
                    continue
                path = task.source_file.place
                if settings.until and reading.file.day and reading.file.day > settings.until:
                    counts["n_later_files"] += path not in later
                    later.add(path)   # the rest of the file is as late
                if path in later:
                    continue
                kept = forgotten.leave_out(reading) if forgotten else Kept(reading)
                counts["n_new_files"] += reading.file.chunk == 0
                counts["n_new_records"] += reading.records.height
                counts["n_new_events"] += kept.reading.events.height
                if guard is None:
                    batch.add(kept, task)
                else:
                    guard.hold((task, (kept.sessions, kept.rows)), kept.reading)
            for (task, rest), reading, new_people in guard.clean(readers.engine) if guard else ():
                batch.add(Kept(reading, *rest), task, new_people)
        batch.commit()
    with store.holding(memory.of_duckdb(_MEMORY_TO_SETTLE), n_cores()):
        store.again(lambda: _end(store, ledger, later))
    if batch.n_erased:
        store.compact()
    return counts


def _end(store: Store, ledger: Ledger, later: set[str]) -> None:
    """Store the locations of files without new chunks, and the decisions on files; settle what was read."""
    write_locations(store, [location for path, location in ledger.locations.items() if path not in later])
    store.append_new("mart.decisions", frame(Decision, ledger.decisions))
    settle(store)


def _replace_decisions(store: Store, files: list[SourceFile], new: list[SourceFile], unread: pl.DataFrame) -> None:
    """Replace the decisions on files by name."""
    folders = {str(folder) for file in files for folder in PurePosixPath(file.relative).parents}

    def write() -> None:
        forget_decisions(store, [*folders, *(file.relative for file in files), *unread["subject"]], *_OF_NAMES)
        forget_decisions(store, [file.relative for file in new], "duplicate_file")
        store.append_new("mart.decisions", unread)

    store.again(write)


def all_read(store: Store, settings: Settings) -> bool:
    """Whether the ledger has all files that the settings name; opens no file."""
    files, unread = discovered(settings)
    forgotten = remembered(store)
    files = [file for file in files if forgotten is None or not forgotten.speaks(file.relative)]
    ledger = Ledger(store, files)
    rejected_subjects = set(store.read("select subject from mart.decisions where stage = 'extract' and not kept")["subject"])
    return all(ledger.holds(file) for file in files) and rejected_subjects.issuperset(unread["subject"])


def _tasks(files: list[SourceFile], ledger: Ledger, n_files: int, seen_again: dict[str, str]) -> Iterator[ReadTask]:
    """Yield the chunks that the ledger lacks, file by file, and once those that are to be `seen_again`; a file that cannot be
    opened is rejected until the next run."""
    waiting: list[ReadTask] = []   # whether an app reads them is seen when all of them are known
    logs: dict[str, str] = {}
    for done, source_file in enumerate(files, start=n_files - len(files)):
        progress.tell("extract", done, n_files, source_file.relative)
        try:
            stamp = source_file.stamp()   # before it is read: it may grow meanwhile
            log_or_reason = opened(source_file, ledger.shorter)
            log, chunks = (None, iter((log_or_reason,))) if isinstance(log_or_reason, RejectedFile) else log_or_reason
            for number, chunk in enumerate(chunks):
                is_new = ledger.lacks(source_file, chunk)
                replaces = ledger.replaced(source_file, chunk) if is_new else ()
                is_last = isinstance(chunk, RejectedFile) or chunk.last
                location = ledger.ended(source_file, chunk.file_id, stamp, is_new) if is_last else None
                task = ReadTask(source_file, log, chunk, number, replaces, location)
                if is_new and isinstance(chunk, RejectedFile) and chunk.reason in MAYBE:
                    waiting.append(task)
                elif is_new:
                    logs[source_file.relative] = log.format if log is not None else ""
                    yield task
                elif chunk.file_id in seen_again:
                    del seen_again[chunk.file_id]
                    yield ReadTask(source_file, log, chunk, number, (), None, is_stored=True)
        except OSError as error:
            decision = Decision(
                stage="extract", subject=source_file.relative, kept=False, reason="unreadable_file",
                detail=f"{source_file.relative}: the file cannot be read ({error.strerror}) at {source_file.place}; check its "
                       "permissions.")
            ledger.decisions.append(decision)
            _warn(frame(Decision, [decision]))
    yield from with_apps(waiting, logs)


class _Batch:
    """Readings that wait to be committed together."""

    def __init__(self, store: Store, forgotten: Remembered | None) -> None:
        self._store = store
        self._forgotten = forgotten
        self.n_erased = 0
        """Sessions of forgotten people with events that were stored before they were recognized."""
        self._kept: list[Kept] = []
        self._new_people: list[Person] = []
        self._replaced: list[str] = []
        self._locations: list[FileLocation] = []
        self._n_events = self._n_bytes = 0

    def add(self, kept: Kept, task: ReadTask, new_people: Sequence[Person] = ()) -> None:
        """Take a reading; commit if there are many rows or bytes."""
        reading = kept.reading
        self._kept.append(kept)
        self._new_people += new_people
        self._replaced += task.replaces
        self._locations += [task.location] if task.location else []
        self._n_events += reading.events.height
        self._n_bytes += reading.file.n_bytes
        if self._n_events >= _EVENTS or self._n_bytes >= _BYTES:
            self.commit()

    def commit(self) -> None:
        """Write the readings, in one transaction with their rows of the ledger."""
        if not self._kept:
            return
        self._store.again(self._write)
        for each in self._kept:
            _warn(each.reading.decisions)
        self._kept, self._new_people, self._replaced, self._locations = [], [], [], []
        self._n_events = self._n_bytes = 0

    def _write(self) -> None:
        store = self._store
        self._replace()
        readings = [each.reading for each in self._kept]
        if store.has_many_writers:  # without those that another writer has committed since the ledger was read
            stored = set(store.read("select file_id from raw.files")["file_id"])
            readings = [each for each in readings if each.file.file_id not in stored]
        if readings:
            store.append_new("raw.files", frame(File, [each.file for each in readings]))
            for name, table in _TABLES.items():
                store.append(table, _together([getattr(each, name) for each in readings]))
            store.append_new("raw.declarations", _together([each.declarations for each in readings]))
            store.append_new("mart.decisions", _together([each.decisions for each in readings]))
        privacy.store_people(store, self._new_people)
        write_locations(store, self._locations)
        with_sessions = [each for each in self._kept if each.sessions.height]
        if self._forgotten and with_sessions:  # delete stored events of sessions that turn out to be a forgotten person's
            store.append_new(FORGOTTEN, pl.concat([each.rows for each in with_sessions]))
            sessions = pl.concat([each.sessions for each in with_sessions]).unique()
            erase_sessions(store, self._forgotten.key, sessions)
            self.n_erased += sessions.height

    def _replace(self) -> None:
        """Delete the rows of chunks of which a longer version is read."""
        if not self._replaced:
            return
        transfer_records(self._store, self._replaced)
        gone = pl.DataFrame({"file_id": self._replaced})
        for table in (*_TABLES.values(), "raw.declarations", "mart.decisions", "raw.files"):
            self._store.change(f"delete from {table} where file_id in (select file_id from incoming)", gone)


def _together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate frames into one chunk: DuckDB reads thousands of small ones slowly."""
    return pl.concat([each for each in frames if each.height] or frames[:1], rechunk=True)


def _size(files: list[SourceFile]) -> int:
    """Count the bytes to be read."""
    total = 0
    for file in files:
        try:
            total += file.stamp().n_bytes
        except OSError:
            continue
    return total


def _warn(decisions: pl.DataFrame) -> None:
    """Warn at once of what cannot be read and can be fixed; only the first of many."""
    unread = decisions.filter(
        ~pl.col("kept") & ~pl.col("reason").is_in(_EXPECTED) & ~pl.col("detail").str.ends_with("no action needed.")
    ).sort("line", nulls_last=False)
    for sentence in unread["detail"].head(_WARNINGS):
        progress.warn("extract", sentence)
    if unread.height > _WARNINGS:
        progress.warn(
            "extract", f"{unread.height - _WARNINGS} more lines of this file were rejected; see traceroom show --rejected.")
