"""What a folder remembers of its pulls: the cursor of each stream, the window that it is in, and what was written lately.

One SQLite file beside the pulled files, hidden from runs. Each method is one transaction: a process that is killed leaves the
state before or after it. The keys are accounts (platform, address, project, filter): another project has cursors of its own.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from extractors.sources import Account, Cursor

NAME = ".pull.sqlite"
_SCHEMA = """
create table if not exists windows (
    account text, stream text, since text, until text, cursor text, previous text, n_pages integer, is_listed integer,
    primary key (account, stream));
create table if not exists streams (
    account text, stream text, ends_at text, last_cursor text, pulled_at text, n_records integer,
    primary key (account, stream));
create table if not exists written (
    account text, stream text, id text, digest text, window_end text, primary key (account, stream, id));
"""


@dataclass(frozen=True)
class Window:
    """A window of time that is being pulled, and how far."""

    since: datetime | None
    until: datetime
    cursor: Cursor | None = None
    previous: Cursor | None = None
    n_pages: int = 0
    is_listed: bool = False
    """Whether its last page is stored."""


@dataclass(frozen=True)
class StreamState:
    """What was pulled of a stream."""

    ends_at: datetime | None = None
    """End of the last whole window."""
    last_cursor: Cursor | None = None
    pulled_at: datetime | None = None
    n_records: int = 0


def digest_account(platform: str, account: Account) -> str:
    """Return the id of an account: the same for the same platform, address, project, filter and options."""
    parts = [platform, account.url.rstrip("/"), account.project, dict(account.filter), dict(account.options)]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


class Cursors:
    """The state of the pulls into one folder."""

    def __init__(self, folder: Path, account: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / NAME
        self._account = account
        with closing(self._connected()) as database, database:
            database.executescript(_SCHEMA)

    def _connected(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path)
        database.execute("pragma synchronous = full")
        return database

    def state(self, stream: str) -> StreamState:
        with closing(self._connected()) as database:
            row = database.execute("select ends_at, last_cursor, pulled_at, n_records from streams where account = ? "
                                   "and stream = ?", (self._account, stream)).fetchone()
        if row is None:
            return StreamState()
        return StreamState(_instant(row[0]), _loaded(row[1]), _instant(row[2]), row[3])

    def window(self, stream: str) -> Window | None:
        """Return the window that an earlier pull did not finish."""
        with closing(self._connected()) as database:
            row = database.execute("select since, until, cursor, previous, n_pages, is_listed from windows "
                                   "where account = ? and stream = ?", (self._account, stream)).fetchone()
        if row is None:
            return None
        return Window(_instant(row[0]), datetime.fromisoformat(row[1]), _loaded(row[2]), _loaded(row[3]), row[4],
                      bool(row[5]))

    def advance(self, stream: str, window: Window) -> None:
        """Store how far a window is pulled."""
        with closing(self._connected()) as database, database:
            database.execute("insert or replace into windows values (?, ?, ?, ?, ?, ?, ?, ?)", (
                self._account, stream, _text(window.since), _text(window.until), _dumped(window.cursor),
                _dumped(window.previous), window.n_pages, window.is_listed))

    def digests(self, stream: str) -> dict[str, str]:
        """Return the digest of each record that was written lately, by its id."""
        with closing(self._connected()) as database:
            return dict(database.execute("select id, digest from written where account = ? and stream = ?",
                                         (self._account, stream)))

    def deliver(self, stream: str, window: Window, listed: Iterable[tuple[str, str]], n_new: int, is_finished: bool) -> None:
        """Note the records that a window listed, and that it is finished: then what older windows listed is forgotten."""
        with closing(self._connected()) as database, database:
            key, until = (self._account, stream), _text(window.until)
            database.executemany("insert or replace into written values (?, ?, ?, ?, ?)",
                                 ((*key, record_id, digest, until) for record_id, digest in listed))
            row = database.execute("select ends_at, last_cursor, n_records from streams where account = ? and stream = ?",
                                   key).fetchone() or (None, None, 0)
            ends_at, last = row[0], row[1]
            if is_finished:
                ends_at = max(row[0] or "", until or "")
                last = _dumped(window.cursor) or last
                database.execute("delete from windows where account = ? and stream = ?", key)
                database.execute("delete from written where account = ? and stream = ? and window_end <> ?", (*key, until))
            database.execute("insert or replace into streams values (?, ?, ?, ?, ?, ?)", (
                *key, ends_at, last, datetime.now(UTC).isoformat(), row[2] + n_new))


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _text(instant: datetime | None) -> str | None:
    return instant.astimezone(UTC).isoformat(timespec="microseconds") if instant else None


def _dumped(cursor: Cursor | None) -> str | None:
    return None if cursor is None else orjson.dumps(cursor).decode()


def _loaded(text: str | None) -> Cursor | None:
    return orjson.loads(text) if text else None
