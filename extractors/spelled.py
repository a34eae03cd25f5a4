"""What a JSON text that an event carries spells."""

from __future__ import annotations

from typing import Any

import orjson


def object_of(text: str | None) -> dict[str, Any]:
    """The object that a text spells, empty where it spells none."""
    try:
        value = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
