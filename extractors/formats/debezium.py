"""Changes of database rows as Debezium writes them, bare or wrapped in `{schema, payload}`.

Sees create, update, delete and snapshot reads. A column that did not change and was not logged (the TOAST placeholder) is
taken from `before` where that has it, else left out of `after` and named in `lossy`. A `null` line is a tombstone after a
delete and says nothing new. Truncations and messages change no single row: they are rejects.
Does not see: what a base64 decimal means without its schema; values are kept as logged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample

_OPERATIONS = {"c": "create", "u": "update", "d": "delete", "r": "snapshot"}
_UNCHANGED = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")


def claims(head: Head) -> bool:
    """The first object (or its payload) has an operation and a source with a table."""
    first = _payload(head.first)
    source = first.get("source")
    return head.layout in ("lines", "document") and isinstance(first.get("op"), str) and isinstance(source, dict) and (
        "connector" in source or "table" in source or "collection" in source)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One change a record."""
    for record in records:
        if record.value is None:
            emit.reject(record, "tombstone", "a tombstone repeats the delete before it; nothing to mend")
            continue
        change = _payload(record.value)
        operation = _OPERATIONS.get(str(change.get("op")))
        source = change.get("source")
        if operation is None or not isinstance(source, dict):
            emit.reject(record, "unsupported_operation",
                        f"operation {change.get('op')!r} changes no single row; state its effect as row changes")
            continue
        with emit.guarded(record):
            _change(record, change, source, operation, emit)


def _change(record: LogRecord, change: Row, source: Row, operation: str, emit: Emit) -> None:
    before, after = _row(change.get("before")), _row(change.get("after"))
    lossy: list[str] = []
    for column in [name for name, value in (after or {}).items() if isinstance(value, str) and value in _UNCHANGED]:
        if after is not None and before and before.get(column, _UNCHANGED[0]) not in _UNCHANGED:
            after[column] = before[column]
        elif after is not None:
            del after[column]
            lossy.append(f"unchanged {column}")
    key = _key(record.value)
    committed = next((t for t in map(source.get, ("ts_us", "ts_ms")) if t), change.get("ts_ms"))
    place = source.get("lsn")
    emit.event(record, "row_change", happened_at=microseconds(committed), service=emit.envelope.service({}),
               position=place if isinstance(place, int) else record.line, name=operation,
               tool=str(source.get("table") or source.get("collection")),
               arguments=orjson.dumps(key).decode() if key is not None else None,
               value=orjson.dumps({"before": before, "after": after}).decode(), lossy=lossy)


def _payload(value: Any) -> Row:
    """The change inside whatever wraps it: `{schema, payload}`, or a broker's `{key, value}`."""
    while isinstance(value, dict) and "op" not in value:
        inner = value.get("payload", value.get("value"))
        if not isinstance(inner, dict):
            break
        value = inner
    return value if isinstance(value, dict) else {}


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


FORMAT = Format(name="debezium", claims=claims, read=read, sample=sample("debezium.jsonl"), rank=30)
