"""How a site writes instants: an instant in, the text that its pages have for it out, and back.

A format was learnt (`env_builder.site.timing`): fields of a day and of a time of day, and what stands between them, with the
seconds by which its times are ahead of UTC. What is written like ISO 8601 is read without a format. Names of months are
English. A text that no format was learnt of names no instant.
Sees: what is written. Does not see: zones that change within a year, days of a calendar other than the Gregorian one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from ..clock import MONTHS

__all__ = ["FoundInstant", "SiteTimes", "TimeFormat", "instants_in"]

_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ,.]|\s+)+(\d\d):(\d\d)(?::(\d\d))?")
_SHORT = tuple(month[:3] for month in MONTHS)
_HALF = 12
_CENTURY, _YEARS = 2000, 100


def _ordinal(day: int) -> str:
    return f"{day}{'th' if 10 <= day % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def _half(at: datetime) -> str:
    return "p" if at.hour >= _HALF else "a"


def _spoken(at: datetime) -> str:
    """Return a time of day as people say it: without minutes on the hour, noon and midnight by name."""
    if at.minute == 0 and at.hour in (0, _HALF):
        return "noon" if at.hour else "midnight"
    return f"{at.hour % _HALF or _HALF}{f':{at.minute:02}' if at.minute else ''} {_half(at)}.m."


_WRITTEN: dict[str, Callable[[datetime], str]] = {
    "Y": lambda at: f"{at.year:04}", "y": lambda at: f"{at.year % _YEARS:02}",
    "m": lambda at: f"{at.month:02}", "n": lambda at: f"{at.month}",
    "B": lambda at: MONTHS[at.month - 1], "b": lambda at: _SHORT[at.month - 1],
    "d": lambda at: f"{at.day:02}", "e": lambda at: f"{at.day}", "o": lambda at: _ordinal(at.day),
    "H": lambda at: f"{at.hour:02}", "k": lambda at: f"{at.hour}",
    "I": lambda at: f"{at.hour % _HALF or _HALF:02}", "l": lambda at: f"{at.hour % _HALF or _HALF}",
    "M": lambda at: f"{at.minute:02}", "S": lambda at: f"{at.second:02}",
    "p": lambda at: f"{_half(at).upper()}M", "q": lambda at: f"{_half(at)}m", "r": lambda at: f"{_half(at)}.m.", "P": _spoken}
_TWO, _ONE = r"\d\d", r"[1-9]\d?"
_PATTERNS = {"Y": r"\d{4}", "y": _TWO, "m": r"(?:0[1-9]|1[0-2])", "n": r"(?:[1-9]|1[0-2])", "B": f"(?:{'|'.join(MONTHS)})",
            "b": f"(?:{'|'.join(_SHORT)})", "d": r"(?:0[1-9]|[12]\d|3[01])", "e": r"(?:[1-9]|[12]\d|3[01])",
            "o": r"(?:[1-9]|[12]\d|3[01])(?:st|nd|rd|th)", "H": r"(?:[01]\d|2[0-3])", "k": r"(?:1\d|2[0-3]|\d)",
            "I": r"(?:0[1-9]|1[0-2])", "l": r"(?:1[0-2]|[1-9])", "M": r"[0-5]\d", "S": r"[0-5]\d",
            "p": "(?:AM|PM)", "q": "(?:am|pm)", "r": r"(?:a\.m\.|p\.m\.)",
            "P": r"(?:(?:1[0-2]|[1-9])(?::[0-5]\d)? (?:a\.m\.|p\.m\.)|noon|midnight)"}
"""Of each field what it may have, the longest first."""
_UNITS = {"S": timedelta(seconds=1), "M": timedelta(minutes=1), "P": timedelta(minutes=1)}


class FoundInstant(NamedTuple):
    """An instant that stands in a text."""

    start: int
    end: int
    at: datetime
    """In UTC, as exact as it is written."""


class TimeFormat(NamedTuple):
    """Fields of an instant with what stands between them."""

    parts: tuple[str, ...]
    """A field, a literal, a field, … and a literal last."""
    zone: int = 0
    """Seconds by which it is ahead of UTC."""

    @property
    def unit(self) -> timedelta:
        """Return how exact it is: a second, a minute or a day."""
        return next((unit for field, unit in _UNITS.items() if field in self.parts[::2]), timedelta(days=1))

    def written(self, at: datetime) -> str:
        """Return an instant as the format writes it."""
        local = at + timedelta(seconds=self.zone)
        return "".join(part if index % 2 else _WRITTEN[part](local) for index, part in enumerate(self.parts))

    def shown(self, at: datetime) -> datetime:
        """Return the instant that stands there for another: without what the format leaves out."""
        return _floor(at + timedelta(seconds=self.zone), self.unit) - timedelta(seconds=self.zone)

    def instants(self, text: str) -> Iterator[FoundInstant]:
        """Yield the instants of this format in a text."""
        for match in _compiled(self.parts).finditer(text):
            local = _read(self.parts[::2], match.groups())
            if local is not None and self.written(at := local - timedelta(seconds=self.zone)) == match[0]:
                yield FoundInstant(match.start(), match.end(), at)


@lru_cache(maxsize=256)
def _compiled(parts: tuple[str, ...]) -> re.Pattern[str]:
    inner = "".join(re.escape(part) if index % 2 else f"({_PATTERNS[part]})" for index, part in enumerate(parts))
    return re.compile(rf"(?<![\w.-]){inner}(?!\w)")


def _floor(at: datetime, unit: timedelta) -> datetime:
    begin = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return begin + (at - begin) // unit * unit


def _read(fields: Sequence[str], texts: Sequence[str]) -> datetime | None:
    values: dict[str, int] = {"hour": 0, "minute": 0, "second": 0}
    half = ""
    for field, text in zip(fields, texts, strict=True):
        if field in "Bb":
            values["month"] = (MONTHS if field == "B" else _SHORT).index(text) + 1
        elif field in "pqr":
            half = text[0].lower()
        elif field == "P":
            clock = {"noon": "12:00 p", "midnight": "12:00 a"}.get(text, text)
            hour, _, rest = clock.partition(" ")[0].partition(":")
            values["hour"], values["minute"], half = int(hour), int(rest or 0), clock.partition(" ")[2][0]
        else:
            name = {"Y": "year", "y": "year", "m": "month", "n": "month", "M": "minute", "S": "second"}.get(
                field, "day" if field in "deo" else "hour")
            values[name] = int(re.sub(r"\D", "", text)) + (_CENTURY if field == "y" else 0)
    if half:
        values["hour"] = values["hour"] % _HALF + (_HALF if half == "p" else 0)
    try:
        return datetime(**values, tzinfo=UTC)
    except (TypeError, ValueError):   # a field is missing, or there is no such day
        return None


class SiteTimes(NamedTuple):
    """All that is known of how a site writes instants."""

    zone: int = 0
    """Seconds by which times that are written like ISO 8601 are ahead of UTC."""
    formats: tuple[TimeFormat, ...] = ()

    def plain(self) -> list[object]:
        """Return it as JSON."""
        return [self.zone, [[list(each.parts), each.zone] for each in self.formats]]

    @classmethod
    def of(cls, zone: int, formats: Sequence[tuple[Sequence[str], int]]) -> SiteTimes:
        """Read what `plain` gives."""
        return cls(zone, tuple(TimeFormat(tuple(parts), ahead) for parts, ahead in formats))


@lru_cache(maxsize=1 << 15)
def instants_in(text: str, times: SiteTimes) -> tuple[datetime, ...]:
    """Return the times that a text or an address names to the minute or second, in UTC."""
    if not any(map(str.isdigit, text)):
        return ()
    instants = []
    if ":" in text or "%3A" in text:
        for year, month, day, hour, minute, second in _ISO.findall(unquote(text)):
            try:
                local = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
            except ValueError:
                continue
            instants.append(local - timedelta(seconds=times.zone))
    for each in times.formats:
        if each.unit < timedelta(days=1):
            instants += [match.at for match in each.instants(text) if match.at not in instants]
    return tuple(instants)
