"""Rows of databases, from change streams as Debezium writes them, with the tables' keys from `create table` statements.

Sees: every logged change, in the order of the log's positions; which columns are the key (the message's key, the statement's
primary key, else a column `id`). Does not see: rows that never changed and were not in the stream's snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from extractors.apps.version import BEGINNING, PRESENT, AppRow, AppVersion, CompanyApp, ExportFile, bad_row
from extractors.formats.debezium import fields_of, payload

ROW, TABLE = "db", "db_table"
_CREATE = re.compile(
    r"create\s+table\s+(?:if\s+not\s+exists\s+)?[\"`\[]?(?:[\w$]+[\"`\]]?\.[\"`\[]?)?([\w$]+)[\"`\]]?\s*\((.*?)\)\s*;",
    re.IGNORECASE | re.DOTALL)
_COLUMN = re.compile(r"^[\"`\[]?([\w$]+)[\"`\]]?\s*(.*)$", re.DOTALL)
_NO_COLUMN = re.compile(r"^(?:primary|foreign|unique|check|constraint|key|index|exclude)\b", re.IGNORECASE)
_TYPE_END = re.compile(r"\b(?:not|null|default|primary|unique|references|check|collate|generated|constraint)\b", re.IGNORECASE)
_ASIDE = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Texts and comments, whose words and commas are no part of a statement."""
_KEY_LIST = re.compile(r"primary\s+key\s*\(([^)]*)\)", re.IGNORECASE)
_KEY_COLUMN = re.compile(r"[\"`\[]?([\w$]+)[\"`\]]?\s+[^,]*?\bprimary\s+key\b", re.IGNORECASE | re.DOTALL)


def claims(file: ExportFile, siblings: frozenset[str]) -> bool:
    """Return whether a file is a stream of row changes."""
    first = file.content[:100_000].lstrip().partition(b"\n")[0]
    if not first.startswith(b"{") or not (b'"op"' in first or b'"__op"' in first):
        return False
    try:
        change = payload(orjson.loads(first))
    except ValueError:
        return False
    source = change.get("source")
    return "__op" in change or (isinstance(source, dict) and ("table" in source or "collection" in source))


def adopts(file: ExportFile) -> bool:
    """Return whether a file next to a stream creates its tables."""
    return file.name.endswith((".sql", ".ddl"))


def read(files: list[ExportFile]) -> Iterator[AppRow]:
    """Versions of the columns of each row, and of what statements declare of each table: `columns` (name -> type), `key`."""
    keys: dict[str, list[str]] = {}
    for file in files:
        if adopts(file):
            statements = _ASIDE.sub(" ", file.content.decode("utf-8", "replace"))
            keys.update(_keys(statements))
            for table, columns in _columns(statements).items():
                yield AppVersion(TABLE, table, "columns", columns, BEGINNING, record=f"{file.path}#{table}")
                if table in keys:
                    yield AppVersion(TABLE, table, "key", keys[table], BEGINNING, record=f"{file.path}#{table}")
    for file in files:
        if not adopts(file):
            yield from _changes(file, keys)


def _keys(statements: str) -> dict[str, list[str]]:
    keys = {}
    for table, body in _CREATE.findall(statements):
        listed = _KEY_LIST.search(body)
        column = _KEY_COLUMN.search(body)
        if listed is not None:
            keys[table] = [name.strip(' "`[]') for name in listed[1].split(",")]
        elif column is not None:
            keys[table] = [column[1]]
    return keys


def _columns(statements: str) -> dict[str, dict[str, str]]:
    """Return table -> column -> declared type, in lower case."""
    tables = {}
    for table, body in _CREATE.findall(statements):
        parts = [part.strip() for part in re.split(r",(?![^()]*\))", body)]
        matches = [match for part in parts if not _NO_COLUMN.match(part) and (match := _COLUMN.match(part)) is not None]
        tables[table] = {match[1]: _TYPE_END.split(match[2])[0].strip().casefold() for match in matches}
    return tables


def _changes(file: ExportFile, keys: dict[str, list[str]]) -> Iterator[AppRow]:
    for number, line in enumerate(file.content.splitlines(), start=1):
        if not line.strip() or line.strip() == b"null":   # a tombstone repeats the delete before it
            continue
        try:
            fields = fields_of(orjson.loads(line))
            if fields is None or fields["happened_at"] is None:
                raise ValueError("it changes no single row, or has no time")
            yield from _row(fields, f"{file.path}#{number}", number, keys)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield bad_row(file, str(number), error)


def _row(fields: dict[str, Any], record: str, number: int, keys: dict[str, list[str]]) -> Iterator[AppVersion]:
    table, images = str(fields["tool"]), orjson.loads(fields["value"])
    before, after = images.get("before") or {}, images.get("after")
    image = after or before
    stated = orjson.loads(fields["arguments"]) if fields["arguments"] else None
    columns = list(stated) if isinstance(stated, dict) else keys.get(table) or (["id"] if "id" in image else [])
    if not columns:
        raise ValueError(f"the key of table {table} is unknown")
    key = f"{table}/{'/'.join(str(image[column]) for column in columns)}"
    at, sequence = fields["happened_at"], fields["position"] if fields["position"] is not None else number
    yield AppVersion(ROW, key, PRESENT, after is not None, at, sequence, None, BEGINNING, record)
    for column, value in (after or {}).items():
        if fields["name"] != "update" or not before or before.get(column, record) != value:
            yield AppVersion(ROW, key, column, value, at, sequence, None, BEGINNING, record)


APP = CompanyApp("rows", claims, read, rank=30, adopts=adopts, formats=("debezium",))
