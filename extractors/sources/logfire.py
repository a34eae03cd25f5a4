"""Logfire: rows of `records` by its query client, in order of their start (SQL; each page begins after the last row).

Sees: all columns. Does not see: spans that are still open (`pending_span`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from extractors.sources.faults import StatusFault, client, translated
from extractors.sources.platform import Account, Identity, Platform, Query, RecordStream, SourcePage, SourceRecord
from extractors.sources.times import instant_of, iso

_MOST = 10_000
_FIRST = datetime(2023, 1, 1, tzinfo=UTC)
"""Logfire is younger than this; a query needs a beginning."""
_STATUS = re.compile(r"status code (\d{3})")
_KEY = ("start_timestamp", "trace_id", "span_id", "kind")


def _identify(record: SourceRecord) -> Identity:
    return Identity(f"{record['trace_id']}/{record['span_id']}/{record['kind']}", str(record["trace_id"]),
                    instant_of(record["start_timestamp"]))


class LogfireConnection:
    """A project of Logfire."""

    streams = (RecordStream("records", _identify),)

    def __init__(self, account: Account) -> None:
        logfire = client("logfire.query_client", "Logfire", "logfire")
        httpx = client("httpx", "Logfire", "logfire")
        self._account = account
        self._rejections = (logfire.QueryExecutionError, logfire.QueryRequestError, logfire.InfoRequestError)
        self._unexpected = logfire.UnexpectedResponseError
        self._lost = httpx.HTTPError
        self._client = logfire.LogfireQueryClient(
            read_token=account.secrets["LOGFIRE_READ_TOKEN"], base_url=account.url, timeout=httpx.Timeout(account.timeout_s))

    def describe(self) -> str:
        """Return the project that the token reads."""
        with self._translated():
            info = self._client.info()
        return f"{info['organization_name']}/{info['project_name']}"

    @contextmanager
    def _translated(self) -> Iterator[None]:
        with translated(self._account, StatusFault, self._lost):
            try:
                yield
            except self._rejections as error:
                raise StatusFault(str(error), 400) from None
            except self._unexpected as error:
                stated = _STATUS.search(str(error))
                wait_s = getattr(error, "retry_after", None)
                headers = {} if wait_s is None else {"retry-after": str(wait_s)}
                raise StatusFault(str(error), int(stated[1]) if stated else None, headers) from None

    def fetch(self, query: Query) -> SourcePage:
        """Return a page of rows."""
        since = query.since or _FIRST
        parts = ["kind <> 'pending_span'", f"start_timestamp >= '{iso(since)}'", f"start_timestamp < '{iso(query.until)}'"]
        if query.cursor:
            values = ", ".join(_quoted(str(query.cursor[name])) for name in _KEY)
            parts.append(f"({', '.join(_KEY)}) > ({values})")
        if service := self._account.filter.get("service_name"):
            parts.append(f"service_name = {_quoted(service)}")
        if given := self._account.filter.get("where"):
            parts.append(f"({given})")
        size = min(query.page_size, _MOST)
        sql = f"select * from records where {' and '.join(parts)} order by {', '.join(_KEY)} limit {size}"
        with self._translated():
            rows = self._client.query_json_rows(
                sql, min_timestamp=since - timedelta(days=1), max_timestamp=query.until + timedelta(days=1), limit=size,
                environment=self._account.filter.get("environment"))["rows"]
        cursor = {name: rows[-1][name] for name in _KEY} if rows else None
        return SourcePage(rows, cursor, len(rows) < size)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


PLATFORM = Platform(
    name="logfire", title="Logfire", connect=LogfireConnection, url="https://logfire-us.pydantic.dev",
    credentials={"LOGFIRE_READ_TOKEN": "read token of the project"},
    filters={"environment": "environment", "service_name": "service", "where": "a condition in SQL"})
