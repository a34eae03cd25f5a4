"""One OTLP span: its attributes as plain values, its times in microseconds, and what it says of a conversation."""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.format import LogRecord, Row
from extractors.formats.instants import microseconds

_MODEL_OPERATIONS = ("chat", "generate_content", "text_completion")
_SESSION = ("gen_ai.conversation.id", "session.id")
_IDENTITY = ("user.id", "enduser.id")


class Span:
    """A span and where it was logged."""

    def __init__(self, record: LogRecord, span: Row, service: str | None) -> None:
        self.record = record
        self.service = service
        self.name = str(span.get("name", ""))
        self.key = (_hex(span.get("traceId", span.get("trace_id"))), _hex(span.get("spanId", span.get("span_id"))))
        self.started_at = microseconds(span.get("startTimeUnixNano", span.get("start_time_unix_nano")))
        self.ended_at = microseconds(span.get("endTimeUnixNano", span.get("end_time_unix_nano")))
        self._served = span.get("kind") in (2, "SPAN_KIND_SERVER")
        self._status = span.get("status")
        self._attributes = {each["key"]: each.get("value") for each in span.get("attributes") or () if "key" in each}
        self._read: dict[str, Any] = {}
        self.session_id = self._first(_SESSION)
        """Conversation as stated."""
        self.identity = self._first(_IDENTITY)
        """User as stated."""

    @property
    def order(self) -> tuple[int, int, str]:
        """Order in time; spans without a time come first, by id."""
        return (self.started_at or 0, self.ended_at or 0, self.key[1])

    @property
    def model(self) -> str | None:
        """Model that answered, else the one that was asked."""
        found = self.attribute("gen_ai.response.model") or self.attribute("gen_ai.request.model")
        return found if isinstance(found, str) else None

    @property
    def latency_ms(self) -> float | None:
        """How long it took, None where it did not end."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at) / 1000

    @property
    def is_tool(self) -> bool:
        """Whether it is the execution of a tool."""
        return bool(self.attribute("gen_ai.operation.name") == "execute_tool")

    @property
    def is_model(self) -> bool:
        """Whether it is one answer of a model (an agent's span sums up several)."""
        return self.attribute("gen_ai.operation.name") in _MODEL_OPERATIONS

    @property
    def is_error(self) -> bool | None:
        """Error as the span says it; None where it has neither status nor error type."""
        code = self._status.get("code") if isinstance(self._status, dict) else None
        if code in (2, "STATUS_CODE_ERROR") or self.attribute("error.type"):
            return True
        return False if code in (1, "STATUS_CODE_OK") else None

    def speaks(self) -> bool:
        """Whether it tells something of a conversation that we can read; a server's side repeats its client's."""
        if self._served:
            return False
        return self.is_tool or "gen_ai.input.messages" in self._attributes or "gen_ai.output.messages" in self._attributes

    def attribute(self, key: str) -> Any:
        """Value of an attribute, None where it is absent or empty."""
        return plain(self._attributes[key]) if key in self._attributes else None

    def structured(self, key: str) -> Any:
        """A list or object that an attribute holds as a structure or as JSON text; None where it cannot be read."""
        if key not in self._read:
            self._read[key] = _value(self.attribute(key))
        return self._read[key]

    def torn(self, key: str) -> bool:
        """Whether an attribute holds text that should be JSON and is not: a limit on lengths cut it off."""
        return self.structured(key) is None and self.attribute(key) is not None

    def _first(self, keys: tuple[str, ...]) -> str | None:
        return next((str(value) for key in keys if (value := self.attribute(key)) not in (None, "")), None)


def _value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def plain(value: Any) -> Any:
    """An AnyValue as a plain value; an empty one is None."""
    if not isinstance(value, dict) or not value:
        return None
    kind, inner = next(iter(value.items()))
    if kind in ("intValue", "int_value"):
        return int(inner)
    if kind in ("arrayValue", "array_value"):
        return [plain(each) for each in (inner or {}).get("values") or ()]
    if kind in ("kvlistValue", "kvlist_value"):
        return {each["key"]: plain(each.get("value")) for each in (inner or {}).get("values") or ()}
    return inner


def resource_attributes(resource: Row) -> Row:
    """Attributes of the resource that a batch of spans comes from."""
    inner = resource.get("resource") or {}
    return {each["key"]: plain(each.get("value")) for each in inner.get("attributes") or () if "key" in each}


def trace_of(span: Span) -> str:
    """Name of a session that is known by its trace alone."""
    return f"~{span.key[0][:16] or span.record.record_id[:16]}"


def _hex(value: Any) -> str:
    """An id in one spelling: hex digits are lower case; base64 (some dumps) stays as it is."""
    text = str(value or "")
    return text.lower() if len(text) in (16, 32) else text
