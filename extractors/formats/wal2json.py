"""Changes of database rows as PostgreSQL's wal2json writes them: version 1 (a transaction a line), version 2 (a row a line).

Sees inserts, updates and deletes, the key of the old row (or all of it, where the table's replica identity is full), the
transaction and its place in the log; beginnings, ends and empty transactions as log events.
Does not see: columns that did not change and were stored apart (they are not in the log), changes of tables without a key
(the plug-in leaves them out), what was before an update beyond the key. Truncations change no single row: they are rejects.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped

_OPERATIONS = {"insert": "create", "update": "update", "delete": "delete", "I": "create", "U": "update", "D": "delete"}
_FRAMES = {"B": "begin", "C": "commit"}
_AROUND = frozenset({"xid", "timestamp", "nextlsn", "change", "origin"})


def claims(head: Head) -> bool:
    """Return whether the first object is a transaction with its changes, or a change with an action of one letter."""
    first = head.first
    if not head.is_json:
        return False
    if isinstance(first.get("change"), list):
        return first.keys() <= _AROUND or any(isinstance(each, dict) and "kind" in each for each in first["change"])
    return isinstance(first.get("action"), str) and first["action"] in tuple("BIUDTMC") and any(
        name in first for name in ("xid", "lsn", "timestamp", "columns", "identity", "schema"))


def read(records: LogRecords, emit: Emit) -> None:
    """One event a changed row."""
    log = _WalReader(emit)
    for record in records:
        value = record.value if isinstance(record.value, dict) else {}
        with emit.guarded(record):
            if isinstance(value.get("change"), list):
                log.transaction(record, value)
            elif isinstance(value.get("action"), str):
                log.action(record, value)
            else:
                emit.reject(record, "no_change", "the record is no change of wal2json; leave it out or repair it")


class _WalReader:
    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._service = emit.envelope.service({})
        self._begun: Row = {}
        """The transaction that version 2 is in."""
        self._n_changes = 0

    def transaction(self, record: LogRecord, value: Row) -> None:
        """Version 1: all changes of one transaction."""
        shared = _shared(value)
        if not value["change"]:
            self._log(record, "transaction", value, shared)
        for change in value["change"]:
            operation = _OPERATIONS.get(change["kind"])
            if operation is None:
                self._other(record, str(change["kind"]), change, shared)
                continue
            old, names = change.get("oldkeys") or {}, (change.get("pk") or {}).get("pknames") or ()
            sides = ((old.get("keynames"), old.get("keyvalues")), (change.get("columnnames"), change.get("columnvalues")))
            before, after = (dict(zip(columns, values or (), strict=True)) if columns else None for columns, values in sides)
            self._change(record, operation, change, before, after, names, shared)

    def action(self, record: LogRecord, value: Row) -> None:
        """Version 2: one row, or a beginning, an end, a message, a truncation."""
        action = value["action"]
        if action == "B":
            self._begun = value
        shared = _shared({**{name: self._begun[name] for name in ("xid", "timestamp") if name in self._begun}, **value})
        operation = _OPERATIONS.get(action)
        if operation is None:
            self._other(record, action, value, shared)
        else:
            before, after = ({each["name"]: each.get("value") for each in columns} if columns else None
                             for columns in (value.get("identity"), value.get("columns")))
            self._change(record, operation, value, before, after, [each["name"] for each in value.get("pk") or ()], shared)
        if action == "C":
            self._begun = {}

    def _change(self, record: LogRecord, operation: str, change: Row, before: Row | None, after: Row | None, names: Any,
                shared: Row) -> None:
        row = after or before or {}
        key = {name: row[name] for name in names if name in row} or before
        lossy = ["before beyond its key"] if operation == "update" and (before or {}).keys() != (after or {}).keys() else []
        self._n_changes += 1
        place = change.get("lsn")
        if isinstance(place, str):   # 0/16B3748
            high, _, low = place.partition("/")
            place = (int(high, 16) << 32) + int(low, 16)
        self._emit.event(record, "row_change", name=operation, tool=str(change["table"]), service=self._service,
                         position=place if isinstance(place, int) else self._n_changes,
                         arguments=dumped(key) if key else None,
                         value=dumped({"before": before, "after": after}), lossy=lossy, **shared)

    def _other(self, record: LogRecord, action: str, value: Row, shared: Row) -> None:
        if action in ("T", "truncate"):
            self._emit.reject(record, "unsupported_operation",
                              "a truncation changes no single row; state its effect as row changes")
        else:
            self._log(record, _FRAMES.get(action) or str(value.get("prefix") or action), value, shared)

    def _log(self, record: LogRecord, tool: str, value: Row, shared: Row) -> None:
        """Emit a frame of a transaction, or a message in the database's log."""
        content = value.get("content")
        self._emit.event(record, "log", tool=tool, service=self._service, **shared,
                         content=content if isinstance(content, str) else dumped(value))


def _shared(value: Row) -> Row:
    return {"happened_at": microseconds(value.get("timestamp")),
            "call_id": str(value["xid"]) if value.get("xid") is not None else None}


FORMAT = Format(name="wal2json", claims=claims, read=read, sample=sample("wal2json.jsonl"), rank=30)
