"""The facts around a record that many formats state under many names: its session, service, identity and time.

Sees the names that formats.md collects and those that the configuration maps; knows no name from inside a payload.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extractors.formats.instants import microseconds
from extractors.formats.values import object_of

SESSION = ("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "chat_id",
            "gen_ai.conversation.id", "session.id")
TRACE = ("trace_id", "traceId", "trace.id", "litellm_trace_id")
SERVICE = ("service", "service.name", "service_name", "app", "application")
IDENTITY = ("user_id", "userId", "end_user_id", "enduser.id", "user.id", "user", "end_user", "identity",
            "acting_for", "on_behalf_of")
TIME = ("ts", "timestamp", "time", "at", "start_time", "started_at", "created_at", "@timestamp", "created")
_SETS: dict[tuple[str, ...], frozenset[str]] = {names: frozenset(names) for names in (SESSION, TRACE, SERVICE, IDENTITY)}
FIELDS = ("session_id", "service", "identity", "time")
"""Our fields that a configuration may map to a dotted path of the record."""


def at(value: Any, path: str) -> Any:
    """Return what stands under the dotted `path` in `value`, None where nothing does; a key with dots in it counts too."""
    if not isinstance(value, dict):
        return None
    if path in value:
        return value[path]
    head, _, rest = path.partition(".")
    return at(value.get(head), rest) if rest else None


class Envelope:
    """Reads the facts around a record: by the configured paths first, then by the names that logs use."""

    def __init__(self, fields: Mapping[str, str] | None = None, service: str | None = None) -> None:
        self.fields = dict(fields or {})
        """What the configuration maps: our field to a path in the record."""
        self._service = service
        self._last: tuple[Any, tuple[Any, ...]] = (None, ())
        """The record that was asked about last, and its places."""

    def session_id(self, value: Any) -> str | None:
        return self._text("session_id", value, SESSION)

    def trace_id(self, value: Any) -> str | None:
        """Trace that the record states: what one request of a user set off, so a part of a session."""
        return self._text("trace_id", value, TRACE)

    def service(self, value: Any) -> str | None:
        return self._service or known_service(self._text("service", value, SERVICE))

    def identity(self, value: Any) -> str | None:
        """User, clerk or connection as the record states it."""
        return self._text("identity", value, IDENTITY)

    def time(self, value: Any) -> int | None:
        """First time that the record states, in microseconds since 1970 UTC."""
        if "time" in self.fields:
            return microseconds(at(value, self.fields["time"]))
        instants = (microseconds(value.get(name)) for name in TIME) if isinstance(value, dict) else ()
        return next((instant for instant in instants if instant is not None), None)

    def mapped(self, field: str, value: Any) -> Any:
        """Return what the configuration maps `field` to, None where it maps nothing."""
        path = self.fields.get(field)
        return at(value, path) if path else None

    def _text(self, field: str, value: Any, names: tuple[str, ...]) -> str | None:
        if field in self.fields:
            return _scalar(at(value, self.fields[field]))
        if self._last[0] is not value:
            record = object_of(value)   # the outermost place first
            request = record.get("request")
            places = (value, record.get("metadata"), object_of(request).get("metadata"), record.get("context"),
                      record.get("attributes"), request)
            self._last = value, tuple(place for place in places if isinstance(place, dict))
        for place in self._last[1]:
            for name in names if not _SETS[names].isdisjoint(place) else ():
                if name in place and (text := _scalar(place[name])) is not None:
                    return text
        return None


def known_service(name: Any) -> str | None:
    """Return the name of a service; None for `unknown_service:<program>`, which OpenTelemetry writes when none is set."""
    return name if isinstance(name, str) and name.split(":", 1)[0] != "unknown_service" else None


def _scalar(value: Any) -> str | None:
    """Text of an id; an object counts by its `id` or `name`."""
    if isinstance(value, dict):
        value = value.get("id", value.get("name"))
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
