"""Instants as tools write them: which form a value has, and an instant in that form.

A form is a template of what is written: `YYYY-MM-DD`, then perhaps `T` or a space, `hh:mm`, `:ss`, `.mmm` or `.uuuuuu`,
and `Z` or a fixed offset such as `+02:00`; or `seconds` or `milliseconds` since 1970 (whole numbers), or `seconds.` (with
a fraction). Days may name their month: `DD Mmm YYYY`, `Mmmm D, YYYY` and such: `Mmm` are three letters, `D` has no zero.
Sees: ISO 8601, Unix time between 2001 and 2100, English names of months. Does not see: numbers with the day before the month,
clocks of twelve hours.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

DAY = "YYYY-MM-DD"
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")
_SHORT = tuple(name[:3] for name in MONTHS)
_SAME = "May"
"""The month whose name does not tell whether names are cut."""
_NAMED = re.compile(r"(?P<first>\d\d? )?(?P<month>[A-Z][a-z]{2,8}) (?P<second>\d\d?, )?(?P<year>\d{4})")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:([T ])(\d\d:\d\d)(:\d\d)?(\.\d{3}(?:\d{3})?)?(Z|[+-]\d\d:?\d\d)?)?")
_UNIX = {"seconds": timedelta(seconds=1), "milliseconds": timedelta(milliseconds=1)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = timedelta(seconds=978_307_200), timedelta(seconds=4_102_444_800)


def read(value: Any) -> tuple[str, datetime] | None:
    """(form, what is written, in UTC as if it were written there) of a value that looks like an instant."""
    if isinstance(value, str):
        match = _ISO.fullmatch(value)
        if match is None:
            return _named_day(value)
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


def is_day(form: str) -> bool:
    """Return whether the form tells a day and no time."""
    return form == DAY or "Mmm" in form


def is_ambiguous(form: str, at: datetime, other: datetime) -> bool:
    """Return whether nobody can tell how the other day is written from how this one is: May is never cut."""
    return "Mmm" in form and MONTHS[at.month - 1] == _SAME and other.month != at.month


def _named_day(text: str) -> tuple[str, datetime] | None:
    match = _NAMED.fullmatch(text)
    day = match and (match["first"] or match["second"])
    if match is None or not day or (match["first"] and match["second"]):
        return None
    names = _SHORT if match["month"] in _SHORT else MONTHS
    number = day.strip(" ,")
    if match["month"] not in names or int(match["year"]) == 0:
        return None
    written = "Mmm" if names is _SHORT else "Mmmm"
    form = f"{'D' * len(number)} {written} YYYY" if match["first"] else f"{written} {'D' * len(number)}, YYYY"
    try:
        return form, datetime(int(match["year"]), names.index(match["month"]) + 1, int(number), tzinfo=UTC)
    except ValueError:
        return None


def write(form: str, at: datetime) -> str | int | float:
    """Write the instant in this form; no time zone is applied."""
    if "Mmm" in form:
        names = MONTHS if "Mmmm" in form else _SHORT
        day = f"{at.day:02}" if "DD" in form else str(at.day)
        text = form.replace("DD", "D").replace("Mmmm", "Mmm").replace("D", day, 1).replace("YYYY", f"{at.year:04}", 1)
        return text.replace("Mmm", names[at.month - 1], 1)
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
