"""What a platform that holds logs is: a name, the credentials it needs, and a connection that fetches one page at a time.

In: an account (address, project, filter, credentials). Out: pages of records as JSON values, in the shape that a format of
`extractors.formats` reads from that platform's dumps. A connection keeps no state: the cursor of a page is all that is needed
to fetch the next one, in this process or in another. `pipelines.sources` writes pages, keeps cursors and retries.
A platform of another package is a `Platform` that an entry point of the group `traceroom.sources` names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

SourceRecord = dict[str, Any]
Cursor = dict[str, Any]
"""Where a stream goes on: a JSON object that only its platform understands."""


@dataclass(frozen=True)
class Account:
    """What a connection needs to know."""

    source: str
    """Name of the source."""
    url: str
    """Address of the platform."""
    project: str | None = None
    filter: Mapping[str, str] = field(default_factory=dict)
    """Only records with these values; the names are those of `Platform.filters`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Settings of this platform alone; the names are those of `Platform.options`."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Credentials by the name of their variable."""
    timeout_s: float = 60.0
    """Seconds that a request may take."""

    def redact(self, text: str) -> str:
        """Return a text without the credentials."""
        for secret in sorted(self.secrets.values(), key=len, reverse=True):
            text = text.replace(secret, "[removed]") if secret else text
        return text


@dataclass(frozen=True)
class Query:
    """What to fetch."""

    stream: str
    since: datetime | None
    """Records from this instant on (UTC); None: from the first."""
    until: datetime
    """Records before this instant (UTC)."""
    page_size: int
    """Records in a page, at most; a platform may allow fewer."""
    cursor: Cursor | None = None
    """Of the page before, in the same window; None: the first page."""
    previous: Cursor | None = None
    """Of the last page of the window before this one, for platforms whose order is not that of time; None: no window yet."""


@dataclass(frozen=True)
class SourcePage:
    """Records that the platform gave at once, and where to go on."""

    records: Sequence[SourceRecord]
    cursor: Cursor | None
    """What fetches the next page, or where the window ends."""
    is_last: bool
    notes: tuple[str, ...] = ()
    """What the person should know of it."""


class Identity(NamedTuple):
    """What a record is."""

    record_id: str
    group: str
    """Id of the trace (or other group) whose records belong in one file."""
    happened_at: datetime | None
    """Instant by which the platform lists it; None: unknown, or it has none."""


@dataclass(frozen=True)
class RecordStream:
    """Records of one kind: traces, scores, rows. Each stream has a cursor and files of its own."""

    name: str
    identify: Callable[[SourceRecord], Identity]


class Connection(Protocol):
    """An open account."""

    @property
    def streams(self) -> tuple[RecordStream, ...]:
        """Kinds of records, in the order in which they are pulled."""

    def describe(self) -> str:
        """Ask the platform for the project and return its name in a few words. Raises `InputError` for a wrong address, key or
        project; `RetryableFault`."""

    def fetch(self, query: Query) -> SourcePage:
        """Return one page. Raises `InputError`, `RetryableFault`, `CursorExpired`."""


@dataclass(frozen=True)
class Platform:
    """A kind of source."""

    name: str
    title: str
    """As people call it."""
    connect: Callable[[Account], Connection]
    """Loads the client. Raises `Unavailable` if it is not installed, `InputError`."""
    url: str | None = None
    """Address where none is given; None: one is needed."""
    project: str | None = None
    """What `project` names there; None: the key alone decides."""
    needs_project: bool = False
    credentials: Mapping[str, str] = field(default_factory=dict)
    """Environment variable -> what it holds; all are needed, but for `optional`."""
    optional: frozenset[str] = frozenset()
    """Credentials that a server without accounts does not need."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """Name in `filter` -> what it selects."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Name in `options` -> what it does."""
