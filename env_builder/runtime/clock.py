"""Instants as tools write them: which form a value has, and an instant in that form.

A form is a template of what is written: `YYYY-MM-DD`, then perhaps `T` or a space, `hh:mm`, `:ss`, `.mmm` or `.uuuuuu`,
and `Z` or a fixed offset such as `+02:00`; or `seconds` or `milliseconds` since 1970 (whole numbers), or `seconds.` (with
a fraction).
Sees: ISO 8601 and Unix time between 2001 and 2100. Does not see: names of months, day before month, clocks of twelve hours.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

DAY = "YYYY-MM-DD"
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:([T ])(\d\d:\d\d)(:\d\d)?(\.\d{3}(?:\d{3})?)?(Z|[+-]\d\d:?\d\d)?)?")
_UNIX = {"seconds": timedelta(seconds=1), "milliseconds": timedelta(milliseconds=1)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = timedelta(seconds=978_307_200), timedelta(seconds=4_102_444_800)


def read(value: Any) -> tuple[str, datetime] | None:
    """(form, what is written, in UTC as if it were written there) of a value that looks like an instant."""
    if isinstance(value, str):
        match = _ISO.fullmatch(value)
        if match is None:
            return None
        day, between, minutes, seconds, fraction, zone = (part or "" for part in match.groups())
        digits = "" if not fraction else ".mmm" if len(fraction) == 4 else ".uuuuuu"
        try:
            at = datetime.fromisoformat(f"{day}T{minutes or '00:00'}{seconds}{fraction}").replace(tzinfo=UTC)
        except ValueError:
            return None
        return f"{DAY}{between}hh:mm{':ss' if seconds else ''}{digits}{zone}" if between else DAY, at
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for form, unit in _UNIX.items():
        if isinstance(value, int) and _EARLIEST // unit <= value < _LATEST // unit:
            return form, _EPOCH + value * unit
    if not _EARLIEST.total_seconds() <= value < _LATEST.total_seconds():
        return None
    return "seconds.", datetime.fromtimestamp(value, UTC)


def write(form: str, at: datetime) -> str | int | float:
    """Write the instant in this form; no time zone is applied."""
    if form in _UNIX:
        return (at - _EPOCH) // _UNIX[form]
    if form == "seconds.":
        return at.timestamp()
    text = form.replace("uuuuuu", f"{at.microsecond:06}").replace("mmm", f"{at.microsecond // 1000:03}")
    parts = {"YYYY": f"{at.year:04}", "MM": f"{at.month:02}", "DD": f"{at.day:02}",
             "hh": f"{at.hour:02}", "mm": f"{at.minute:02}", "ss": f"{at.second:02}"}
    for name, part in parts.items():
        text = text.replace(name, part, 1)
    return text


def after(instant: str, seconds: float) -> datetime:
    """Return an ISO instant (UTC if it names no zone), so many seconds later."""
    at = datetime.fromisoformat(instant)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC) + timedelta(seconds=seconds)
