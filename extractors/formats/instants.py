"""Times as logs write them, to microseconds since 1970 UTC.

Sees: ISO 8601 with or without zone (none: taken as UTC), a blank before the zone, slashes in the date; the Common Log Format
(`02/Mar/2026:10:15:02 +0000`); `Mon, 02 Mar 2026 10:15:02 GMT` and `Mon Mar  2 10:15:02 2026`; numbers and digit strings in
seconds, milliseconds, microseconds or nanoseconds, distinguished by size (good for 1973 to 5138). A date before 1970 or after
9999 is no time: it is the zero or the end of a clock.
Does not see: times without a date; the year of a time that states none (`Yearless` counts the turns of the year from a
year that its caller knows, or from `NO_YEAR`).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

NO_YEAR = 1972
"""Stands for a year that the log does not state: a leap year, so that every day of a calendar is in it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AFTER_9999 = 253_402_300_800_000_000
_MOST_DIGITS = 20
_MONTHS = {name: number for number, name in enumerate(
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1)}
_FRACTION = re.compile(r"\d{9,13}\.\d{1,9}", re.ASCII)
_CLF = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d(?:\.\d+)?)(?: ([+-]\d{4}))?", re.ASCII)
_SLASHED = re.compile(r"(\d{4})/(\d\d)/(\d\d)[ T](.+)", re.ASCII)
_APART = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?) ?(UTC|GMT|Z|[+-]\d\d:?\d\d)", re.ASCII)
_CALENDAR = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d(?:\.\d+)?) (\d{4})", re.ASCII)
_MAIL = re.compile(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d", re.ASCII)
_YEARLESS = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d)(\.\d{1,6})?", re.ASCII)


def microseconds(value: Any) -> int | None:
    """Return the instant in microseconds since 1970 UTC, None where `value` is no time."""
    if isinstance(value, bool) or value is None or value == "":
        return None
    if isinstance(value, (int, float)):
        return _from_number(value)
    if not isinstance(value, str):
        return None
    if value.isdecimal():
        return _from_number(int(value)) if len(value) <= _MOST_DIGITS else None
    if _FRACTION.fullmatch(value) is not None:
        return _from_number(float(value))
    return _from_text(value)


_SECONDS = {f"{second:02}": second * 1_000_000 for second in range(60)}


def clf(text: str) -> int | None:
    """Return the instant of `02/Mar/2026:10:15:02 +0000` as `microseconds` does, but quickly for many lines of one minute."""
    if len(text) == 26 and text[17] == ":" and (second := _SECONDS.get(text[18:20])) is not None:
        minute = _minute(text[:17], text[20:])
        return None if minute is None else minute + second
    return microseconds(text)


class Yearless:
    """Times without a year (`Mar  2 10:15:02`), in the order of a file: the year turns where the months start again."""

    def __init__(self, year: int | None = None) -> None:
        self._year = year or NO_YEAR
        self._month = 0

    def microseconds(self, text: str) -> int | None:
        """Return the instant, None where `text` is no such time; a day that the year does not have is none."""
        match = _YEARLESS.fullmatch(text)
        if match is None or (month := _MONTHS.get(match[1], 0)) == 0:
            return None
        year = self._year
        if month - self._month > 6 and self._month:   # a late line of the year before
            year -= 1
        else:
            if self._month - month > 6:
                self._year = year = year + 1
            self._month = month
        return _from_text(f"{year}-{month:02}-{int(match[2]):02}T{match[3]}:{match[4]}:{match[5]}{match[6] or ''}+00:00")

def earlier(instant: int, milliseconds: float) -> int:
    """Return the instant that lies so long before; the instant itself where that is no valid time."""
    try:
        moved = instant - round(milliseconds * 1000)
    except (ValueError, OverflowError):  # not a number, or endless
        return instant
    return moved if 0 < moved < _AFTER_9999 else instant


def _from_number(value: float) -> int | None:
    if not 0 < value < 1e20:
        return None
    if value > 1e17:
        return value // 1000 if isinstance(value, int) else round(value * 1e-3)
    return round(value * (1 if value > 1e14 else 1000 if value > 1e11 else 1_000_000))


@lru_cache(maxsize=4096)
def _minute(minute: str, zone: str) -> int | None:
    return microseconds(f"{minute}:00{zone}")


def _from_text(value: str) -> int | None:
    text = value.strip()
    try:
        instant: datetime | None = datetime.fromisoformat(text)
    except ValueError:
        instant = _from_notation(text)
    if instant is None:
        return None
    difference = (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)) - _EPOCH
    instant_us = (difference.days * 86400 + difference.seconds) * 1_000_000 + difference.microseconds
    return instant_us if 0 < instant_us < _AFTER_9999 else None


def _from_notation(text: str) -> datetime | None:
    """Return a date in a notation other than ISO 8601, None where it is in none that is known."""
    if len(text) > 64:
        return None
    try:
        if (match := _CLF.fullmatch(text)) is not None:
            return datetime.fromisoformat(f"{match[3]}-{_MONTHS[match[2]]:02}-{match[1]}T{match[4]}{match[5] or ''}")
        if (match := _SLASHED.fullmatch(text)) is not None:
            text = f"{match[1]}-{match[2]}-{match[3]} {match[4]}"
        if (match := _APART.fullmatch(text)) is not None:
            return datetime.fromisoformat(match[1] + ("+00:00" if match[2] in ("UTC", "GMT", "Z") else match[2]))
        if (match := _CALENDAR.fullmatch(text)) is not None:
            return datetime.fromisoformat(f"{match[4]}-{_MONTHS[match[1]]:02}-{int(match[2]):02}T{match[3]}")
        if _MAIL.match(text) is not None:
            return parsedate_to_datetime(text)
        return datetime.fromisoformat(text) if text[4:5] == "-" else None
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
