"""Tables of a database as in-house tools see them: columns, types, keys; rows on a desk.

In: the description of the tables (`tables` of inhouse.json) and a desk. Out: rows by key, and values as a column stores them.
Types are affinities: `text`, `integer`, `real`, `numeric`, `any`. A number without a fraction becomes an integer in an integer
or numeric column and a float in a real one, as databases do; a value of another kind is `Undecided`: some databases convert
it, some refuse it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..company import CompanyDesk, Undecided

UNSURE = "db_unsure"
"""Class of the records that say of a table what an episode may have changed: `rows` (some may be new), `columns` of any row."""
ROW = "db"
"""Class of the records that are rows; id `<table>/<key>`."""
Tables = Mapping[str, Mapping[str, Any]]
"""Table -> {"types": {column: affinity}, "key": [column, …]}; columns in the table's order."""


def row_id(table: str, key: str) -> str:
    """Return the id of a row's record."""
    return f"{table}/{key}"


def key_of(identifier: str) -> str:
    """Return the key of a row from its record's id."""
    return identifier.partition("/")[2]


def key_value(tables: Tables, table: str, key: str) -> Any:
    """Return a key as the value of a table's one key column."""
    return int(key) if tables[table]["types"].get(tables[table]["key"][0]) == "integer" and key.isdigit() else key


def row_of(desk: CompanyDesk, tables: Tables, table: str, key: str) -> dict[str, Any]:
    """Return a row's columns that are known. A column that the episode may have changed is left out."""
    identifier, row = row_id(table, key), {}
    unsure = desk.value(UNSURE, table, "columns", ()) if desk.exists(UNSURE, table) else ()
    for column in tables[table]["types"]:
        if column in unsure:
            continue
        try:
            row[column] = desk.value(ROW, identifier, column)
        except Undecided:
            continue
    return row


def keys(desk: CompanyDesk, table: str) -> Iterator[str]:
    """Return the keys of a table's rows, oldest first. Errors: Undecided."""
    _check_rows(desk, table)
    start = table + "/"
    return (key_of(identifier) for identifier in desk.ids(ROW) if identifier.startswith(start))


def matching(desk: CompanyDesk, table: str, column: str, value: Any) -> list[str]:
    """Return the keys of the rows that have a value in a column, oldest first. Errors: Undecided."""
    _check_rows(desk, table, column)
    start = table + "/"
    return [key_of(identifier) for identifier in desk.where(ROW, column, value) if identifier.startswith(start)]


def referring(desk: CompanyDesk, tables: Tables, table: str, reference: str, key: str) -> list[str]:
    """Return the keys of the rows of a table whose column `reference` names a key, oldest first. Errors: Undecided."""
    is_number = tables[table]["types"].get(reference) == "integer" and key.isdigit()
    return matching(desk, table, reference, int(key) if is_number else key)


def value_of(desk: CompanyDesk, table: str, key: str, column: str) -> Any:
    """Return a column of a row. Errors: Undecided."""
    if desk.exists(UNSURE, table) and column in desk.value(UNSURE, table, "columns", ()):
        raise Undecided(f"which rows have another {column} after what the episode did")
    return desk.value(ROW, row_id(table, key), column)


def _check_rows(desk: CompanyDesk, table: str, column: str = "") -> None:
    if desk.exists(UNSURE, table) and (
            desk.value(UNSURE, table, "rows", False) or column in desk.value(UNSURE, table, "columns", ())):
        raise Undecided(f"which rows of {table} are there after what the episode did")


def stored(value: Any, affinity: str) -> Any:
    """Return a value as a column stores it. Errors: Undecided."""
    if value is None or affinity == "any":
        return value
    if affinity == "text" and isinstance(value, str):
        return value
    if affinity in ("integer", "real", "numeric") and isinstance(value, (int, float)) and not isinstance(value, bool):
        if affinity == "real":
            return float(value)
        if value == int(value) or affinity == "numeric":
            return int(value) if value == int(value) else value
    raise Undecided(f"what a column of the type {affinity} makes of {value!r}")
