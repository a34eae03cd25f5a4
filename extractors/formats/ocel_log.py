"""An object-centric event log in memory, from each of the notations that OCEL has.

In: the document, the XML or the tables. Out: its events and objects. Errors: those of shape (KeyError, TypeError, ValueError).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element

from extractors.formats.format import Row
from extractors.formats.xml_elements import elements

Related = list[tuple[str, str | None]]
_OWN_COLUMNS = ("ocel_id", "ocel_time", "ocel_changed_field")
_LARGE = 1 << 63


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
    """A thing, and the values that its attributes took."""

    id: str
    type: str
    values: list[tuple[Any, str, Any]] = field(default_factory=list)
    """Time, attribute, value."""
    related: Related = field(default_factory=list)

    def images(self) -> Iterator[tuple[Any, Row]]:
        """Values by the time at which they began to hold, in order; at least one image."""
        found: dict[str, tuple[Any, Row]] = {}
        for time, name, value in self.values:
            found.setdefault(str(time), (time, {}))[1][name] = value
        yield from (found[key] for key in sorted(found)) if found else iter([(None, {})])


@dataclass(slots=True)
class ObjectLog:
    """A whole log."""

    events: list[ObjectEvent] = field(default_factory=list)
    objects: list[LoggedObject] = field(default_factory=list)


def of_document(value: Row) -> ObjectLog:
    """OCEL 2.0 JSON."""
    event_types, object_types = (_declared(value.get(key) or ()) for key in ("eventTypes", "objectTypes"))
    log = ObjectLog()
    for each in value.get("events") or ():
        facts = {one["name"]: _typed(one.get("value"), event_types.get((each["type"], one["name"])))
                 for one in each.get("attributes") or ()}
        log.events.append(ObjectEvent(str(each["id"]), str(each["type"]), each.get("time"), facts, _related(each)))
    for each in value.get("objects") or ():
        values = [(one.get("time"), one["name"], _typed(one.get("value"), object_types.get((each["type"], one["name"]))))
                  for one in each.get("attributes") or ()]
        log.objects.append(LoggedObject(str(each["id"]), str(each["type"]), values, _related(each)))
    return log


def of_first_version(value: Row) -> ObjectLog:
    """OCEL 1.0 JSON."""
    events = [ObjectEvent(name, str(each["ocel:activity"]), each.get("ocel:timestamp"), dict(each.get("ocel:vmap") or {}),
                          [(str(one), None) for one in each.get("ocel:omap") or ()])
              for name, each in value["ocel:events"].items()]
    objects = [
        LoggedObject(name, str(each["ocel:type"]), [(None, key, one) for key, one in (each.get("ocel:ovmap") or {}).items()])
        for name, each in (value.get("ocel:objects") or {}).items()]
    return ObjectLog(events, objects)


def of_xml(content: bytes) -> ObjectLog:
    """OCEL 2.0 XML."""
    types: dict[tuple[Any, Any, Any], Any] = {}
    log = ObjectLog()
    for section in elements(content, "object-types", "event-types", "objects", "events"):
        for each in section:
            if section.tag.endswith("-types"):
                types |= {(section.tag, each.get("name"), one.get("name")): one.get("type") for one in each.iter("attribute")}
                continue
            kind, declared = str(each.get("type")), section.tag.removesuffix("s") + "-types"
            values = [(one.get("time"), str(one.get("name")), _typed(one.text, types.get((declared, kind, one.get("name")))))
                      for one in each.iterfind("attributes/attribute")]
            related = _related_xml(each)
            if section.tag == "events":
                facts = {name: held for _, name, held in values}
                log.events.append(ObjectEvent(str(each.get("id")), kind, each.get("time"), facts, related))
            else:
                log.objects.append(LoggedObject(str(each.get("id")), kind, values, related))
    return log


def of_database(tables: Row) -> ObjectLog:
    """OCEL 2.0 SQLite: a table a type, named by the map tables."""
    related: dict[Any, Related] = {}
    for row in tables["event_object"]:
        related.setdefault(row["ocel_event_id"], []).append((str(row["ocel_object_id"]), row.get("ocel_qualifier")))
    joined: dict[Any, Related] = {}
    for row in tables.get("object_object") or ():
        joined.setdefault(row["ocel_source_id"], []).append((str(row["ocel_target_id"]), row.get("ocel_qualifier")))
    facts, histories = _per_id(tables, "event"), _per_id(tables, "object")
    log = ObjectLog()
    for row in tables["event"]:
        held = next(iter(facts.get(row["ocel_id"]) or ()), {})
        values = {name: each for name, each in held.items() if name not in _OWN_COLUMNS and each is not None}
        log.events.append(ObjectEvent(str(row["ocel_id"]), str(row["ocel_type"]), held.get("ocel_time"), values,
                                      related.get(row["ocel_id"]) or []))
    for row in tables["object"]:
        values_ = [(held.get("ocel_time"), name, each) for held in histories.get(row["ocel_id"]) or ()
                   for name, each in held.items() if name not in _OWN_COLUMNS
                   and (name == held["ocel_changed_field"] if held.get("ocel_changed_field") else each is not None)]
        log.objects.append(LoggedObject(str(row["ocel_id"]), str(row["ocel_type"]), values_, joined.get(row["ocel_id"]) or []))
    return log


def _per_id(tables: Row, kind: str) -> dict[Any, list[Row]]:
    """Rows of the tables of `kind`, one a type, by id."""
    found: dict[Any, list[Row]] = {}
    for mapped in tables[f"{kind}_map_type"]:
        for row in tables.get(f"{kind}_{mapped['ocel_type_map']}") or ():
            found.setdefault(row["ocel_id"], []).append(row)
    return found


def _declared(types: Any) -> dict[tuple[Any, Any], Any]:
    return {(each["name"], one["name"]): one.get("type") for each in types for one in each.get("attributes") or ()}


def _related(value: Row) -> Related:
    return [(str(each["objectId"]), each.get("qualifier")) for each in value.get("relationships") or ()]


def _related_xml(element: Element) -> Related:
    return [(str(each.get("object-id")), each.get("qualifier")) for each in element.iterfind("objects/*")]


def _typed(value: Any, kind: Any) -> Any:
    """A value written as text, as the type that was declared for it; text where it is not of that type."""
    if not isinstance(value, str):
        return value
    try:
        if kind == "integer":
            return number if -_LARGE <= (number := int(value)) < _LARGE else value
        if kind == "float":
            return float(value)
    except ValueError:
        return value
    return value.strip().lower() == "true" if kind == "boolean" and value.strip().lower() in ("true", "false") else value
