"""The transcript of one conversation, part by part: counts positions and places for all agent formats.

In: parts in order, as `extractors.formats.chat.parts` gives them. Out: events of the record that holds the transcript. Also
keeps apart what simulators of users add: markers that end a conversation or hand it over, and a canned greeting.
Does not see: that two transcripts are one conversation; `extractors.sessions` joins them by session id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from extractors.formats.chat import SPOKEN, call_part, message_part, parts, text, thought_part
from extractors.formats.format import Emit, LogRecord, LogRecords, Row
from extractors.formats.sampling import laid

_MARKERS = re.compile(r"###[A-Z][A-Z-]*###\s*")


class Transcript:
    """One conversation of a record."""

    def __init__(self, emit: Emit, record: LogRecord, session_id: str | None, place: str = "", **fixed: Any) -> None:
        """`place` sets the conversation apart from others of the record; `fixed` are columns of all its events."""
        self.record = record
        self._emit, self._place = emit, place
        self._fixed: Row = {"session_id": session_id, **fixed}
        self._position = 0
        self.n_events = 0

    @classmethod
    def of(cls, emit: Emit, record: LogRecord, value: Row, service: Any, stated: Any = None, place: str = "") -> Transcript:
        """Begin the conversation that `value` holds: with its session (else `stated`, else named by its record) and user."""
        session_id = emit.envelope.session_id(value) or stated
        name = str(session_id) if session_id is not None else nameless(record, place)
        return cls(emit, record, name, place, service=service, name=emit.envelope.identity(value))

    def add(self, part: Row, **fields: Any) -> Row:
        """Emit a part; `fields` fill what the part does not state."""
        row = {**self._fixed, **fields, **{key: value for key, value in part.items() if value is not None}}
        if row["kind"] in SPOKEN:
            row["position"] = self._position
            self._position += 1
        place, self.n_events = f"{self._place}{self.n_events}", self.n_events + 1
        return self._emit.event(self.record, place=place, **row)

    def add_answer(self, parts: Iterable[Row], usage: Row | None, **fields: Any) -> None:
        """Emit the parts of one answer, each with its share of the usage."""
        rows = list(parts)
        for part, own in zip(rows, laid(usage, [part["kind"] for part in rows]), strict=True):
            self.add(part, **fields, usage=own)

    def message(self, role: Any, content: Any, **fields: Any) -> Row:
        """Emit a message: text, or a list of parts."""
        content_text, lossy = text(content)
        return self._noted(message_part(role, content_text), fields, lossy)

    def reasoning(self, content: Any, **fields: Any) -> None:
        content_text, lossy = text(content)
        if content_text:
            self._noted(thought_part("assistant", content_text), fields, lossy)

    def call(self, tool: Any, arguments: Any, call_id: Any = None, **fields: Any) -> Row:
        """Emit a call of a tool; arguments as JSON text or a value."""
        part = call_part(fields.pop("requestor", None) or "assistant", name_of(call_id), name_of(tool), arguments)
        return self._noted(part, fields, part["lossy"])

    def result(self, content: Any, call_id: Any = None, **fields: Any) -> Row:
        """Emit a tool's answer: text, a list of parts, or a value."""
        content_text, lossy = answer_of(content)
        return self._noted({"kind": "result", "content": content_text, "call_id": name_of(call_id)}, fields, lossy)

    def outcome(self, name: Any, value: Any, content: Any = None, **fields: Any) -> None:
        """Emit what was measured at the end; nothing where no value stands."""
        if value is not None:
            self.add({"kind": "outcome", "name": str(name), "value": written(value), "content": written(content)}, **fields)

    def log(self, value: Any, **fields: Any) -> Row:
        """Emit what has no place in a conversation, but was logged with it."""
        return self.add({"kind": "log", "content": written(value)}, **fields)

    def _noted(self, part: Row, fields: Row, lossy: list[str]) -> Row:
        """Emit a part with the notes of its fields, and its own after them."""
        return self.add({**part, "lossy": [*(fields.get("lossy") or ()), *lossy] or None}, **fields)


def tell_events(records: LogRecords, emit: Emit, tell: Callable[[Transcript, Any], None]) -> None:
    """Tell a file of events, whose records are one conversation; a file of one event alone does not name it."""
    every = list(records)
    if not every:
        return
    alone = len(every) == 1 and isinstance(every[0].value, dict)
    transcript = Transcript(emit, every[0], None if alone else nameless(every[0]), service=emit.envelope.service(None))
    for record in every:
        transcript.record = record
        with emit.guarded(record):
            events = record.value if isinstance(record.value, list) else [record.value]
            for event in events:
                tell(transcript, event)
            if not events:
                emit.reject(record, "no_events", "the list holds no events; leave it out")


def answer_of(content: Any) -> tuple[str | None, list[str]]:
    """Text of a tool's answer: of parts as they say, of a list that holds no parts as JSON."""
    if isinstance(content, list) and not any(isinstance(each, dict) and isinstance(each.get("type"), str) for each in content):
        return written(content), []
    return text(content)


def nameless(record: LogRecord, place: str = "") -> str:
    """Name of a conversation that states none: made of the record's hash."""
    return f"~{record.record_id[:16]}{place}"


def written(value: Any) -> str | None:
    """Text as it is, anything else as JSON text."""
    return value if value is None or isinstance(value, str) else orjson.dumps(value, default=str).decode()


def name_of(value: Any) -> str | None:
    """Text of a name or an id; None for nothing."""
    return None if value in (None, "") else written(value)


def tell_message(transcript: Transcript, message: Any, **fields: Any) -> None:
    """Tell one message; markers are cut out of it and kept as a log event, and so is a message of markers alone."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(message, dict) and isinstance(content, str) and message.get("role") in ("user", "assistant"):
        markers = _MARKERS.findall(content)
        if markers:
            rest = " ".join(each.strip() for each in _MARKERS.split(content)).strip()
            transcript.log(" ".join(each.strip() for each in markers), **fields)
            if not rest and not message.get("tool_calls"):
                return
            message = {**message, "content": rest or None}
    transcript.add_answer(map(_flagged, parts(message)), fields.pop("usage", None), **fields)


def greeting(messages: list[Any]) -> Any:
    """Return the message that a simulator begins with: the assistant's, without a model's cost, before any user spoke."""
    first = messages[0] if messages and isinstance(messages[0], dict) else {}
    spoken = first.get("role") == "assistant" and not first.get("tool_calls") and not first.get("usage")
    return messages[0] if spoken and not first.get("raw_data") else None


def _flagged(part: Row) -> Row:
    """Mark a result as an error where it begins as these environments write errors."""
    content = part.get("content")
    if part["kind"] == "result" and part["is_error"] is None and isinstance(content, str) and content.startswith("Error:"):
        return {**part, "is_error": True, "lossy": [*part["lossy"], "is_error inferred"]}
    return part
