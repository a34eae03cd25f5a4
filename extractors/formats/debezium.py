"""Changes of database rows as Debezium writes them: bare, wrapped in `{schema, payload}` or by a broker, or flattened to the
row with `__op` and `__deleted`.

Sees create, update, delete and snapshot reads, and what encoded values mean where the record brings its schema. A column that
did not change and was not logged (the TOAST placeholder) is taken from `before` where that has it, else left out of `after`
and named in `lossy`. A `null` line is a tombstone after a delete and says nothing new. Truncations change no single row: they
are rejects; messages written to the database's log are log events.
Does not see: what a base64 decimal means without its schema; such values are kept as logged.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Literal

import msgspec
import orjson

from extractors.formats.debezium_types import decode, decoders
from extractors.formats.format import Block, Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample

_OPERATIONS = {"c": "create", "u": "update", "d": "delete", "r": "snapshot"}
_UNCHANGED = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")
_MARK, _ENCODED_MARK = (mark.encode() for mark in _UNCHANGED)
_FROM, _TO = 10**14, 10**17
"""Microseconds since 1970 that need no look at their scale."""
_NO_KEY = msgspec.Raw(b"")
_ROW_BEGINS = ("{", "n")
"""Of an object, of null."""
_FLAT = ("__op", "__deleted")


def claims(head: Head) -> bool:
    """The first object (or its payload) has an operation and a source with a table; or is a row with `__op`."""
    first = payload(head.first)
    source = first.get("source")
    return head.layout in ("lines", "document") and (
        _is_flat(first) or (isinstance(first.get("op"), str) and isinstance(source, dict) and (
            "connector" in source or "table" in source or "collection" in source)))


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One change a record."""
    service = emit.envelope.service({})
    for record in records:
        if record.value is None:
            emit.reject(record, "tombstone", "a tombstone repeats the delete before it; nothing to mend")
            continue
        with emit.guarded(record):
            fields = fields_of(record.value)
            if fields is not None:
                fields["position"] = record.line if fields["position"] is None else fields["position"]
                emit.event(record, "row_change", service=service, **fields)
            else:
                _no_change(record, payload(record.value), service, emit)


def read_block(block: Block, emit: Emit) -> None:
    """The same of many lines: changes in the plain shape go to columns at once."""
    others = read_plain(block, emit)
    read((record for index in others if (record := block.record(index)) is not None), emit)


class _Source(msgspec.Struct):
    """What a plain change says of where it was read; errors where it does not."""

    ts_us: int
    lsn: int
    txId: int
    table: str


class _Change(msgspec.Struct):
    """A plain change, its rows as the text that they are."""

    op: Literal["c", "u", "d", "r"]
    source: _Source
    before: msgspec.Raw
    after: msgspec.Raw
    key: msgspec.Raw = _NO_KEY


def read_plain(block: Block, emit: Emit) -> list[int]:
    """Tell the changes that are not wrapped and hold whole rows; returns the indexes of the other records."""
    others: list[int] = []
    rows: list[tuple[str, str, str, int, int, str, str]] = []
    decode = msgspec.json.Decoder(_Change).decode
    for index, line in enumerate(block.contents):
        try:
            change = decode(line)
            before, after = str(change.before, "utf-8"), str(change.after, "utf-8")
            source = change.source
            plain = before[:1] in _ROW_BEGINS and after[:1] in _ROW_BEGINS and _FROM < source.ts_us < _TO
        except (msgspec.MsgspecError, UnicodeDecodeError):
            plain = False
        if not plain or change.key is not _NO_KEY or _MARK in line or _ENCODED_MARK in line:
            others.append(index)
            continue
        rows.append((block.record_ids[index], _OPERATIONS[change.op], source.table, source.ts_us, source.lsn,
                     str(source.txId), f'{{"before":{before},"after":{after}}}'))
    if rows:
        ids, names, tables, instants, places, transactions, values = (list(column) for column in zip(*rows, strict=True))
        emit.block(ids, "row_change", service=emit.envelope.service({}), name=names, tool=tables, happened_at=instants,
                   position=places, call_id=transactions, value=values)
    return others


def fields_of(value: Any) -> Row | None:
    """The columns of the event that the row change in `value` is; None where it changes no single row.

    Pure: depends on nothing but `value`, whose row images it may amend. `position` is None where the database states none.
    Errors: TypeError, AttributeError and the like for a value of another shape.
    """
    change = payload(value)
    operation, source = _OPERATIONS.get(str(change.get("op"))), change.get("source")
    if operation is None or not isinstance(source, dict):
        return _flat(change) if _is_flat(change) else None
    before, after = _row(change.get("before")), _row(change.get("after"))
    lossy = _fill(before, after) if after else []
    if value is not change and (by_column := decoders(value.get("schema"))):
        decode(before, by_column)
        decode(after, by_column)
    key = _key(value)
    committed = source.get("ts_us") or source.get("ts_ms") or change.get("ts_ms")
    place, transaction = source.get("lsn"), source.get("txId")
    return {"happened_at": microseconds(committed), "position": place if isinstance(place, int) else None, "name": operation,
            "call_id": str(transaction) if transaction is not None else _transaction(change),
            "tool": str(source.get("table") or source.get("collection")),
            "arguments": orjson.dumps(key).decode() if key is not None else None,
            "value": orjson.dumps({"before": before, "after": after}).decode(), "lossy": lossy}


def payload(value: Any) -> Row:
    """The change inside whatever wraps it: `{schema, payload}`, or a broker's `{key, value}`."""
    while isinstance(value, dict) and "op" not in value and not _is_flat(value):
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


def _is_flat(row: Row) -> bool:
    return any(name in row for name in _FLAT)


def _flat(row: Row) -> Row:
    """A row as `ExtractNewRecordState` leaves it: no old image, facts of the change under names with two underscores."""
    stated = {name[2:]: value for name, value in row.items() if name.startswith("__")}
    image = {name: value for name, value in row.items() if not name.startswith("__")}
    deleted = str(stated.get("deleted")).lower() == "true" or stated.get("op") == "d"
    before, after = (image, None) if deleted else (None, image)
    lossy = ["before"] if not deleted else []
    if not deleted and stated.get("op") not in _OPERATIONS:
        lossy.append("operation")
    lossy += _fill(None, image)
    place = stated.get("source_lsn", stated.get("lsn"))
    transaction = stated.get("source_txId", stated.get("txId"))
    return {"happened_at": microseconds(stated.get("source_ts_ms") or stated.get("ts_ms")), "arguments": None,
            "name": "delete" if deleted else _OPERATIONS.get(str(stated.get("op")), "update"),
            "tool": str(stated.get("source_table") or stated.get("table") or stated.get("collection") or "unknown"),
            "position": place if isinstance(place, int) else None,
            "call_id": str(transaction) if transaction is not None else None,
            "value": orjson.dumps({"before": before, "after": after}).decode(), "lossy": lossy}


def _no_change(record: LogRecord, change: Row, service: str | None, emit: Emit) -> None:
    """A message in the database's log says something; anything else becomes a reject."""
    message = change.get("message")
    if change.get("op") != "m" or not isinstance(message, dict):
        emit.reject(record, "unsupported_operation",
                    f"operation {change.get('op')!r} changes no single row; state its effect as row changes")
        return
    try:
        content = base64.b64decode(message.get("content") or "", validate=True).decode()
    except ValueError:
        content = str(message.get("content"))
    source = change.get("source")
    emit.event(record, "log", service=service, tool=str(message.get("prefix") or "message"), content=content,
               happened_at=microseconds((source.get("ts_ms") if isinstance(source, dict) else None) or change.get("ts_ms")))


def _transaction(change: Row) -> str | None:
    inner = change.get("transaction")
    return str(inner["id"]) if isinstance(inner, dict) and inner.get("id") is not None else None


def _key(value: Any) -> Any:
    key = value.get("key") if isinstance(value, dict) and "op" not in value else None
    return key.get("payload", key) if isinstance(key, dict) else key


def _row(value: Any) -> Row | None:
    """A row image; some connectors write it as JSON text."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    return value if isinstance(value, dict) else None


FORMAT = Format(name="debezium", claims=claims, read=read, read_block=read_block,
                sample=sample("debezium.jsonl"), rank=30)
