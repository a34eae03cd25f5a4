"""Times as logs write them, to microseconds since 1970 UTC.

Sees: ISO 8601 with or without zone (none: taken as UTC), numbers and digit strings in seconds, milliseconds, microseconds
or nanoseconds, told apart by size (good for 1973 to 5138). A date before 1970 or after 9999 is no time: nobody logged then, it
is the zero or the end of somebody's clock. Does not see: times without a date, RFC 3164, CLF.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AFTER_9999 = 253_402_300_800_000_000
_MOST_DIGITS = 20
_SCALES = ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3), (-1.0, 1e6))


def microseconds(value: Any) -> int | None:
    """The instant in microseconds since 1970 UTC, None where `value` is no time."""
    if isinstance(value, bool) or value is None or value == "":
        return None
    if isinstance(value, (int, float)):
        return _from_number(value)
    if not isinstance(value, str):
        return None
    if value.isdecimal():
        return _from_number(int(value)) if len(value) <= _MOST_DIGITS else None
    return _from_text(value)


def earlier(instant: int, milliseconds: float) -> int:
    """The instant that lies so long before; the instant itself where that is no time that anybody logged in."""
    try:
        found = instant - round(milliseconds * 1000)
    except (ValueError, OverflowError):  # not a number, or endless
        return instant
    return found if 0 < found < _AFTER_9999 else instant


def _from_number(value: float) -> int | None:
    if not 0 < value < 1e20:
        return None
    if isinstance(value, int):
        if value > 1e17:
            return value // 1000
        if value > 1e14:
            return value
        return value * (1000 if value > 1e11 else 1_000_000)
    scale = next(factor for floor, factor in _SCALES if value > floor)
    return round(value * scale)


def _from_text(value: str) -> int | None:
    try:
        instant = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    difference = instant - _EPOCH
    found = (difference.days * 86400 + difference.seconds) * 1_000_000 + difference.microseconds
    return found if 0 < found < _AFTER_9999 else None
