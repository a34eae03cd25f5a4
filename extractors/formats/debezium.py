"""Changes of database rows as Debezium writes them: bare, wrapped in `{schema, payload}` or by a broker, or flattened to the
row with `__op` and `__deleted`.

Sees create, update, delete and snapshot reads, and what encoded values mean where the record brings its schema (Kafka Connect,
with Debezium's logical types): decimals become numbers where a double holds every digit, else text; dates and timestamps become
ISO 8601 (without a zone: they have none). A column that did not change and was not logged (the TOAST placeholder) is taken from
`before` where that has it, else left out of `after` and named in `lossy`. A `null` line is a tombstone after a delete.
Truncations change no single row: they are rejects; messages written to the database's log are log events.
Does not see: what a base64 decimal means without its schema, times of day, intervals, geometry; they are kept as logged.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Literal

import msgspec
import polars as pl

from extractors.formats.format import Block, Emit, Format, Head, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped, object_in, object_of

_OPERATIONS = {"c": "create", "u": "update", "d": "delete", "r": "snapshot"}
_UNCHANGED = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")
_FROM, _TO = 10**14, 10**17
"""Microseconds since 1970 whose scale is certain."""
_MOST_PLACE = 1 << 63
"""Places that a column of whole numbers holds are less."""
_NO_KEY = msgspec.Raw(b"")
_ROW_BEGINS = b"{n"
"""Of an object, of null."""
_FLAT = frozenset(("__op", "__deleted"))


def claims(head: Head) -> bool:
    """Return whether the first object (or its payload) has an operation and a source with a table; or is a row with `__op`."""
    first = payload(head.first)
    source = first.get("source")
    return head.is_json and (
        not _FLAT.isdisjoint(first) or (isinstance(first.get("op"), str) and isinstance(source, dict) and (
            "connector" in source or "table" in source or "collection" in source)))


def read(records: LogRecords, emit: Emit) -> None:
    """One change a record."""
    service = emit.envelope.service({})
    for record in records:
        if record.value is None:
            emit.reject(record, "tombstone", "a tombstone repeats the delete before it; no action needed")
            continue
        with emit.guarded(record):
            fields, change = fields_of(record.value), payload(record.value)
            if fields is not None:
                fields["position"] = record.line if fields["position"] is None else fields["position"]
                emit.event(record, "row_change", service=service, **fields)
            elif change.get("op") == "m" and isinstance(message := change.get("message"), dict):
                try:   # a message in the database's log
                    content = base64.b64decode(message.get("content") or "", validate=True).decode()
                except ValueError:
                    content = str(message.get("content"))
                at = microseconds(object_of(change.get("source")).get("ts_ms") or change.get("ts_ms"))
                emit.event(record, "log", service=service, tool=str(message.get("prefix") or "message"), content=content,
                           happened_at=at)
            else:
                emit.reject(record, "unsupported_operation",
                            f"operation {change.get('op')!r} changes no single row; state its effect as row changes")


class _PlainSource(msgspec.Struct):
    """Where a plain change was read; one that does not state all of it is not plain."""

    ts_us: int
    lsn: int
    txId: int
    table: str


class _PlainChange(msgspec.Struct):
    """A plain change, its rows as the text that they are."""

    op: Literal["c", "u", "d", "r"]
    source: _PlainSource
    before: msgspec.Raw
    after: msgspec.Raw
    key: msgspec.Raw = _NO_KEY


def read_block(block: Block, emit: Emit) -> None:
    """Read the same of many lines: changes that are not wrapped and hold whole rows go to columns at once."""
    plain = _plain_changes(block.contents)
    if plain.height:
        ids, service = pl.Series(block.record_ids).gather(plain["index"]), emit.envelope.service({})
        emit.block(ids, "row_change", service=service, **{
            name: plain[name] for name in ("name", "tool", "happened_at", "position", "call_id", "value")})
    is_other = pl.repeat(True, len(block.contents), eager=True).scatter(plain["index"], False)
    read((record for index in is_other.arg_true() if (record := block.record(index)) is not None), emit)


def _plain_changes(contents: list[bytes]) -> pl.DataFrame:
    """Return the plain changes among the lines: index of the line, and the columns of the event."""
    decode_line = msgspec.json.Decoder(_PlainChange).decode
    changes: list[tuple[int, str, _PlainSource, bytes]] = []
    for index, line in enumerate(contents):
        try:
            change = decode_line(line)
        except msgspec.MsgspecError:
            continue
        before, after, source = bytes(change.before), bytes(change.after), change.source
        if before[0] in _ROW_BEGINS and after[0] in _ROW_BEGINS and change.key is _NO_KEY and (
                _FROM < source.ts_us < _TO and abs(source.lsn) < _MOST_PLACE):
            changes.append((index, change.op, source, b'{"before":%b,"after":%b}' % (before, after)))
    operations, sources = pl.Series([each[1] for each in changes], dtype=pl.String()), [each[2] for each in changes]
    frame = pl.DataFrame({
        "index": pl.Series([each[0] for each in changes], dtype=pl.UInt32()),
        "name": operations.replace_strict(_OPERATIONS, return_dtype=pl.String()),
        "tool": pl.Series([source.table for source in sources], dtype=pl.String()),
        "happened_at": pl.Series([source.ts_us for source in sources], dtype=pl.Int64()),
        "position": pl.Series([source.lsn for source in sources], dtype=pl.Int64()),
        "call_id": pl.Series([str(source.txId) for source in sources], dtype=pl.String()),
        "value": _texts([each[3] for each in changes])})
    return frame.filter(pl.col("value").is_not_null() & ~pl.col("value").str.contains_any(list(_UNCHANGED)))


def _texts(contents: list[bytes]) -> pl.Series:
    """Return the texts; null where bytes are no UTF-8, or hold the sign that stands for such."""
    try:
        return pl.Series(contents, dtype=pl.Binary()).cast(pl.String())
    except pl.exceptions.ComputeError:
        return pl.Series([None if "\ufffd" in (text := content.decode("utf-8", "replace")) else text for content in contents],
                         dtype=pl.String())


def fields_of(value: Any) -> Row | None:
    """Return the columns of the event that the row change in `value` is; None where it changes no single row.

    Pure: depends on nothing but `value`, whose row images it may amend. `position` is None where the database states none.
    Errors: TypeError, AttributeError and the like for a value of another shape.
    """
    change = payload(value)
    operation, source = _OPERATIONS.get(str(change.get("op"))), change.get("source")
    if operation is None or not isinstance(source, dict):
        return None if _FLAT.isdisjoint(change) else _flat(change)
    before, after = _row(change.get("before")), _row(change.get("after"))
    lossy = _fill(before, after) if after else []
    if value is not change and (by_column := decoders(value.get("schema"))):
        decode(before, by_column)
        decode(after, by_column)
    key = value.get("key") if isinstance(value, dict) and "op" not in value else None
    key = key.get("payload", key) if isinstance(key, dict) else key
    committed = source.get("ts_us") or source.get("ts_ms") or change.get("ts_ms")
    place, transaction = source.get("lsn"), source.get("txId")
    if transaction is None:
        transaction = object_of(change.get("transaction")).get("id")
    return {"happened_at": microseconds(committed), "position": place if isinstance(place, int) else None, "name": operation,
            "call_id": str(transaction) if transaction is not None else None,
            "tool": str(source.get("table") or source.get("collection")),
            "arguments": dumped(key) if key is not None else None,
            "value": dumped({"before": before, "after": after}), "lossy": lossy}


def _row(value: Any) -> Row | None:
    """Return a row image; some connectors write it as JSON text."""
    image = object_in(value) if isinstance(value, str) else value
    return image if isinstance(image, dict) else None


def payload(value: Any) -> Row:
    """Return the change inside whatever wraps it: `{schema, payload}`, or a broker's `{key, value}`."""
    while isinstance(value, dict) and "op" not in value and _FLAT.isdisjoint(value):
        inner = value.get("payload", value.get("value"))
        if not isinstance(inner, dict):
            break
        value = inner
    return value if isinstance(value, dict) else {}


def _fill(before: Row | None, after: Row) -> list[str]:
    """Unchanged columns that were not logged, from `before`; those that it has not either leave `after`."""
    values = after.values()
    if _UNCHANGED[0] not in values and _UNCHANGED[1] not in values:
        return []
    lossy = []
    for column in [name for name, value in after.items() if isinstance(value, str) and value in _UNCHANGED]:
        if before and before.get(column, _UNCHANGED[0]) not in _UNCHANGED:
            after[column] = before[column]
        else:
            del after[column]
            lossy.append(f"unchanged {column}")
    return lossy


def _flat(row: Row) -> Row:
    """Return the columns of a row as `ExtractNewRecordState` writes it: no old image, facts of the change as `__name`."""
    stated = {name[2:]: value for name, value in row.items() if name.startswith("__")}
    image = {name: value for name, value in row.items() if not name.startswith("__")}
    deleted = str(stated.get("deleted")).lower() == "true" or stated.get("op") == "d"
    lossy = [] if deleted else ["before"]
    if not deleted and stated.get("op") not in _OPERATIONS:
        lossy.append("operation")
    lossy += _fill(None, image)
    place = stated.get("source_lsn", stated.get("lsn"))
    transaction = stated.get("source_txId", stated.get("txId"))
    images = {"before": image if deleted else None, "after": None if deleted else image}
    return {"happened_at": microseconds(stated.get("source_ts_ms") or stated.get("ts_ms")), "arguments": None,
            "name": "delete" if deleted else _OPERATIONS.get(str(stated.get("op")), "update"),
            "tool": str(stated.get("source_table") or stated.get("table") or stated.get("collection") or "unknown"),
            "position": place if isinstance(place, int) else None,
            "call_id": str(transaction) if transaction is not None else None,
            "value": dumped(images), "lossy": lossy}


Decoder = Callable[[Any], Any]
_MOST_DIGITS, _MOST_PLACES = 15, 1000
_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = date(1970, 1, 1)
_PER_SECOND = {"io.debezium.time.Timestamp": 10**3, "org.apache.kafka.connect.data.Timestamp": 10**3,
               "io.debezium.time.MicroTimestamp": 10**6, "io.debezium.time.NanoTimestamp": 10**9}
_DATES = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")


def decoders(schema: Any) -> dict[str, Decoder]:
    """Return decoder of each column that needs one; `schema` is that of a change (`before`, `after` …)."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list) or not fields:
        return {}
    sides = {each.get("field"): each.get("fields") for each in fields if isinstance(each, dict)}
    row = sides.get("after") or sides.get("before") or ()
    by_column = {str(column.get("field")): _decoder(column) for column in row if isinstance(column, dict)}
    return {name: decoder for name, decoder in by_column.items() if decoder is not None}


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
    """Return a decimal from base64 of its unscaled, signed, big-endian bytes."""
    if abs(scale) > _MOST_PLACES:
        raise ValueError("no database has numbers of so many places")
    unscaled = int.from_bytes(base64.b64decode(encoded, validate=True), "big", signed=True)
    if scale <= 0:
        whole = unscaled * 10**-scale
        return int(whole) if abs(whole) < 2**63 else str(whole)
    exact = Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))
    return float(exact) if len(str(abs(unscaled))) <= _MOST_DIGITS else f"{exact:f}"


def _instant(value: int, per_second: int) -> str:
    seconds, rest = divmod(value, per_second)
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    return f"{text}.{rest:0{len(str(per_second)) - 1}}" if rest else text


FORMAT = Format(name="debezium", claims=claims, read=read, read_block=read_block, sample=sample("debezium.jsonl"), rank=30)
