"""Debezium: wrapped and flattened rows, values that the schema explains, columns that were not logged, and the speed of it."""

from __future__ import annotations

import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.debezium import fields_of, number
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import assemble

DECIMAL = "org.apache.kafka.connect.data.Decimal"
SOURCE = {"connector": "postgresql", "table": "t", "ts_ms": 1772446548700, "txId": 7, "lsn": 99}


def change(op: str = "u", **fields: Any) -> dict[str, Any]:
    return {"op": op, "source": SOURCE, "ts_ms": 1, **fields}


def wrapped(columns: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    row = {"type": "struct", "fields": columns}
    return {"schema": {"type": "struct", "fields": [{"field": "before", **row}, {"field": "after", **row}]},
            "payload": change(**fields)}


def column(name: str, kind: str, **parameters: str) -> dict[str, Any]:
    return {"field": name, "type": "bytes", "name": kind, "parameters": parameters}


def images(value: Any) -> Any:
    fields = fields_of(value)
    assert fields is not None
    return orjson.loads(fields["value"])


def read_all(tmp_path: Path, *values: Any) -> Reading:
    path = tmp_path / "changes"
    path.write_bytes(b"\n".join(map(orjson.dumps, values)))
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "debezium"
    return reading


def encoded(unscaled: int) -> str:
    return base64.b64encode(unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True)).decode()


def test_values_mean_what_their_schema_says() -> None:
    columns = [column("price", DECIMAL, scale="2"), column("whole", DECIMAL, scale="0"), column("long", DECIMAL, scale="4"),
               column("any", "io.debezium.data.VariableScaleDecimal"), column("day", "io.debezium.time.Date"),
               column("at", "io.debezium.time.MicroTimestamp"), column("ms", "io.debezium.time.Timestamp"),
               column("text", "io.debezium.data.Json"), column("odd", DECIMAL, scale="2"), column("none", DECIMAL, scale="2")]
    after = {"price": "AfQ=", "whole": encoded(-300), "long": encoded(12345678901234567890),
             "any": {"scale": 1, "value": "AfQ="}, "day": 20514,
             "at": 1772446548700001, "ms": 1772446548000, "text": "{}", "odd": "no base64!", "none": None}
    decoded_images = images(wrapped(columns, before={"price": encoded(-1)}, after=after))
    assert decoded_images["before"] == {"price": -0.01}
    assert decoded_images["after"] == {
        "price": 5.0, "whole": -300, "long": "1234567890123456.7890", "any": 50.0, "day": "2026-03-02",
        "at": "2026-03-02T10:15:48.700001", "ms": "2026-03-02T10:15:48", "text": "{}", "odd": "no base64!", "none": None}


def test_without_a_schema_values_stay_as_logged() -> None:
    assert images(change(after={"price": "AfQ="}))["after"] == {"price": "AfQ="}
    assert images({"schema": {"fields": []}, "payload": change(after={"price": "AfQ="})})["after"] == {"price": "AfQ="}


@pytest.mark.parametrize("placeholder", ["__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="])
def test_a_column_that_was_not_logged_is_never_read_as_a_value(placeholder: str) -> None:
    columns = [column("price", DECIMAL, scale="2")]
    fields = fields_of(wrapped(columns, before={"price": "AfQ="}, after={"price": placeholder}))
    unknown = fields_of(wrapped(columns, before=None, after={"id": 1, "price": placeholder}))
    assert fields is not None and orjson.loads(fields["value"])["after"] == {"price": 5.0} and fields["lossy"] == []
    assert unknown is not None and orjson.loads(unknown["value"])["after"] == {"id": 1}
    assert unknown["lossy"] == ["unchanged price"]


@given(unscaled=st.integers(-(10**40), 10**40), scale=st.integers(-5, 30))
def test_a_decimal_keeps_every_digit(unscaled: int, scale: int) -> None:
    decoded = number(encoded(unscaled), scale)
    assert Decimal(str(decoded)) == Decimal(f"{unscaled}e{-scale}")
    assert orjson.loads(orjson.dumps(decoded)) == decoded


def test_flattened_rows_and_messages(tmp_path: Path) -> None:
    reading = read_all(
        tmp_path, {"id": 1, "payload": {"a": 1}, "__op": "c", "__table": "t", "__source_ts_ms": 1772446548700, "__lsn": 5},
        {"id": 1, "__deleted": "true", "__table": "t"}, {"id": 2, "__deleted": "false"}, None, change("t"),
        change("m", message={"prefix": "audit", "content": base64.b64encode(b"hello").decode()}))
    made = assemble(reading.events)
    assert reading.events.filter(kind="row_change").select("name", "tool", "position", "lossy").rows() == [
        ("create", "t", 5, '["before"]'), ("delete", "t", 2, None), ("update", "unknown", 3, '["before","operation"]')]
    assert made.row_changes.filter(operation="create")["after"].item() == '{"id":1,"payload":{"a":1}}'
    assert made.row_changes.filter(operation="delete").select("before", "after").rows() == [('{"id":1}', None)]
    assert reading.events.filter(kind="log").select("tool", "content").rows() == [("audit", "hello")]
    rejected = reading.decisions.filter(~pl.col("kept")).sort("line")
    assert rejected["reason"].to_list() == ["tombstone", "unsupported_operation"]


def test_what_a_broker_wraps_keeps_its_key_and_its_transaction(tmp_path: Path) -> None:
    value = wrapped([], after={"id": 1}, transaction={"id": "tx-1"})
    value["payload"]["source"] = {**SOURCE, "txId": None}
    reading = read_all(tmp_path, {"key": {"schema": {}, "payload": {"id": 1}}, "value": value}, change("c", after={"id": 2}))
    assert reading.events.select("arguments", "call_id", "position").rows() == [('{"id":1}', "tx-1", 99), (None, "7", 99)]


def test_the_real_changes_are_all_there(data: Path) -> None:
    path = data / "retail_desk/cdc/2026-03-02.jsonl"
    reading = read(SourceFile(path, path.name))
    assert reading.events.height == reading.records.height > 0
    assert reading.events["lossy"].null_count() == reading.events.height and reading.events["happened_at"].null_count() == 0
