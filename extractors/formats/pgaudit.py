"""What a PostgreSQL server's audit (pgaudit) wrote to its log: text with any prefix, csvlog or jsonlog.

Sees statements with their parameters; of a simple INSERT, UPDATE or DELETE the rows that it surely made, changed or removed,
of another one the statement alone (in `value`). A statement over many lines is one; told by session and by object it counts
once; `<previously logged>` is looked up; what a logged ROLLBACK took back is no change. Other statements and lines are log
events. Does not see: types of parameters (they are text), null apart from an empty parameter, whether a transaction that
no line ends was kept, how many rows a condition met where that was not logged.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample
from extractors.formats.sql_changes import Change, changes

_AUDIT = "AUDIT: "
_CLASSES = r"(?:READ|WRITE|FUNCTION|ROLE|DDL|MISC|MISC_SET)"
_ENTRY = re.compile(rf"AUDIT: (?:SESSION|OBJECT),\d+,\d+,{_CLASSES},")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)(?: ([A-Z]{3,5}|[+-]\d\d(?::?\d\d)?))?")
_CSV = re.compile(_TIME.pattern + ",")
_PROCESS = re.compile(r"\[(\d+)\]|pid=(\d+)")
_OPERATIONS = {"INSERT": "create", "UPDATE": "update", "DELETE": "delete"}
_ENDS = ("COMMIT", "END", "PREPARE TRANSACTION", "BEGIN", "START TRANSACTION")
_COLUMNS = {"time": 0, "process": 3, "session": 5, "transaction": 10, "message": 13}
_OF_JSON = {"time": "timestamp", "process": "pid", "session": "session_id", "transaction": "txid", "message": "message"}


def claims(head: Head) -> bool:
    """An audit entry among the first lines, or as the message of the first objects."""
    if head.layout == "text":
        return any(_ENTRY.search(line) for line in head.text)
    return head.layout in ("lines", "document") and any(
        isinstance(each.get("message"), str) and _ENTRY.match(each["message"]) for each in head.objects)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One event a statement, or a row that it changed."""
    log = _Log(emit)
    for entry in _entries(records, emit):
        with emit.guarded(entry.record):
            log.take(entry)


@dataclass(slots=True)
class _Entry:
    """One entry of the server's log."""

    record: LogRecord
    text: str
    """The lines as logged."""
    facts: Row = field(default_factory=dict)
    """Time, process, session, transaction and message, as far as the log's form states them."""


def _entries(records: Iterable[LogRecord], emit: Emit) -> Iterator[_Entry]:
    """Entries, each with the lines that it goes on in."""
    waiting: _Entry | None = None
    for record in records:
        if isinstance(record.value, dict):
            yield _Entry(record, orjson.dumps(record.value).decode(), {
                ours: record.value.get(theirs) for ours, theirs in _OF_JSON.items()})
        elif not isinstance(record.value, str):
            emit.reject(record, "no_line", "the record is no line of a server's log; leave it out")
        elif waiting is not None and _goes_on(waiting.text, record.value):
            waiting.text += "\n" + record.value.removeprefix("\t")
            emit.reject(record, "joined_line",
                        f"the line goes on what line {waiting.record.line} begins and is kept with it; nothing to mend")
        else:
            if waiting is not None:
                yield _split(waiting)
            waiting = _Entry(record, record.value)
    if waiting is not None:
        yield _split(waiting)


def _goes_on(text: str, line: str) -> bool:
    """The server indents further lines of text; in CSV a field that a quote opened is not closed yet."""
    if _CSV.match(text):
        return text.count('"') % 2 == 1 and not _CSV.match(line)
    return line.startswith("\t")


def _row(text: str) -> list[str] | None:
    """The columns of a line of csvlog; None where one is longer than any that is read."""
    try:
        return next(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        return None


def _split(entry: _Entry) -> _Entry:
    """The facts of a line of csvlog by column, of a line of text by what they look like."""
    row = _row(entry.text) if _CSV.match(entry.text) else None
    if row is not None:
        entry.facts = {name: row[at] if at < len(row) else None for name, at in _COLUMNS.items()}
    else:
        at = entry.text.find(_AUDIT)
        before = entry.text[:at] if at >= 0 else entry.text
        process = _PROCESS.search(before)
        entry.facts = {"time": before, "process": process[1] or process[2] if process else None,
                       "message": entry.text[at:] if at >= 0 else None}
    return entry


class _Log:
    """What the log told so far."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._service = emit.envelope.service({})
        self._told: dict[tuple[Any, ...], tuple[str, str, str]] = {}
        """Statement, parameters and kind of audit, by process and statement, and by object too."""
        self._open: dict[Any, list[Row]] = {}
        """Changes of the transaction that each process is in."""
        self._n_changes = 0

    def take(self, entry: _Entry) -> None:
        """One entry: an audited statement, or another line."""
        happened_at, lossy = _instant(entry.facts.get("time"))
        transaction = entry.facts.get("transaction")
        shared: Row = {"happened_at": happened_at, "service": self._service,
                       "call_id": str(transaction) if str(transaction or 0) != "0" else None}
        message = entry.facts.get("message")
        if not isinstance(message, str) or not _ENTRY.match(message):
            self._emit.event(entry.record, "log", content=entry.text, lossy=lossy, **shared)
            return
        fields = _row(message.removeprefix(_AUDIT))
        if fields is None:
            self._emit.event(entry.record, "log", content=entry.text, lossy=lossy, **shared)
            return
        fields += [""] * (10 - len(fields))
        self._statement(entry, fields, lossy, shared)

    def _statement(self, entry: _Entry, fields: list[str], lossy: list[str], shared: Row) -> None:
        audit, number, part, kind, command, _, thing, statement, parameters, n_rows = fields[:10]
        who = (entry.facts.get("session") or entry.facts.get("process"), number, part)
        if statement == "<previously logged>" and who in self._told:
            statement, parameters, _ = self._told[who]
        known, told = self._told.get((*who, command, thing)), (statement, parameters, audit)
        self._told[who] = self._told[(*who, command, thing)] = told
        is_new = known is None or known[:2] != told[:2] or known[2] == audit
        if command in _OPERATIONS and kind == "WRITE" and is_new and n_rows != "0":
            self._changed(entry, command, thing, statement, parameters, n_rows, lossy, shared)
            return
        self._emit.event(entry.record, "log", tool=command, content=statement, lossy=lossy, arguments=orjson.dumps(
            {"class": kind, "object": thing, "parameters": parameters, "rows": n_rows}).decode(), **shared)
        if command in ("ROLLBACK", "ABORT", *_ENDS):
            taken = self._open.pop(entry.facts.get("process"), [])
            for row in taken if command not in _ENDS else ():
                row.update(kind="log", lossy=[*row["lossy"], "rolled back"])

    def _changed(self, entry: _Entry, command: str, thing: str, statement: str, parameters: str, n_rows: str,
                 lossy: list[str], shared: Row) -> None:
        given = _parameters(parameters)
        found = changes(statement, given) if command == "INSERT" or n_rows in ("", "1") else None
        if given and found is not None:
            lossy = [*lossy, "parameters as text"]
        if command != "INSERT" and not n_rows:
            lossy = [*lossy, "rows not counted"]
        for change in found or [Change(None, None, None)]:
            self._n_changes += 1
            image: Row = {"before": change.before, "after": change.after}
            if found is None:
                image |= {"statement": statement, "parameters": given}
            row = self._emit.event(
                entry.record, "row_change", name=_OPERATIONS[command], tool=thing.rpartition(".")[2].strip('"') or "unknown",
                content=statement, arguments=orjson.dumps(change.key).decode() if change.key else None,
                position=self._n_changes, value=orjson.dumps(image).decode(), lossy=[*lossy, *change.lossy], **shared)
            self._open.setdefault(entry.facts.get("process"), []).append(row)


def _instant(text: Any) -> tuple[int | None, list[str]]:
    """The time in a line's prefix; a zone that is a name other than UTC is not known, and said."""
    found = _TIME.search(str(text or ""))
    if found is None:
        return microseconds(text), []
    zone = found[2] or ""
    if zone[:1] in ("+", "-"):
        return microseconds(f"{found[1]}{zone}"), []
    return microseconds(f"{found[1]}+00:00"), [] if zone in ("UTC", "GMT", "") else [f"time zone {zone} taken as UTC"]


def _parameters(text: str) -> list[str | None]:
    """Parameters as text; an empty one may be null or empty, and is not known."""
    if text in ("", "<none>", "<not logged>"):
        return []
    return [each or None for each in next(csv.reader(io.StringIO(text, newline="")), [])]


FORMAT = Format(name="pgaudit", claims=claims, read=read, sample=sample("pgaudit.log"), apart=False, rank=15)
