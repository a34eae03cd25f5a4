"""Phoenix: spans of a project by its REST API (cursor pages), and the annotations on them.

The client of Phoenix gives lists without a cursor, so requests are our own. Does not see: annotations that come on a span after
the overlap, those on traces and sessions, dropped attributes.
"""

from __future__ import annotations

from urllib.parse import quote

from extractors.sources.http_api import HttpApi
from extractors.sources.platform import Account, Identity, Platform, Query, RecordStream, SourcePage, SourceRecord
from extractors.sources.times import instant_of, iso

_MOST = 1000
_IDS = 100
"""Spans in a request for annotations."""


def _identify_span(record: SourceRecord) -> Identity:
    context = record["context"]
    trace_id = str(context["trace_id"])
    return Identity(f"{trace_id}/{context['span_id']}", trace_id, instant_of(record.get("start_time")))


def _identify_annotation(record: SourceRecord) -> Identity:
    return Identity(str(record["id"]), str(record.get("span_id") or record["id"]), instant_of(record.get("updated_at")))


class PhoenixConnection:
    """A project of Phoenix."""

    streams = (RecordStream("spans", _identify_span), RecordStream("annotations", _identify_annotation))

    def __init__(self, account: Account) -> None:
        key = account.secrets.get("PHOENIX_API_KEY")
        self._account = account
        self._api = HttpApi(account, {"Authorization": f"Bearer {key}"} if key else {})
        self._path = f"v1/projects/{quote(account.project or 'default', safe='')}"

    def describe(self) -> str:
        """Return the project's name."""
        return str(self._api.get(self._path)["data"]["name"])

    def fetch(self, query: Query) -> SourcePage:
        """Return a page of spans, or the annotations on a page of spans."""
        answer = self._api.get(f"{self._path}/spans", {
            "limit": min(query.page_size, _MOST), "cursor": (query.cursor or {}).get("cursor"),
            "start_time": iso(query.since) if query.since else None, "end_time": iso(query.until), **self._account.filter})
        spans, following = answer["data"], answer.get("next_cursor")
        records = spans if query.stream == "spans" else self._annotations([each["context"]["span_id"] for each in spans])
        return SourcePage(records, {"cursor": following} if following else None, not following)

    def _annotations(self, span_ids: list[str]) -> list[SourceRecord]:
        rows: list[SourceRecord] = []
        for start in range(0, len(span_ids), _IDS):
            cursor = None
            while True:
                answer = self._api.get(f"{self._path}/span_annotations", {
                    "span_ids": span_ids[start:start + _IDS], "limit": _MOST, "cursor": cursor})
                rows += answer["data"]
                if not (cursor := answer.get("next_cursor")):
                    break
        return rows


PLATFORM = Platform(
    name="phoenix", title="Phoenix", connect=PhoenixConnection, url="https://app.phoenix.arize.com", project="name or id",
    needs_project=True, credentials={"PHOENIX_API_KEY": "key of the space"}, optional=frozenset({"PHOENIX_API_KEY"}),
    filters={"name": "name of the span", "span_kind": "kind of the span", "status_code": "status of the span"})
