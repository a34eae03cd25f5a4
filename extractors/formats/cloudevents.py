"""CloudEvents 1.0 in structured form: an event a line, a batch as one document, or a batch a line.

Sees: every kind of data (JSON, text, base64 of either), session and identity among the extensions or in the data, the trace
of `traceparent`, events that were delivered twice (same source and id). Names are kept as logged; the subject is the
content. Does not see: events in HTTP binary mode (attributes in `ce-` headers), other extensions (named in `lossy`).
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped, parsed_json

_SESSION = ("sessionid", "conversationid", "threadid", "chatid")
_IDENTITY = ("userid", "authid", "enduserid", "partitionkey")
_READ = frozenset({"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data",
                   "data_base64", "traceparent", "tracestate", *_SESSION, *_IDENTITY})


def claims(head: Head) -> bool:
    """Return whether the first object states a version of the specification, a type and a source."""
    first = head.first
    return head.is_json and all(isinstance(first.get(name), str) for name in ("specversion", "type", "source"))


def read(records: LogRecords, emit: Emit) -> None:
    """One business event each; the second delivery of one is a reject."""
    delivered: set[tuple[str, str]] = set()
    links: set[tuple[str, str]] = set()
    for record in records:
        for event in record.value if isinstance(record.value, list) and record.value else [record.value]:
            if not isinstance(event, dict) or not isinstance(event.get("type"), str):
                emit.reject(record, "no_cloud_event", "the record is no event with a type; leave it out or repair it")
                continue
            source, name = str(event.get("source")), str(event.get("id"))
            if event.get("id") is not None and (source, name) in delivered:
                emit.reject(record, "duplicate_event", f"event {name} of {source} was delivered before; no action needed")
                continue
            delivered.add((source, name))
            with emit.guarded(record):
                carried = _data(event)
                inside = carried if isinstance(carried, dict) else {}
                session = _stated(event, _SESSION) or emit.envelope.session_id(event) or emit.envelope.session_id(inside)
                parts = str(event.get("traceparent") or "").split("-")
                trace = f"trace:{parts[1]}" if len(parts) >= 4 and len(parts[1]) == 32 else None
                if session is not None and trace is not None and (session, trace) not in links:
                    links.add((session, trace))
                    emit.event(record, "link", session_id=session, value=trace)
                emit.event(record, "business", session_id=session or trace, happened_at=microseconds(event.get("time")),
                           service=emit.envelope.service(event), tool=event["type"],
                           call_id=str(event["id"]) if event.get("id") is not None else None,
                           name=emit.envelope.identity(event) or _stated(event, _IDENTITY) or emit.envelope.identity(inside),
                           arguments=dumped(carried if isinstance(carried, dict) else {"data": carried}),
                           content=event.get("subject") if isinstance(event.get("subject"), str) else None,
                           lossy=[f"{name} {value}" for name, value in event.items() if name not in _READ])


def _data(event: Row) -> Any:
    """Return what the event carries: a value, or text; base64 is undone where it holds either."""
    if "data_base64" not in event:
        return event.get("data", {})
    try:
        content = base64.b64decode(event["data_base64"], validate=True)
        text = content.decode()
    except (binascii.Error, UnicodeDecodeError):
        return {"data_base64": event["data_base64"]}
    return parsed_json(content, text) if "json" in str(event.get("datacontenttype") or "json") else text


def _stated(event: Row, names: tuple[str, ...]) -> str | None:
    return next((str(event[name]) for name in names if isinstance(event.get(name), (str, int)) and event[name] != ""), None)


FORMAT = Format(name="cloudevents", claims=claims, read=read, sample=sample("cloudevents.jsonl"), rank=30)
