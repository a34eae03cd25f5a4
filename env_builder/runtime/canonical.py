"""Canonical JSON: one text for one value, so that equal things have equal bytes and digests."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: Any) -> str:
    """JSON text with sorted keys and no spaces; numbers as Python's json writes them."""
    return _ENCODER.encode(value)


def is_json(value: Any) -> bool:
    """Can it be written as JSON? A number that is not finite cannot, nor what is nested too deep."""
    try:
        _ENCODER.encode(value)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def digest(text: str | bytes) -> str:
    """sha256 of the text's UTF-8 bytes, as 64 hex digits."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()
