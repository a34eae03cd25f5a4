"""Values that Debezium encodes, to what they mean, where the record brings its schema: decimals, dates and timestamps.

In: the schema of a row (Kafka Connect, with Debezium's logical types). Out: a function a column. Decimals become numbers
where a double holds every digit, else text; dates and timestamps become ISO 8601 (without a zone: they have none).
Times of day, intervals and geometry stay as logged.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from extractors.formats.format import Row

Decoder = Callable[[Any], Any]
_MOST_DIGITS, _MOST_PLACES = 15, 1000
_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = date(1970, 1, 1)
_PER_SECOND = {"io.debezium.time.Timestamp": 10**3, "org.apache.kafka.connect.data.Timestamp": 10**3,
               "io.debezium.time.MicroTimestamp": 10**6, "io.debezium.time.NanoTimestamp": 10**9}
_DATES = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")


def decoders(schema: Any) -> dict[str, Decoder]:
    """Decoder of each column that needs one; `schema` is that of a change (`before`, `after` …)."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list) or not fields:
        return {}
    sides = {each.get("field"): each.get("fields") for each in fields if isinstance(each, dict)}
    row = sides.get("after") or sides.get("before") or ()
    found = {str(column.get("field")): _decoder(column) for column in row if isinstance(column, dict)}
    return {name: decoder for name, decoder in found.items() if decoder is not None}


def decode(row: Row | None, by_column: dict[str, Decoder]) -> None:
    """Replace encoded values of `row`; a value that is not of its type stays as logged."""
    for name, decoder in by_column.items():
        if row and row.get(name) is not None:
            try:
                row[name] = decoder(row[name])
            except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, binascii.Error):
                continue


def _decoder(column: Row) -> Decoder | None:
    kind, parameters = column.get("name"), column.get("parameters")
    if kind == "org.apache.kafka.connect.data.Decimal" and isinstance(parameters, dict):
        return lambda value: number(value, int(parameters["scale"]))
    if kind == "io.debezium.data.VariableScaleDecimal":
        return lambda value: number(value["value"], int(value["scale"]))
    if kind in _DATES:
        return lambda value: (_FIRST_DAY + timedelta(days=value)).isoformat()
    per_second = _PER_SECOND.get(str(kind))
    return None if per_second is None else partial(_instant, per_second=per_second)


def number(encoded: str, scale: int) -> int | float | str:
    """A decimal from base64 of its unscaled, signed, big-endian bytes."""
    if abs(scale) > _MOST_PLACES:
        raise ValueError("no database has numbers of so many places")
    unscaled = int.from_bytes(base64.b64decode(encoded, validate=True), "big", signed=True)
    if scale <= 0:
        found = unscaled * 10**-scale
        return int(found) if abs(found) < 2**63 else str(found)
    exact = Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))
    return float(exact) if len(str(abs(unscaled))) <= _MOST_DIGITS else f"{exact:f}"


def _instant(value: int, per_second: int) -> str:
    seconds, rest = divmod(value, per_second)
    digits = len(str(per_second)) - 1
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    return f"{text}.{rest:0{digits}}" if rest else text
