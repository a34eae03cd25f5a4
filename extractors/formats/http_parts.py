"""Parts of an HTTP request as logs write them, to values: a query, a body in JSON, a form or base64."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import parse_qsl

import orjson

from extractors.formats.format import Row

_FORM = "application/x-www-form-urlencoded"


def query(text: str) -> Row:
    """A query (without `?`) as an object."""
    return merged(parse_qsl(text, keep_blank_values=True))


def merged(pairs: list[tuple[str, Any]]) -> Row:
    """Names and values as an object; a name that comes more than once holds a list."""
    found: Row = {}
    for name, value in pairs:
        if name not in found:
            found[name] = value
        else:
            found[name] = [*(found[name] if isinstance(found[name], list) else [found[name]]), value]
    return found


def body(text: Any, mime_type: str = "", encoding: str | None = None) -> Any:
    """What a body says: the value that its JSON spells, the fields of its form, else its text.

    Base64 that holds no text stays as it is.
    """
    if encoding == "base64" and isinstance(text, str):
        try:
            text = base64.b64decode(text, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return text
    if not isinstance(text, str):
        return text
    if mime_type.startswith(_FORM):
        return query(text)
    if text.lstrip()[:1] in ("{", "[") or "json" in mime_type:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text
