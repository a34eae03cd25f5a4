"""What a PostgreSQL server wrote to its log: its audit (pgaudit) as text with any prefix, csvlog or jsonlog; and without an
audit the statements that it logs itself (`log_statement`, `log_min_duration_statement`) in csvlog or jsonlog.

Sees statements with their parameters. Of a simple INSERT, UPDATE or DELETE it sees the rows that it surely made, changed or
removed (numbers are those that the statement spells, parameters stay text; a column that is set to an expression is named in
`lossy`); of any other shape (a query inside, ON CONFLICT, FROM, conditions beyond `column = value AND …`) the statement alone
(in `value`). A statement over many lines is one; logged by session and by object it counts once; `<previously logged>` is
looked up; what a logged ROLLBACK (without an audit: an error, too) took back is no change. Other statements and lines are log
events.
Does not see: types of parameters, null apart from an empty parameter, whether a transaction that no line ends was kept, how
many rows a condition met where that was not logged.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped

_AUDIT = "AUDIT: "
_CLASSES = r"(?:READ|WRITE|FUNCTION|ROLE|DDL|MISC|MISC_SET)"
_ENTRY = re.compile(rf"AUDIT: (?:SESSION|OBJECT),\d+,\d+,{_CLASSES},")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)(?: ([A-Z]{3,5}|[+-]\d\d(?::?\d\d)?))?")
_CSV = re.compile(_TIME.pattern + ",")
_PROCESS = re.compile(r"\[(\d+)\]|pid=(\d+)")
_OPERATIONS = {"INSERT": "create", "UPDATE": "update", "DELETE": "delete"}
_ENDS = ("COMMIT", "END", "PREPARE TRANSACTION", "BEGIN", "START TRANSACTION")
_COLUMNS = {"time": 0, "process": 3, "session": 5, "transaction": 10, "severity": 11, "message": 13, "detail": 14}
_OF_JSON = {"time": "timestamp", "process": "pid", "session": "session_id", "transaction": "txid", "message": "message",
            "severity": "error_severity", "detail": "detail"}
_SEVERITIES = frozenset({"LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO", *(f"DEBUG{n}" for n in range(1, 6))})
_FEWEST_COLUMNS = 23
_LOGGED = re.compile(r"(?:duration: [\d.]+ ms  )?(?:statement|execute [^:]+): (?P<statement>.*)\Z", re.DOTALL)
_COMMAND = re.compile(r"(?:\s+|--[^\n]*\n|/\*.*?\*/)*(rollback\s+to|start\s+transaction|prepare\s+transaction|\w+)",
                      re.IGNORECASE | re.DOTALL)
_TABLE = re.compile(r"\b(?:insert\s+into|update|delete\s+from)\s+(?:only\s+)?([\w.$\"]+)", re.IGNORECASE)
_PARAMETER = re.compile(r"\$\d+ = (?:'((?:[^']|'')*)'|NULL)")
_BEGINS = ("BEGIN", "START TRANSACTION")
_LOOK_AT = 1000


def claims(head: Head) -> bool:
    """Return whether the file holds an audit entry among the first lines, or as the message of the first objects; or is in
    csvlog; or in jsonlog, with a statement among the first."""
    if head.layout == "text":
        return any(_ENTRY.search(line) or _is_csvlog(line) for line in head.text)
    return head.is_json and any(isinstance(each.get("message"), str) and bool(
        _ENTRY.match(each["message"]) or ({"error_severity", "pid"} <= each.keys() and _LOGGED.match(each["message"])))
        for each in head.objects)


def _is_csvlog(line: str) -> bool:
    row = _row(line) if _CSV.match(line) else None
    severity = _COLUMNS["severity"]
    return row is not None and (len(row) >= _FEWEST_COLUMNS or line.count('"') % 2 == 1) and (
        len(row) > severity and row[severity] in _SEVERITIES)


def read(records: LogRecords, emit: Emit) -> None:
    """One event a statement, or a row that it changed."""
    entries = _entries(records, emit)
    first = list(islice(entries, _LOOK_AT))
    is_audited = any(_AUDIT in each.text for each in first)
    log = _AuditLog(emit) if is_audited else _StatementLog(emit)
    for entry in chain(first, entries):
        with emit.guarded(entry.record):
            log.take(entry)


@dataclass(slots=True)
class _AuditEntry:
    record: LogRecord
    text: str
    """The lines as logged."""
    facts: Row = field(default_factory=dict)
    """Time, process, session, transaction and message, as far as the log's format states them; empty until a text is whole."""


def _entries(records: LogRecords, emit: Emit) -> Iterator[_AuditEntry]:
    waiting: _AuditEntry | None = None
    for record in records:
        if isinstance(record.value, dict):
            yield _AuditEntry(record, dumped(record.value), {
                ours: record.value.get(theirs) for ours, theirs in _OF_JSON.items()})
        elif not isinstance(record.value, str):
            emit.reject(record, "no_line", "the record is no line of a server's log; leave it out")
        elif waiting is not None and (   # in CSV a field that a quote opened is not closed yet; text is indented
                waiting.text.count('"') % 2 == 1 and not _CSV.match(record.value) if _CSV.match(waiting.text)
                else record.value.startswith("\t")):
            waiting.text += "\n" + record.value.removeprefix("\t")
            emit.reject(record, "joined_line",
                        f"the line goes on what line {waiting.record.line} begins and is kept with it; no action needed")
        else:
            if waiting is not None:
                yield waiting
            waiting = _AuditEntry(record, record.value)
    if waiting is not None:
        yield waiting


def _row(text: str) -> list[str] | None:
    """Return the columns of a line of csvlog; None where one is longer than any that is read."""
    try:
        return next(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        return None


def _facts(text: str) -> Row:
    """Return the facts of a line of csvlog by column, of a line of text by what they look like."""
    row = _row(text) if _CSV.match(text) else None
    if row is not None:
        return {name: row[at] if at < len(row) else None for name, at in _COLUMNS.items()}
    before, mark, _ = text.partition(_AUDIT)
    process = _PROCESS.search(before)
    return {"time": before, "process": process[1] or process[2] if process else None,
            "message": text[len(before):] if mark else None}


class _LoggedStatement(NamedTuple):
    """A statement that writes, as logged."""

    command: str
    table: str
    statement: str
    parameters: list[str | None]
    n_rows: str = ""
    """How many rows it met, where that was logged."""


class _AuditLog:
    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._service = emit.envelope.service({})
        self._statements: dict[tuple[Any, ...], tuple[str, str, str]] = {}
        """Statement, parameters and kind of audit, by process and statement, and by object too."""
        self._open: dict[Any, list[Row]] = {}
        """Changes of the transaction that each process is in."""
        self._n_changes = 0

    def take(self, entry: _AuditEntry) -> None:
        entry.facts = entry.facts or _facts(entry.text)
        happened_at, lossy = _instant(entry.facts.get("time"))
        transaction = entry.facts.get("transaction")
        shared: Row = {"happened_at": happened_at, "service": self._service,
                       "call_id": str(transaction) if str(transaction or 0) != "0" else None}
        message = entry.facts.get("message")
        fields = _row(message.removeprefix(_AUDIT)) if isinstance(message, str) and _ENTRY.match(message) else None
        if fields is None:
            self._emit.event(entry.record, "log", content=entry.text, lossy=lossy, **shared)
        else:
            self._statement(entry, fields + [""] * (10 - len(fields)), lossy, shared)

    def _statement(self, entry: _AuditEntry, fields: list[str], lossy: list[str], shared: Row) -> None:
        audit, number, part, kind, command, _, table, statement, parameters, n_rows = fields[:10]
        who = (entry.facts.get("session") or entry.facts.get("process"), number, part)
        if statement == "<previously logged>" and who in self._statements:
            statement, parameters, _ = self._statements[who]
        before, logged = self._statements.get((*who, command, table)), (statement, parameters, audit)
        self._statements[who] = self._statements[(*who, command, table)] = logged
        is_new = before is None or before[:2] != logged[:2] or before[2] == audit
        if command in _OPERATIONS and kind == "WRITE" and is_new and n_rows != "0":
            given: list[str | None] = []   # an empty one may be null or empty, and is not known
            if parameters not in ("", "<none>", "<not logged>"):
                given = [each or None for each in next(csv.reader(io.StringIO(parameters, newline="")), [])]
            self._changed(entry, _LoggedStatement(command, table, statement, given, n_rows), lossy, shared)
            return
        self._emit.event(entry.record, "log", tool=command, content=statement, lossy=lossy, arguments=dumped(
            {"class": kind, "object": table, "parameters": parameters, "rows": n_rows}), **shared)
        self._end(entry, command)

    def _end(self, entry: _AuditEntry, command: str) -> None:
        """End the transaction of a process, where the command does: what a rollback took back is no change."""
        if command in ("ROLLBACK", "ABORT", *_ENDS):
            taken = self._open.pop(entry.facts.get("process"), [])
            _roll_back(taken if command not in _ENDS else [])

    def _changed(self, entry: _AuditEntry, logged: _LoggedStatement, lossy: list[str], shared: Row) -> list[Row]:
        """Emit the row changes of a statement, or the statement alone; returns the events."""
        n_rows, given = logged.n_rows, logged.parameters
        row_changes = changes(logged.statement, given) if logged.command == "INSERT" or n_rows in ("", "1") else None
        if given and row_changes is not None:
            lossy = [*lossy, "parameters as text"]
        if logged.command != "INSERT" and not n_rows:
            lossy = [*lossy, "rows not counted"]
        rows = []
        for change in row_changes or [StatementChange(None, None)]:
            self._n_changes += 1
            image: Row = {"before": change.before, "after": change.after}
            if row_changes is None:
                image |= {"statement": logged.statement, "parameters": given}
            rows.append(self._emit.event(
                entry.record, "row_change", name=_OPERATIONS[logged.command],
                tool=logged.table.rpartition(".")[2].strip('"') or "unknown", content=logged.statement,
                arguments=dumped(change.before) if change.before else None,
                position=self._n_changes, value=dumped(image), lossy=[*lossy, *change.lossy], **shared))
        self._open.setdefault(entry.facts.get("process"), []).extend(rows)
        return rows


class _StatementLog(_AuditLog):
    """The statements that a server without an audit logs before it carries them out."""

    def __init__(self, emit: Emit) -> None:
        super().__init__(emit)
        self._last: dict[Any, list[Row]] = {}
        """Changes of the last statement of each process."""
        self._inside: set[Any] = set()
        """Processes that are in a transaction."""

    def take(self, entry: _AuditEntry) -> None:
        entry.facts = entry.facts or _facts(entry.text)
        process, message = entry.facts.get("process"), entry.facts.get("message")
        match = _LOGGED.match(message) if isinstance(message, str) else None
        if match is None or entry.facts.get("severity") != "LOG":
            if entry.facts.get("severity") in ("ERROR", "FATAL"):   # it takes the statement back, or all of its transaction
                _roll_back(self._open.pop(process, []) if process in self._inside else self._last.pop(process, []))
            super().take(entry)
            return
        happened_at, lossy = _instant(entry.facts.get("time"))
        transaction = entry.facts.get("transaction")
        shared: Row = {"happened_at": happened_at, "service": self._service,
                       "call_id": str(transaction) if str(transaction or 0) != "0" else None}
        statement, detail = match["statement"], str(entry.facts.get("detail") or "")
        command = " ".join(verb[1].upper().split()) if (verb := _COMMAND.match(statement)) else ""
        given = [None if each[1] is None else each[1].replace("''", "'") for each in _PARAMETER.finditer(detail)]
        if command in _OPERATIONS:
            table = _TABLE.search(statement)
            logged = _LoggedStatement(command, table[1] if table else "", statement, given)
            self._last[process] = self._changed(entry, logged, lossy, shared)
            return
        self._emit.event(entry.record, "log", tool=command or None, content=statement, lossy=lossy,
                         arguments=dumped({"parameters": given}), **shared)
        self._last.pop(process, None)
        self._end(entry, command)
        if command in _BEGINS:
            self._inside.add(process)
        elif command in ("ROLLBACK", "ABORT", *_ENDS):
            self._inside.discard(process)


def _roll_back(rows: list[Row]) -> None:
    """Make log events of the changes that were taken back."""
    for row in rows:
        row.update(kind="log", lossy=[*row["lossy"], "rolled back"])


def _instant(text: Any) -> tuple[int | None, list[str]]:
    """Return the time in a line's prefix; a zone that is a name other than UTC is not known, and said."""
    match = _TIME.search(str(text or ""))
    if match is None:
        return microseconds(text), []
    zone = match[2] or ""
    if zone[:1] in ("+", "-"):
        return microseconds(f"{match[1]}{zone}"), []
    return microseconds(f"{match[1]}+00:00"), [] if zone in ("UTC", "GMT", "") else [f"time zone {zone} taken as UTC"]


_CHANGES = re.compile(r"(?:\s+|--[^\n]*\n|/\*.*?\*/)*+(?:insert|update|delete)\b", re.IGNORECASE | re.DOTALL)
_VALUE = re.compile(r"""
    "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \b(?!values\b|in\b)[a-z]\w*\s*\(\s*\d+(?:\s*,\s*\d+)?\s*\)
    | (?P<text>(?<![\w$])'(?:[^']|'')*') | (?P<number>(?<![\w$.])(?:\d+\.?\d*|\.\d+)(?![\w.])) | \$(?P<parameter>\d+)
    """, re.VERBOSE | re.DOTALL | re.IGNORECASE)
"""A literal or a parameter, but what stands in names, comments and types."""
_MARK = "\x1a"
"""What a text begins with that stands for a value; no log holds it."""
_UNKNOWN = object()
_MOST_DIGITS = 15
_READ = frozenset({"this", "expression", "expressions", "where", "returning", "is_function"})
"""Parts of a statement that are read; one with any other part is not simple."""


@dataclass(slots=True)
class StatementChange:
    """What one statement did to one row, as far as it says."""

    before: Row | None
    """The columns that the row was found by."""
    after: Row | None
    lossy: list[str] = field(default_factory=list)


def changes(statement: str, parameters: Sequence[str | None]) -> list[StatementChange] | None:
    """Return the changes of a statement, None where they are not certain. A parameter that is None is not known."""
    if _CHANGES.match(statement) is None:
        return None
    values: list[Any] = []

    def stand_in(match: re.Match[str]) -> str:
        if match.lastgroup is None:
            return match[0]
        values.append(_spelled(match, parameters))
        return f"'{_MARK}{len(values) - 1}'"

    shape = _VALUE.sub(stand_in, statement)
    row_changes = []
    for plan in _plan(shape) or ():
        key, written = ({name: _filled(value, values) for name, value in part.items()} for part in (plan.key, plan.written))
        if _UNKNOWN in key.values() or None in key.values():
            return None     # a condition that names no value
        after = {name: value for name, value in {**key, **written}.items() if value is not _UNKNOWN}
        lossy = [f"unknown {name}" for name, value in written.items() if value is _UNKNOWN]
        row_changes.append(StatementChange(key or None, None if plan.is_delete else after, lossy))
    return row_changes or None


class _StandIn(NamedTuple):
    """Stands for the value of that number in the statement."""

    number: int
    is_negative: bool = False


class _RowPlan(NamedTuple):
    """What a statement does to one row, before its parameters are known."""

    key: Row
    written: Row
    is_delete: bool = False


@lru_cache(1024)
def _plan(statement: str) -> list[_RowPlan] | None:
    """Return what a statement does to each row, nothing where that is not certain; None where it cannot be parsed.

    Programs send the same statement with other values: it is parsed once, with numbered texts in their place.
    """
    import sqlglot  # its import takes as long as a small file's reading, and few logs are of this format
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        [parsed] = sqlglot.parse(statement, read="postgres")
    except (SqlglotError, ValueError, RecursionError):
        return None
    if parsed is None or any(part for name, part in parsed.args.items() if name not in _READ):
        return []
    table, where = parsed.this, parsed.args.get("where")
    if isinstance(parsed, exp.Insert):
        if not isinstance(table, exp.Schema) or not isinstance(parsed.expression, exp.Values):
            return []
        columns = [_name(each) for each in table.expressions]
        rows = [each.expressions if isinstance(each, exp.Tuple) else [each] for each in parsed.expression.expressions]
        if None in columns or any(len(row) != len(columns) for row in rows):
            return []
        return [_RowPlan({}, dict(zip(map(str, columns), map(_value, row), strict=True))) for row in rows]
    key = _assigned(where.this.flatten() if isinstance(where.this, exp.And) else [where.this]) if where is not None else None
    if not isinstance(table, exp.Table) or table.args.get("joins") or not key:
        return []
    if isinstance(parsed, exp.Delete):
        return [_RowPlan(key, {}, is_delete=True)]
    written = _assigned(parsed.expressions) if isinstance(parsed, exp.Update) else None
    return [_RowPlan(key, written)] if written else []


def _assigned(parts: Any) -> Row | None:
    """Return values by column of `column = value` terms; None where one is something else."""
    from sqlglot import exp

    values: Row = {}
    for each in parts:
        term = each.unnest()
        name = _name(term.this.this) if isinstance(term, exp.EQ) and isinstance(term.this, exp.Column) else None
        if name is None:
            return None
        values[name] = _value(term.expression)
    return values


def _name(identifier: Any) -> str | None:
    from sqlglot import exp

    if not isinstance(identifier, exp.Identifier):
        return None
    return str(identifier.this) if identifier.args.get("quoted") else str(identifier.this).lower()


def _value(node: Any) -> Any:
    """Return the stand-in of a literal or a parameter, with or without a cast; anything else is not known."""
    from sqlglot import exp

    if isinstance(node, exp.Cast):
        return _value(node.this)
    if isinstance(node, exp.Neg):
        value = _value(node.this)
        return value._replace(is_negative=True) if isinstance(value, _StandIn) else _UNKNOWN
    if isinstance(node, exp.Literal) and node.is_string and str(node.this).startswith(_MARK):
        return _StandIn(int(str(node.this)[1:]))
    if isinstance(node, exp.Null):
        return None
    return bool(node.this) if isinstance(node, exp.Boolean) else _UNKNOWN


def _spelled(match: re.Match[str], parameters: Sequence[str | None]) -> Any:
    text = match[0]
    if match["text"] is not None:
        return text[1:-1].replace("''", "'")
    if match["parameter"] is not None:
        number = int(text[1:])
        parameter = parameters[number - 1] if 0 < number <= len(parameters) else None
        return _UNKNOWN if parameter is None else parameter
    return (int(text) if text.isdecimal() else float(text)) if len(text) <= _MOST_DIGITS else _UNKNOWN


def _filled(value: Any, values: Sequence[Any]) -> Any:
    if not isinstance(value, _StandIn):
        return value
    spelled = values[value.number]
    return spelled if not value.is_negative else -spelled if isinstance(spelled, (int, float)) else _UNKNOWN


FORMAT = Format(name="pgaudit", claims=claims, read=read, sample=sample("pgaudit.log"), apart=False, rank=15)
