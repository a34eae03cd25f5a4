"""Product analytics as Segment and RudderStack send and archive them: track, page, screen, identify, group and alias calls.

Time is the corrected one: `timestamp`, else what it is defined as (`receivedAt` less `sentAt` less `originalTimestamp`), else
the client's own clock, and `lossy` says so. A person with an anonymous id alone gets the one user id that the same file states
for it. Messages that were sent twice (same `messageId`) count once.
Does not see: pages, campaigns and devices (`context`, named in `lossy`), warehouse tables (one table per event name).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped, object_of, stated_text

_TYPES = frozenset({"track", "page", "screen", "identify", "group", "alias"})
_CLOCKS = ("originalTimestamp", "sentAt", "receivedAt", "timestamp")
_PEOPLE = ("anonymousId", "userId", "previousId")


def claims(head: Head) -> bool:
    """Return whether the first call has a type, and an id or a person, and a clock; or is a batch of such."""
    first = next(_calls(head.first), {})
    return head.is_json and first.get("type") in _TYPES and (
        "messageId" in first or any(name in first for name in _PEOPLE)) and (
        any(name in first for name in _CLOCKS) or "event" in first)


def read(records: LogRecords, emit: Emit) -> None:
    """One business event a call."""
    ids_of_messages: set[str] = set()
    people: dict[str, set[str]] = {}
    nameless: list[tuple[Row, str]] = []
    for record in records:
        calls = list(_calls(record.value))
        if not calls:
            emit.reject(record, "no_call", "the record is no analytics call; leave it out or repair it")
        for call in calls:
            with emit.guarded(record):
                message_id = call.get("messageId")
                if isinstance(message_id, str) and message_id in ids_of_messages:
                    emit.reject(record, "duplicate_event", f"message {message_id} was sent before; no action needed")
                    continue
                tool, carried = _name_and_payload(call)
                happened_at, lossy = _time(call)
                if context := {name: value for name, value in object_of(call.get("context")).items() if name != "library"}:
                    lossy.append(f"context {dumped(context)}")
                session = emit.envelope.session_id(carried) or emit.envelope.session_id(call)
                row = emit.event(
                    record, "business", session_id=session, happened_at=happened_at, service=emit.envelope.service(call),
                    call_id=stated_text(call.get("messageId")), tool=tool, arguments=dumped(carried),
                    name=stated_text(call.get("userId")), lossy=lossy)
                ids_of_messages.add(str(message_id))
                user, anonymous = row["name"], stated_text(call.get("anonymousId") or call.get("previousId"))
                if user and anonymous:
                    people.setdefault(anonymous, set()).add(user)
                elif anonymous:
                    nameless.append((row, anonymous))
    for row, anonymous in nameless:
        users = people.get(anonymous, set())
        row["name"] = next(iter(users)) if len(users) == 1 else anonymous


def _calls(value: Any) -> Iterator[Row]:
    """Yield the calls in a record: itself, or its `batch`."""
    if isinstance(value, dict) and isinstance(value.get("batch"), list):
        shared = {name: value[name] for name in ("sentAt", "receivedAt", "context") if name in value}
        yield from ({**shared, **each} for each in value["batch"] if isinstance(each, dict))
    elif isinstance(value, dict) and isinstance(value.get("type"), str):
        yield value


def _name_and_payload(call: Row) -> tuple[str, Row]:
    properties, traits, kind = object_of(call.get("properties")), object_of(call.get("traits")), call["type"]
    if kind in ("page", "screen"):
        return " ".join(filter(None, (kind, stated_text(call.get("category")), stated_text(call.get("name"))))), properties
    if kind == "group":
        return kind, {"groupId": call.get("groupId"), **traits}
    if kind == "alias":
        return kind, {"previousId": call.get("previousId"), "userId": call.get("userId")}
    return (stated_text(call.get("event")) or kind), (properties if kind == "track" else {**traits, **properties})


def _time(call: Row) -> tuple[int | None, list[str]]:
    """Return the instant by the server's clock, as far as the call states it."""
    original, sent, received, corrected = (microseconds(call.get(name)) for name in _CLOCKS)
    if corrected is not None:
        return corrected, []
    if received is not None:
        return received - max(0, sent - original) if sent is not None and original is not None else received, []
    return (original or sent), ["client clock"] if original or sent else []


FORMAT = Format(name="segment", claims=claims, read=read, sample=sample("segment.jsonl"), rank=30)
