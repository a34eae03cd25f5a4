"""Bytes to records: what is packed or one document says the same, whoever opens it."""

from __future__ import annotations

import io
import re
import sqlite3
import zipfile
from pathlib import Path

import duckdb
import polars as pl
import pytest

from extractors.content import head_of, records_of


def archive() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as file:
        file.writestr("one.json", '{"n": 1}')
        file.writestr("two.json", '{"n": 2}')
    return held.getvalue()


def database(folder: Path) -> bytes:
    path = folder / "x.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("create table turns as select 1 as n, 'hello' as said union all select 2, null")
    connection.commit()
    connection.close()
    return path.read_bytes()


def parquet() -> bytes:
    held = io.BytesIO()
    pl.DataFrame({"n": [1, 2], "said": ["hello", None]}).write_parquet(held)
    return held.getvalue()


@pytest.mark.parametrize(("kind", "n_records"), [
    ("archive", 1), ("database", 1), ("table", 2), ("document", 2), ("not_quite_json", 2)])
@pytest.mark.parametrize("whole", [True, False])
def test_a_document_that_another_process_opens_says_the_same(kind: str, n_records: int, whole: bool, tmp_path: Path) -> None:
    content = {"archive": archive(), "database": database(tmp_path), "table": parquet(),
               "document": b'\xef\xbb\xbf[{"n": 1},\n{"n": 2}]', "not_quite_json": b'[{"n": NaN},\n{"n": 2}]'}[kind]
    head = head_of(content)
    assert head is not None and head.document is not None
    given = records_of(content, head.layout, whole, head.document)
    opened = records_of(content, head.layout, whole)
    assert len(given.contents) == (1 if whole else n_records) and given == opened
    assert opened.value(0) == (given.value(0)[0], None, None) and opened.value(0)[0] is not None


def test_typed_columns_of_parquet_are_what_json_would_have(tmp_path: Path) -> None:
    path, columns = tmp_path / "typed.parquet", {
        "uuid()": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "timestamptz '2026-03-02 10:15:02+00'": "2026-03-02T10:15:02.00:00",
        "timestamp '2026-03-02 10:15:02.5'": r"2026-03-02T10:15:02\.500000", "date '2026-03-02'": "2026-03-02",
        "12.50::decimal(10, 2)": 12.5, "12.00::decimal(10, 2)": 12, "'{\"a\": 1}'::json": {"a": 1}, "'text'::blob": "text",
        "map {'a': 1}": {"a": 1}, "[{'at': date '2026-03-02'}]": [{"at": "2026-03-02"}], "null": None}
    with duckdb.connect() as connection:
        names = {f"c{n}": expected for n, expected in enumerate(columns.values())}
        made = ", ".join(f"{sql} as {name}" for sql, name in zip(columns, names, strict=True))
        connection.execute(f"copy (select {made}) to '{path}' (format parquet)")
    head = head_of(path.read_bytes())
    assert head is not None
    [row] = head.document
    assert row == {name: row[name] if isinstance(expected, str) and re.fullmatch(expected, row[name]) else expected
                   for name, expected in names.items()}
