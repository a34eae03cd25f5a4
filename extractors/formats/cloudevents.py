"""CloudEvents 1.0 in structured form: an event a line, a batch as one document, or a batch a line.

Sees: every kind of data (JSON, text, base64 of either), session and identity among the extensions or in the data, the trace
of `traceparent`, events that were delivered twice (same source and id). Names are kept as logged; the subject is the
content. Does not see: events in HTTP binary mode (attributes in `ce-` headers), other extensions (named in `lossy`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample

_SESSION = ("sessionid", "conversationid", "threadid", "chatid")
_IDENTITY = ("userid", "authid", "enduserid", "partitionkey")
_READ = frozenset({"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data",
                   "data_base64", "traceparent", "tracestate", *_SESSION, *_IDENTITY})


def claims(head: Head) -> bool:
    """The first object states a version of the specification, a type and a source."""
    first = head.first
    return head.layout in ("lines", "document") and all(
        isinstance(first.get(name), str) for name in ("specversion", "type", "source"))


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One business event each; the second delivery of one is a reject."""
    seen: set[tuple[str, str]] = set()
    links: set[tuple[str, str]] = set()
    for record in records:
        events = record.value if isinstance(record.value, list) and record.value else [record.value]
        for event in events:
            if not isinstance(event, dict) or not isinstance(event.get("type"), str):
                emit.reject(record, "no_cloud_event", "the record is no event with a type; leave it out or repair it")
                continue
            identity = (str(event.get("source")), str(event.get("id")))
            if event.get("id") is not None and identity in seen:
                emit.reject(record, "duplicate_event", f"event {identity[1]} of {identity[0]} was delivered before; "
                            "nothing to mend")
                continue
            seen.add(identity)
            with emit.guarded(record):
                _event(record, event, emit, links)


def _event(record: LogRecord, event: Row, emit: Emit, links: set[tuple[str, str]]) -> None:
    carried = _data(event)
    inside = carried if isinstance(carried, dict) else {}
    session = _stated(event, _SESSION) or emit.envelope.session_id(event) or emit.envelope.session_id(inside)
    trace = _trace(event)
    if session is not None and trace is not None and (session, trace) not in links:
        links.add((session, trace))
        emit.event(record, "link", session_id=session, value=trace)
    emit.event(record, "business", session_id=session or trace, happened_at=microseconds(event.get("time")),
               service=emit.envelope.service(event), call_id=str(event["id"]) if event.get("id") is not None else None,
               tool=event["type"], name=emit.envelope.identity(event) or _stated(event, _IDENTITY) or
               emit.envelope.identity(inside),
               arguments=orjson.dumps(carried if isinstance(carried, dict) else {"data": carried}).decode(),
               content=event.get("subject") if isinstance(event.get("subject"), str) else None,
               lossy=[f"{name} {value}" for name, value in event.items() if name not in _READ])


def _data(event: Row) -> Any:
    """What the event carries: a value, or text; base64 is undone where it holds either."""
    if "data_base64" not in event:
        return event.get("data", {})
    try:
        content = base64.b64decode(event["data_base64"], validate=True)
        text = content.decode()
    except (binascii.Error, UnicodeDecodeError):
        return {"data_base64": event["data_base64"]}
    if "json" not in str(event.get("datacontenttype") or "json"):
        return text
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return text


def _trace(event: Row) -> str | None:
    """`trace:` and the trace id of a W3C `traceparent`."""
    parts = str(event.get("traceparent") or "").split("-")
    return f"trace:{parts[1]}" if len(parts) >= 4 and len(parts[1]) == 32 else None


def _stated(event: Row, names: tuple[str, ...]) -> str | None:
    return next((str(event[name]) for name in names if isinstance(event.get(name), (str, int)) and event[name] != ""), None)


FORMAT = Format(name="cloudevents", claims=claims, read=read, sample=sample("cloudevents.jsonl"), rank=30)
