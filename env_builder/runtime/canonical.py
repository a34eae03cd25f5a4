"""Canonical JSON: one text for one value, so that equal things have equal bytes and digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
"""JSON text of a value with sorted keys and no spaces; numbers as Python's json writes them."""

MOST_STYLES = 4096
_STYLES: dict[int, tuple[dict[str, Any], Callable[[Any], str]]] = {}


def written(value: Any) -> str | None:
    """The same, None where it cannot be written: a number that is not finite cannot, nor what is nested too deep."""
    try:
        return canonical(value)
    except (ValueError, TypeError, RecursionError):
        return None


def styled(value: Any, style: dict[str, Any]) -> str:
    """JSON text of a value as `json.dumps` writes it with these options; a style's encoder is kept: it may not change."""
    kept = _STYLES.get(id(style))
    if kept is None or kept[0] is not style:
        if len(_STYLES) >= MOST_STYLES:
            _STYLES.clear()
        kept = _STYLES[id(style)] = (style, json.JSONEncoder(**style).encode)
    return kept[1](value)


def digest(text: str | bytes) -> str:
    """sha256 of the text's UTF-8 bytes, as 64 hex digits."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()
