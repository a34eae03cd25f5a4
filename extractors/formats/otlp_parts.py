"""Messages of the GenAI conventions 1.37 and later (roles and parts) to the parts of events.

Sees text, calls, results and reasoning, also as pydantic-ai writes them (`result`, `thinking`), and calls that the provider ran
itself. Does not see what a picture, a sound or a file says: named in `lossy` by type and hash; a part of a type that nobody
knows is kept as its JSON text.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from extractors.formats.chat import arguments_of
from extractors.formats.format import Row
from extractors.formats.otlp_span import written

_CALLS = ("tool_call", "server_tool_call")
_RESULTS = ("tool_call_response", "server_tool_call_response")
_THOUGHTS = ("reasoning", "thinking")
_MEDIA = ("blob", "uri", "file", "image", "audio", "video", "document")


def message_parts(message: Any) -> list[Row]:
    """Event fields of one message: its thoughts, its text joined, then its calls and results in order."""
    if not isinstance(message, dict):
        return [_unknown(message, None)]
    role = message.get("role")
    said: list[str] = []
    lost: list[str] = []
    thoughts: list[Row] = []
    others: list[Row] = []
    parts = message.get("parts")
    if not isinstance(parts, list):
        parts = [{"type": "text", "content": message["content"]}] if "content" in message else [parts] if parts else []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            said.append(written(part.get("content")) or "")
        elif kind in _CALLS:
            others.append(_call(part, role))
        elif kind in _RESULTS:
            others.append(_result(part))
        elif kind in _THOUGHTS:
            thoughts.append({"kind": "reasoning", "role": role, "content": written(part.get("content")), "lossy": []})
        elif kind in _MEDIA:
            lost.append(f"part {kind} sha256:{hashlib.sha256(orjson.dumps(part)).hexdigest()}")
        else:
            others.append(_unknown(part, role))
    if message.get("finish_reason") == "length":
        lost.append("finish_reason length")
        for row in others[1:] if not said else others:
            row["lossy"].append("finish_reason length")
    if said or (lost and not others):
        words = "".join(said) if said else None
        return [*thoughts, {"kind": "message", "role": role, "content": words, "lossy": lost}, *others]
    for row in others[:1]:
        row["lossy"] += lost
    return [*thoughts, *others]


def _call(part: Row, role: str | None) -> Row:
    given = part.get("arguments")
    if given is None:
        given = part.get("server_tool_call")
    arguments, notes = arguments_of(given)
    return {"kind": "call", "role": role, "requestor": role, "call_id": written(part.get("id")) or None,
            "tool": written(part.get("name")), "arguments": arguments, "lossy": notes}


def _result(part: Row) -> Row:
    value = next((part[key] for key in ("response", "result", "server_tool_call_response") if key in part), None)
    flag = part.get("is_error")
    return {"kind": "result", "call_id": written(part.get("id")) or None, "tool": written(part.get("name")),
            "content": written(value), "is_error": flag if isinstance(flag, bool) else None, "lossy": []}


def _unknown(part: Any, role: str | None) -> Row:
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    return {"kind": "log", "role": role, "content": orjson.dumps(part).decode(), "lossy": [f"part {kind}"]}
