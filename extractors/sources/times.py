"""Instants as platforms write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def instant_of(value: Any) -> datetime | None:
    """Return an instant from ISO 8601 text or seconds since 1970; None where it is neither. Without a zone it is UTC."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    try:
        parsed = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return parsed.replace(tzinfo=UTC) if parsed is not None and parsed.tzinfo is None else parsed


def iso(instant: datetime) -> str:
    """Return an instant in ISO 8601 with microseconds, in UTC."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
