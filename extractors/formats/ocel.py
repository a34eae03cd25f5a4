"""Object-centric event logs: OCEL 2.0 as JSON, XML and SQLite, and OCEL 1.0 as JSON.

Sees events with their attributes (typed as declared) and the objects that they speak of, as business events; objects and how
their attributes changed, as row changes: a table a type, a snapshot where a value holds from the beginning. XML that declares a
document type is refused. Does not see: sessions; an object-centric log knows none.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.ocel_log import ObjectLog, of_database, of_document, of_first_version, of_xml
from extractors.formats.samples import sample
from extractors.formats.xml_elements import first_names

_TABLES = {"event", "object", "event_object", "event_map_type", "object_map_type"}
_SECTIONS = ("object-types", "event-types", "objects", "events")


def claims(head: Head) -> bool:
    """Object types, event types and events; the tables of OCEL; a root whose first element is one of its sections."""
    if head.layout == "xml":
        names = first_names("\n".join(head.text).encode())
        return names[:1] == ["log"] and names[1:2] != [] and names[1] in _SECTIONS
    if head.layout == "database":
        return isinstance(head.document, dict) and head.document.keys() >= _TABLES
    return head.layout in ("lines", "document") and (
        head.first.keys() >= {"objectTypes", "eventTypes", "events"} or "ocel:events" in head.first)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One log a record."""
    for record in records:
        before = len(emit.events)
        n_rejects = len(emit.rejects)
        with emit.guarded(record):
            _tell(record, _log(record.value), emit)
        if len(emit.events) == before and len(emit.rejects) == n_rejects:
            emit.reject(record, "no_events", "the log holds no events and no objects; leave it out")


def _log(value: object) -> ObjectLog:
    if isinstance(value, bytes):
        return of_xml(value)
    if not isinstance(value, dict):
        raise TypeError("the record is no log")
    if "event_map_type" in value:
        return of_database(value)
    return of_first_version(value) if "ocel:events" in value else of_document(value)


def _tell(record: LogRecord, log: ObjectLog, emit: Emit) -> None:
    service = emit.envelope.service({})
    types = {each.id: each.type for each in log.objects}
    for number, event in enumerate(log.events):
        facts: Row = {**event.attributes}
        if event.related:
            facts["relationships"] = [{"objectId": related, "type": types.get(related), "qualifier": how}
                                      for related, how in event.related]
        emit.event(record, "business", place=f"event {number}", happened_at=microseconds(event.time), tool=event.type,
                   call_id=event.id, arguments=orjson.dumps(facts).decode(), service=service)
    position = 0
    for each in log.objects:
        before: Row | None = None
        for time, values in each.images():
            instant = microseconds(time)
            first = {"relationships": [{"objectId": related, "qualifier": how} for related, how in each.related]}
            after = {**(before or (first if each.related else {})), **values}
            operation = "update" if before is not None else "snapshot" if instant is None else "create"
            emit.event(record, "row_change", place=f"object {position}", position=position, happened_at=instant, tool=each.type,
                       name=operation, arguments=orjson.dumps({"id": each.id}).decode(), service=service,
                       value=orjson.dumps({"before": before, "after": {"id": each.id, **after}}).decode())
            before, position = {"id": each.id, **after}, position + 1


FORMAT = Format(name="ocel", claims=claims, read=read, sample=sample("ocel.json"), whole=True, rank=30)
