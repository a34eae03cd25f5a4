"""OpenAI's stored chat completions, with the messages that each was asked, by its client (cursor pages in order of time).

The API has no window of time: a pull goes on after the last completion of the one before, and takes what is in its window.
Does not see: completions that were not stored (`store`), changes of metadata after they were pulled.
"""

from __future__ import annotations

from typing import Any

from extractors.sources.faults import client, translated
from extractors.sources.platform import Account, Identity, Platform, Query, RecordStream, SourcePage, SourceRecord
from extractors.sources.times import instant_of

_MOST = 100


def _identify(record: SourceRecord) -> Identity:
    """Identify a completion, or a list of what one was asked."""
    if record.get("object") == "list":
        completion_id = str(record["first_id"]).rpartition("-")[0]
        return Identity(f"messages/{record['first_id']}", completion_id, None)
    return Identity(str(record["id"]), str(record["id"]), instant_of(record.get("created")))


class OpenAIConnection:
    """A project of OpenAI."""

    streams = (RecordStream("completions", _identify),)

    def __init__(self, account: Account) -> None:
        openai = client("openai", "OpenAI", "openai")
        self._account = account
        self._fault = openai.OpenAIError
        self._client = openai.OpenAI(
            base_url=account.url, api_key=account.secrets["OPENAI_API_KEY"], project=account.project, max_retries=0,
            timeout=account.timeout_s)

    def describe(self) -> str:
        """Return the project; the key alone decides it where none is given."""
        with translated(self._account, self._fault):
            self._client.chat.completions.list(limit=1)
        return self._account.project or "that of the key"

    def fetch(self, query: Query) -> SourcePage:
        """Return a page of completions, each followed by the messages that it was asked."""
        start = query.cursor or query.previous or {}
        given: dict[str, Any] = {"after": start["after"]} if start.get("after") else {}
        given |= {"model": model} if (model := self._account.filter.get("model")) else {}
        metadata = {name.removeprefix("metadata."): value for name, value in self._account.filter.items() if name != "model"}
        given |= {"metadata": metadata} if metadata else {}
        records: list[SourceRecord] = []
        with translated(self._account, self._fault):
            page = self._client.chat.completions.list(limit=min(query.page_size, _MOST), order="asc", **given)
            is_over, after = not page.has_more, start.get("after")
            for each in page.data:
                if each.created >= query.until.timestamp():
                    is_over = True
                    break
                after = each.id
                if query.since is None or each.created >= query.since.timestamp():
                    records += [each.to_dict(), *self._messages(each.id)]
        return SourcePage(records, {"after": after} if after else None, is_over)

    def _messages(self, completion_id: str) -> list[SourceRecord]:
        """Return the lists of messages that a completion was asked."""
        lists: list[SourceRecord] = []
        after: dict[str, Any] = {}
        while True:
            page = self._client.chat.completions.messages.list(completion_id, limit=_MOST, order="asc", **after)
            if page.data:
                lists.append({"object": "list", "data": [each.to_dict() for each in page.data],
                              "first_id": page.data[0].id, "last_id": page.data[-1].id, "has_more": page.has_more})
            if not page.has_more or not page.data:
                return lists
            after = {"after": page.data[-1].id}


PLATFORM = Platform(
    name="openai", title="OpenAI", connect=OpenAIConnection, url="https://api.openai.com/v1", project="id of the project",
    credentials={"OPENAI_API_KEY": "key of the project"},
    filters={"model": "model", "metadata.session_id": "session in the metadata", "metadata.user_id": "user in the metadata"})
