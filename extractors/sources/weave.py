"""W&B Weave: calls of a project with their feedback, by its service API (in order of start, pages by their offset).

The client of Weave brings a tracer and W&B, so requests are our own. Does not see: what is behind `weave:///` references.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import orjson

from extractors.sources.http_api import HttpApi
from extractors.sources.platform import Account, Identity, Platform, Query, RecordStream, SourcePage, SourceRecord
from extractors.sources.times import instant_of
from warehouse.errors import InputError

_MOST = 1000


def _identify(record: SourceRecord) -> Identity:
    return Identity(str(record["id"]), str(record.get("trace_id") or record["id"]), instant_of(record.get("started_at")))


class WeaveConnection:
    """A project of Weave."""

    streams = (RecordStream("calls", _identify),)

    def __init__(self, account: Account) -> None:
        if (account.project or "").count("/") != 1:
            raise InputError(f"invalid project {account.project!r}", f"source {account.source!r}", "write it as ENTITY/PROJECT")
        key = base64.b64encode(f"api:{account.secrets['WANDB_API_KEY']}".encode()).decode()
        self._account = account
        self._api = HttpApi(account, {"Authorization": f"Basic {key}"})

    def describe(self) -> str:
        """Return the project, whose calls the server counts."""
        answer = orjson.loads(self._api.post("calls/query_stats", {"project_id": self._account.project}))
        return f"{self._account.project}, {int(answer['count']):,} calls"

    def fetch(self, query: Query) -> SourcePage:
        """Return a page of calls."""
        offset = int((query.cursor or {}).get("offset", 0))
        size = min(query.page_size, _MOST)
        conditions = [{"$not": [_from(query.until)]}, *([_from(query.since)] if query.since else [])]
        body: dict[str, Any] = {
            "project_id": self._account.project, "limit": size, "offset": offset, "include_feedback": True,
            "sort_by": [{"field": "started_at", "direction": "asc"}, {"field": "id", "direction": "asc"}],
            "query": {"$expr": {"$and": conditions}}}
        if op := self._account.filter.get("op_name"):
            body["filter"] = {"op_names": [op]}
        lines = self._api.post("calls/stream_query", body).splitlines()
        records = [orjson.loads(line) for line in lines if line.strip()]
        return SourcePage(records, {"offset": offset + len(records)}, len(records) < size)


def _from(instant: datetime) -> dict[str, Any]:
    """Return the condition that a call began at this instant or later."""
    return {"$gte": [{"$getField": "started_at"}, {"$literal": instant.timestamp()}]}


PLATFORM = Platform(
    name="weave", title="W&B Weave", connect=WeaveConnection, url="https://trace.wandb.ai", project="ENTITY/PROJECT",
    needs_project=True, credentials={"WANDB_API_KEY": "key of a user or a service account"},
    filters={"op_name": "reference of an op (weave:///…)"})
