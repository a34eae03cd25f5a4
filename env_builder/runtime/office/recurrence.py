"""Work out when a repeated event takes place: the rules of RFC 5545 that calendars write.

In: a rule (`FREQ=WEEKLY;BYDAY=MO,WE;COUNT=8`), the first occurrence in its own time zone. Out: occurrences in order, each at
the first one's time of day, also where the zone's clocks change.
Sees: FREQ from DAILY to YEARLY, INTERVAL, COUNT, UNTIL, BYDAY (`2MO`, `-1FR`), BYMONTHDAY, BYMONTH, BYSETPOS, WKST.
Does not see, and raises Undecided: hours and shorter periods, days and weeks counted by the year, a first occurrence that its
own rule does not give, which calendars count in different ways.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import NamedTuple

from ..company import Undecided

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_PARTS = frozenset(("FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS", "WKST"))
_WEEKDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_EMPTY_PERIODS = 1_000
"""After so many periods without a day the rule is taken to give no more (a 30th of February)."""


class Recurrence(NamedTuple):
    """A rule. Numbers count from 1; negative ones from the end."""

    freq: str
    interval: int
    most: int | None
    """COUNT."""
    until: datetime | None
    """The last instant at which it may begin, with a zone; None: for ever."""
    weekdays: tuple[tuple[int, int], ...]
    """Which one in the month (0: each), day of the week (0: Monday)."""
    month_days: tuple[int, ...]
    months: tuple[int, ...]
    positions: tuple[int, ...]
    week_start: int

    @classmethod
    def read(cls, text: str, first: datetime) -> Recurrence:
        """Return the rule in a text. `first`: an UNTIL without a zone is in its zone. Errors: Undecided."""
        try:
            parts = dict(part.split("=", 1) for part in text.upper().removeprefix("RRULE:").strip().strip(";").split(";"))
            rule = cls(
                parts["FREQ"], int(parts.get("INTERVAL", "1")), int(parts["COUNT"]) if "COUNT" in parts else None,
                _until(parts["UNTIL"], first) if "UNTIL" in parts else None,
                tuple(map(_weekday, _listed(parts.get("BYDAY")))), tuple(map(int, _listed(parts.get("BYMONTHDAY")))),
                tuple(map(int, _listed(parts.get("BYMONTH")))), tuple(map(int, _listed(parts.get("BYSETPOS")))),
                _DAYS.index(parts.get("WKST", "MO")))
        except (KeyError, ValueError):
            raise Undecided(f"the rule {text!r} of a repeated event is not understood") from None
        is_by_year = rule.freq == "YEARLY" and not rule.months and bool(rule.weekdays or rule.month_days)
        is_odd = rule.freq in ("DAILY", "WEEKLY") and (bool(rule.positions) or any(each for each, _ in rule.weekdays))
        is_odd |= rule.freq == "WEEKLY" and bool(rule.month_days)
        if not parts.keys() <= _PARTS or rule.freq not in _PERIODS or rule.interval < 1 or is_by_year or is_odd:
            raise Undecided(f"the rule {text!r} of a repeated event is of a kind that is not worked out")
        return rule

    def occurrences(self, first: datetime) -> Iterator[datetime]:
        """Yield when it begins, in order and perhaps for ever; `first`: the first time, in its own zone. Errors: Undecided."""
        n_given = 0
        for at in self._days(first.date()):
            begin = datetime.combine(at, first.timetz())
            if begin < first:
                continue
            if n_given == 0 and begin != first:
                raise Undecided("a repeated event begins on a day that its own rule does not give")
            if (self.most is not None and n_given >= self.most) or (self.until is not None and begin > self.until):
                return
            n_given += 1
            yield begin

    def _days(self, first: date) -> Iterator[date]:
        """Yield the days of all periods, from the first day's on, until the calendar ends."""
        n_empty = 0
        for number in count():
            try:
                days = sorted(_PERIODS[self.freq](self, first, number * self.interval))
            except (OverflowError, ValueError):
                return
            chosen = days if not self.positions else sorted({
                days[each - (each > 0)] for each in self.positions if 0 < abs(each) <= len(days)})
            yield from chosen
            n_empty = 0 if chosen else n_empty + 1
            if n_empty > _EMPTY_PERIODS:
                return

    def _of_day(self, first: date, number: int) -> list[date]:
        day = first + timedelta(days=number)
        month_days = {each if each > 0 else monthrange(day.year, day.month)[1] + 1 + each for each in self.month_days}
        fits = (not self.months or day.month in self.months) and (not month_days or day.day in month_days) and (
            not self.weekdays or (0, day.weekday()) in self.weekdays)
        return [day] if fits else []

    def _of_week(self, first: date, number: int) -> list[date]:
        begin = first - timedelta(days=(first.weekday() - self.week_start) % 7) + timedelta(weeks=number)
        weekdays = {each for _, each in self.weekdays} or {first.weekday()}
        days = (begin + timedelta(days=offset) for offset in range(7))
        return [day for day in days if day.weekday() in weekdays and (not self.months or day.month in self.months)]

    def _of_month(self, first: date, number: int) -> list[date]:
        year, month = divmod(first.year * 12 + first.month - 1 + number, 12)
        return [] if self.months and month + 1 not in self.months else self._in_month(year, month + 1, first.day)

    def _of_year(self, first: date, number: int) -> list[date]:
        return [day for month in self.months or (first.month,) for day in self._in_month(first.year + number, month, first.day)]

    def _in_month(self, year: int, month: int, own_day: int) -> list[date]:
        """Return the days of a month that fit; without any part that names days, the first occurrence's own."""
        n_days = monthrange(year, month)[1]
        all_days = [date(year, month, number + 1) for number in range(n_days)]
        if not self.month_days and not self.weekdays:
            return [day for day in all_days if day.day == own_day]
        month_days = {each if each > 0 else n_days + 1 + each for each in self.month_days}
        return [day for day in all_days if (not month_days or day.day in month_days)
                and (not self.weekdays or any(self._is_weekday(day, n_days, *each) for each in self.weekdays))]

    @staticmethod
    def _is_weekday(day: date, n_days: int, nth: int, weekday: int) -> bool:
        place = (day.day - 1) // 7 + 1 if nth > 0 else -((n_days - day.day) // 7 + 1)
        return day.weekday() == weekday and nth in (0, place)


_PERIODS = {"DAILY": Recurrence._of_day, "WEEKLY": Recurrence._of_week, "MONTHLY": Recurrence._of_month,
            "YEARLY": Recurrence._of_year}


def _listed(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _weekday(text: str) -> tuple[int, int]:
    match = _WEEKDAY.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return int(match[1] or 0), _DAYS.index(match[2])


def _until(text: str, first: datetime) -> datetime:
    if len(text) == 8:   # a whole day
        return datetime.combine(datetime.strptime(text, "%Y%m%d").date(), datetime.max.time(), first.tzinfo)
    at = datetime.strptime(text.removesuffix("Z"), "%Y%m%dT%H%M%S")
    return at.replace(tzinfo=UTC if text.endswith("Z") else first.tzinfo)
