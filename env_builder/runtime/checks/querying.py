"""Checks by a query over the final world: `sql`.

Sees the tables `TABLES` of one episode in SQLite, in memory; of `documents` what the episode changed (null: removed) and what
`entities` names. A query only reads: an authorizer allows reading these tables and functions that give the same for the same,
and nothing else; it stops after `MOST_STEPS` steps of SQLite's machine, which counts alike everywhere. Does not see: documents
that the episode left alone and `entities` does not name.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

from ..canonical import written
from ..schemas import fields
from .kind import CheckKind, CheckResult, EpisodeView, Parameters

MOST_STEPS = 2_000_000
"""Steps of SQLite's virtual machine that one query may take: about a tenth of a second."""
STEPS_A_LOOK = 10_000
LONGEST_VALUE = 4_000_000
"""Bytes of the longest value that a query may make."""
TABLES = """
create table documents (class text, key text, value text);
create table acts (tool text, arguments text);
create table calls (place integer, tool text, arguments text, content text, is_error integer, tier text);
create table words (place integer, content text, reply text);
"""
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
FICKLE = {
    "random", "randomblob", "load_extension", "date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff",
    "current_date", "current_time", "current_timestamp", "changes", "total_changes", "last_insert_rowid", "sqlite_version",
    "sqlite_source_id", "sqlite_compileoption_get", "sqlite_compileoption_used", "zeroblob", "fts3_tokenizer", "readfile",
    "writefile", "edit", "sqlite_offset", "sqlite_log",
}
"""Functions that may give something else the next time or on another machine, or that are no matter of a query."""


def _database() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(TABLES)
    _guard(database)
    return database


def _guard(database: sqlite3.Connection) -> None:
    budget = [MOST_STEPS // STEPS_A_LOOK]

    def allowed(action: int, _: str | None, name: str | None, *__: str | None) -> int:
        fickle = action == sqlite3.SQLITE_FUNCTION and (name or "").lower() in FICKLE
        return sqlite3.SQLITE_DENY if action not in ALLOWED or fickle else sqlite3.SQLITE_OK

    def stop() -> int:
        budget[0] -= 1
        return int(budget[0] < 0)

    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    database.set_progress_handler(stop, STEPS_A_LOOK)
    database.set_authorizer(allowed)


def _fill(database: sqlite3.Connection, entities: list[str], view: EpisodeView) -> None:
    changed = dict(view.episode.difference.get("documents", {}))
    looked = {name: view.document(name)[1] for name in entities if name not in changed}
    documents = {**changed, **{name: value for name, value in looked.items() if value is not None}}
    for name, value in sorted(documents.items()):
        kind, _, key = name.partition("/")
        database.execute("insert into documents values (?, ?, ?)", (_text(kind), _text(key), _text(value)))
    database.executemany("insert into acts values (?, ?)", (
        (_text(tool), _text(arguments)) for tool, arguments in view.episode.difference.get("write_calls", ())))
    database.executemany("insert into calls values (?, ?, ?, ?, ?, ?)", (
        (place, _text(row["tool"]), _json(row.get("arguments")), _text(row.get("content")), int(bool(row.get("is_error"))),
         _text(row.get("tier"))) for place, row in view.calls))
    database.executemany("insert into words values (?, ?, ?)", (
        (place, _text(text), _text(view.episode.journal[place].get("reply"))) for place, text in view.messages))


def _text(value: Any) -> str | None:
    """Text that SQLite can hold: a half of a pair of surrogates is none."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _json(value: Any) -> str | None:
    text = written(value)
    return _text(json.dumps(type(value).__name__) if text is None else text)


class SqlCheck(CheckKind):
    """Check by an SQL query over the episode and its end state."""

    description = "A query over the final world gives one row with one value, and it is `equals` (1)."
    parameters = fields(
        "query", query={"type": "string", "minLength": 1}, equals={"type": ["number", "string", "boolean", "null"]},
        entities={"type": "array", "items": {"type": "string"}})

    def prepare(self, parameters: Parameters) -> Parameters:
        with closing(_database()) as database:
            try:
                database.execute(parameters["query"])
            except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
                raise ValueError(f"SQLite refuses the query ({error})") from error
        return parameters

    def judge(self, parameters: Parameters, view: EpisodeView) -> CheckResult:
        doubtful = view.leans()
        with closing(_database()) as database:
            database.set_authorizer(None)
            database.set_progress_handler(None, 0)
            try:
                _fill(database, parameters.get("entities", []), view)
                _guard(database)
                rows = database.execute(parameters["query"]).fetchmany(2)
            except (sqlite3.Error, ValueError) as error:
                return CheckResult(False, {"failed": str(error)[:200]}, doubtful)
        value = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else None
        shown = value if isinstance(value, int | float | str | None) else "a blob"
        wanted = parameters.get("equals", 1)  # SQLite has no boolean: true is 1
        equal = type(value) in (int, float) and value == wanted if isinstance(wanted, int | float) else bool(value == wanted)
        passed = len(rows) == 1 and len(rows[0]) == 1 and not isinstance(value, bytes) and equal
        return CheckResult(passed, {"value": shown[:200] if isinstance(shown, str) else shown, "rows": len(rows)}, doubtful)
