"""Ingestion alone, on small chunks: logs made up line by line, what the warehouse holds of them, and a process to kill."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from extractors import chunks
from pipelines.ingestion import ingest as ingesting
from pipelines.ingestion import readers
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.errors import TraceroomError
from warehouse.lock import writing
from warehouse.store import Store

TABLES = ("raw.files", "raw.records", "raw.quarantine", "raw.declarations", "core.events", "mart.decisions")
OF_THE_PLACE = ("path", "read_at")
HEADER = "session_id,rating,comment\n"


def session(number: int) -> str:
    """Return A conversation as a line of JSON."""
    said = [{"role": "user", "content": f"question {number} " + "about doors " * (number % 7)},
            {"role": "assistant", "content": f"answer {number}"}]
    return json.dumps({"session_id": f"s{number}", "messages": said}) + "\n"


def access(number: int) -> str:
    """Return A line of a web server's log; they are equal now and then."""
    return (f'10.0.0.{number % 3} - - [02/Mar/2026:10:{number % 5:02}:00 +0000] "GET /doors/{number % 4} HTTP/1.1" 200 17 "-" '
            '"probe/1.0"\n')


def rating(number: int) -> str:
    """Return A row of a table, with a line end in a field."""
    return f's{number},{number % 5 + 1},"fine, thanks\nby {number}"\n'


@contextlib.contextmanager
def small(chunk_bytes: int, n_rows: int = 40, in_processes: bool = False) -> Iterator[None]:
    """Pieces of at most so many bytes, committed after so many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_BYTES", chunk_bytes)
        patch.setattr(ingesting, "_EVENTS", n_rows)
        if in_processes:
            patch.setattr(readers, "_ENOUGH", 0)
        yield


def ingest(out: Path, *logs: Path | str, until: str | None = None) -> Counts:
    """Ingest as the stage does, with privacy off: what is held is compared with the logs."""
    settings = Settings(logs=tuple(map(str, logs)), out=str(out), until=until, privacy=False)
    with writing(settings.warehouse, "a test"), Store.open(settings.warehouse) as store:
        return ingesting.ingest(store, settings)


def held(out: Path, *without: str) -> dict[str, pl.DataFrame]:
    """Every table that ingestion fills, without what tells of clock and place."""
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        return {table: store.table(table).drop(*OF_THE_PLACE, *without, strict=False) for table in TABLES}


def digest(out: Path) -> str:
    """Return A hash of all that `held` gives."""
    whole = hashlib.sha256()
    for table, rows in held(out).items():
        whole.update(f"{table}\0{rows.rows()}\0".encode("utf-8", "surrogatepass"))
    return whole.hexdigest()


def events(out: Path) -> list[tuple[object, ...]]:
    """Return what happened, without ids that tell of a chunk: in any order, but as often as it did."""
    rows = held(out)["core.events"].drop("event_id", "record_id", "file_id")
    return sorted(rows.iter_rows(), key=repr)


def in_a_process(out: Path, chunk_bytes: int, n_rows: int, in_processes: bool, logs: Path, said: Path) -> None:
    """Ingest in a process group of one's own, and leave with an exit code as the command line does; errors go to `said`."""
    os.setsid()
    try:
        with small(chunk_bytes, n_rows, in_processes):
            ingest(out, logs)
    except TraceroomError as error:
        said.write_text(f"{error}\n")
        sys.exit(error.exit_code)
    except BaseException:
        said.write_text(traceback.format_exc())
        raise
