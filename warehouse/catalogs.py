"""Where a warehouse is stored: a DuckDB file, or a DuckLake that one URL names; the same SQL reads and writes both.

    OUT/warehouse.duckdb              the file, written by one run at a time (warehouse/lock.py)
    OUT/warehouse.published.duckdb    the copy that readers open: as of the last whole run, renamed into place
    OUT/warehouse.url                 if it exists: the URL of the lake that replaces both

A lake has its catalog in PostgreSQL (or a file of DuckDB) and its rows as Parquet in a bucket or folder:

    ducklake:postgres://USER@HOST:5432/DATABASE?data=s3://BUCKET/PREFIX     PGPASSWORD or ~/.pgpass has the password
    ducklake:/srv/traceroom/catalog.ducklake?data=/srv/traceroom/rows       a file: one process at a time, to try it

Several processes on several machines write to a lake at once: DuckLake retries a commit where another came first and the
changes do not touch (`ducklake_max_retry_count`), and `Store.again` repeats a transaction where they do. Readers see the
snapshot that `raw.published` names. A lake has no primary keys: a writer first reads which rows are there, and chunks that two
writers took at once are kept once (pipelines/ingestion/settle.py). Buckets are reached by the usual AWS_… variables.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import duckdb

from warehouse.errors import InputError, Missing, NotAWarehouse, StoreError, Unavailable
from warehouse.schema import comments_text, layout, schema_text

_NAME = "warehouse"
"""What a connection calls it."""
_ROW_GROUP = 20480
"""Appends of any size fill whole row groups of this size; DuckDB's own, six times as many, would be written again and again."""
_CHECKPOINT = "1GB"
"""Size of DuckDB's log from which on it is folded into the file: as a rule only when the warehouse is closed."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_ANSWER = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)
"""What a file system answers that cannot set bytes aside."""
_NO_ACCESS = ("Read-only file system", "Permission denied", "Operation not permitted")
ROOM_HINT = "make room on the disk, then run again: what was committed stays"
ACCESS_HINT = "give access to the folder, then run again: what was committed stays"
_SCHEME = "ducklake:"
_NUMBERS = itertools.count()
_TRIES = 50
"""Commits that DuckLake tries where others come first; it waits longer each time."""
_BEGINNINGS, _UNFINISHED = 10, "Failed to initialize DuckLake"
"""Tries to make a catalog that another writer makes too, and DuckLake's error then."""
_EXAMPLE = "write ducklake:postgres://USER@HOST/DATABASE?data=s3://BUCKET/PREFIX"


def catalog_of(path: Path) -> Catalog:
    """Open the catalog of the warehouse at `path`, or of the lake that replaces it."""
    url = url_of(path)
    return DuckDBFile(path) if url is None else DuckLake.named(url, path)


def url_of(path: Path) -> str | None:
    """URL of the lake that replaces the file, None where the file counts."""
    try:
        return path.with_suffix(".url").read_text("utf-8").strip() or None
    except OSError:
        return None


def record_url(path: Path, url: str) -> None:
    """Let a lake replace the file at `path`, once it has opened. Raises InputError where the folder has another warehouse,
    StoreError where the lake does not open."""
    lake, named_url = DuckLake.named(url, path), url_of(path)
    if named_url == url:
        return
    if named_url or path.exists():
        raise InputError(f"the folder has its warehouse in {named_url or path.name} already", str(path.parent),
                         "choose another --out, or leave --warehouse out")
    lake.close(lake.connect(write=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = _draft(path)
    draft.write_text(f"{url}\n", "utf-8")
    draft.replace(path.with_suffix(".url"))


def published_path(warehouse: Path) -> Path:
    """Path of the copy of a file for readers: `<name>.published.duckdb`."""
    return warehouse.with_name(f"{warehouse.stem}.published{warehouse.suffix}")


def _draft(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.draft")


def _drafts(path: Path) -> list[Path]:
    """List the drafts of all processes."""
    return list(path.parent.glob(f"{path.name}.*.draft"))


def _quoted(text: str) -> str:
    """Write a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


class Catalog(ABC):
    """Where the tables of a warehouse are; its text is the path or URL."""

    has_many_writers = False
    """Whether others may commit between two transactions of ours."""

    def connect(self, write: bool) -> duckdb.DuckDBPyConnection:
        """Open a connection in which it is the only database in use. Raises StoreError, Missing."""
        connection = self._database(write)
        try:
            self._use(connection, write)
        except BaseException as error:
            self.close(connection)
            if isinstance(error, duckdb.Error):
                raise self._refusal(str(error).splitlines()[0], write) from error
            raise
        return connection

    def close(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Close such a connection."""
        connection.close()

    @abstractmethod
    def is_there(self) -> bool:
        """Whether there is a warehouse already."""

    @abstractmethod
    def is_published(self) -> bool:
        """Whether readers see the newest state."""

    @abstractmethod
    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the tables and views that are not there."""

    @abstractmethod
    def insert_new(self, table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
        """Write a statement that adds those rows of `incoming` whose key is not there."""

    def n_log_bytes(self) -> int:
        """Bytes of what was committed and is not in its place yet."""
        return 0

    def require_room(self, n_bytes: int) -> None:  # noqa: B027  a bucket or a server has its own rules
        """Check that so many bytes can be written. Raises StoreError."""

    @abstractmethod
    def publish(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let readers see what is there now, in one step."""

    @abstractmethod
    def compact(self) -> None:
        """Rewrite everything, so that no byte is left of what was deleted; no process may have it open."""

    @abstractmethod
    def published(self) -> Catalog:
        """Open what readers see."""

    @abstractmethod
    def _database(self, write: bool) -> duckdb.DuckDBPyConnection: ...

    @abstractmethod
    def _use(self, connection: duckdb.DuckDBPyConnection, write: bool) -> None: ...

    @abstractmethod
    def _refusal(self, message: str, write: bool) -> StoreError | Missing: ...


class DuckDBFile(Catalog):
    """A file of DuckDB: one writer, and a copy for readers."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    @property
    def _log(self) -> Path:
        """DuckDB's log of writes."""
        return self._path.with_name(f"{self._path.name}.wal")

    def is_there(self) -> bool:
        return self._path.is_file()

    def n_log_bytes(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0

    def is_published(self) -> bool:
        """Whether no run was killed: it leaves a warehouse that is newer, a log of writes beside it, or half a copy."""
        published = published_path(self._path)
        return (
            not _drafts(published) and self._path.is_file() and published.is_file()
            and not self._log.exists()
            and self._path.stat().st_mtime_ns <= published.stat().st_mtime_ns)

    def _database(self, write: bool) -> duckdb.DuckDBPyConnection:
        if write:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        elif not self._path.exists():
            raise Missing("there is no warehouse here yet", str(self), "make it with: traceroom run LOGS --out DIR")
        return duckdb.connect(config={"checkpoint_threshold": _CHECKPOINT, "temp_directory": f"{self._path}.tmp"})

    def _use(self, connection: duckdb.DuckDBPyConnection, write: bool) -> None:
        options = f"row_group_size {_ROW_GROUP}" if write else "read_only"
        if write and not self._path.exists():   # whole or not there: a run may be killed while DuckDB writes the first bytes
            draft = self._path.with_name(f"{self._path.name}.new")
            draft.unlink(missing_ok=True)
            connection.execute(f"attach {_quoted(str(draft))} as draft ({options}); detach draft")
            draft.replace(self._path)
        connection.execute(f"attach {_quoted(str(self._path))} as {_NAME} ({options})")
        connection.execute(f"use {_NAME}")

    def _refusal(self, message: str, write: bool) -> StoreError:
        if "set lock on file" in message:
            return StoreError(f"another program has it open ({message})", str(self), "close it and run again")
        if not self._path.parent.is_dir():
            return StoreError("the folder was moved, removed or replaced", str(self),
                              "put it back, then run again: what was committed stays in it")
        if any(words in message for words in _NO_ACCESS):
            return StoreError(f"it cannot be opened ({message})", str(self), ACCESS_HINT)
        return NotAWarehouse(f"DuckDB cannot open it ({message})", str(self), "move the file away, or choose another --out")

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(schema_text())
        connection.execute(comments_text())

    def insert_new(self, table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
        names = ", ".join(columns)
        return f"insert or ignore into {table} ({names}) select {names} from incoming"

    def require_room(self, n_bytes: int) -> None:
        """DuckDB aborts the whole process if the disk is full while it commits rows in the place of others with their keys."""
        try:
            with tempfile.TemporaryFile(dir=self._path.parent) as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, n_bytes)
        except OSError as error:
            if error.errno not in _NO_ANSWER:
                raise StoreError(error.strerror or str(error), str(self), ROOM_HINT if error.errno in _FULL else ACCESS_HINT
                                 ) from error

    def publish(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("checkpoint")
        target = published_path(self._path)
        draft = _draft(target)
        for leftover in _drafts(target):
            leftover.unlink()   # of a killed process
        try:
            shutil.copyfile(self._path, draft)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    def compact(self) -> None:
        draft = _draft(self._path)
        made = DuckDBFile(draft)
        for leftover in self._path.parent.glob(f"{self._path.stem}*.draft*"):
            leftover.unlink()   # of a killed process
        try:
            connection = made.connect(write=True)
            try:
                connection.execute("begin")   # one commit instead of one for each of some hundred statements
                made.create(connection)
                connection.execute("commit")
                connection.execute(f"attach {_quoted(str(self._path))} as former (read_only)")
                for table in layout().columns:
                    connection.execute(f"insert into {table} select * from former.{table}")
                connection.execute("detach former; checkpoint")
            finally:
                made.close(connection)
            draft.replace(self._path)
            self._log.unlink(missing_ok=True)
        finally:
            draft.unlink(missing_ok=True)

    def published(self) -> Catalog:
        return DuckDBFile(published_path(self._path))


@dataclass(frozen=True)
class DuckLake(Catalog):
    """A lake, as of now or as of what is published."""

    url: str
    """As it was given."""
    catalog: str
    """DuckLake's own name of it: `postgres:postgres://…`, or a path."""
    data: str
    """Bucket or folder of the Parquet files."""
    path: Path
    """Prefix of temporary files."""
    of_readers: bool = False

    @classmethod
    def named(cls, url: str, path: Path) -> DuckLake:
        """Parse the URL of a lake. Raises InputError."""
        if not url.startswith(_SCHEME):
            raise InputError("this is no URL of a lake", url, _EXAMPLE)
        parts = urlsplit(url.removeprefix(_SCHEME))
        if parts.password:
            raise InputError("a password stands in the URL", url.replace(parts.password, "…"),
                             "take it out, and set PGPASSWORD or write ~/.pgpass")
        options = dict(parse_qsl(parts.query))
        data = options.pop("data", "")
        if not data or not (parts.path or parts.netloc):
            raise InputError("the URL does not say where the rows lie", url, _EXAMPLE)
        is_postgres = parts.scheme in ("postgres", "postgresql")
        catalog = parts._replace(query=urlencode(options)).geturl()
        return cls(url, f"postgres:{catalog}" if is_postgres else parts.path, data, path)

    def __str__(self) -> str:
        return self.url

    @property
    def has_many_writers(self) -> bool:   # type: ignore[override]
        """PostgreSQL has; a file of DuckDB has one at a time."""
        return self.catalog.startswith("postgres:")

    def is_there(self) -> bool:
        try:
            self.close(self.connect(write=False))
        except (StoreError, Missing):
            return False
        return True

    def is_published(self) -> bool:
        try:
            connection = self.connect(write=False)
            try:
                published, now = _published(connection), _newest(connection)
            finally:
                self.close(connection)
        except (StoreError, Missing, duckdb.Error):
            return False
        return published is not None and now == published + 1   # publishing is a snapshot too

    def _database(self, write: bool) -> duckdb.DuckDBPyConnection:
        remote = "://" in self.data
        extensions = ("ducklake", *(["postgres_scanner"] if self.has_many_writers else []), *(["httpfs"] if remote else []))
        return _database(os.getpid(), self.path, extensions, _secret() if remote else "").cursor()

    def _use(self, connection: duckdb.DuckDBPyConnection, write: bool) -> None:
        """Attach the lake, for readers at the published snapshot; to write, make its catalog where it has none, which others
        may be doing at the same time."""
        if not write:
            self._attach(connection, "read_only, create_if_not_exists false")
            if self.of_readers:
                published = _published(connection)
                if published is None:
                    raise Missing("nothing is published here yet", self.url, "run to the end: traceroom run LOGS")
                _detach(connection)
                self._attach(connection, f"read_only, create_if_not_exists false, snapshot_version {published}")
            return
        if "://" not in self.data:
            Path(self.data).mkdir(parents=True, exist_ok=True)
        for number in range(1, _BEGINNINGS + 1):
            try:
                self._attach(connection, f"data_path {_quoted(self.data)}")
                return
            except duckdb.Error as error:
                if _UNFINISHED not in str(error) or number == _BEGINNINGS:
                    raise
            time.sleep(0.1 * number)

    def _refusal(self, message: str, write: bool) -> StoreError | Missing:
        if not write and ("does not exist" in message or "Catalog Error" in message):
            return Missing("there is no warehouse here yet", self.url, "make it with: traceroom run LOGS --warehouse URL")
        return StoreError(f"the lake cannot be opened ({message})", self.url, "see that its database and its bucket answer")

    def close(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Detach the lake; the extensions stay for the next one."""
        with contextlib.suppress(duckdb.Error):
            _detach(connection)
        connection.close()

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the same tables without keys (a lake has none) and without compression settings (Parquet has its own)."""
        tables = _tables()
        for schema in dict.fromkeys(name.partition(".")[0] for name in tables):
            connection.execute(f"create schema if not exists {schema}")
        for name, columns in tables.items():
            connection.execute(f"create table if not exists {name} ({columns})")
        for name, query in layout().views.items():
            connection.execute(f"create or replace view {name} as {query}")

    def insert_new(self, table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
        """Read which keys are there; of equal incoming rows, take one."""
        names, keys = ", ".join(columns), ", ".join(key)
        return (f"insert into {table} ({names}) select {names} from incoming "
                f"where ({keys}) not in (select ({keys}) from {table}) "
                f"qualify row_number() over (partition by {keys}) = 1")

    def publish(self, connection: duckdb.DuckDBPyConnection) -> None:
        now = _newest(connection)
        connection.execute("begin")
        connection.execute("delete from raw.published")
        connection.execute("insert into raw.published values (?)", [now])
        connection.execute("commit")

    def compact(self) -> None:
        """Rewrite every table, and publish; then drop all earlier snapshots with their files and statistics."""
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
            lake, last = _quoted(_name(connection)), _published(connection)
            snapshots = connection.execute(f"select snapshot_id from ducklake_snapshots({lake}) where snapshot_id < {last}")
            if versions := [str(version) for version, in snapshots.fetchall()]:
                connection.execute(f"call ducklake_expire_snapshots({lake}, versions => [{', '.join(versions)}])")
            connection.execute(f"call ducklake_cleanup_old_files({lake}, cleanup_all => true)")
            connection.execute(f"call ducklake_delete_orphaned_files({lake}, cleanup_all => true)")
        finally:
            self.close(connection)
        if not self.has_many_writers:
            path = Path(self.catalog)
            draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
            draft.unlink(missing_ok=True)
            with duckdb.connect() as connection:
                connection.execute(f"attach {_quoted(str(path))} as former; attach {_quoted(str(draft))} as fresh")
                connection.execute("copy from database former to fresh; checkpoint fresh; detach fresh; detach former")
            draft.replace(path)

    def published(self) -> Catalog:
        return replace(self, of_readers=True)

    def _attach(self, connection: duckdb.DuckDBPyConnection, options: str) -> None:
        name = f"{_NAME}_{next(_NUMBERS)}"
        connection.execute(f"attach {_quoted(_SCHEME + self.catalog)} as {name} ({options})")
        connection.execute(f"use {name}")


@cache
def _database(process: int, path: Path, extensions: tuple[str, ...], secret: str) -> duckdb.DuckDBPyConnection:
    """Load the extensions, which takes seconds, once in each process; after a fork, again."""
    connection = duckdb.connect(config={"temp_directory": f"{path}.tmp"})
    for extension in extensions:
        try:
            folder = files(f"duckdb_extension_{extension}").joinpath("extensions", f"v{duckdb.__version__}")
            connection.execute(f"load {_quoted(str(folder.joinpath(f'{extension}.duckdb_extension')))}")
        except (ModuleNotFoundError, duckdb.IOException):
            try:
                connection.execute(f"install {extension}; load {extension}")
            except duckdb.Error as error:
                raise Unavailable(
                    f"DuckDB's extension {extension!r} is not installed", hint="pip install 'traceroom[ducklake]'") from error
    if secret:
        connection.execute(secret)
    connection.execute(f"set global ducklake_max_retry_count = {_TRIES}")
    return connection


def _tables() -> dict[str, str]:
    """Table -> its columns, as in its `create table`."""
    columns = {
        name: ", ".join(f"{column.name} {column.kind}{'' if column.is_nullable else ' not null'}" for column in columns)
        for name, columns in layout().columns.items()}
    return {**columns, "raw.published": "snapshot_id bigint not null"}


def _detach(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(f"use memory; detach {_name(connection)}")


def _name(connection: duckdb.DuckDBPyConnection) -> str:
    row = connection.execute("select current_database()").fetchone()
    return str(row[0]) if row else ""


def _published(connection: duckdb.DuckDBPyConnection) -> int | None:
    row = connection.execute("select snapshot_id from raw.published").fetchone()
    return int(row[0]) if row else None


def _newest(connection: duckdb.DuckDBPyConnection) -> int:
    now = connection.execute(f"select id from ducklake_current_snapshot({_quoted(_name(connection))})").fetchone()
    assert now is not None, "a lake has a snapshot from its beginning"
    return int(now[0])


def _secret() -> str:
    """Write a statement with the keys of buckets, from the environment."""
    variables = os.environ
    parts = {"type": "s3", "key_id": variables.get("AWS_ACCESS_KEY_ID"), "secret": variables.get("AWS_SECRET_ACCESS_KEY"),
             "session_token": variables.get("AWS_SESSION_TOKEN"),
             "region": variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION")}
    if url := variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL"):
        endpoint = urlsplit(url)
        parts |= {"endpoint": endpoint.netloc, "url_style": "path", "use_ssl": str(endpoint.scheme == "https").lower()}
    return f"create secret ({', '.join(f'{name} {_quoted(value)}' for name, value in parts.items() if value)})"
