"""Product analytics as Segment and RudderStack send and archive them: track, page, screen, identify, group and alias calls.

Time is the corrected one: `timestamp`, else what it is defined as (`receivedAt` less `sentAt` less `originalTimestamp`); the
client's own clock is taken last, and said to be. Somebody who is known only by an anonymous id goes by the user id that
the same file states for it, where that is one. Messages that were sent twice (same `messageId`) count once.
Does not see: pages, campaigns and devices (`context`, named in `lossy`), warehouse tables (one table per event name).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample

_TYPES = frozenset({"track", "page", "screen", "identify", "group", "alias"})
_CLOCKS = ("originalTimestamp", "sentAt", "receivedAt", "timestamp")
_PEOPLE = ("anonymousId", "userId", "previousId")


def claims(head: Head) -> bool:
    """The first call has a type, and an id or a person, and a clock; or is a batch of such."""
    first = next(_calls(head.first), {})
    return head.layout in ("lines", "document") and first.get("type") in _TYPES and (
        "messageId" in first or any(name in first for name in _PEOPLE)) and (
        any(name in first for name in _CLOCKS) or "event" in first)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One business event a call."""
    seen: set[str] = set()
    people: dict[str, set[str]] = {}
    nameless: list[tuple[Row, str]] = []
    for record in records:
        calls = list(_calls(record.value))
        if not calls:
            emit.reject(record, "no_call", "the record is no analytics call; leave it out or repair it")
        for call in calls:
            with emit.guarded(record):
                message_id = call.get("messageId")
                if isinstance(message_id, str) and message_id in seen:
                    emit.reject(record, "duplicate_event", f"message {message_id} was sent before; nothing to mend")
                    continue
                row = _call(record, call, emit)
                seen.add(str(message_id))
                user, anonymous = row["name"], _text(call.get("anonymousId") or call.get("previousId"))
                if user and anonymous:
                    people.setdefault(anonymous, set()).add(user)
                elif anonymous:
                    nameless.append((row, anonymous))
    for row, anonymous in nameless:
        users = people.get(anonymous, set())
        row["name"] = next(iter(users)) if len(users) == 1 else anonymous


def _calls(value: Any) -> Iterator[Row]:
    """The calls in a record: itself, or its `batch`."""
    if isinstance(value, dict) and isinstance(value.get("batch"), list):
        shared = {name: value[name] for name in ("sentAt", "receivedAt", "context") if name in value}
        yield from ({**shared, **each} for each in value["batch"] if isinstance(each, dict))
    elif isinstance(value, dict) and isinstance(value.get("type"), str):
        yield value


def _call(record: LogRecord, call: Row, emit: Emit) -> Row:
    tool, carried = _said(call)
    happened_at, lossy = _time(call)
    context = call.get("context")
    if isinstance(context, dict) and context.keys() - {"library"}:
        lossy.append(f"context {orjson.dumps({k: v for k, v in context.items() if k != 'library'}).decode()}")
    session = emit.envelope.session_id(carried) or emit.envelope.session_id(call)
    return emit.event(record, "business", session_id=session, happened_at=happened_at, service=emit.envelope.service(call),
                      call_id=_text(call.get("messageId")), tool=tool, arguments=orjson.dumps(carried).decode(),
                      name=_text(call.get("userId")), lossy=lossy)


def _said(call: Row) -> tuple[str, Row]:
    """The event's name, and what it carries."""
    properties, traits = (call[name] if isinstance(call.get(name), dict) else {} for name in ("properties", "traits"))
    kind = call["type"]
    if kind in ("page", "screen"):
        return " ".join(filter(None, (kind, _text(call.get("category")), _text(call.get("name"))))), properties
    if kind == "group":
        return kind, {"groupId": call.get("groupId"), **traits}
    if kind == "alias":
        return kind, {"previousId": call.get("previousId"), "userId": call.get("userId")}
    return (_text(call.get("event")) or kind), (properties if kind == "track" else {**traits, **properties})


def _time(call: Row) -> tuple[int | None, list[str]]:
    """The instant by the server's clock, as far as the call states it."""
    original, sent, received, corrected = (microseconds(call.get(name)) for name in _CLOCKS)
    if corrected is not None:
        return corrected, []
    if received is not None:
        return received - max(0, sent - original) if sent is not None and original is not None else received, []
    return (original or sent), ["client clock"] if original or sent else []


def _text(value: Any) -> str | None:
    return None if value in (None, "") else value if isinstance(value, str) else orjson.dumps(value).decode()


FORMAT = Format(name="segment", claims=claims, read=read, sample=sample("segment.jsonl"), rank=30)
