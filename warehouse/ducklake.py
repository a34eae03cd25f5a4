"""A warehouse as a DuckLake: the catalog in PostgreSQL (or a file of DuckDB), the rows as Parquet in a bucket or folder.

    ducklake:postgres://USER@HOST:5432/DATABASE?data=s3://BUCKET/PREFIX     PGPASSWORD or ~/.pgpass tells the password
    ducklake:/srv/traceroom/catalog.ducklake?data=/srv/traceroom/rows       a file: one process at a time, to try it

Several processes, on several machines, write at once: DuckLake tries a commit again where another came first and the changes
do not touch (`ducklake_max_retry_count`), and `Store.again` repeats a transaction where they do. What readers see is a
snapshot: the one that `raw.published` names. A lake knows no primary keys: whoever adds rows asks first what is there, and
pieces that two writers took at once are kept once (pipelines/settling.py). Buckets are reached by the AWS_… variables that
other tools read.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import duckdb

from warehouse.catalogs import NAME, Catalog, quoted
from warehouse.errors import InputError, Missing, StoreError, Unavailable
from warehouse.schema import layout

SCHEME = "ducklake:"
_NUMBERS = itertools.count()
_TRIES = 50
"""Commits that DuckLake tries where others come first; it waits longer each time."""
_BEGINNINGS, _UNFINISHED = 10, "Failed to initialize DuckLake"
"""Times that we try to make a catalog which another writer makes too, and what is said then."""
_EXAMPLE = "write ducklake:postgres://USER@HOST/DATABASE?data=s3://BUCKET/PREFIX"


@dataclass(frozen=True)
class DuckLake:
    """A lake, as of now or as of what is published."""

    url: str
    """As it was given."""
    catalog: str
    """What DuckLake is told after its scheme: `postgres:postgres://…`, or a path."""
    data: str
    """Where the Parquet files lie."""
    beside: Path
    """Begin of the names of files in passing."""
    of_readers: bool = False

    @classmethod
    def named(cls, url: str, beside: Path) -> DuckLake:
        """The lake at a URL. Raises InputError."""
        if not url.startswith(SCHEME):
            raise InputError("this is no URL of a lake", url, _EXAMPLE)
        parts = urlsplit(url.removeprefix(SCHEME))
        if parts.password:
            raise InputError("a password stands in the URL", url.replace(parts.password, "…"),
                             "take it out, and set PGPASSWORD or write ~/.pgpass")
        asked = dict(parse_qsl(parts.query))
        data = asked.pop("data", "")
        if not data or not (parts.path or parts.netloc):
            raise InputError("the URL does not say where the rows lie", url, _EXAMPLE)
        is_postgres = parts.scheme in ("postgres", "postgresql")
        catalog = parts._replace(query=urlencode(asked)).geturl()
        return cls(url, f"postgres:{catalog}" if is_postgres else parts.path, data, beside)

    def __str__(self) -> str:
        return self.url

    @property
    def has_many_writers(self) -> bool:
        """PostgreSQL has; a file of DuckDB has one at a time."""
        return self.catalog.startswith("postgres:")

    def is_there(self) -> bool:
        """Was anything ever put into it?"""
        try:
            self.close(self.connect(write=False))
        except (StoreError, Missing):
            return False
        return True

    def is_published(self) -> bool:
        """Did nobody write since it was published?"""
        try:
            connection = self.connect(write=False)
            try:
                told, now = _published(connection), _newest(connection)
            finally:
                self.close(connection)
        except (StoreError, Missing, duckdb.Error):
            return False
        return told is not None and now == told + 1   # publishing is a snapshot too

    def connect(self, write: bool) -> duckdb.DuckDBPyConnection:
        """The lake, attached; for readers at the snapshot that is published."""
        connection = self._database().cursor()
        try:
            if not write:
                self._attach(connection, "read_only, create_if_not_exists false")
                if self.of_readers:
                    told = _published(connection)
                    if told is None:
                        raise Missing("nothing is published here yet", self.url, "run to the end: traceroom run LOGS")
                    _detach(connection)
                    self._attach(connection, f"read_only, create_if_not_exists false, snapshot_version {told}")
            else:
                self._begin(connection)
        except BaseException as error:
            self.close(connection)
            if isinstance(error, duckdb.Error):
                raise self._refused(error, write) from error
            raise
        return connection

    def close(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let go of the lake; the extensions stay for the next one."""
        with contextlib.suppress(duckdb.Error):
            _detach(connection)
        connection.close()

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """The same tables without keys, which a lake does not know, and ways to compress, which are Parquet's own."""
        tables = _tables()
        for schema in dict.fromkeys(name.partition(".")[0] for name in tables):
            connection.execute(f"create schema if not exists {schema}")
        for name, columns in tables.items():
            connection.execute(f"create table if not exists {name} ({columns})")
        for name, query in layout().views.items():
            connection.execute(f"create or replace view {name} as {query}")

    def insert_new(self, table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
        """By asking what is there; of equal ones that come together, one."""
        names, keys = ", ".join(columns), ", ".join(key)
        return (f"insert into {table} ({names}) select {names} from incoming "
                f"where ({keys}) not in (select ({keys}) from {table}) "
                f"qualify row_number() over (partition by {keys}) = 1")

    def publish(self, connection: duckdb.DuckDBPyConnection) -> None:
        """The newest snapshot is what readers see from now on."""
        now = _newest(connection)
        connection.execute("begin")
        connection.execute("delete from raw.published")
        connection.execute("insert into raw.published values (?)", [now])
        connection.execute("commit")

    def compact(self) -> None:
        """Every table made anew, and published; then all that came before is forgotten, with its files and what the catalog
        knew of their values."""
        connection = self.connect(write=True)
        try:
            connection.execute("begin")
            for name, columns in _tables().items():
                connection.execute(f"create temp table rewritten as select * from {name}")
                connection.execute(f"drop table {name}")
                connection.execute(f"create table {name} ({columns})")
                connection.execute(f"insert into {name} select * from rewritten")
                connection.execute("drop table rewritten")
            connection.execute("commit")
            self.publish(connection)
            lake, last = quoted(_name(connection)), _published(connection)
            found = connection.execute(f"select snapshot_id from ducklake_snapshots({lake}) where snapshot_id < {last}")
            if versions := [str(version) for version, in found.fetchall()]:
                connection.execute(f"call ducklake_expire_snapshots({lake}, versions => [{', '.join(versions)}])")
            connection.execute(f"call ducklake_cleanup_old_files({lake}, cleanup_all => true)")
            connection.execute(f"call ducklake_delete_orphaned_files({lake}, cleanup_all => true)")
        finally:
            self.close(connection)
        if not self.has_many_writers:
            self._compact_catalog()

    def _compact_catalog(self) -> None:
        """The catalog's file anew: DuckDB leaves in a file what was deleted from it."""
        path = Path(self.catalog)
        draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
        draft.unlink(missing_ok=True)
        with duckdb.connect() as connection:
            connection.execute(f"attach {quoted(str(path))} as former; attach {quoted(str(draft))} as fresh")
            connection.execute("copy from database former to fresh; checkpoint fresh; detach fresh; detach former")
        draft.replace(path)

    def published(self) -> Catalog:
        """The lake as of the snapshot that is published."""
        return replace(self, of_readers=True)

    def _attach(self, connection: duckdb.DuckDBPyConnection, options: str) -> None:
        name = f"{NAME}_{next(_NUMBERS)}"
        connection.execute(f"attach {quoted(SCHEME + self.catalog)} as {name} ({options})")
        connection.execute(f"use {name}")

    def _begin(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Attach the lake to write, and make its catalog where it has none; others may be making it at the same time."""
        if "://" not in self.data:
            Path(self.data).mkdir(parents=True, exist_ok=True)
        for number in range(1, _BEGINNINGS + 1):
            try:
                self._attach(connection, f"data_path {quoted(self.data)}")
                return
            except duckdb.Error as error:
                if _UNFINISHED not in str(error) or number == _BEGINNINGS:
                    raise
            time.sleep(0.1 * number)

    def _database(self) -> duckdb.DuckDBPyConnection:
        extensions = ["ducklake"]
        extensions += ["postgres_scanner"] if self.catalog.startswith("postgres:") else []
        extensions += ["httpfs"] if "://" in self.data else []
        return _database(os.getpid(), self.beside, tuple(extensions), _secret() if "://" in self.data else "")

    def _refused(self, error: duckdb.Error, write: bool) -> StoreError | Missing:
        first = str(error).splitlines()[0]
        if not write and ("does not exist" in first or "Catalog Error" in first):
            return Missing("there is no warehouse here yet", self.url, "make it with: traceroom run LOGS --warehouse URL")
        return StoreError(f"the lake cannot be opened ({first})", self.url, "see that its database and its bucket answer")


@cache
def _database(process: int, beside: Path, extensions: tuple[str, ...], secret: str) -> duckdb.DuckDBPyConnection:
    """What holds the extensions, which take seconds to load: one in each process, and no other's after a fork."""
    connection = duckdb.connect(config={"temp_directory": f"{beside}.tmp"})
    for extension in extensions:
        _load(connection, extension)
    if secret:
        connection.execute(secret)
    connection.execute(f"set global ducklake_max_retry_count = {_TRIES}")
    return connection


def _tables() -> dict[str, str]:
    """Table -> its columns, as a statement that makes it lists them."""
    columns = {
        name: ", ".join(f"{column.name} {column.kind}{'' if column.is_nullable else ' not null'}" for column in columns)
        for name, columns in layout().columns.items()}
    return {**columns, "raw.published": "snapshot_id bigint not null"}


def _detach(connection: duckdb.DuckDBPyConnection) -> None:
    name = _name(connection)
    connection.execute(f"use memory; detach {name}")


def _name(connection: duckdb.DuckDBPyConnection) -> str:
    found = connection.execute("select current_database()").fetchone()
    return str(found[0]) if found else ""


def _published(connection: duckdb.DuckDBPyConnection) -> int | None:
    """The snapshot that readers see."""
    told = connection.execute("select snapshot_id from raw.published").fetchone()
    return int(told[0]) if told else None


def _newest(connection: duckdb.DuckDBPyConnection) -> int:
    """The newest snapshot."""
    now = connection.execute(f"select id from ducklake_current_snapshot({quoted(_name(connection))})").fetchone()
    assert now is not None, "a lake has a snapshot from its beginning"
    return int(now[0])


def _load(connection: duckdb.DuckDBPyConnection, extension: str) -> None:
    """An extension: of its package where that is installed, else as DuckDB itself finds it. Raises Unavailable."""
    try:
        folder = files(f"duckdb_extension_{extension}").joinpath("extensions", f"v{duckdb.__version__}")
        connection.execute(f"load {quoted(str(folder.joinpath(f'{extension}.duckdb_extension')))}")
    except (ModuleNotFoundError, duckdb.IOException):
        try:
            connection.execute(f"install {extension}; load {extension}")
        except duckdb.Error as error:
            raise Unavailable(
                f"DuckDB's extension {extension!r} is not installed", mend="pip install 'traceroom[ducklake]'") from error


def _secret() -> str:
    """How buckets are reached, from the environment, as a statement."""
    told = os.environ
    parts = {"type": "s3", "key_id": told.get("AWS_ACCESS_KEY_ID"), "secret": told.get("AWS_SECRET_ACCESS_KEY"),
             "session_token": told.get("AWS_SESSION_TOKEN"),
             "region": told.get("AWS_REGION") or told.get("AWS_DEFAULT_REGION")}
    if url := told.get("AWS_ENDPOINT_URL_S3") or told.get("AWS_ENDPOINT_URL"):
        endpoint = urlsplit(url)
        parts |= {"endpoint": endpoint.netloc, "url_style": "path", "use_ssl": str(endpoint.scheme == "https").lower()}
    return f"create secret ({', '.join(f'{name} {quoted(value)}' for name, value in parts.items() if value)})"
