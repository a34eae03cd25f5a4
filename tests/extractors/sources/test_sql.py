"""SQL sources: pages by a watermark, on SQLite, DuckDB and a real PostgreSQL, and what the rows become."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from extractors.sources import Account, Query, named
from extractors.sources.sql import PASSWORD, PLATFORM, SqlConnection
from extractors.sources.sql_rows import rows_of
from tests.postgres import Postgres
from warehouse.errors import InputError, Unavailable

END = datetime(2026, 12, 1, tzinfo=UTC)
DAY = datetime(2026, 3, 2, tzinfo=UTC)


def account(url: str, query: str = "select * from calls", watermark: str = "id", secret: str = "", **options: str) -> Account:
    return Account("shop", url, options={"query": query, "watermark": watermark, **options}, secrets={PASSWORD: secret})


def pulled(connection: SqlConnection, page_size: int, query: Query | None = None) -> tuple[list[dict[str, Any]], Query]:
    """Return the rows of all pages, each by the cursor of the one before alone, and the query of the next window."""
    query = query or Query("rows", None, END, page_size)
    records: list[dict[str, Any]] = []
    while True:
        page = connection.fetch(query)
        assert len(page.records) <= page_size
        records += page.records
        if page.is_last:
            return records, replace(query, cursor=None, previous=page.cursor)
        assert page.records, "each page brings rows"
        query = replace(query, cursor=page.cursor)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table calls (id integer, tool text)")
        connection.executemany("insert into calls values (?, ?)", [(number // 7, f"t{number % 5}") for number in range(60)])
        connection.execute("insert into calls values (null, 'x'), (null, 'y')")
    return path


@pytest.mark.parametrize("page_size", [1, 2, 3, 7, 100])
def test_rows_with_equal_watermarks_are_pulled_once_wherever_a_page_ends(database: Path, page_size: int) -> None:
    connection = SqlConnection(account(f"sqlite://{database}"))
    rows, following = pulled(connection, page_size)
    assert Counter((row["id"], row["tool"]) for row in rows) == Counter((n // 7, f"t{n % 5}") for n in range(60))
    with closing(sqlite3.connect(database)) as writer, writer:
        writer.execute("insert into calls values (8, 'late'), (9, 'new')")
    rows, following = pulled(connection, page_size, following)
    assert [row["tool"] for row in rows] == ["late", "new"], "also one at the watermark that was the last"
    assert pulled(connection, page_size, following)[0] == []


def test_rows_without_a_watermark_are_reported(database: Path) -> None:
    connection = SqlConnection(account(f"sqlite://{database}"))
    page = connection.fetch(Query("rows", None, END, 5))
    assert page.notes == ("2 rows have no id and are not pulled; give them one in the query",)
    assert connection.fetch(Query("rows", None, END, 5, page.cursor)).notes == (), "once for each pull"
    assert connection.describe() == "watermark id of type int64, 2 rows without one"


def test_a_table_whose_order_is_not_that_of_the_pages_before_gives_each_row_once(database: Path) -> None:
    """The database may give rows of one watermark in another order each time: here, in a random one."""
    connection = SqlConnection(account(f"sqlite://{database}", "select 1 as id, tool from calls order by random()"))
    with closing(sqlite3.connect(database)) as writer, writer:
        writer.execute("delete from calls")
        writer.executemany("insert into calls values (1, ?)", [(f"t{number}",) for number in range(40)])
    rows, _ = pulled(connection, 3)
    assert sorted(row["tool"] for row in rows) == sorted(f"t{number}" for number in range(40))


@pytest.mark.xdist_group("postgres")
def test_duckdb_reads_what_its_extensions_reach(postgres: Postgres) -> None:
    url = postgres.database()
    postgres.run("psql", "--dbname", url.rpartition("/")[2], "--command",
                 "create table calls as select n / 7 as id, 't' || n as tool from generate_series(0, 29) as t (n)")
    connection = SqlConnection(account(
        "duckdb://", "select * from shop.calls", secret=postgres.password, group="tool", extensions="postgres_scanner",
        setup=f"attach '{url.replace(postgres.password, '{password}')}' as shop (type postgres)"))
    rows, _ = pulled(connection, 4)
    assert sorted(row["tool"] for row in rows) == sorted(f"t{number}" for number in range(30))
    assert connection.streams[0].identify(rows[0]).group == rows[0]["tool"]


@pytest.mark.xdist_group("postgres")
def test_types_of_postgresql_are_kept(postgres: Postgres) -> None:
    url = postgres.database()
    connection = SqlConnection(account(url.replace(f":{postgres.password}@", "@"), """
        select 1 as id, timestamptz '2026-03-02 10:00:00.25+02' as at, timestamp '2026-03-02 10:00' as naive,
            date '2026-03-02' as day, 12.50::numeric as price, 12345678901234567.89::numeric as large,
            0.1::numeric as tenth, 7::numeric as whole, '{"a": [1, null]}'::jsonb as doc, '[2]'::json as list,
            '\\x00ff'::bytea as raw, array['x', null] as names,
            'NaN'::float8 as nan, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid as key, null::text as nothing, true as yes;""",
        secret=postgres.password))
    [row], _ = pulled(connection, 5)
    assert row == {
        "id": 1, "at": "2026-03-02T08:00:00.250000Z", "naive": "2026-03-02T10:00:00.000000", "day": "2026-03-02",
        "price": 12.5,
        "large": "12345678901234567.89", "tenth": 0.1, "whole": 7, "doc": {"a": [1, None]}, "list": [2], "raw": "AP8=",
        "names": ["x", None], "nan": "nan", "key": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "nothing": None, "yes": True}


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("kind", ["timestamptz", "timestamp", "date"])
def test_a_window_of_instants_begins_inclusive_and_ends_exclusive(postgres: Postgres, kind: str) -> None:
    connection = SqlConnection(account(
        postgres.database(),
        f"select at::{kind} as at, n from (values (timestamptz '2026-03-01 00:00Z', 1), "
        "('2026-03-02 00:00Z', 2), ('2026-03-02 00:00Z', 3), ('2026-03-03 00:00Z', 4)) as t (at, n)", "at",
        setup="set timezone to 'UTC'"))
    rows, following = pulled(connection, 1, Query("rows", DAY, DAY.replace(day=3), 1))
    assert [row["n"] for row in rows] == [2, 3] or [row["n"] for row in rows] == [3, 2]
    rows, _ = pulled(connection, 10, replace(following, since=DAY.replace(day=3), until=END))
    assert [row["n"] for row in rows] == [4]
    assert connection.streams[0].identify(rows[0]).happened_at == DAY.replace(day=3)


@pytest.mark.parametrize(("columns", "expected"), [
    (pa.array(["[1]", "{"]), [[1], "{"]), (pa.array([None, 'null']), [None, None])])
def test_json_is_read_where_metadata_or_a_name_says_so(columns: pa.Array, expected: list[Any]) -> None:
    for metadata, name in (({"logicalType": "VARIANT"}, ""), ({"Type": "JSON"}, ""), (None, "A")):
        table = pa.table([columns], schema=pa.schema([pa.field("a", pa.string(), metadata=metadata)]))
        assert [row["a"] for row in rows_of(table, [name])] == expected
    assert [row["a"] for row in rows_of(pa.table({"a": columns}))] == columns.to_pylist()


@pytest.mark.parametrize(("changed", "words"), [
    ({"query": "select nope from calls"}, "rejects the request"), ({"watermark": "gone"}, "rejects the request|no column gone"),
    ({"watermark": "price"}, "is of type double"), ({"driver_options": "[]"}, "driver_options is not"),
    ({"query": ""}, "SQL needs a query")])
def test_what_is_wrong_is_one_sentence(database: Path, changed: dict[str, str], words: str) -> None:
    given = account(f"sqlite://{database}", "select id, 1.5 as price from calls")
    with pytest.raises(InputError, match=words):
        SqlConnection(replace(given, options={**given.options, **changed})).fetch(Query("rows", None, END, 5))
    assert named("sql") is PLATFORM


def test_a_driver_that_is_missing_says_what_to_install() -> None:
    with pytest.raises(Unavailable, match=r'pip install "traceroom\[snowflake\]"'):
        SqlConnection(account("snowflake://user@account/db"))
    with pytest.raises(InputError, match="no driver is known for oracle://"):
        SqlConnection(account("oracle://x"))


@pytest.mark.xdist_group("postgres")
def test_no_password_reaches_a_message(postgres: Postgres) -> None:
    secret = "wr0ng-5ecret"
    url = postgres.url().replace(f":{postgres.password}@", "@")
    with pytest.raises(InputError, match="authentication failed") as caught:
        SqlConnection(account(url, secret=secret)).describe()
    assert secret not in str(caught.value)
