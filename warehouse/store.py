"""The one door to the warehouse: frames in, frames out, one transaction per unit of commit.

Where its tables lie is a catalog's business (warehouse/catalogs.py): a DuckDB file, or a DuckLake. Instants are UTC on both
sides. Rows of a table are distinguished by its key (warehouse/schema.sql).

**Older warehouses.** What was read from logs (`KEPT`) cannot be computed again without them: where its columns are not
today's the warehouse is refused. Everything else is computed from it: where a column is not today's, the table is
dropped and created again, and the next run fills it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self, TypeVar

import duckdb
import polars as pl
from pyarrow import compute, parquet

from warehouse import schema
from warehouse.catalogs import ROOM_HINT, Catalog, catalog_of, published_path
from warehouse.errors import Busy, NotAWarehouse, SchemaTooNew, SchemaTooOld, StoreError

# DuckDB reads frames through Arrow, which writes a line to stderr about each whose memory is not aligned, or aligns it.
os.environ.setdefault("ACERO_ALIGNMENT_HANDLING", "reallocate")

_VERSIONS = """
    with named as (select {by} as service, md5_number(to_json(row)::varchar) as n from {rows} as row)
    select service, count(*), sum((n >> 64)::hugeint)::varchar, sum((n & 18446744073709551615::uhugeint)::hugeint)::varchar
    from named group by service order by service
"""
_TABLE = re.compile(r"\b(?:raw|core|mart)\.\w+")
_ROW_GROUP = 20480
_INTERRUPTED = "Query interrupted"
_ROOM = 1 << 24
"""Bytes of disk that a transaction needs besides twice those of its rows: for deleted rows, and the file's own blocks."""
_TRIES, _WAIT_S = 20, 0.05
"""Transactions tried where other writers come first, and the seconds that the first of them waits at most."""
T = TypeVar("T")
_Sum = tuple[str, int, int, int]
"""Service, how many rows, and the sums of both halves of their digests."""


class Store:
    """An open warehouse. Use as a context manager: it is always closed."""

    def __init__(self, catalog: Catalog, path: Path, write: bool) -> None:
        with _errors_as_ours(str(catalog)):
            self._connection = catalog.connect(write)
        self._catalog = catalog
        self._place = str(catalog)
        self._within = self._is_closed = False
        self._n_bytes = 0
        """What this transaction may write."""
        self._sums: dict[tuple[str, str], list[_Sum]] = {}
        """(rows, by) -> what `versions` counted: a table is hashed once between two changes of it."""
        self.path = path
        self.write = write

    @property
    def has_many_writers(self) -> bool:
        """Whether others may commit between two transactions: then equal rows may come at once."""
        return self._catalog.has_many_writers

    @classmethod
    def open(cls, path: Path, write: bool = True) -> Store:
        """Open the warehouse at `path`, making it where it is not there yet and `write` is on. To write, hold
        `warehouse.lock.writing`. Raises Missing, NotAWarehouse, SchemaTooOld, SchemaTooNew."""
        return cls._opened(catalog_of(path), path, write)

    @classmethod
    def published(cls, warehouse: Path) -> Store:
        """Open what was last published of `warehouse` to read: whole, and free of any run's lock."""
        return cls._opened(catalog_of(warehouse).published(), published_path(warehouse), write=False)

    @classmethod
    def _opened(cls, catalog: Catalog, path: Path, write: bool) -> Store:
        store = cls(catalog, path, write)
        try:
            with _errors_as_ours(str(catalog)):
                store._settle()
                if not store._is_current():
                    store.again(store._prepare) if write else store._prepare()
        except BaseException:
            store.close()
            raise
        return store

    def read(self, sql: str, **parameters: object) -> pl.DataFrame:
        """Rows of a query; `$name` in it stands for a parameter."""
        with _errors_as_ours(self._place):
            frame = self._connection.execute(sql, parameters).pl()
        if not any(isinstance(dtype, pl.Datetime) for dtype in frame.dtypes):
            return frame   # most queries: a plan that changes nothing takes as long as a small query
        return frame.with_columns(pl.col(pl.Datetime).dt.cast_time_unit("us").dt.convert_time_zone("UTC"))

    def write_parquet(self, path: Path, sql: str, **parameters: object) -> None:
        """Rows of a query as a Parquet file, in its order; what is in memory is a group of rows."""
        with _errors_as_ours(self._place):
            rows = self._connection.execute(sql, parameters).to_arrow_reader(_ROW_GROUP)
            with parquet.ParquetWriter(path, rows.schema, compression="lz4") as file:
                for batch in rows:
                    file.write_batch(batch)

    def write_parts(self, folder: Path, sql: str, n_parts: int, by: str, **parameters: object) -> list[Path]:
        """Write the rows of a query as Parquet files, one for each part; what is in memory is a group of rows. A row is in the
        part that the first bytes of the SHA-256 of its column `by` say."""
        part = f"('0x' || left(sha256({by}), 8))::ubigint % {n_parts}"
        files = [folder / f"{number}.parquet" for number in range(n_parts)]
        folder.mkdir()
        with _errors_as_ours(self._place), contextlib.ExitStack() as stack:
            rows = self._connection.execute(f"select {part} as part, * from ({sql})", parameters).to_arrow_reader(_ROW_GROUP)
            schema = rows.schema.remove(0)
            writers = [stack.enter_context(parquet.ParquetWriter(file, schema, compression="lz4")) for file in files]
            for batch in rows:
                own = batch.drop_columns(["part"])
                for number, writer in enumerate(writers):
                    writer.write_batch(own.filter(compute.equal(batch["part"], number)))
        return files

    def replace_from(self, table: str, files: list[Path], order: str) -> int:
        """Put the rows of Parquet files in the place of all rows of a table, in some order; gives how many they are."""
        names = ", ".join(schema.layout().names(table))
        with self.transaction(), _errors_as_ours(self._place, table):
            self._forget_sums(table)
            self._connection.execute(f"delete from {table}")
            if not files:
                return 0
            self._n_bytes += 2 * sum(file.stat().st_size for file in files)
            done = self._connection.execute(
                f"insert into {table} ({names}) select {names} from read_parquet($files) order by {order}",
                {"files": [str(file) for file in files]}).fetchone()
        return int(done[0]) if done else 0

    def table(self, table: str, where: str = "true", **parameters: object) -> pl.DataFrame:
        """All rows of a table (those `where`), in the order of its key, so that equal tables are equal frames."""
        order = ", ".join(self.key(table)) or "all"
        return self.read(f"select * from {table} where {where} order by {order}", **parameters)

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(self.read(f"select count(*) as n from {table}").item())

    def version(self, table: str) -> str:
        """Digest of the table's rows, whatever their order: two tables have the same one where they hold the same rows. How
        many rows there are, and the sums of both halves of their MD5s (hashes of a multiset, Bellare and Micciancio 1997): one
        pass, constant memory. It tells changes apart, it is no signature. What was read from logs (`KEPT`) is as many rows as
        there are logs: there it is the digest of the ledger, whose chunks are named by their content."""
        if table in schema.KEPT and table not in schema.LEDGER:
            chunks = self.read("select file_id from raw.files order by file_id")["file_id"]
            return hashlib.sha256("\n".join(chunks).encode()).hexdigest()
        if "service" not in schema.layout().names(table):
            return self.versions(table, "''").get("", "")
        sums = self._summed(table, "service")   # stages ask for each service's rows too
        return _digest_of([sum(each) for each in zip(*(numbers for _, *numbers in sums), strict=True)]) if sums else ""

    def versions(self, rows: str, by: str = "service") -> dict[str, str]:
        """Return the same of each service's rows. `rows`: a table with a column `service`, or a query in parentheses."""
        return {service: _digest_of(numbers) for service, *numbers in self._summed(rows, by)}

    def _summed(self, rows: str, by: str) -> list[_Sum]:
        """Count and sum the digests of rows by service, once while nothing changes their tables."""
        sums = self._sums.get((rows, by))
        if sums is None:
            counted = self.read(_VERSIONS.format(rows=rows, by=by)).iter_rows()
            sums = [(service, n, int(high), int(low)) for service, n, high, low in counted]
            if not self.has_many_writers:
                self._sums[rows, by] = sums
        return sums

    def _forget_sums(self, statement: str | None = None) -> None:
        """Count the tables that a statement names again; all where it is None."""
        changed = None if statement is None else {*_TABLE.findall(statement)}
        self._sums = {} if changed is None else {
            key: sums for key, sums in self._sums.items() if changed.isdisjoint(_TABLE.findall(key[0]))}

    def key(self, table: str) -> tuple[str, ...]:
        """Columns of the table's primary key."""
        return schema.layout().keys[table]

    def replace(self, table: str, frame: pl.DataFrame, where: str = "true", **parameters: object) -> int:
        """Put `frame` in the place of the table's rows `where`; gives the rows written."""
        with self.transaction(), _errors_as_ours(self._place, table):
            self._forget_sums(table)
            self._connection.execute(f"delete from {table} where {where}", parameters)
            return self._insert(table, frame)

    def append(self, table: str, frame: pl.DataFrame) -> int:
        """Add all rows, of which none is there yet."""
        with self.transaction(), _errors_as_ours(self._place, table):
            return self._insert(table, frame)

    def change(self, statement: str, frame: pl.DataFrame | None = None, **parameters: object) -> None:
        """Carry out an update or a delete, in which `incoming` stands for `frame`."""
        with self.transaction(), _errors_as_ours(self._place):
            self._forget_sums(statement)
            if frame is not None:
                self._connection.register("incoming", frame)
            try:
                self._connection.execute(statement, parameters)
            finally:
                if frame is not None:
                    self._connection.unregister("incoming")

    def keep_one(self, table: str, where: str = "true", **parameters: object) -> None:
        """Take out all but one of the rows `where` that have the same key."""
        key = ", ".join(self.key(table))
        self.change(
            f"delete from {table} where rowid in (select row from (select rowid as row, row_number() over (partition by {key} "
            f"order by rowid) as n from {table} where {where}) where n > 1)", None, **parameters)

    def append_new(self, table: str, frame: pl.DataFrame) -> int:
        """Add the rows whose key is not there yet; gives how many that were."""
        with self.transaction(), _errors_as_ours(self._place, table):
            return self._insert(table, frame, are_new=True)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; a transaction inside another is a part of it."""
        if self._within:
            yield
            return
        with _errors_as_ours(self._place):
            self._connection.execute("begin")
        self._within, self._n_bytes = True, _ROOM
        try:
            yield
            self._catalog.require_room(self._n_bytes)
        except BaseException:
            self._forget_sums()
            if not self._is_closed:   # a stop may come before `with` holds the transaction; then closing the store undid it
                self._connection.execute("rollback")
            raise
        else:
            with _errors_as_ours(self._place):
                self._connection.execute("commit")
        finally:
            self._within = False

    def again(self, work: Callable[[], T], in_transaction: bool = True) -> T:
        """Return what `work` gives, done in one transaction; repeated where another writer changed the same rows meanwhile.
        Raises Busy where others always come first. Within a transaction `work` is a part of it."""
        for number in range(_TRIES - 1 if self._catalog.has_many_writers and not self._within else 0):
            with contextlib.suppress(Busy), self.transaction() if in_transaction else contextlib.nullcontext():
                return work()
            time.sleep(random.uniform(0, _WAIT_S * 2 ** min(number, 6)))   # no row depends on it
        with self.transaction() if in_transaction else contextlib.nullcontext():
            return work()

    @contextlib.contextmanager
    def holding(self, memory: str, n_threads: int | None = None) -> Iterator[None]:
        """Let DuckDB use so many threads (None: as before), and hold no more than so much (`512MB`) in memory; what is beyond
        goes to a folder next to the warehouse. More threads than cores that are free make each insertion slower: they wait on
        their turn awake."""
        before = self.read("select current_setting('memory_limit') as memory, current_setting('threads') as threads").row(0)
        self._limit(memory, n_threads)
        try:
            yield
        except BaseException:
            with contextlib.suppress(StoreError):   # a transaction that failed refuses it, and is what went wrong
                self._limit(*before)
            raise
        self._limit(*before)

    def _limit(self, memory: str, n_threads: int | None) -> None:
        with _errors_as_ours(self._place):
            self._connection.execute(f"set memory_limit = '{memory}'")
            if n_threads is not None:
                self._connection.execute(f"set threads = {n_threads}")

    def publish(self) -> None:
        """Let readers see the warehouse as it is now, in one step."""
        with _errors_as_ours(self._place):
            self.again(lambda: self._catalog.publish(self._connection), in_transaction=False)

    def n_log_bytes(self) -> int:
        """Bytes that were committed and are not in the file of the tables yet; 0 for a lake."""
        return self._catalog.n_log_bytes()

    def compact(self) -> None:
        """Rewrite the warehouse, so that nothing is left of rows that were deleted: not within a transaction."""
        with _errors_as_ours(self._place):
            self._catalog.close(self._connection)
            self._catalog.compact()
            self._connection = self._catalog.connect(self.write)
            self._settle()

    def close(self) -> None:
        """Close the connection; twice does no harm."""
        if not self._is_closed:
            self._is_closed = True
            self._catalog.close(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _insert(self, table: str, frame: pl.DataFrame, are_new: bool = False) -> int:
        if frame.is_empty():
            return 0
        self._forget_sums(table)
        columns = schema.layout().names(table)
        if absent := [name for name in columns if name not in frame.columns]:
            raise StoreError(f"the frame has no column {absent[0]!r}", table, "give it all columns of its record")
        used_columns = tuple(
            name for name in columns if frame[name].null_count() < frame.height)  # writing nothing takes time too
        self._n_bytes += 2 * int(frame.estimated_size())
        names = ", ".join(used_columns)
        statement = (self._catalog.insert_new(table, used_columns, self.key(table)) if are_new
                     else f"insert into {table} ({names}) select {names} from incoming")
        self._connection.register("incoming", frame.select(used_columns).to_arrow(compat_level=pl.CompatLevel.newest()))
        try:
            done = self._connection.execute(statement).fetchone()
        finally:
            self._connection.unregister("incoming")
        return int(done[0]) if done else 0

    def _settle(self) -> None:
        """Apply the settings of a DuckDB session, whatever the catalog."""
        self._connection.execute("set TimeZone = 'UTC'")
        self._connection.execute("set preserve_insertion_order = true")

    def _is_current(self) -> bool:
        """Return whether the warehouse says that its tables are those of today's schema. To list them takes longer than to
        open it, and it is opened for every stage and page."""
        try:
            signature = self._connection.execute("select version, fingerprint from raw.schema_version").fetchone()
        except (duckdb.CatalogException, duckdb.BinderException):   # no warehouse, or one of other columns
            return False
        return signature == (schema.SCHEMA_VERSION, schema.fingerprint())

    def _prepare(self) -> None:
        columns_of = schema.columns_of(self._connection)
        there = {table: tuple(column.name for column in columns) for table, columns in columns_of.items()}
        if there and "raw.schema_version" not in there:
            raise NotAWarehouse("this DuckDB file is no warehouse of Traceroom", self._place, "choose another --out")
        if not there:
            if not self.write:
                raise NotAWarehouse("the warehouse is empty", self._place, "make it with: traceroom run LOGS --out DIR")
            with self.transaction():
                self._catalog.create(self._connection)
                self._sign()
            return
        signature = self._connection.execute("select version, fingerprint from raw.schema_version").fetchone()
        version, signed = signature if signature else (0, "")
        if version > schema.SCHEMA_VERSION:
            raise SchemaTooNew(
                f"the warehouse has schema {version}, and this Traceroom knows up to {schema.SCHEMA_VERSION}", self._place,
                "upgrade Traceroom, or run into another --out")
        if signed != schema.fingerprint():
            strict = {table for table in schema.stricter(columns_of) if self.write and table not in schema.KEPT}
            self._migrate({table: () if table in strict else names for table, names in there.items()}, version)

    def _migrate(self, there: dict[str, tuple[str, ...]], version: int) -> None:
        """Bring the tables to today's layout. `there`: the columns of each, none of one that is made anew."""
        there = {schema.RENAMED_TABLES.get(table, table): columns for table, columns in there.items()}
        for table, old, new in schema.RENAMED_COLUMNS:
            there |= {table: tuple(new if name == old else name for name in there[table])} if table in there else {}
        layout = schema.layout()
        changed = [name for name in layout.columns if there.get(name) != layout.names(name) and name != "raw.schema_version"]
        if lost := [name for name in changed if name in schema.KEPT and name in there]:
            raise SchemaTooOld(
                f"the warehouse (schema {version}) keeps {lost[0]} in an older layout, and logs cannot be made up",
                self._place, "run into a new --out: the same logs give the same ids")
        if not self.write:
            if changed:
                raise SchemaTooOld(
                    f"the warehouse (schema {version}) has no {changed[0]} of today's layout", self._place,
                    "bring it up to date with: traceroom run --out DIR")
            return
        with self.transaction():
            for view in layout.views:
                self._connection.execute(f"drop view if exists {view}")
            self._rename()
            for name in [*(name for name in changed if name in there), *schema.DROPPED, "raw.schema_version"]:
                self._connection.execute(f"drop table if exists {name}")
            self._catalog.create(self._connection)
            for name in schema.RECOMPUTED:
                self._connection.execute(f"delete from {name}")
            self._sign()

    def _rename(self) -> None:
        """Give what is kept of an older warehouse today's names."""
        there = schema.columns_of(self._connection)
        for old, new in schema.RENAMED_TABLES.items():
            if old in there:
                self._connection.execute(f"alter table {old} rename to {new.partition('.')[2]}")
                there[new] = there.pop(old)
        for table, old, new in schema.RENAMED_COLUMNS:
            if any(column.name == old for column in there.get(table, ())):
                self._connection.execute(f"alter table {table} rename column {old} to {new}")

    def _sign(self) -> None:
        self._connection.execute("insert into raw.schema_version values (?, ?)", [schema.SCHEMA_VERSION, schema.fingerprint()])


def _digest_of(numbers: Iterable[int]) -> str:
    return hashlib.sha256(":".join(map(str, numbers)).encode()).hexdigest()


@contextlib.contextmanager
def _errors_as_ours(place: str, table: str = "") -> Iterator[None]:
    """Translate DuckDB's errors into ours; a query that a signal cut short is the signal again."""
    try:
        yield
    except duckdb.Error as error:
        first = str(error).splitlines()[0]
        where = f"{place}{f' ({table})' if table else ''}"
        if any(words in str(error) for words in _CONFLICT):
            raise Busy(f"another run wrote the same rows meanwhile ({first.rstrip('.')})", where, "run again") from error
        raise StoreError(first.rstrip("."), where, _hint(error)) from error
    except RuntimeError as error:  # so DuckDB says that a signal came while a query ran
        if _INTERRUPTED in str(error):
            raise KeyboardInterrupt from error
        raise


_CONFLICT = ("Transaction conflict", "transaction conflict", "write-write conflict", "could not serialize")
_NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large")


def _hint(error: duckdb.Error) -> str:
    if any(words in str(error) for words in _NO_ROOM):   # whatever kind of error DuckDB makes of it
        return ROOM_HINT
    if isinstance(error, duckdb.FatalException | duckdb.InternalException | duckdb.SerializationException):
        return "the file is damaged: move it away and run again over the same logs"
    if isinstance(error, duckdb.OutOfMemoryException | duckdb.IOException):
        return "make room on the disk or in memory, then run again: what was committed stays"
    return "this is a mistake in Traceroom: report it with this sentence"
