"""Pull a source: list its pages from where the last pull ended, and publish what is new in the folder that a run reads.

A pull lists a window of time, from the end of the last window (less an overlap) to now (less a time to settle). Each page
becomes a file in a hidden folder, whole or absent, and then the cursor moves on: a pull that is killed continues with the first
page that is missing. When the window is complete, its new records become one file of JSON lines, as a dump of that window would
be: runs see conversations whole, wherever pages were cut. Records that an earlier window published unchanged are left out; if
one of a trace is new or has changed, its whole trace is published, so that the parts of a conversation stay together.
A window of more than 128 MB is published in several files. Does not see: records that change after the overlap.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeVar

import orjson

from extractors.configuration import Pull, Source
from extractors.sources import Connection, CursorExpired, Identity, Query, RecordStream, RetryableFault, SourcePage
from pipelines.durable_files import write_durably
from pipelines.sources.accounts import account_of, folder_of
from pipelines.sources.cursors import Cursors, StreamState, Window, digest_account
from pipelines.sources.inbox import alone, json_lines

_SPOOL = ".pages"
_PUBLISH_BYTES = 1 << 27
_ATTEMPTS = 8
"""Requests for one page before the pull ends."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0
_LONGEST_STATED_S = 900.0
"""A platform that asks to wait longer ends the pull; the next one continues."""

Tell = Callable[[str], None]
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Bounds:
    """Limits of one pull, instead of the configuration's."""

    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None


@dataclass
class Pulled:
    """What a pull did to a source."""

    source: str
    platform: str
    folder: str
    n_pages: int = 0
    n_listed: int = 0
    n_records: int = 0
    """New or changed records that were published."""
    n_waits: int = 0
    is_complete: bool = True
    """Whether every window ended; False: the limit ended it, and the next pull continues."""


def pull(source: Source, bounds: Bounds, tell: Tell) -> Pulled:
    """Pull a source to the present. Raises `InputError`, `Unavailable`, `Busy`; what was pulled until then stays."""
    platform, account = account_of(source)
    folder = folder_of(source)
    connection = platform.connect(account)
    pulled = Pulled(source.name, platform.name, str(folder))
    with alone(folder):
        cursors = Cursors(folder, digest_account(platform.name, account))
        for stream in connection.streams:
            _StreamPull(source, connection, stream, cursors, folder / _SPOOL / stream.name, bounds, pulled, tell).carry_out()
    return pulled


def first_page(source: Source) -> tuple[str, SourcePage, RecordStream]:
    """Return the project's name and the first page of what the next pull would list. Raises `InputError`, `Unavailable`."""
    platform, account = account_of(source)
    connection = platform.connect(account)
    stream = connection.streams[0]
    name = _fetched(connection.describe, lambda _: None)
    cursors = Cursors(folder_of(source), digest_account(platform.name, account))
    window = cursors.window(stream.name) or _next_window(source, cursors.state(stream.name), Bounds())
    page = _fetched(lambda: connection.fetch(_query(source, stream, window)), lambda _: None)
    return name, page, stream


def _next_window(source: Source, state: StreamState, bounds: Bounds) -> Window:
    """Return the window after the last one: it begins an overlap before that one's end."""
    pull = source.pull or Pull(platform="")
    latest = datetime.now(UTC) - timedelta(minutes=pull.settle_minutes)
    given = [each for each in (bounds.until, instant(pull.until)) if each]
    until = min(given[0], latest) if given else latest
    since = bounds.since or instant(pull.since)
    if state.ends_at is not None and bounds.since is None:
        resumed = state.ends_at - timedelta(minutes=pull.overlap_minutes)
        since = max(since, resumed) if since else resumed
    return Window(since, until, previous=state.last_cursor)


def instant(text: str | None) -> datetime | None:
    """Return an instant of the configuration; one without a zone is UTC."""
    if text is None:
        return None
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _query(source: Source, stream: RecordStream, window: Window, most: int | None = None) -> Query:
    size = source.pull.page_size if source.pull else 1
    size = size if most is None else min(size, most)
    return Query(stream.name, window.since, window.until, size, window.cursor, window.previous)


class _Listed(NamedTuple):
    """A record of the pages."""

    identity: Identity
    digest: str
    line: int


@dataclass
class _StreamPull:
    """One stream of one pull."""

    source: Source
    connection: Connection
    stream: RecordStream
    cursors: Cursors
    spool: Path
    bounds: Bounds
    pulled: Pulled
    tell: Tell

    def carry_out(self) -> None:
        window = self._begun()
        if window.since is not None and window.since >= window.until:
            return
        limit = self.bounds.limit or (self.source.pull.limit if self.source.pull else None)
        n_listed, n_bytes = 0, sum(path.stat().st_size for path in self._pages())
        while not window.is_listed and (limit is None or n_listed < limit):
            query = _query(self.source, self.stream, window, None if limit is None else limit - n_listed)
            page, window = self._page(query, window)
            n_bytes += self._keep(window.n_pages, page)
            n_listed += len(page.records)
            for note in page.notes:
                self.tell(note)
            window = replace(window, cursor=page.cursor or window.cursor, n_pages=window.n_pages + 1, is_listed=page.is_last)
            self.cursors.advance(self.stream.name, window)
            if n_bytes >= _PUBLISH_BYTES and not window.is_listed:
                self._publish(window)
                n_bytes = 0
        self.pulled.n_listed += n_listed
        self._publish(window)
        self.pulled.is_complete = self.pulled.is_complete and window.is_listed

    def _begun(self) -> Window:
        """Return the window of a pull that did not end, else the next one."""
        window = self.cursors.window(self.stream.name)
        is_other = self.bounds.since is not None and window is not None and window.since != self.bounds.since
        if window is None or is_other:
            shutil.rmtree(self.spool, ignore_errors=True)
            return _next_window(self.source, self.cursors.state(self.stream.name), self.bounds)
        return window

    def _page(self, query: Query, window: Window) -> tuple[SourcePage, Window]:
        """Return the next page, and its window: from the beginning where the platform has forgotten the cursor."""
        try:
            return _fetched(lambda: self.connection.fetch(query), self._wait), window
        except CursorExpired:
            if window.cursor is None:
                raise
        shutil.rmtree(self.spool, ignore_errors=True)
        window = replace(window, cursor=None, n_pages=0)
        self.cursors.advance(self.stream.name, window)
        return _fetched(lambda: self.connection.fetch(replace(query, cursor=None)), self._wait), window

    def _keep(self, number: int, page: SourcePage) -> int:
        self.pulled.n_pages += 1
        path = self.spool / f"{number:08}.jsonl"
        write_durably(path, json_lines(page.records))
        return path.stat().st_size

    def _pages(self) -> list[Path]:
        return sorted(self.spool.glob("*.jsonl"))

    def _publish(self, window: Window) -> None:
        """Write the file of a window (or of a part of it), note its records, and remove its pages."""
        listed = self._listed()
        published = self.cursors.digests(self.stream.name)
        new = [each for record_id, each in listed.items() if published.get(record_id) != each.digest]
        groups = {each.identity.group for each in new}
        wanted = [each for each in listed.values() if each.identity.group in groups]
        if wanted:
            content = hashlib.sha256("".join(each.digest for each in wanted).encode()).hexdigest()
            name = f"{self.stream.name}-{window.until:%Y%m%dT%H%M%SZ}-{content[:16]}.jsonl"
            write_durably(self.spool.parent.parent / name, self._lines({each.line for each in wanted}))
        pull = self.source.pull or Pull(platform="")
        overlap = window.until - timedelta(minutes=pull.overlap_minutes)
        lately = ((record_id, each.digest) for record_id, each in listed.items()
                  if each.identity.happened_at is None or each.identity.happened_at >= overlap)
        self.cursors.deliver(self.stream.name, window, lately, len(new), window.is_listed)
        self.pulled.n_records += len(new)
        shutil.rmtree(self.spool, ignore_errors=True)

    def _listed(self) -> dict[str, _Listed]:
        """Return the records of the pages by their ids; of one listed twice, the last."""
        listed: dict[str, _Listed] = {}
        for number, line in enumerate(self._every_line()):
            record = orjson.loads(line)
            identity = self.stream.identify(record)
            digest = hashlib.sha256(orjson.dumps(record, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
            listed[identity.record_id] = _Listed(identity, digest, number)
        return listed

    def _lines(self, wanted: set[int]) -> Iterator[bytes]:
        return (line for number, line in enumerate(self._every_line()) if number in wanted)

    def _every_line(self) -> Iterator[bytes]:
        for path in self._pages():
            with path.open("rb") as file:
                yield from file

    def _wait(self, why: str) -> None:
        self.pulled.n_waits += 1
        self.tell(why)


def _fetched(request: Callable[[], Answer], tell: Tell) -> Answer:
    """Send a request until it is answered, with growing pauses. Raises what does not pass."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return request()
        except RetryableFault as error:
            stated = error.wait_s
            if attempt == _ATTEMPTS or (stated or 0) > _LONGEST_STATED_S:
                raise
            wait_s = stated if stated is not None else min(_FIRST_WAIT_S * 2 ** (attempt - 1), _LONGEST_WAIT_S)
            tell(f"{error.what}; waiting {wait_s:.0f} s")
            time.sleep(wait_s)
    raise AssertionError("the last attempt returns or raises")
