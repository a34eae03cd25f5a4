"""Databases and warehouses in the cloud: one query, page by page in the order of a watermark column, through any ADBC driver.

In: a query, and the name of a column of it that grows (an instant or a number). Out: its rows as JSON records (`sql_rows`). A
page begins at the watermark of the last row before it, inclusive, without the rows of that watermark that were delivered: rows
with equal watermarks are neither lost nor doubled, wherever a page ends. Where the watermark is an instant, windows are those
of every source; where it is not, the next pull goes on after the last row of the one before. Rows without a watermark are
counted and reported. DuckDB is one of the drivers: its extensions reach databases of their own. Does not see: rows that are
equal in all columns (they are one record); rows that come later with a smaller number; deleted rows.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from extractors.sources.faults import client
from extractors.sources.platform import (
    Account,
    Cursor,
    Identity,
    Platform,
    Query,
    RecordStream,
    SourcePage,
    SourceRecord,
)
from warehouse.errors import InputError, RetryableFault, TraceroomError

if TYPE_CHECKING:
    import pyarrow as pa

PASSWORD = "TRACEROOM_SQL_PASSWORD"
_DRIVERS = {
    "postgresql": "adbc_driver_postgresql", "postgres": "adbc_driver_postgresql", "sqlite": "adbc_driver_sqlite",
    "snowflake": "adbc_driver_snowflake", "bigquery": "adbc_driver_bigquery", "duckdb": "adbc_driver_duckdb",
    "grpc": "adbc_driver_flightsql", "grpc+tls": "adbc_driver_flightsql"}
"""Scheme of an address -> package of its driver."""
_EXTRAS = {"adbc_driver_snowflake": "snowflake", "adbc_driver_bigquery": "bigquery"}
_DOLLAR = ("adbc_driver_postgresql",)
"""Drivers whose parameters are `$1`, not `?`."""
_PASSES = ("IO", "TIMEOUT", "CANCELLED")
"""Codes of faults that may pass."""
_WRONG = ("authentication", "password", "does not exist", "no such file", "unable to open")
"""What a fault says that does not, whatever its code."""
_LONGEST = 200


class SqlConnection:
    """A query of a database."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._where = f"source {account.source!r} at {account.url}"
        self._query, self._watermark = (self._option(name).strip().rstrip(";") for name in ("query", "watermark"))
        self._json = frozenset(each.strip() for each in account.options.get("json", "").split(",") if each.strip())
        self._adbc: Any = client("adbc_driver_manager.dbapi", "ADBC", "sql")
        self._driver, self._entrypoint = self._find_driver()
        self._connection: Any = None
        self._field: pa.Field | None = None
        group = account.options.get("group")
        self.streams = (RecordStream("rows", partial(_identify, self._watermark, group)),)

    def describe(self) -> str:
        """Return the number of columns, the watermark with its type, and the number of rows without one."""
        field, n_null = self._watermark_field(), self._n_without_watermark()
        return f"watermark {field.name} of type {field.type}{f', {n_null:,} rows without one' if n_null else ''}"

    def fetch(self, query: Query) -> SourcePage:
        """Return the rows after a position, at most a page of new ones."""
        position = query.cursor or (None if self._is_instant() else query.previous)
        passed = Counter[str]((position or {}).get("rows", ()))
        limit = query.page_size + passed.total()
        table = self._page(query, position, limit)
        from extractors.sources.sql_rows import digest_of, rows_of  # loads pyarrow

        records, delivered, waiting = [], dict[Any, Counter[str]](), passed.copy()
        if position is not None:   # the database may give other rows of its watermark this time
            delivered[position["value"]] = passed.copy()
        marks = self._marks(table)
        for mark, record in zip(marks, rows_of(table, self._json), strict=True):
            digest = digest_of(record)
            if position is not None and mark == position["value"] and waiting[digest]:
                waiting[digest] -= 1
            else:
                records.append(record)
                delivered.setdefault(mark, Counter())[digest] += 1
        last = marks[-1] if marks else None
        cursor: Cursor | None = position if last is None else {"value": last, "rows": sorted(delivered[last].elements())}
        return SourcePage(records, cursor, len(marks) < limit, self._notes(query))

    def _notes(self, query: Query) -> tuple[str, ...]:
        if query.cursor is not None or not (n_null := self._n_without_watermark()):
            return ()
        return (f"{n_null:,} rows have no {self._watermark} and are not pulled; give them one in the query",)

    def _page(self, query: Query, position: Cursor | None, limit: int) -> pa.Table:
        """Return rows in the order of the watermark: from the position, else from the beginning of the window."""
        conditions, values = [f"{self._watermark} is not null"], []
        lower = self._scalar(position["value"]) if position else self._bound(query.since)
        for sign, bound in ((">=", lower), ("<", self._bound(query.until))):
            if bound is not None:
                values.append(bound)
                conditions.append(f"{self._watermark} {sign} {self._parameter(len(values))}")
        return self._executed(
            f"select * from ({self._query}\n) as pulled where {' and '.join(conditions)} order by {self._watermark} "
            f"limit {limit}", values)

    def _n_without_watermark(self) -> int:
        counted = self._executed(f"select count(*) as n from ({self._query}\n) as pulled where {self._watermark} is null", [])
        return int(counted.column(0)[0].as_py())

    def _parameter(self, number: int) -> str:
        return f"${number}" if self._driver[0] in _DOLLAR else "?"

    def _watermark_field(self) -> pa.Field:
        """Return the column of the watermark. Raises InputError."""
        if self._field is None:
            schema = self._executed(f"select * from ({self._query}\n) as pulled limit 0", []).schema
            name = self._watermark.strip('"`').casefold()
            fields = [field for field in schema if field.name.casefold() == name]
            if not fields:
                raise InputError(f"the query has no column {self._watermark} (it has {', '.join(schema.names)})", self._where,
                                 "select it, and name it as watermark")
            self._field = fields[0]
        return self._field

    def _is_instant(self) -> bool:
        import pyarrow as pa

        return bool(pa.types.is_timestamp(self._watermark_field().type) or pa.types.is_date(self._watermark_field().type))

    def _bound(self, instant: datetime | None) -> pa.Scalar | None:
        """Return an end of the window as a value of the watermark's type; None where that is not an instant."""
        import pyarrow as pa

        if instant is None or not self._is_instant():
            return None
        kind = self._watermark_field().type
        naive = pa.scalar(instant.astimezone(UTC).replace(tzinfo=None), pa.timestamp("us"))
        return naive.cast(kind, safe=False)

    def _marks(self, table: pa.Table) -> list[Any]:
        """Return the watermark of each row as a JSON value that keeps all of it."""
        import pyarrow as pa

        column = table.column(self._watermark_field().name)
        if self._is_instant():
            column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
        elif not any(is_kind(column.type) for is_kind in (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)):
            raise InputError(f"the watermark {self._watermark} is of type {column.type}", self._where,
                             "cast it to an instant, a whole number or a text in the query")
        marks: list[Any] = column.to_pylist()
        return marks

    def _scalar(self, mark: Any) -> pa.Scalar:
        import pyarrow as pa

        kind = self._watermark_field().type
        if self._is_instant():
            return pa.scalar(mark, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
        return pa.scalar(mark, kind)

    def _executed(self, statement: str, values: list[pa.Scalar]) -> pa.Table:
        import pyarrow as pa

        with self._translated():
            if self._connection is None:
                self._connection = self._opened()
            with self._connection.cursor() as cursor:
                parameters = pa.record_batch(
                    [pa.array([value.as_py()], value.type) for value in values], [str(n) for n in range(len(values))])
                cursor.execute(statement, parameters=parameters if values else None)
                table: pa.Table = cursor.fetch_arrow_table()
                return table

    def _opened(self) -> Any:
        secret, options = self._account.secrets.get(PASSWORD, ""), self._account.options
        given = _loaded(options.get("driver_options", "{}"), self._where)
        settings = {name: value.replace("{password}", secret) for name, value in given.items()}
        connection = self._adbc.connect(
            driver=self._driver[1], entrypoint=self._entrypoint, db_kwargs={**self._address(secret), **settings},
            autocommit=True)
        with connection.cursor() as cursor:
            for name in options.get("extensions", "").split(","):
                if name.strip():
                    cursor.execute(_loading(name.strip(), connection.adbc_get_info()["vendor_version"]))
            for statement in options.get("setup", "").split(";"):
                if statement.strip():
                    cursor.execute(statement.replace("{password}", secret.replace("'", "''")))
        return connection

    def _address(self, secret: str) -> dict[str, str]:
        """Return the address as the driver takes it, with the password where it belongs."""
        scheme, _, rest = self._account.url.partition("://")
        if self._driver[0] == "adbc_driver_sqlite":
            return {"uri": rest}
        if self._driver[0] == "adbc_driver_duckdb":
            return {"path": rest or ":memory:"}
        user, at, place = rest.rpartition("@")
        if secret and at and ":" not in user:
            return {"uri": f"{scheme}://{user}:{quote(secret, safe='')}@{place}"}
        return {"uri": self._account.url}

    def _find_driver(self) -> tuple[tuple[str, str], str | None]:
        """Return package and library of the driver, and the library's entry point. Raises InputError, Unavailable."""
        scheme = self._account.url.partition("://")[0]
        package = self._account.options.get("driver") or _DRIVERS.get(scheme)
        if package is None:
            raise InputError(f"no driver is known for {scheme}://", self._where,
                             "name one: --option driver=adbc_driver_NAME, or the path of a driver's library")
        if "/" in package or not package.startswith("adbc_driver_"):   # a library, or a name that ADBC's manager finds
            return ("", package), self._account.options.get("entrypoint")
        module = client(package, f"{scheme} (package {package.replace('_', '-')})", _EXTRAS.get(package, "sql"))
        path = (getattr(module, "_driver_path", None) or module.driver_path)()
        return (package, path), "duckdb_adbc_init" if package == "adbc_driver_duckdb" else None

    def _option(self, name: str) -> str:
        if not (value := self._account.options.get(name, "")):
            raise InputError(f"SQL needs a {name} ({PLATFORM.options[name]})", f"source {self._account.source!r}",
                             f"set {name} in [sources.pull.options]")
        return value

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the driver's errors into ours; the next request opens a connection of its own."""
        try:
            yield
        except TraceroomError:
            raise
        except self._adbc.Error as error:
            self._connection = None
            text = self._account.redact(" ".join(str(error).split()))
            message = text[:_LONGEST].rstrip(". ")
            code = getattr(getattr(error, "status_code", None), "name", "")
            if code in _PASSES and not any(word in text.casefold() for word in _WRONG):
                raise RetryableFault(f"the database does not answer ({message})", self._where,
                                     "run the command again later: it continues") from None
            raise InputError(f"the database rejects the request ({message})", self._where,
                             "check the address, the password and the query") from None


def _loading(name: str, version: str) -> str:
    """Return the statement that loads an extension of DuckDB: from its package where that is installed, else from its site."""
    try:
        path = files(f"duckdb_extension_{name}").joinpath("extensions", version, f"{name}.duckdb_extension")
    except ModuleNotFoundError:
        return f"install {name}; load {name}"
    return f"load '{path}'"


def _identify(watermark: str, group: str | None, record: SourceRecord) -> Identity:
    from extractors.sources.sql_rows import digest_of

    digest = digest_of(record)
    columns = {name.casefold(): value for name, value in record.items()}
    grouped = columns.get(group.casefold()) if group else None
    happened_at = _instant(columns.get(watermark.strip('"`').casefold()))
    return Identity(digest, digest if grouped is None else str(grouped), happened_at)


def _instant(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _loaded(text: str, where: str) -> dict[str, str]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise InputError("driver_options is not a JSON object of texts", where, "write it as {\"name\": \"value\"}")
    return value


PLATFORM = Platform(
    name="sql", title="SQL", connect=SqlConnection,
    credentials={PASSWORD: "password, which goes into the address after the user, or where an option has {password}"},
    optional=frozenset({PASSWORD}),
    options={
        "query": "a select statement", "watermark": "column of the query that grows: an instant or a whole number",
        "group": "column whose rows belong together, such as the session's id",
        "json": "columns that hold JSON text, separated by commas, where the database does not tell",
        "driver": "package, name or library of the ADBC driver, if the address does not tell",
        "entrypoint": "function of that library", "driver_options": "settings of the driver, a JSON object",
        "setup": "statements that are executed first, with ; between",
        "extensions": "extensions of DuckDB, separated by commas, such as postgres_scanner"})
