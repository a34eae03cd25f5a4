"""LangSmith: runs of a project by its client's requests (cursor pages in order of start), and the feedback on them.

Sees: runs with inputs and outputs, tags, metadata. Does not see: attachments, feedback that comes on a run after the overlap.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.sources.faults import client, translated
from extractors.sources.platform import Account, Identity, Platform, Query, RecordStream, SourcePage, SourceRecord
from extractors.sources.times import instant_of, iso
from warehouse.errors import InputError

_MOST = 100
_FIELDS = ("app_path", "completion_tokens", "dotted_order", "end_time", "error", "events", "extra", "feedback_stats",
           "first_token_time", "id", "inputs", "name", "outputs", "parent_run_id", "parent_run_ids", "prompt_tokens",
           "reference_example_id", "run_type", "session_id", "start_time", "status", "tags", "total_tokens", "trace_id")


def _identify(record: SourceRecord) -> Identity:
    happened_at = record.get("start_time") or record.get("created_at")
    return Identity(str(record["id"]), str(record.get("trace_id") or record["id"]), instant_of(happened_at))


class LangSmithConnection:
    """A project of LangSmith."""

    streams = (RecordStream("runs", _identify), RecordStream("feedback", _identify))

    def __init__(self, account: Account) -> None:
        langsmith = client("langsmith", "LangSmith", "langsmith")
        utils = client("langsmith.utils", "LangSmith", "langsmith")
        requests, urllib3 = client("requests", "LangSmith", "langsmith"), client("urllib3", "LangSmith", "langsmith")
        self._account = account
        self._faults = (utils.LangSmithError, requests.RequestException)
        self._client = langsmith.Client(
            api_url=account.url.rstrip("/"), api_key=account.secrets["LANGSMITH_API_KEY"], auto_batch_tracing=False,
            retry_config=urllib3.Retry(0), timeout_ms=int(account.timeout_s * 1000))
        self._project_id = ""

    def describe(self) -> str:
        """Return the project's name."""
        self._find_project()
        return str(self._account.project)

    def _find_project(self) -> str:
        if not self._project_id:
            rows = self._sent("GET", "/sessions", {"params": {"name": self._account.project, "limit": 1}})
            if not rows:
                raise InputError(f"there is no project {self._account.project!r}", f"source {self._account.source!r}",
                                 "check the project, and the workspace of the key")
            self._project_id = str(rows[0]["id"])
        return self._project_id

    def _sent(self, method: str, path: str, arguments: dict[str, Any]) -> Any:
        with translated(self._account, *self._faults):
            return self._client.request_with_retries(method, path, request_kwargs=arguments).json()

    def fetch(self, query: Query) -> SourcePage:
        """Return a page of runs, or the feedback on a page of runs."""
        body: dict[str, Any] = {
            "session": [self._find_project()], "filter": self._filter(query), "order": "asc",
            "limit": min(query.page_size, _MOST), "cursor": (query.cursor or {}).get("cursor"),
            "select": list(_FIELDS) if query.stream == "runs" else ["id", "start_time", "trace_id"]}
        if root := self._account.filter.get("is_root"):
            body["is_root"] = root == "true"
        content = orjson.dumps({key: value for key, value in body.items() if value is not None})
        answer = self._sent("POST", "/runs/query", {"data": content})
        runs, following = answer.get("runs") or [], (answer.get("cursors") or {}).get("next")
        records = runs if query.stream == "runs" else self._feedback([run["id"] for run in runs])
        return SourcePage(records, {"cursor": following} if following else None, not following or not runs)

    def _filter(self, query: Query) -> str:
        parts = [f'lt(start_time, "{iso(query.until)}")']
        if query.since:
            parts.append(f'gte(start_time, "{iso(query.since)}")')
        if given := self._account.filter.get("filter"):
            parts.append(given)
        return f"and({', '.join(parts)})" if len(parts) > 1 else parts[0]

    def _feedback(self, run_ids: list[str]) -> list[SourceRecord]:
        """Return all feedback on some runs."""
        rows: list[SourceRecord] = []
        while run_ids:
            given = {"run": run_ids, "limit": _MOST, "offset": len(rows)}
            page = self._sent("GET", "/feedback", {"params": given})
            rows += page
            if len(page) < _MOST:
                break
        return rows


PLATFORM = Platform(
    name="langsmith", title="LangSmith", connect=LangSmithConnection, url="https://api.smith.langchain.com",
    project="its name", needs_project=True, credentials={"LANGSMITH_API_KEY": "key of the workspace"},
    filters={"filter": "a condition in LangSmith's filter language", "is_root": "true: the first run of each trace alone"})
