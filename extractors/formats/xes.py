"""XES event logs (IEEE 1849): each trace is a case, each event a business event of it.

Sees typed attributes, nested ones and lists; activity, time, resource and lifecycle; the session that a trace states, else its
name, stands for the case. Attributes of the trace that its events do not have become one log event. A completion says
how long after its start it came. Documents that declare a document type are refused.
Does not see: that an event which two cases share is one; classifiers; defaults of globals other than the activity's name.
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.markup import elements, first_names, number_in
from extractors.formats.values import dumped

_TYPES = ("string", "date", "int", "float", "boolean", "id", "list", "container")
_DEEP = 50
_OWN = ("extension", "global", "classifier", "trace", "event", *_TYPES)


def claims(head: Head) -> bool:
    """Return whether the root is a log, and its first elements are those of XES."""
    if head.layout != "xml":
        return False
    names = first_names("\n".join(head.text).encode())
    return names[:1] == ["log"] and len(names) > 1 and names[1] in _OWN and not {"events", "objects"} & set(names)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One document a record."""
    if not isinstance(record.value, bytes):
        raise RejectedRecord("no_xml", "the record is no XML document; name another format")
    before = len(emit.events)
    try:
        for number, element in enumerate(elements(record.value, "trace", "event", "global")):
            with emit.guarded(record):
                if element.tag == "event":
                    _event(record, element, {}, f"{number}/", {}, emit)
                elif element.tag == "trace":
                    _trace(record, element, f"{number}/", emit)
    except ValueError as error:
        emit.reject(record, "malformed_record", f"{error}; repair it, or leave the declaration out")
    if len(emit.events) == before:
        emit.reject(record, "no_events", "the log holds no events; leave it out")


def _trace(record: LogRecord, element: Element, place: str, emit: Emit) -> None:
    facts = _attributes(element)
    started: dict[Any, int] = {}
    events = [each for each in element if each.tag == "event"]
    for number, event in enumerate(events):
        _event(record, event, facts, f"{place}{number}", started, emit)
    if not events or facts.keys() - {"concept:name"}:
        emit.event(record, "log", place=f"{place}trace", session_id=_case(facts, emit),
                   content=dumped(facts), service=emit.envelope.service(facts))


def _case(facts: Row, emit: Emit) -> str | None:
    stated = emit.envelope.session_id(facts) or facts.get("concept:name")
    return str(stated) if stated is not None else None


def _event(record: LogRecord, element: Element, case: Row, place: str, started: dict[Any, int], emit: Emit) -> None:
    facts = _attributes(element)
    name, instant = facts.pop("concept:name", None), microseconds(facts.get("time:timestamp"))
    transition = str(facts.get("lifecycle:transition")).lower()
    latency, run = None, (name, facts.get("concept:instance"))
    if transition == "start" and instant is not None:
        started[run] = instant
    elif transition == "complete" and instant is not None and run in started:
        latency = (instant - started.pop(run)) / 1000
    if instant is not None:
        del facts["time:timestamp"]
    session_id = emit.envelope.session_id(facts) or _case(case, emit)
    resource = facts.get("org:resource")
    emit.event(record, "business", place=place, session_id=session_id, happened_at=instant, tool=str(name or "UNKNOWN"),
               arguments=dumped(facts), service=emit.envelope.service({**case, **facts}), latency_ms=latency,
               name=emit.envelope.identity(facts) or (str(resource) if resource is not None else None))


def _attributes(element: Element, within: str = "", depth: int = 0) -> Row:
    """Typed children by key; attributes of an attribute under both keys, joined by a dot."""
    if depth > _DEEP:
        raise ValueError(f"attributes are nested deeper than {_DEEP} times")
    facts: Row = {}
    for child in element:
        key = child.get("key")
        if child.tag in _TYPES and key is not None:
            facts[within + key] = _value(child, depth)
            if child.tag not in ("list", "container"):
                facts.update(_attributes(child, f"{within}{key}.", depth + 1))
    return facts


def _value(element: Element, depth: int) -> Any:
    if depth > _DEEP:
        raise ValueError(f"attributes are nested deeper than {_DEEP} times")
    text = element.get("value", "")
    if element.tag in ("int", "float"):
        return number_in(text, element.tag == "int")
    if element.tag == "boolean":
        return text.strip().lower() == "true"
    if element.tag in ("list", "container"):
        inner = element.find("values")
        children = element if inner is None else inner
        return [{child.get("key"): _value(child, depth + 1)} for child in children if child.tag in _TYPES]
    return text


FORMAT = Format(name="xes", claims=claims, read=read, sample=sample("xes.xml"), whole=True, rank=30)
