"""What the tables of a warehouse are: the schema's text, and the columns and keys that it gives them."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import duckdb

SCHEMA_VERSION = 3
LEDGER = ("raw.epochs", "raw.sides", "raw.word_groups", "raw.work_sides", "raw.programs")
"""Tables of what was decided when logs arrived: not even the logs give them again."""
KEPT = ("raw.files", "raw.locations", "raw.records", "raw.quarantine", "raw.declarations", "raw.forgotten", "raw.privacy",
        "raw.people", "raw.new_people", "core.events", *LEDGER)
"""Tables of what was read, and of what is not read again: they cannot be computed again without the logs."""
RENAMED_TABLES = {"raw.places": "raw.locations", "mart.verdicts": "mart.decisions"}
RENAMED_COLUMNS = (("raw.files", "piece", "chunk"), ("raw.records", "left_as", "reject_reason"))
"""What tables of version 2 that are kept were called: (table by its new name, old column, new column)."""
RECOMPUTED = ("raw.stages", "raw.partitions", "raw.audits", "raw.cache")
"""What records that a stage is computed already: emptied by a migration."""
DROPPED = ("raw.parts", "raw.kept")
"""Tables of version 2 whose content is computed again."""
_WITHOUT_INDEX = {"raw.records": ("record_id", "file_id", "byte_offset"), "core.events": ("event_id", "file_id"),
                  "raw.quarantine": ("file_id", "line")}
"""Keys of the tables that are too big for an index."""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: str
    """Its SQL type."""
    is_nullable: bool


class Layout(NamedTuple):
    """Columns and primary key of each table, and the views, as the schema makes them."""

    columns: dict[str, tuple[Column, ...]]
    keys: dict[str, tuple[str, ...]]
    views: dict[str, str]
    """Name -> the query behind it."""

    def names(self, table: str) -> tuple[str, ...]:
        """Names of a table's columns, in order."""
        return tuple(column.name for column in self.columns[table])


@cache
def schema_text() -> str:
    """Return the SQL that makes an empty warehouse in a DuckDB file."""
    return files("warehouse").joinpath("schema.sql").read_text("utf-8")


@cache
def comments_text() -> str:
    """Return the SQL that says what its tables and columns hold."""
    return files("warehouse").joinpath("comments.sql").read_text("utf-8")


@cache
def comments() -> dict[str, str]:
    """Return what each table (`core.turns`) and each of its columns (`core.turns.tool`) holds."""
    lines = re.findall(r"^comment on (?:table|column) (\S+) is '(.*)';$", comments_text(), re.M)
    return {name: text.replace("''", "'") for name, text in lines}


@cache
def layout() -> Layout:
    """Return the tables of today's schema."""
    with duckdb.connect() as connection:
        connection.execute(schema_text())
        keys = connection.execute(
            "select schema_name || '.' || table_name, constraint_column_names from duckdb_constraints() "
            "where constraint_type = 'PRIMARY KEY'").fetchall()
        views = connection.execute(
            "select schema_name || '.' || view_name, sql from duckdb_views() where not internal").fetchall()
        return Layout(
            columns_of(connection), {**_WITHOUT_INDEX, **{name: tuple(columns) for name, columns in keys}},
            {name: sql.partition(" AS ")[2].rstrip("; \n") for name, sql in views})


def columns_of(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[Column, ...]]:
    """Return the tables of the database in use."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select schema_name || '.' || table_name, column_name, data_type, is_nullable "
        "from duckdb_columns() join duckdb_tables() using (database_name, schema_name, table_name) "
        "where not duckdb_tables.internal and database_name = current_database() order by 1, column_index").fetchall()
    columns: dict[str, tuple[Column, ...]] = {}
    for table, *column in rows:
        columns[table] = (*columns.get(table, ()), Column(*column))
    return columns


def stricter(columns: dict[str, tuple[Column, ...]]) -> list[str]:
    """Return the tables in which a column may not be null that may be null today."""
    nullable = {(table, column.name) for table, own in layout().columns.items() for column in own if column.is_nullable}
    return [table for table, own in columns.items() if any(
        not column.is_nullable and (table, column.name) in nullable for column in own)]


def fingerprint() -> str:
    """Digest of the schema's text, with its comments."""
    return hashlib.sha256((schema_text() + comments_text()).encode()).hexdigest()
