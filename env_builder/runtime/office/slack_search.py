"""Slack's search language, as a declared grammar; the tool `conversations_search_messages` reads it.

    query  := item*
    item   := ['-'] (filter | phrase | word)
    filter := key ':' value          key: is, in, from, with, before, after, on, during, has
    phrase := '"' any text '"'

In: a query and the arguments `filter_*` of the server. Out: terms and filters. A word matches each word of a message that
begins with it, in any case. Dates are days of UTC: `before` and `after` leave the day itself out; `during` also takes a month
or a year.
Does not see: synonyms and stems beyond the beginning of a word; `has:` other than `link`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

FILTERS = ("is", "in", "from", "with", "before", "after", "on", "during", "has")
_ITEM = re.compile(r'(?P<minus>-)?(?:(?P<key>[A-Za-z]+):(?:"(?P<quoted>[^"]*)"|(?P<value>\S+))|"(?P<phrase>[^"]*)"?'
                   r'|(?P<word>\S+))')
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")
_DAY_FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%m-%d-%Y", "%m/%d/%Y", "%d-%m-%Y", "%d/%m/%Y", "%b %d, %Y", "%B %d, %Y", "%d %b %Y",
              "%d %B %Y")
_MONTH_FORMS = ("%Y %B", "%B %Y", "%Y %b", "%b %Y")


class InvalidSearch(ValueError):
    """The server refuses a search; the text says why."""


class SearchTerm(NamedTuple):
    """What a message must hold, or must not hold."""

    kind: str
    """`word`, `phrase`, or the key of a filter."""
    value: str
    is_negated: bool = False


def parse_search(query: str) -> list[SearchTerm]:
    """Return the terms of a query. A key that is no filter belongs to a word."""
    terms: list[SearchTerm] = []
    for match in _ITEM.finditer(query):
        negated = match["minus"] is not None
        key = (match["key"] or "").lower()
        if key in FILTERS:
            terms.append(SearchTerm(key, match["value"] if match["quoted"] is None else match["quoted"], negated))
        elif match["phrase"] is not None:
            terms.append(SearchTerm("phrase", match["phrase"], negated))
        else:
            text = match["word"] if match["key"] is None else match[0].removeprefix("-" if negated else "")
            terms.append(SearchTerm("word", text, negated))
    return terms


def date_terms(before: str, after: str, on: str, during: str, now: float) -> list[SearchTerm]:
    """Return the filters of the server's date arguments, as it normalises them. Errors: InvalidSearch."""
    if on and (during or before or after):
        raise InvalidSearch("'on' cannot be combined with other date filters")
    if during and (before or after):
        raise InvalidSearch("'during' cannot be combined with 'before' or 'after'")
    given = {"on": on, "during": during, "after": after, "before": before}
    days = {key: _server_day(key, text, now) for key, text in given.items() if text}
    if "after" in days and "before" in days and days["after"] > days["before"]:
        raise InvalidSearch("'after' date is after 'before' date")
    return [SearchTerm(key, f"{day:%Y-%m-%d}") for key, day in days.items()]


def interval(text: str, now: float) -> tuple[float, float] | None:
    """Return the beginning and the end of a day, month or year in seconds since 1970, or None if the text is no date."""
    day = _day_of(text, now)
    if day is not None:
        return day.timestamp(), (day + timedelta(days=1)).timestamp()
    today = _today(now)
    name = text.strip().lower()
    months = [index for index, month in enumerate(_MONTHS, 1) if len(name) >= 3 and month.startswith(name)]
    month = next((parsed for form in _MONTH_FORMS if (parsed := _parsed(text, form))), None)
    if month is None and len(months) == 1:
        month = today.replace(month=months[0], day=1, year=today.year - (months[0] > today.month))
    if month is not None:
        return month.timestamp(), (month + timedelta(days=32)).replace(day=1).timestamp()
    if re.fullmatch(r"[12]\d{3}", name):
        year = today.replace(year=int(name), month=1, day=1)
        return year.timestamp(), year.replace(year=year.year + 1).timestamp()
    return None


def _server_day(key: str, text: str, now: float) -> datetime:
    day = _day_of(text, now) or next((parsed for form in _MONTH_FORMS if (parsed := _parsed(text, form))), None)
    if day is None:
        raise InvalidSearch(f"invalid '{key}' date: unable to parse date: {text.strip()}")
    return day


def _day_of(text: str, now: float) -> datetime | None:
    name = text.strip().lower()
    offset = {"today": 0, "yesterday": -1, "tomorrow": 1}.get(name)
    if (ago := re.fullmatch(r"(\d{1,5})\s+days?\s+ago", name)) is not None:
        offset = -int(ago[1])
    if offset is not None:
        return _today(now) + timedelta(days=offset)
    return next((parsed for form in _DAY_FORMS if (parsed := _parsed(text, form))), None)


def _today(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _parsed(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
    except ValueError:
        return None
