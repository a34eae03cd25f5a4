"""Where a warehouse lies: a DuckDB file, or a DuckLake that one URL names; the same SQL reads and writes both.

    OUT/warehouse.duckdb              the file, written by one run at a time (warehouse/lock.py)
    OUT/warehouse.published.duckdb    the copy that readers open: as of the last whole run, renamed into place
    OUT/warehouse.url                 where there is one: the lake that stands in the place of both

Whoever knows OUT finds the warehouse; what a run leaves in passing (its lock, what readers read) lies beside in any case.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

import duckdb

from warehouse.errors import InputError, Missing, NotAWarehouse, StoreError
from warehouse.schema import layout, schema_text

NAME = "warehouse"
"""What a connection calls it."""
_ROW_GROUP = 20480
_CHECKPOINT = "1GB"
"""Written that is gathered in DuckDB's log before it is folded into the file: when the warehouse is closed, as a rule."""


class Catalog(Protocol):
    """What knows the tables of a warehouse."""

    @property
    def has_many_writers(self) -> bool:
        """Whether others may commit between two transactions of ours."""

    def __str__(self) -> str:
        """The place, for people."""

    def is_there(self) -> bool:
        """Is there a warehouse already?"""

    def is_published(self) -> bool:
        """Is what readers see the newest?"""

    def connect(self, write: bool) -> duckdb.DuckDBPyConnection:
        """A connection in which it is the only database in use. Raises StoreError."""

    def close(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let go of such a connection."""

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the tables and views that are not there."""

    def insert_new(self, table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
        """A statement that adds those rows of `incoming` whose key is not there."""

    def publish(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let readers see what is there now, in one step."""

    def compact(self) -> None:
        """Write everything anew, so that no byte is left of what was deleted; nobody may have it open."""

    def published(self) -> Catalog:
        """What readers see."""


class DuckDBFile:
    """A file of DuckDB: one writer, and a copy for readers."""

    has_many_writers = False

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def is_there(self) -> bool:
        """Is there a warehouse already?"""
        return self._path.is_file()

    def is_published(self) -> bool:
        """A run that was killed leaves a warehouse that is newer, or a log of writes beside it."""
        published = published_path(self._path)
        return (
            self._path.is_file() and published.is_file() and not self._path.with_name(f"{self._path.name}.wal").exists()
            and self._path.stat().st_mtime_ns <= published.stat().st_mtime_ns)

    def connect(self, write: bool) -> duckdb.DuckDBPyConnection:
        """The file, attached.

        Written in row groups of `_ROW_GROUP`: appends of any size fill whole ones, where DuckDB's own six times as many would
        be written again and again.
        """
        if write:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        elif not self._path.exists():
            raise Missing("there is no warehouse here yet", str(self), "make it with: traceroom run LOGS --out DIR")
        connection = duckdb.connect(config={"checkpoint_threshold": _CHECKPOINT, "temp_directory": f"{self._path}.tmp"})
        try:
            connection.execute(
                f"attach {quoted(str(self._path))} as {NAME} ({f'row_group_size {_ROW_GROUP}' if write else 'read_only'})")
            connection.execute(f"use {NAME}")
        except BaseException as error:
            connection.close()
            if isinstance(error, duckdb.Error):
                raise self._refused(error) from error
            raise
        return connection

    def close(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Close the file."""
        connection.close()

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """The schema as it is written."""
        connection.execute(schema_text())

    def insert_new(self, table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
        """By the index of the primary key."""
        names = ", ".join(columns)
        return f"insert or ignore into {table} ({names}) select {names} from incoming"

    def publish(self, connection: duckdb.DuckDBPyConnection) -> None:
        """A copy, renamed into the place of the former one."""
        connection.execute("checkpoint")
        target = published_path(self._path)
        draft = target.with_name(f"{target.name}.{os.getpid()}.draft")
        try:
            shutil.copyfile(self._path, draft)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    def compact(self) -> None:
        """A new file of the rows that are there, renamed into place: DuckDB leaves in a file what was deleted from it."""
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}.draft")
        made = DuckDBFile(draft)
        for left in self._path.parent.glob(f"{self._path.stem}*.draft*"):
            left.unlink()   # of who was killed
        try:
            connection = made.connect(write=True)
            try:
                made.create(connection)
                connection.execute(f"attach {quoted(str(self._path))} as former (read_only)")
                for table in layout().columns:
                    connection.execute(f"insert into {table} select * from former.{table}")
                connection.execute("detach former; checkpoint")
            finally:
                made.close(connection)
            draft.replace(self._path)
            self._path.with_name(f"{self._path.name}.wal").unlink(missing_ok=True)
        finally:
            draft.unlink(missing_ok=True)

    def published(self) -> Catalog:
        """The copy."""
        return DuckDBFile(published_path(self._path))

    def _refused(self, error: duckdb.Error) -> StoreError:
        first = str(error).splitlines()[0]
        if "set lock on file" in first:
            return StoreError(f"another program has it open ({first})", str(self), "close it and run again")
        return NotAWarehouse(f"DuckDB cannot open it ({first})", str(self), "move the file away, or choose another --out")


def catalog_of(path: Path) -> Catalog:
    """The catalog of the warehouse at `path`, or of the lake that stands in its place."""
    url = url_of(path)
    if url is None:
        return DuckDBFile(path)
    from warehouse.ducklake import DuckLake

    return DuckLake.named(url, path)


def url_of(path: Path) -> str | None:
    """URL of the lake that stands in the place of the file, None where the file counts."""
    try:
        return _beside(path).read_text("utf-8").strip() or None
    except OSError:
        return None


def remember(path: Path, url: str) -> None:
    """Let a lake stand in the place of the file at `path`, once it has opened.

    Raises InputError where the folder has another warehouse, StoreError where the lake does not open.
    """
    from warehouse.ducklake import DuckLake

    lake, known = DuckLake.named(url, path), url_of(path)
    if known == url:
        return
    if known or path.exists():
        raise InputError(f"the folder has its warehouse in {known or path.name} already", str(path.parent),
                         "choose another --out, or leave --warehouse out")
    lake.close(lake.connect(write=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = _beside(path).with_name(f"{path.name}.{os.getpid()}.draft")
    draft.write_text(f"{url}\n", "utf-8")
    draft.replace(_beside(path))


def published_path(warehouse: Path) -> Path:
    """Where the copy of a file for readers lies: `<name>.published.duckdb`."""
    return warehouse.with_name(f"{warehouse.stem}.published{warehouse.suffix}")


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _beside(path: Path) -> Path:
    return path.with_suffix(".url")
