"""What simulators of users write into conversations of their own accord, and is nobody's behaviour.

Sees markers that end a conversation or hand it over, and the greeting that a simulator begins with.
"""

from __future__ import annotations

import re
from typing import Any

from extractors.formats.chat import parts
from extractors.formats.format import Row
from extractors.formats.sampling import laid
from extractors.formats.transcript import Transcript

_MARKERS = re.compile(r"###[A-Z][A-Z-]*###\s*")


def tell(told: Transcript, message: Any, **fields: Any) -> None:
    """Tell one message; markers are cut out of it and kept as a log event, and so is a message of markers alone."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(message, dict) and isinstance(content, str) and message.get("role") in ("user", "assistant"):
        markers = _MARKERS.findall(content)
        if markers:
            left = " ".join(each.strip() for each in _MARKERS.split(content)).strip()
            told.log(" ".join(each.strip() for each in markers), **fields)
            if not left and not message.get("tool_calls"):
                return
            message = {**message, "content": left or None}
    said = list(parts(message))
    for part, own in zip(said, laid(fields.pop("usage", None), [part["kind"] for part in said]), strict=True):
        told.add(_flagged(part), **fields, usage=own)


def greeting(messages: list[Any]) -> Any:
    """The message that a simulator begins with: the assistant's, without a model's cost, before any user spoke."""
    first = messages[0] if messages and isinstance(messages[0], dict) else {}
    spoken = first.get("role") == "assistant" and not first.get("tool_calls") and not first.get("usage")
    return messages[0] if spoken and not first.get("raw_data") else None


def _flagged(part: Row) -> Row:
    """A result that begins as these environments write errors is one."""
    content = part.get("content")
    if part["kind"] == "result" and part["is_error"] is None and isinstance(content, str) and content.startswith("Error:"):
        return {**part, "is_error": True, "lossy": [*part["lossy"], "is_error inferred"]}
    return part
