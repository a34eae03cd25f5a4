"""The items of a conversation as OpenAI's server lists them: `{"object": "list", "data": [{"type": "message", …}, …]}`.

Sees pages in either order (newest first is the API's own), joined where one follows the other in the file. The list states
neither its conversation nor times: the session is named by its record, where the wrapper names none.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.chat import emit_parts
from extractors.formats.format import Emit, Format, Head, LogRecords, sample
from extractors.formats.openai_sessions import session_fields, session_name
from extractors.formats.provider_parts import responses_parts
from extractors.formats.values import list_under

_ENDS = ("message", "function_call", "function_call_output", "reasoning")


def claims(head: Head) -> bool:
    """Return whether the first object lists items of the Responses API."""
    return head.is_json and any(_is_page(each) for each in head.objects[:1])


def _is_page(value: Any) -> bool:
    items = value.get("data") if isinstance(value, dict) else None
    return isinstance(items, list) and bool(items) and value.get("object") == "list" and all(
        isinstance(each, dict) and isinstance(each.get("type"), str) and "object" not in each for each in items) and any(
            each["type"] in _ENDS for each in items)


def read(records: LogRecords, emit: Emit) -> None:
    """One session a list; a page that goes on after the one before is of the same."""
    session_id, after, position = "", None, 0
    for record in records:
        value, items = record.value, list_under(record.value, "data")
        if not items:
            emit.reject(record, "no_items", "the record holds no list of items; leave it out or repair it")
            continue
        with emit.guarded(record):
            stated = session_name(record, value, emit)
            if after is None or value.get("after") != after or stated != session_id:
                session_id, position = stated, 0
            parts = [part for item in _in_order(items) for part in responses_parts(item)]
            position = emit_parts(emit, record, parts, position, None, session_fields(value, session_id, emit))
            after = value.get("last_id") if value.get("has_more") else None


def _in_order(items: list[Any]) -> list[Any]:
    """Return the items oldest first: an answer does not stand before its call, nor an assistant before all users."""
    places: dict[Any, int] = {}
    for i, item in enumerate(items):
        if isinstance(item, dict) and item.get("type") == "function_call":
            places[item.get("call_id")] = i
    for i, item in enumerate(items):
        if isinstance(item, dict) and item.get("type") == "function_call_output" and item.get("call_id") in places:
            return items[::-1] if i < places[item["call_id"]] else items
    roles = [item.get("role") for item in items if isinstance(item, dict) and item.get("role") in ("user", "assistant")]
    return items[::-1] if roles and roles[0] == "assistant" and roles[-1] == "user" else items


FORMAT = Format(name="openai_conversation", claims=claims, read=read, sample=sample("openai_conversation.json"), rank=30)
