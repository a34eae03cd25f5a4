"""Rows of an Arrow table as JSON records that keep their types.

Instants are ISO 8601, with Z where the column has a zone (they are UTC then), without where it has none. A decimal is a number
if that is exact, else its text. JSON columns (as the driver's types and metadata say, or by name) are JSON values. Numbers that
JSON does not have (NaN) are texts, bytes are base64.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Collection
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

_JSON = {"json", "jsonb", "variant", "object", "array", "super"}
"""What databases call columns of JSON."""


def rows_of(table: pa.Table, json: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return each row by the names of its columns; `json`: names of columns that hold JSON text."""
    names = {name.casefold() for name in json}
    columns = [_values(table.column(number), field, field.name.casefold() in names)
               for number, field in enumerate(table.schema)]
    return [dict(zip(table.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def digest_of(record: dict[str, Any]) -> str:
    """Return the digest of a record, whatever the order of its fields."""
    return hashlib.sha256(orjson.dumps(record, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def _values(column: pa.ChunkedArray, field: pa.Field, is_json: bool) -> list[Any]:
    kind = field.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return [None if text is None else text.replace(" ", "T", 1) for text in column.cast(pa.string()).to_pylist()]
    convert: Callable[[Any], Any] = _plain
    if _is_text(kind) and (is_json or _is_json(field)):
        convert = _loaded
    elif getattr(kind, "type_name", "") == "numeric":   # PostgreSQL's own, as text
        convert = _number
    return [None if value is None else convert(value) for value in column.to_pylist()]


def _is_text(kind: pa.DataType) -> bool:
    storage = getattr(kind, "storage_type", kind)
    return bool(pa.types.is_string(storage) or pa.types.is_large_string(storage))


def _is_json(field: pa.Field) -> bool:
    stated = {value.decode("utf-8", "replace").casefold() for value in (field.metadata or {}).values()}
    return getattr(field.type, "extension_name", "") == "arrow.json" or bool(_JSON & stated)


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _number(text: str) -> Any:
    """Return a decimal as a number if JSON's readers, which take it as a double, keep all its digits; else its text."""
    try:
        number = Decimal(text)
    except ArithmeticError:
        return text
    if number == number.to_integral_value() and abs(number) < 2 ** 53 and number.as_tuple().exponent == 0:
        return int(number)
    double = float(number)
    return double if math.isfinite(double) and Decimal(repr(double)) == number else text


def _plain(value: Any) -> Any:
    """Return a value of a column as JSON has it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return _number(str(value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value)
