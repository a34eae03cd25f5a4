"""Object-centric event logs: OCEL 2.0 as JSON, XML and SQLite, and OCEL 1.0 as JSON.

Sees events with their attributes (typed as declared) and the objects that they are about, as business events; objects and how
their attributes changed, as row changes: a table a type, a snapshot where a value holds from the beginning. XML that declares a
document type is refused. Does not see: sessions; an object-centric log knows none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.markup import elements, first_names, number_in
from extractors.formats.values import dumped

_TABLES = {"event", "object", "event_object", "event_map_type", "object_map_type"}
_SECTIONS = ("object-types", "event-types", "objects", "events")
_OWN_COLUMNS = ("ocel_id", "ocel_time", "ocel_changed_field")
Related = list[tuple[str, str | None]]


@dataclass(slots=True)
class ObjectEvent:
    """Something that happened to objects."""

    id: str
    type: str
    time: Any
    attributes: Row
    related: Related


@dataclass(slots=True)
class LoggedObject:
    """An object, and the values that its attributes took."""

    id: str
    type: str
    values: list[tuple[Any, str, Any]]
    """Time, attribute, value."""
    related: Related

    def images(self) -> Iterator[tuple[Any, Row]]:
        """Values by the time at which they began to hold, in order; at least one image."""
        by_time: dict[str, tuple[Any, Row]] = {}
        for time, name, value in self.values:
            by_time.setdefault(str(time), (time, {}))[1][name] = value
        yield from (by_time[key] for key in sorted(by_time)) if by_time else iter([(None, {})])


ObjectLog = tuple[list[ObjectEvent], list[LoggedObject]]


def claims(head: Head) -> bool:
    """Object types, event types and events; the tables of OCEL; a root whose first element is one of its sections."""
    if head.layout == "xml":
        names = first_names("\n".join(head.text).encode())
        return names[:1] == ["log"] and names[1:2] != [] and names[1] in _SECTIONS
    if head.layout == "database":
        return isinstance(head.document, dict) and head.document.keys() >= _TABLES
    return head.is_json and (head.first.keys() >= {"objectTypes", "eventTypes", "events"} or "ocel:events" in head.first)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One log a record."""
    before, value = (len(emit.events), len(emit.rejects)), record.value
    if isinstance(value, bytes):
        log = of_xml(value)
    elif not isinstance(value, dict):
        raise TypeError("the record is no log")
    elif "event_map_type" in value:
        log = of_database(value)
    else:
        log = of_first_version(value) if "ocel:events" in value else of_document(value)
    _tell(record, log, emit)
    if (len(emit.events), len(emit.rejects)) == before:
        emit.reject(record, "no_events", "the log holds no events and no objects; leave it out")


def _tell(record: LogRecord, log: ObjectLog, emit: Emit) -> None:
    events, objects = log
    service = emit.envelope.service({})
    types = {each.id: each.type for each in objects}
    for number, event in enumerate(events):
        facts: Row = {**event.attributes}
        if event.related:
            facts["relationships"] = [{"objectId": related, "type": types.get(related), "qualifier": how}
                                      for related, how in event.related]
        emit.event(record, "business", place=f"event {number}", happened_at=microseconds(event.time), tool=event.type,
                   call_id=event.id, arguments=dumped(facts), service=service)
    position = 0
    for each in objects:
        before: Row | None = None
        for time, values in each.images():
            instant = microseconds(time)
            first = {"relationships": [{"objectId": related, "qualifier": how} for related, how in each.related]}
            after = {**(before or (first if each.related else {})), **values}
            operation = "update" if before is not None else "snapshot" if instant is None else "create"
            emit.event(record, "row_change", place=f"object {position}", position=position, happened_at=instant, tool=each.type,
                       name=operation, arguments=dumped({"id": each.id}), service=service,
                       value=dumped({"before": before, "after": {"id": each.id, **after}}))
            before, position = {"id": each.id, **after}, position + 1


def of_document(value: Row) -> ObjectLog:
    """Parse OCEL 2.0 JSON. Errors of this and the next three: those of shape (KeyError, TypeError, ValueError)."""
    event_types, object_types = (
        {(each["name"], one["name"]): one.get("type") for each in value.get(key) or () for one in each.get("attributes") or ()}
        for key in ("eventTypes", "objectTypes"))
    events, objects = [], []
    for each in value.get("events") or ():
        facts = {one["name"]: _typed(one.get("value"), event_types.get((each["type"], one["name"])))
                 for one in each.get("attributes") or ()}
        events.append(ObjectEvent(str(each["id"]), str(each["type"]), each.get("time"), facts, _related(each)))
    for each in value.get("objects") or ():
        values = [(one.get("time"), one["name"], _typed(one.get("value"), object_types.get((each["type"], one["name"]))))
                  for one in each.get("attributes") or ()]
        objects.append(LoggedObject(str(each["id"]), str(each["type"]), values, _related(each)))
    return events, objects


def of_first_version(value: Row) -> ObjectLog:
    """Parse OCEL 1.0 JSON."""
    events = [ObjectEvent(name, str(each["ocel:activity"]), each.get("ocel:timestamp"), dict(each.get("ocel:vmap") or {}),
                          [(str(one), None) for one in each.get("ocel:omap") or ()])
              for name, each in value["ocel:events"].items()]
    objects = []
    for name, each in (value.get("ocel:objects") or {}).items():
        values = [(None, key, one) for key, one in (each.get("ocel:ovmap") or {}).items()]
        objects.append(LoggedObject(name, str(each["ocel:type"]), values, []))
    return events, objects


def of_xml(content: bytes) -> ObjectLog:
    """Parse OCEL 2.0 XML."""
    types: dict[tuple[Any, Any, Any], Any] = {}
    events, objects = [], []
    for section in elements(content, *_SECTIONS):
        for each in section:
            if section.tag.endswith("-types"):
                types |= {(section.tag, each.get("name"), one.get("name")): one.get("type") for one in each.iter("attribute")}
                continue
            kind, declared = str(each.get("type")), section.tag.removesuffix("s") + "-types"
            values = [(one.get("time"), str(one.get("name")), _typed(one.text, types.get((declared, kind, one.get("name")))))
                      for one in each.iterfind("attributes/attribute")]
            related = [(str(one.get("object-id")), one.get("qualifier")) for one in each.iterfind("objects/*")]
            if section.tag == "events":
                facts = {name: value for _, name, value in values}
                events.append(ObjectEvent(str(each.get("id")), kind, each.get("time"), facts, related))
            else:
                objects.append(LoggedObject(str(each.get("id")), kind, values, related))
    return events, objects


def of_database(tables: Row) -> ObjectLog:
    """Parse the tables of OCEL 2.0 SQLite: a table a type, named by the map tables."""
    related = _related_rows(tables["event_object"], "ocel_event_id", "ocel_object_id")
    joined = _related_rows(tables.get("object_object") or (), "ocel_source_id", "ocel_target_id")
    facts, histories = _per_id(tables, "event"), _per_id(tables, "object")
    events, objects = [], []
    for row in tables["event"]:
        stated = next(iter(facts.get(row["ocel_id"]) or ()), {})
        values = {name: each for name, each in stated.items() if name not in _OWN_COLUMNS and each is not None}
        events.append(ObjectEvent(str(row["ocel_id"]), str(row["ocel_type"]), stated.get("ocel_time"), values,
                                  related.get(row["ocel_id"]) or []))
    for row in tables["object"]:
        changes = [(stated.get("ocel_time"), name, each) for stated in histories.get(row["ocel_id"]) or ()
                   for name, each in stated.items() if name not in _OWN_COLUMNS
                   and (name == stated["ocel_changed_field"] if stated.get("ocel_changed_field") else each is not None)]
        objects.append(LoggedObject(str(row["ocel_id"]), str(row["ocel_type"]), changes, joined.get(row["ocel_id"]) or []))
    return events, objects


def _per_id(tables: Row, kind: str) -> dict[Any, list[Row]]:
    rows: dict[Any, list[Row]] = {}
    for mapped in tables[f"{kind}_map_type"]:
        for row in tables.get(f"{kind}_{mapped['ocel_type_map']}") or ():
            rows.setdefault(row["ocel_id"], []).append(row)
    return rows


def _related_rows(rows: Iterable[Row], source: str, target: str) -> dict[Any, Related]:
    related: dict[Any, Related] = {}
    for row in rows:
        related.setdefault(row[source], []).append((str(row[target]), row.get("ocel_qualifier")))
    return related


def _related(value: Row) -> Related:
    return [(str(each["objectId"]), each.get("qualifier")) for each in value.get("relationships") or ()]


def _typed(value: Any, kind: Any) -> Any:
    """Return a value written as text, as the type that was declared for it; text where it is not of that type."""
    if not isinstance(value, str):
        return value
    if kind in ("integer", "float"):
        return number_in(value, kind == "integer")
    return value.strip().lower() == "true" if kind == "boolean" and value.strip().lower() in ("true", "false") else value


FORMAT = Format(name="ocel", claims=claims, read=read, sample=sample("ocel.json"), whole=True, rank=30)
