"""The transcript of one conversation, told part by part: positions and places are counted here, once for all agent formats.

In: parts in order, as `extractors.formats.chat.parts` gives them. Out: events of the record that holds the transcript.
What it does not see: that two transcripts are one conversation; `extractors.sessions` joins them by session id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from extractors.formats.chat import arguments_of, text
from extractors.formats.format import Emit, LogRecord, Row

_SPOKEN = ("message", "call", "result")


class Transcript:
    """One conversation of a record."""

    def __init__(self, emit: Emit, record: LogRecord, session_id: str | None, place: str = "", **fixed: Any) -> None:
        """`place` sets the conversation apart from others of the record; `fixed` are columns of all its events."""
        self.record = record
        self._emit, self._place = emit, place
        self._fixed: Row = {"session_id": session_id, **fixed}
        self._position = 0
        self.n_events = 0

    def add(self, part: Row, **fields: Any) -> Row:
        """An event of a part; `fields` fill what the part does not state."""
        row = {**self._fixed, **fields, **{key: value for key, value in part.items() if value is not None}}
        if row["kind"] in _SPOKEN:
            row["position"] = self._position
            self._position += 1
        place, self.n_events = f"{self._place}{self.n_events}", self.n_events + 1
        return self._emit.event(self.record, place=place, **row)

    def add_all(self, parts: Iterable[Row], **fields: Any) -> list[Row]:
        """Events of the parts of one message."""
        return [self.add(part, **fields) for part in parts]

    def message(self, role: Any, content: Any, **fields: Any) -> Row:
        """Something said: text, or a list of parts."""
        said, lossy = text(content)
        return self.add({"kind": "message", "role": role, "content": said}, **_noted(fields, lossy))

    def reasoning(self, content: Any, **fields: Any) -> Row | None:
        """What the model thought, where that is text."""
        said, lossy = text(content)
        return self.add({"kind": "reasoning", "role": "assistant", "content": said}, **_noted(fields, lossy)) if said else None

    def call(self, tool: Any, arguments: Any, call_id: Any = None, **fields: Any) -> Row:
        """A call of a tool; arguments as JSON text or a value."""
        written, lossy = arguments_of(arguments)
        requestor = fields.pop("requestor", None) or "assistant"
        part = {"kind": "call", "role": requestor, "requestor": requestor, "tool": name_of(tool), "arguments": written,
                "call_id": name_of(call_id)}
        return self.add(part, **_noted(fields, lossy))

    def result(self, content: Any, call_id: Any = None, **fields: Any) -> Row:
        """A tool's answer: text, a list of parts, or a value."""
        said, lossy = answer_of(content)
        return self.add({"kind": "result", "content": said, "call_id": name_of(call_id)}, **_noted(fields, lossy))

    def outcome(self, name: Any, value: Any, content: Any = None, **fields: Any) -> Row | None:
        """What was measured at the end; nothing where no value stands."""
        if value is None:
            return None
        row: Row = {"kind": "outcome", "name": str(name), "value": written(value), "content": written(content)}
        return self.add(row, **fields)

    def log(self, value: Any, **fields: Any) -> Row:
        """What has no place in a conversation, but was logged with it."""
        return self.add({"kind": "log", "content": written(value)}, **fields)


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


def _noted(fields: Row, lossy: list[str]) -> Row:
    return {**fields, "lossy": [*(fields.get("lossy") or ()), *lossy]} if lossy else fields
