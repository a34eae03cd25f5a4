"""The one door to DuckDB: frames in, frames out, one transaction per unit of commit.

    warehouse.duckdb              written by one run at a time (warehouse/lock.py)
    warehouse.published.duckdb    the copy that readers open: as of the last whole run, renamed into place

Instants are UTC on both sides. Rows of a table are told apart by its primary key (warehouse/schema.sql).

**Older warehouses.** What was read from logs (`KEPT`) cannot be computed again without them: where its columns are not
today's the warehouse is refused. Everything else is computed from it: where a column is not today's, the table is
dropped, made anew, and the next run fills it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import polars as pl
from pyarrow import parquet

from warehouse.errors import Missing, NotAWarehouse, SchemaTooNew, SchemaTooOld, StoreError

SCHEMA_VERSION = 2
KEPT = ("raw.files", "raw.places", "raw.records", "raw.quarantine", "raw.declarations", "core.events")
_WITHOUT_INDEX = {"raw.records": ("record_id", "file_id", "byte_offset"), "core.events": ("event_id", "file_id"),
                  "raw.quarantine": ("file_id", "line")}
"""Keys of the tables that are too big for an index."""
_NAME = "warehouse"
_WORLD_AT = """
    with held as (
        select *, coalesce(valid_from, timestamptz '-infinity') as since from mart.facts
        where service = $service and session_id is null),
    things as (select distinct entity_class, key, cast($instant as timestamptz) as instant from held)
    select held.entity_class, held.key, value, known, valid_from, valid_to, observed_at, event_id
    from things asof join held
        on things.entity_class = held.entity_class and things.key = held.key and things.instant >= held.since
    where valid_to is null or instant < valid_to order by all
"""
_VERSIONS = """
    with named as (select {by} as service, md5_number(to_json(row)::varchar) as n from {rows} as row)
    select service, count(*), sum((n >> 64)::hugeint)::varchar, sum((n & 18446744073709551615::uhugeint)::hugeint)::varchar
    from named group by service order by service
"""
_ROW_GROUP = 20480
_INTERRUPTED = "Query interrupted"
_CHECKPOINT = "1GB"
"""Written that is gathered in DuckDB's log before it is folded into the file: when the warehouse is closed, as a rule."""
_UTC = pl.Datetime("us", "UTC")


class Store:
    """An open warehouse. Use as a context manager: it is always closed."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path, write: bool) -> None:
        self._connection = connection
        self._within = False
        self.path = path
        self.write = write

    @classmethod
    def open(cls, path: Path, write: bool = True) -> Store:
        """Open the warehouse at `path`, making it where it is not there yet and `write` is on.

        To write, hold `warehouse.lock.writing`. Raises Missing, NotAWarehouse, SchemaTooOld, SchemaTooNew.
        """
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.exists():
            raise Missing("there is no warehouse here yet", str(path), "make it with: traceroom run LOGS --out DIR")
        store = cls(_connect(path, write), path, write)
        try:
            with _said(path):
                store._prepare()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def published(cls, warehouse: Path) -> Store:
        """Open the last published copy of `warehouse` to read: whole, and free of any run's lock."""
        return cls.open(published_path(warehouse), write=False)

    def read(self, sql: str, **parameters: object) -> pl.DataFrame:
        """Rows of a query; `$name` in it stands for a parameter."""
        with _said(self.path):
            found = self._connection.execute(sql, parameters).pl()
        return found.with_columns(pl.col(pl.Datetime).dt.cast_time_unit("us").dt.convert_time_zone("UTC"))

    def write_parquet(self, path: Path, sql: str, **parameters: object) -> None:
        """Rows of a query as a Parquet file, in its order; what is in memory is a group of rows."""
        with _said(self.path):
            rows = self._connection.execute(sql, parameters).to_arrow_reader(_ROW_GROUP)
            with parquet.ParquetWriter(path, rows.schema, compression="lz4") as file:
                for batch in rows:
                    file.write_batch(batch)

    def table(self, table: str) -> pl.DataFrame:
        """All rows of a table, in the order of its key, so that equal tables are equal frames."""
        order = ", ".join(self.key(table)) or "all"
        return self.read(f"select * from {table} order by {order}")

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(self.read(f"select count(*) as n from {table}").item())

    def version(self, table: str) -> str:
        """Digest of the table's rows, whatever their order: two tables have the same one where they hold the same rows.

        How many rows there are, and the sums of both halves of their MD5s (hashes of a multiset, Bellare and Micciancio 1997):
        one pass, constant memory. It tells changes apart, it is no signature. What was read from logs (`KEPT`) is as many rows
        as there are logs: there it is the digest of the ledger, whose pieces are named by their content.
        """
        if table in KEPT:
            pieces = self.read("select file_id from raw.files order by file_id")["file_id"]
            return hashlib.sha256("\n".join(pieces).encode()).hexdigest()
        return self.versions(table, "''").get("", "")

    def versions(self, rows: str, by: str = "service") -> dict[str, str]:
        """The same of each service's rows. `rows`: a table with a column `service`, or a query in parentheses."""
        found = self.read(_VERSIONS.format(rows=rows, by=by)).iter_rows()
        return {service: hashlib.sha256(":".join(map(str, told)).encode()).hexdigest() for service, *told in found}

    def world_at(self, service: str, instant: datetime) -> pl.DataFrame:
        """What is known of a service's world as of an instant (UTC): one row a thing, with `known`: how it is known.

        An ASOF JOIN of every thing with the fact that began last before the instant; where that had ended by then, nothing is
        known of the thing. What one session alone saw is not in it.
        """
        return self.read(_WORLD_AT, service=service, instant=instant)

    def key(self, table: str) -> tuple[str, ...]:
        """Columns of the table's primary key."""
        return _layout(schema_text()).keys[table]

    def replace(self, table: str, frame: pl.DataFrame, where: str = "true", **parameters: object) -> int:
        """Put `frame` in the place of the table's rows `where`; gives the rows written."""
        with self.transaction(), _said(self.path, table):
            self._connection.execute(f"delete from {table} where {where}", parameters)
            return self._insert(f"insert into {table}", table, frame)

    def append(self, table: str, frame: pl.DataFrame) -> int:
        """Add all rows, of which none is there yet."""
        with self.transaction(), _said(self.path, table):
            return self._insert(f"insert into {table}", table, frame)

    def change(self, statement: str, frame: pl.DataFrame | None = None, **parameters: object) -> None:
        """Carry out an update or a delete, in which `incoming` stands for `frame`."""
        with self.transaction(), _said(self.path):
            if frame is not None:
                self._connection.register("incoming", frame)
            try:
                self._connection.execute(statement, parameters)
            finally:
                if frame is not None:
                    self._connection.unregister("incoming")

    def append_new(self, table: str, frame: pl.DataFrame) -> int:
        """Add the rows whose key is not there yet; gives how many that were."""
        with self.transaction(), _said(self.path, table):
            return self._insert(f"insert or ignore into {table}", table, frame)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; a transaction inside another is a part of it."""
        if self._within:
            yield
            return
        with _said(self.path):
            self._connection.execute("begin")
        self._within = True
        try:
            yield
        except BaseException:
            self._connection.execute("rollback")
            raise
        else:
            with _said(self.path):
                self._connection.execute("commit")
        finally:
            self._within = False

    @contextlib.contextmanager
    def holding(self, memory: str, n_threads: int) -> Iterator[None]:
        """Let DuckDB use so many threads, and hold no more than so much (`512MB`) in memory; what is beyond goes to a folder
        beside the warehouse. More threads than cores that are free make each insertion slower: they wait on their turn awake.
        """
        before = self.read("select current_setting('memory_limit') as memory, current_setting('threads') as threads").row(0)
        self._limit(memory, n_threads)
        try:
            yield
        finally:
            self._limit(*before)

    def _limit(self, memory: str, n_threads: int) -> None:
        with _said(self.path):
            self._connection.execute(f"set memory_limit = '{memory}'")
            self._connection.execute(f"set threads = {n_threads}")

    def publish(self) -> Path:
        """Put a copy of the warehouse in the place of the published one, in one step, and give its path."""
        with _said(self.path):
            self._connection.execute("checkpoint")
        target = published_path(self.path)
        draft = target.with_name(f"{target.name}.{os.getpid()}.draft")
        try:
            shutil.copyfile(self.path, draft)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return target

    def close(self) -> None:
        """Close the connection; twice does no harm."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _insert(self, statement: str, table: str, frame: pl.DataFrame) -> int:
        if frame.is_empty():
            return 0
        columns = list(_layout(schema_text()).columns[table])
        if absent := [name for name in columns if name not in frame.columns]:
            raise StoreError(f"the frame has no column {absent[0]!r}", table, "give it all columns of its record")
        told = [name for name in columns if frame[name].null_count() < frame.height]   # writing nothing takes time too
        self._connection.register("incoming", frame.select(told).to_arrow(compat_level=pl.CompatLevel.newest()))
        try:
            names = ", ".join(told)
            done = self._connection.execute(f"{statement} ({names}) select {names} from incoming").fetchone()
        finally:
            self._connection.unregister("incoming")
        return int(done[0]) if done else 0

    def _prepare(self) -> None:
        self._connection.execute("set TimeZone = 'UTC'")
        self._connection.execute("set preserve_insertion_order = true")
        there = _columns(self._connection)
        if there and "raw.schema_version" not in there:
            raise NotAWarehouse("this DuckDB file is no warehouse of Traceroom", str(self.path), "choose another --out")
        if not there:
            self._create()
            return
        known = self._connection.execute("select version, fingerprint from raw.schema_version").fetchone()
        version, fingerprint = known if known else (0, "")
        if version > SCHEMA_VERSION:
            raise SchemaTooNew(
                f"the warehouse has schema {version}, and this Traceroom knows up to {SCHEMA_VERSION}", str(self.path),
                "upgrade Traceroom, or run into another --out")
        if fingerprint != _fingerprint():
            self._migrate(there, version)

    def _create(self) -> None:
        if not self.write:
            raise NotAWarehouse("the warehouse is empty", str(self.path), "make it with: traceroom run LOGS --out DIR")
        with self.transaction():
            self._connection.execute(schema_text())
            self._sign()

    def _migrate(self, there: dict[str, tuple[str, ...]], version: int) -> None:
        wanted = _layout(schema_text()).columns
        changed = [name for name in wanted if there.get(name) != wanted[name] and name != "raw.schema_version"]
        if lost := [name for name in changed if name in KEPT]:
            raise SchemaTooOld(
                f"the warehouse (schema {version}) keeps {lost[0]} in an older layout, and logs cannot be made up",
                str(self.path), "run into a new --out: the same logs give the same ids")
        if not self.write:
            if changed:
                raise SchemaTooOld(
                    f"the warehouse (schema {version}) has no {changed[0]} of today's layout", str(self.path),
                    "bring it up to date with: traceroom run --out DIR")
            return
        with self.transaction():
            for name in [*(name for name in changed if name in there), "raw.schema_version"]:
                self._connection.execute(f"drop table if exists {name} cascade")
            self._connection.execute(schema_text())
            self._connection.execute("delete from raw.stages")
            self._connection.execute("delete from raw.parts")
            self._connection.execute("delete from raw.audits")
            self._sign()

    def _sign(self) -> None:
        self._connection.execute("insert into raw.schema_version values (?, ?)", [SCHEMA_VERSION, _fingerprint()])


def published_path(warehouse: Path) -> Path:
    """Where the copy for readers lies: `<name>.published.duckdb`."""
    return warehouse.with_name(f"{warehouse.stem}.published{warehouse.suffix}")


@cache
def schema_text() -> str:
    """The SQL that makes an empty warehouse."""
    return files("warehouse").joinpath("schema.sql").read_text("utf-8")


class _Layout:
    """Columns and primary key of each table, as the schema makes them."""

    def __init__(self, columns: dict[str, tuple[str, ...]], keys: dict[str, tuple[str, ...]]) -> None:
        self.columns = columns
        self.keys = keys


@cache
def _layout(sql: str) -> _Layout:
    with duckdb.connect() as connection:
        connection.execute(sql)
        found = connection.execute(
            "select schema_name || '.' || table_name, constraint_column_names from duckdb_constraints() "
            "where constraint_type = 'PRIMARY KEY'").fetchall()
        return _Layout(_columns(connection), {**_WITHOUT_INDEX, **{name: tuple(columns) for name, columns in found}})


def _columns(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[str, ...]]:
    rows: list[tuple[Any, Any]] = connection.execute(
        "select schema_name || '.' || table_name, list(column_name order by column_index) "
        "from duckdb_columns() join duckdb_tables() using (schema_name, table_name) where not duckdb_tables.internal "
        "group by all").fetchall()
    return {name: tuple(columns) for name, columns in rows}


def _fingerprint() -> str:
    return hashlib.sha256(schema_text().encode()).hexdigest()


def _connect(path: Path, write: bool) -> duckdb.DuckDBPyConnection:
    """The database as the only one in use.

    Written in row groups of `_ROW_GROUP`: appends of any size fill whole ones, where DuckDB's own six times as many would be
    written again and again.
    """
    connection = duckdb.connect(config={"checkpoint_threshold": _CHECKPOINT, "temp_directory": f"{path}.tmp"})
    try:
        place = str(path).replace("'", "''")
        connection.execute(f"attach '{place}' as {_NAME} ({f'row_group_size {_ROW_GROUP}' if write else 'read_only'})")
        connection.execute(f"use {_NAME}")
    except RuntimeError as error:
        connection.close()
        raise (KeyboardInterrupt if _INTERRUPTED in str(error) else error) from error
    except duckdb.Error as error:
        connection.close()
        first = str(error).splitlines()[0]
        if "set lock on file" in first:
            raise StoreError(f"another program has it open ({first})", str(path), "close it and run again") from error
        raise NotAWarehouse(
            f"DuckDB cannot open it ({first})", str(path), "move the file away, or choose another --out") from error
    return connection


@contextlib.contextmanager
def _said(path: Path, table: str = "") -> Iterator[None]:
    """DuckDB's own errors, said as ours; a query that a signal cut short is the signal again."""
    try:
        yield
    except duckdb.Error as error:
        first = str(error).splitlines()[0]
        raise StoreError(first.rstrip("."), f"{path}{f' ({table})' if table else ''}", _mend(error)) from error
    except RuntimeError as error:  # so DuckDB says that a signal came while a query ran
        if _INTERRUPTED in str(error):
            raise KeyboardInterrupt from error
        raise


_NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large")


def _mend(error: duckdb.Error) -> str:
    if any(words in str(error) for words in _NO_ROOM):   # whatever kind of error DuckDB makes of it
        return "make room on the disk, then run again: what was committed stays"
    if isinstance(error, duckdb.FatalException | duckdb.InternalException | duckdb.SerializationException):
        return "the file is damaged: move it away and run again over the same logs"
    if isinstance(error, duckdb.OutOfMemoryException | duckdb.IOException):
        return "make room on the disk or in memory, then run again: what was committed stays"
    return "this is a mistake in Traceroom: report it with this sentence"
