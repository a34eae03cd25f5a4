"""One span of a trace: its ids, times and outcome, and its attributes, turned into plain values on request.

In: an OTLP span (camel or snake case, ids as hex or, in ProtoJSON dumps, as base64), or the facts of one from elsewhere.
Also messages that lie flat in attributes, one value a key (`prefix.0.content`, `prefix.0.tool_calls.1.name`), to nested values
(indices sort as numbers), and JSON text inside contents where it is a list of typed parts.
What it does not see: what the attributes mean; that is each dialect's own.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from extractors.formats.format import LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.values import loaded, object_of, written


@dataclass(slots=True)
class TraceSpan:
    """A span and where it was logged."""

    record: LogRecord
    """Without its value: a file's spans are held until all are read."""
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    started_at: int | None
    ended_at: int | None
    service: str | None
    raw: Row
    """Attributes by key, as logged."""
    is_error: bool | None = None
    """As the status says; None where there is none."""
    message: str | None = None
    """What the status says in words."""
    events: list[Any] = field(default_factory=list)
    links: list[Any] = field(default_factory=list)
    value_of: Callable[[Any], Any] = lambda value: value
    """Turns a logged value into a plain one."""

    def attribute(self, key: str) -> Any:
        value = self.raw.get(key)
        return None if value is None else self.value_of(value)

    def first(self, keys: Iterable[str]) -> Any:
        """Value of the first of these attributes that is there and not empty."""
        for key in keys:
            if key in self.raw and (value := self.value_of(self.raw[key])) not in (None, ""):
                return value
        return None

    def text(self, *keys: str) -> str | None:
        """Return the first of these attributes as text; a value that is none as JSON text."""
        return written(self.first(keys))

    def structured(self, key: str) -> Any:
        """Return a list or object that an attribute holds as a structure or as JSON text; None where it cannot be read."""
        return loaded(self.attribute(key))

    def begins(self, prefix: str) -> Row:
        return {key[len(prefix):]: self.value_of(value) for key, value in self.raw.items() if key.startswith(prefix)}

    @property
    def failed(self) -> bool | None:
        """Error as the span says it: by its status, else by the type of an error."""
        return True if "error.type" in self.raw and self.attribute("error.type") else self.is_error


def otlp_span(record: LogRecord, span: Row, service: str | None, value_of: Callable[[Any], Any]) -> TraceSpan:
    """Return a span as OTLP has it; `value_of` turns its AnyValues into plain ones."""
    status = object_of(span.get("status"))
    code = status.get("code")
    ended = span.get("status") is not None and code in (None, 0, 1, "STATUS_CODE_UNSET", "STATUS_CODE_OK")
    parent = span.get("parentSpanId", span.get("parent_span_id"))
    return TraceSpan(
        record=record, trace_id=hex_id(span.get("traceId", span.get("trace_id"))),
        span_id=hex_id(span.get("spanId", span.get("span_id"))), parent_id=hex_id(parent), name=str(span.get("name", "")),
        started_at=microseconds(span.get("startTimeUnixNano", span.get("start_time_unix_nano"))),
        ended_at=microseconds(span.get("endTimeUnixNano", span.get("end_time_unix_nano"))), service=service,
        raw=raw_attributes(span), is_error=True if code in (2, "STATUS_CODE_ERROR") else False if ended else None,
        message=status.get("message") or None, events=span.get("events") or [],
        links=span.get("links") or [], value_of=value_of)


def raw_attributes(owner: Row) -> Row:
    """Attributes of a span, an event, a log record or a resource by key, as logged."""
    return {each["key"]: each.get("value") for each in owner.get("attributes") or () if "key" in each}


def plain(value: Any) -> Any:
    """Return an AnyValue as a plain value; an empty one is None."""
    if not isinstance(value, dict) or not value:
        return None
    if "stringValue" in value:
        return value["stringValue"]
    for kind, inner in value.items():
        if kind in ("intValue", "int_value"):
            return int(inner)
        if kind in ("arrayValue", "array_value"):
            return [plain(each) for each in (inner or {}).get("values") or ()]
        if kind in ("kvlistValue", "kvlist_value"):
            return {each["key"]: plain(each.get("value")) for each in (inner or {}).get("values") or ()}
        return inner
    return None


def hex_id(value: Any) -> str:
    """Return an id in one spelling: lower-case hex digits, also where a dump wrote its bytes as base64."""
    text = value if isinstance(value, str) else str(value or "")
    if len(text) in (16, 32):
        return text.lower()
    if len(text) in (12, 24) and text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex()
        except binascii.Error:
            return text
    return text


def nested(flat: Row) -> Any:
    """Values by dotted path as objects in objects; objects whose keys are all numbers become lists."""
    root: Row = {}
    for path, value in flat.items():
        place = root
        *heads, last = path.split(".")
        for head in heads:
            inner = place.get(head)
            if not isinstance(inner, dict):
                inner = place[head] = {}
            place = inner
        place[last] = expanded(value)
    return _with_lists(root)


def expanded(value: Any) -> Any:
    """Return the value with dotted keys of objects inside it taken apart."""
    if isinstance(value, list):
        return [expanded(each) for each in value]
    return nested(value) if isinstance(value, dict) else value


def listed(value: Any) -> list[Any]:
    """Return a list as it is, None as an empty one, anything else as the only element."""
    return value if isinstance(value, list) else [] if value is None or value == {} else [value]


def typed_parts(content: Any) -> Any:
    """Return the list of parts that a content holds as JSON text, else the content."""
    if isinstance(content, str) and content.startswith("[{") and content.rstrip().endswith("}]"):
        parts = loaded(content)
        if parts is not None and all(isinstance(each, dict) and isinstance(each.get("type"), str) for each in parts):
            return parts
    return content


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdecimal() for key in value):
        return [_with_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _with_lists(each) for key, each in value.items()}
