"""Braintrust: spans of a project's logs by its query API (BTQL, in order of the pagination key).

The client of Braintrust has no pages, so requests are our own. Sees: all fields with their contents, scores and comments as
they are when a page is fetched. Does not see: attachments; rows that a plan keeps no longer.
"""

from __future__ import annotations

from urllib.parse import urlsplit
from uuid import UUID

import orjson

from extractors.sources.http_api import HttpApi
from extractors.sources.platform import Account, Identity, Platform, Query, RecordStream, SourcePage, SourceRecord
from extractors.sources.times import instant_of, iso
from warehouse.errors import InputError

_MOST = 1000
_KEY = "_pagination_key"


def _identify(record: SourceRecord) -> Identity:
    return Identity(str(record["id"]), str(record.get("root_span_id") or record["id"]), instant_of(record.get("created")))


class BraintrustConnection:
    """A project of Braintrust."""

    streams = (RecordStream("spans", _identify),)

    def __init__(self, account: Account) -> None:
        if not urlsplit(account.url).hostname:
            raise InputError(f"invalid address {account.url!r}", f"source {account.source!r}", "write it as https://HOST")
        self._account = account
        self._api = HttpApi(account, {"Authorization": f"Bearer {account.secrets['BRAINTRUST_API_KEY']}"})
        self._project_id: str | None = None

    def describe(self) -> str:
        """Return the project's name and id."""
        return f"{self._account.project} ({self._project()})"

    def fetch(self, query: Query) -> SourcePage:
        """Return a page of spans."""
        conditions = [f"created < {_quoted(iso(query.until))}"]
        if query.since:
            conditions.append(f"created >= {_quoted(iso(query.since))}")
        if query.cursor:
            conditions.append(f"{_KEY} > {_quoted(str(query.cursor['key']))}")
        conditions += [f"({given})" for given in self._account.filter.values()]
        size = min(query.page_size, _MOST)
        text = " | ".join((
            "select: *", f"from: project_logs({_quoted(self._project())}) spans", f"filter: {' and '.join(conditions)}",
            f"sort: {_KEY} asc", f"limit: {size}"))
        rows = orjson.loads(self._api.post("btql", {"query": text, "fmt": "json", "api_version": 1}))["data"]
        return SourcePage(rows, {"key": rows[-1][_KEY]} if rows else None, len(rows) < size)

    def _project(self) -> str:
        """Return the id of the project, which may be named by its name."""
        if self._project_id is None:
            name = self._account.project or ""
            try:
                self._project_id = str(UUID(name))
            except ValueError:
                projects = self._api.get("v1/project", {"project_name": name})["objects"]
                if not projects:
                    raise InputError(f"there is no project {name!r}", f"source {self._account.source!r}",
                                     "give the name or the id of a project that the key may read") from None
                self._project_id = str(projects[0]["id"])
        return self._project_id


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


PLATFORM = Platform(
    name="braintrust", title="Braintrust", connect=BraintrustConnection, url="https://api.braintrust.dev",
    project="name or id", needs_project=True, credentials={"BRAINTRUST_API_KEY": "key of a user or a service token"},
    filters={"where": "a condition in BTQL"})
