"""Langfuse: observations by its v2 API (cursor pages, with what a trace shares on each of them), and scores.

Sees: all groups of fields, with contents. Does not see: traces without an observation; metadata values beyond 200 characters,
which the API cuts unless `expand_metadata` names their keys. Needs a server with the v2 observations API.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from extractors.sources.faults import client, translated
from extractors.sources.platform import Account, Identity, Platform, Query, RecordStream, SourcePage, SourceRecord
from warehouse.errors import InputError

_FIELDS = "core,basic,time,io,metadata,model,usage,prompt,metrics,trace_context"
_SCORE_FIELDS = "score,subject,details"
_MOST = {"observations": 1000, "scores": 100}


def _identify(record: SourceRecord) -> Identity:
    return Identity(str(record["id"]), str(record.get("traceId") or record["id"]),
                    _instant(record.get("startTime") or record.get("timestamp")))


def _instant(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


class LangfuseConnection:
    """An account of Langfuse."""

    streams = (RecordStream("observations", _identify), RecordStream("scores", _identify))

    def __init__(self, account: Account) -> None:
        api = client("langfuse.api", "Langfuse", "langfuse")
        core = client("langfuse.api.core.api_error", "Langfuse", "langfuse")
        httpx = client("httpx", "Langfuse", "langfuse")
        self._account = account
        self._faults = (core.ApiError, httpx.HTTPError)
        self._api = api.LangfuseAPI(
            base_url=account.url.rstrip("/"), username=account.secrets["LANGFUSE_PUBLIC_KEY"],
            password=account.secrets["LANGFUSE_SECRET_KEY"], timeout=account.timeout_s)

    def describe(self) -> str:
        """Return the project that the keys belong to."""
        with translated(self._account, *self._faults):
            projects = self._api.projects.get(request_options={"max_retries": 0}).data
        wanted = self._account.project
        names = [str(each.name) for each in projects]
        if wanted and wanted not in (*names, *(str(each.id) for each in projects)):
            raise InputError(f"the keys belong to the project {', '.join(names)}, not to {wanted}",
                             f"source {self._account.source!r}", "use that project's keys")
        return ", ".join(names)

    def fetch(self, query: Query) -> SourcePage:
        """Return a page of observations or of scores."""
        cursor = (query.cursor or {}).get("cursor")
        limit = min(query.page_size, _MOST[query.stream])
        options: dict[str, Any] = {"limit": limit, "cursor": cursor, "request_options": {"max_retries": 0}}
        with translated(self._account, *self._faults):
            if query.stream == "observations":
                answer = self._api.observations.get_many(
                    fields=_FIELDS, from_start_time=query.since, to_start_time=query.until,
                    expand_metadata=self._account.options.get("expand_metadata"), **self._account.filter, **options)
            else:
                filters = {name: value for name, value in self._account.filter.items() if name in ("environment", "session_id")}
                answer = self._api.scores.get_many(
                    fields=_SCORE_FIELDS, from_timestamp=query.since, to_timestamp=query.until, **filters, **options)
        records = [each.model_dump(mode="json", by_alias=True, exclude_unset=True) for each in answer.data]
        following = answer.meta.cursor
        return SourcePage(records, {"cursor": following} if following else None, not following)


PLATFORM = Platform(
    name="langfuse", title="Langfuse", connect=LangfuseConnection, url="https://cloud.langfuse.com",
    project="its name, which is checked against the keys",
    credentials={"LANGFUSE_PUBLIC_KEY": "public key of the project", "LANGFUSE_SECRET_KEY": "secret key of the project"},
    filters={"environment": "environment", "name": "name of the observation", "session_id": "session", "user_id": "user",
             "trace_id": "trace", "version": "version"},
    options={"expand_metadata": "keys of metadata, separated by commas, that are read beyond 200 characters"})
