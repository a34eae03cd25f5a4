"""Log files into the warehouse: each file that the ledger lacks is read and committed by itself.

A file and all that was read from it are one transaction, so a run that was killed goes on with the next file. A record that
another file already gave (a rotated log read twice) is counted as a verdict, not kept twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from extractors import configuration, inventory
from extractors.inventory import SourceFile, content_id
from extractors.reading import Reading, read
from pipelines import progress
from pipelines.engine import Counts
from pipelines.settings import Settings
from warehouse.errors import InputError, Unavailable, Unreadable
from warehouse.records import File, Verdict, frame
from warehouse.store import Store

_EXPECTED = ("not_a_log", "truth_folder", "left_by_choice", "empty_file", "duplicate_file", "duplicate_record")
"""Reasons that nobody needs to be told at once; `traceroom show --left` lists them."""
_WARNINGS = 10
"""Sentences said at once about one file."""


def ingest(store: Store, settings: Settings) -> Counts:
    """Every file that the ledger lacks to records, events and tool declarations."""
    files, left = discovered(settings)
    store.append_new("mart.verdicts", left)
    counts = {"n_files": len(files), "n_new_files": 0, "n_new_records": 0, "n_new_events": 0, "n_later_files": 0}
    known = set(store.read("select file_id from raw.files")["file_id"])
    for done, source_file in enumerate(files):
        progress.tell("extract", done, len(files), source_file.relative)
        for reading in _new(store, source_file, known):
            if settings.until and reading.file.day and reading.file.day > settings.until:
                counts["n_later_files"] += 1
                continue
            known.add(reading.file.file_id)
            n_records, n_events = _commit(store, reading)
            counts["n_new_files"] += 1
            counts["n_new_records"] += n_records
            counts["n_new_events"] += n_events
    return counts


def discovered(settings: Settings) -> tuple[list[SourceFile], pl.DataFrame]:
    """Files that the settings name (else the configuration's sources), and verdicts on those left.

    Raises InputError for a path that is not there, Unavailable where privacy is asked for: nothing is read then.
    """
    told = configuration.load(settings.configuration) if settings.configuration else None
    _refuse_privacy(settings, told)
    return inventory.discover(settings.logs, settings.only, settings.without, told)


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
    files, left = discovered(settings)
    if not files:
        why = f"all {left.height} files are left by choice or called truth" if left.height else "there is no file in it"
        raise InputError(
            f"there is nothing to read: {why}", ", ".join(settings.logs) or str(settings.configuration),
            "name files or folders of logs, or change --only and --without")
    paths = [*(each.relative for each in files), *left["subject"]]
    folders = {folder for path in paths for folder in path.split("/")[:-1]}
    named = [*(("--only", name) for name in settings.only), *(("--without", name) for name in settings.without)]
    return [f"{option} {name}" for option, name in named if name not in folders]


def _new(store: Store, source_file: SourceFile, known: set[str]) -> Iterator[Reading]:
    """The file's reading where the ledger lacks it; a file that cannot be opened is left, and asked for again next time."""
    try:
        file_id = content_id(source_file.source.name, source_file.path.read_bytes())
        if file_id in known:
            _also_there(store, source_file, file_id)
        else:
            yield read(source_file)
    except (OSError, Unreadable) as error:
        why = error if isinstance(error, Unreadable) else f"the file cannot be read ({error.strerror}); check its permissions"
        verdicts = frame(Verdict, [Verdict(
            stage="extract", subject=source_file.relative, kept=False, reason="unreadable_file",
            detail=f"{source_file.relative}: {why}")])
        store.append_new("mart.verdicts", verdicts)
        _warn(verdicts)


def _also_there(store: Store, source_file: SourceFile, file_id: str) -> None:
    """The same content under another name is left, with a verdict; the same file again is no news."""
    first = store.read("select path from raw.files where file_id = $file_id", file_id=file_id)["path"].item()
    if first.endswith(source_file.relative):
        return
    store.append_new("mart.verdicts", frame(Verdict, [Verdict(
        stage="extract", subject=source_file.relative, kept=False, reason="duplicate_file", file_id=file_id,
        detail=f"{source_file.relative} holds the same bytes as {first}; nothing to mend.")]))


def _commit(store: Store, reading: Reading) -> tuple[int, int]:
    """Write a file's reading; gives how many records and events were new."""
    with store.transaction():
        store.append_new("raw.files", frame(File, [reading.file]))
        there = _already_there(store, reading.records)
        n_records = store.append_new("raw.records", reading.records)
        n_events = store.append_new("core.events", reading.events)
        store.append_new("raw.declarations", reading.declarations)
        store.append_new("mart.verdicts", reading.verdicts)
        store.append_new("mart.verdicts", there)
    _warn(reading.verdicts)
    return n_records, n_events


def _already_there(store: Store, records: pl.DataFrame) -> pl.DataFrame:
    """Verdicts on the records that an earlier file gave."""
    ids = records["record_id"].to_list()
    former = store.read(
        "select record_id, path as first_path, r.line as first_line from raw.records r join raw.files using (file_id) "
        "where record_id in (select unnest($ids))", ids=ids)
    return records.join(former, on="record_id").select(
        stage=pl.lit("extract"), subject=pl.format("{}:{}", "file_id", "line"), kept=pl.lit(False),
        reason=pl.lit("duplicate_record"),
        detail=pl.format("The same record stands in {}, line {}; nothing to mend.", "first_path", "first_line"),
        file_id="file_id", line="line")


def _warn(verdicts: pl.DataFrame) -> None:
    """Say at once what cannot be read, the first of many."""
    left = verdicts.filter(~pl.col("kept") & ~pl.col("reason").is_in(_EXPECTED)).sort("line", nulls_last=False)
    for sentence in left["detail"].head(_WARNINGS):
        progress.warn("extract", sentence)
    if left.height > _WARNINGS:
        progress.warn("extract", f"{left.height - _WARNINGS} more lines of this file were left; see traceroom show --left.")
