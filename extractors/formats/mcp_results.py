"""The answer of an MCP tool as a result's fields: text parts joined; without any, the structured content as JSON.

What stands beside the text and is no text (links, pictures, structured content that says something else) is named in `lossy`.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.chat import text
from extractors.formats.format import Row

_LONGEST = 10_000


def content_of(result: Any) -> Row:
    """`content`, `is_error` and `lossy` of a `tools/call` result; a missing flag is no error, says the protocol."""
    if not isinstance(result, dict):
        return {"content": orjson.dumps(result).decode(), "is_error": None, "lossy": ["result is no object"]}
    parts = result.get("content")
    said, lossy = text([_plain(part) for part in parts] if isinstance(parts, list) else parts)
    if isinstance(parts, list):
        lossy = [note for note in lossy if not note.startswith("part resource_link ")]
        lossy += [f"part resource_link {orjson.dumps(part).decode()}" for part in parts
                  if isinstance(part, dict) and part.get("type") == "resource_link"]
    if "structuredContent" in result:
        structured = result["structuredContent"]
        if not said:
            said = orjson.dumps(structured).decode()
        elif _value(said) != structured:
            lossy.append(f"structuredContent {orjson.dumps(structured).decode()[:_LONGEST]}")
    is_error = result.get("isError", False)
    return {"content": said, "is_error": is_error if isinstance(is_error, bool) else None, "lossy": lossy}


def _plain(part: Any) -> Any:
    """An embedded resource that is text as a part of text."""
    resource = part.get("resource") if isinstance(part, dict) and part.get("type") == "resource" else None
    return {"type": "text", "text": resource["text"]} if isinstance(resource, dict) and "text" in resource else part


def _value(said: str) -> Any:
    try:
        return orjson.loads(said)
    except orjson.JSONDecodeError:
        return None
