"""Canonical JSON: one text for one value, so that equal things have equal bytes and digests."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: Any) -> str:
    """JSON text with sorted keys and no spaces; numbers as Python's json writes them."""
    return _ENCODER.encode(value)


def digest(text: str | bytes) -> str:
    """sha256 of the text's UTF-8 bytes, as 64 hex digits."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()
