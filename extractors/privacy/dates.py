"""Dates of people, all moved by the same number of days: how far they are from one another stays.

In: a text with a date, and days. Out: the same text with the date moved, as it was written. Sees: 1980-03-31, 1980/03/31,
19800331 alone, 31.03.1980, 31.3.80, 03/31/1980 (month first, where it can be one), 31 March 1980, March 31st, 1980, with what
stands behind it. All else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")
_NAMED = "|".join((*_MONTHS, *(month[:3] for month in _MONTHS), "sept"))
_YEAR_FIRST = re.compile(r"(?<!\d)(?P<y>\d{4})(?P<a>[-/.])(?P<m>\d{1,2})(?P<b>(?P=a))(?P<d>\d{1,2})(?!\d)")
_MONTH_FIRST = re.compile(r"(?<!\d)(?P<m>0?[1-9]|1[0-2])(?P<a>/)(?P<d>\d{1,2})(?P<b>/)(?P<y>\d{4}|\d{2})(?!\d)")
_DAY_FIRST = re.compile(r"(?<!\d)(?P<d>\d{1,2})(?P<a>[-/.])(?P<m>\d{1,2})(?P<b>(?P=a))(?P<y>\d{4}|\d{2})(?!\d)")
_WITHOUT_SIGNS = re.compile(r"\s*(?P<y>(?:19|20)\d\d)(?P<a>)(?P<m>\d\d)(?P<b>)(?P<d>\d\d)\s*")
_DAY_NAMED = re.compile(
    rf"(?i)\b(?P<d>\d{{1,2}})(?P<a>(?:st|nd|rd|th|\.)?(?: of)? )(?P<m>{_NAMED})(?P<b>\.?,? )(?P<y>\d{{4}})\b")
_MONTH_NAMED = re.compile(rf"(?i)\b(?P<m>{_NAMED})(?P<a>\.? )(?P<d>\d{{1,2}})(?P<b>(?:st|nd|rd|th)?,? )(?P<y>\d{{4}})\b")
_FORMS = (_YEAR_FIRST, _MONTH_FIRST, _DAY_FIRST, _DAY_NAMED, _MONTH_NAMED)
_PIVOT = 30
"""Years of two digits from this one on are of the century before."""


def shifted(text: str, days: int) -> str:
    """The text with its dates so many days earlier."""
    if _WITHOUT_SIGNS.fullmatch(text):
        return _WITHOUT_SIGNS.sub(_mover(days), text)
    form = next((each for each in _FORMS if each.search(text)), None)
    return form.sub(_mover(days), text) if form else text


def day_of(text: str) -> date | None:
    """The day that a text is; None where it is none, or more than one."""
    text = text.strip()
    if found := _WITHOUT_SIGNS.fullmatch(text):
        return _read(found)
    return next((_read(found) for form in _FORMS if (found := form.fullmatch(text))), None)


def spellings(day: date) -> Iterator[str]:
    """How people write a day, in lower case."""
    month = _MONTHS[day.month - 1]
    yield from (f"{day:%Y-%m-%d}", f"{day:%Y/%m/%d}", f"{day:%m/%d/%Y}", f"{day.month}/{day.day}/{day.year}", f"{day:%d.%m.%Y}",
                f"{day.day}.{day.month}.{day.year}", f"{day:%d-%m-%Y}")
    yield from (f"{first} {day.day}, {day.year}" for first in (month, month[:3]))
    yield from (f"{day.day} {last} {day.year}" for last in (month, month[:3]))
    if day.day > 12:
        yield f"{day:%d/%m/%Y}"


def _mover(days: int) -> Callable[[re.Match[str]], str]:
    def moved(found: re.Match[str]) -> str:
        day = _read(found)
        try:
            made = None if day is None else day - timedelta(days=days)
        except OverflowError:
            made = None
        if made is None or made.year < 1000:
            return found[0]
        new = {"y": f"{made.year % 100:02}" if len(found["y"]) == 2 else f"{made.year}",
               "m": _month_as(found["m"], made.month), "d": f"{made.day:0{len(found['d'])}}"}
        pieces, done = [], 0
        for name in sorted(new, key=found.start):
            pieces += [found[0][done:found.start(name) - found.start()], new[name]]
            done = found.end(name) - found.start()
        return "".join(pieces) + found[0][done:]
    return moved


def _read(found: re.Match[str]) -> date | None:
    year, month = int(found["y"]), found["m"].lower()
    if len(found["y"]) == 2:
        year += 1900 if year >= _PIVOT else 2000
    number = int(month) if month.isdigit() else 1 + next(at for at, each in enumerate(_MONTHS) if each.startswith(month[:3]))
    try:
        return date(year, number, int(found["d"]))
    except ValueError:
        return None


def _month_as(written: str, month: int) -> str:
    """A month as another one was written: in digits, or by its name."""
    if written.isdigit():
        return f"{month:0{len(written)}}"
    name = _MONTHS[month - 1]
    name = name[:3] if len(written) < 5 and written.lower() not in _MONTHS else name
    return name.upper() if written.isupper() else name.title() if written[0].isupper() else name
