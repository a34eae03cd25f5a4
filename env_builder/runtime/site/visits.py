"""A visit of a site: a request with its answer as places and values, and the values that a text of the answer may repeat."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from ..clock import MONTHS
from .port import PortRequest

__all__ = ["AS", "CHANGED", "GIVEN", "KIND", "Place", "SiteVisit", "Value", "arguments_of", "chosen", "field_kind",
           "given_fields", "greatest_numbers", "local_url", "path_of", "rows_of", "words_of", "written_days", "written_instant"]

Place: TypeAlias = str
"""Ordinals of children from the template's root down, then the attribute's name if it is one: `1/0/3/href`."""
Value: TypeAlias = str | None
"""A text, an attribute (None: the page has none), or optional children and rows as JSON."""
KIND: Place = "kind"
"""The place of an answer's kind: its status and whether a page, a redirect or a download came back."""


@dataclass(frozen=True, slots=True)
class SiteVisit:
    """A request of a session with its answer as places and values."""

    user: str
    at: datetime
    route: str
    url: str
    is_write: bool
    is_page: bool
    """Whether a page came back; of a request whose answer is to be predicted, False."""
    arguments: Mapping[str, str]
    """Values of the request by name: of path, query and form."""
    values: Mapping[Place, Value]
    """Places to values; `KIND` is one of them. Empty for a request whose answer is to be predicted."""
    unknown: tuple[Place, ...] = ()
    """Places of which no source can be relied on."""

    @property
    def kind(self) -> Value:
        """Return the answer's kind."""
        return self.values.get(KIND)


@lru_cache(maxsize=1 << 13)
def rows_of(value: Value) -> Sequence[Any] | None:
    """Return the children that a value holds as JSON, None for other values."""
    if not value or value[0] != "[":
        return None
    try:
        rows = json.loads(value)
    except ValueError:
        return None
    return rows if all(map(_is_node, rows)) else None


def _is_node(plain: Any) -> bool:
    if isinstance(plain, str):
        return True
    return isinstance(plain, list) and list(map(type, plain)) == [str, dict, list] and all(map(_is_node, plain[2]))


def path_of(url: str) -> str:
    """Return the path of an address, an empty text for an invalid one."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def local_url(url: str) -> str:
    """Return path and query of an address."""
    address = urlsplit(url)
    path = address.path or "/"
    return f"{path}?{address.query}" if address.query else path


def arguments_of(request: PortRequest, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a request by name; a field that was posted more than once has the mark of several."""
    address = urlsplit(request.url)
    fields: dict[str, list[str]] = {}
    for name, value in request.form or ():
        fields.setdefault(name, []).append(value)
    queried = {f"query {name}": value for name, value in parse_qsl(address.query, keep_blank_values=True)}
    numbers = {f"{name} number": match[1] for name, value in (*parameters.items(), *queried.items())
               if (match := _NUMBER_BEHIND.fullmatch(value))}
    return {**_changed(request.changed), "url": local_url(request.url), "path": address.path or "/", "query": address.query,
            **numbers, **parameters, **queried,
            **{f"form {name}": values[0] for name, values in fields.items() if len(values) == 1},
            **{f"form {name}{_AS_SEVERAL}": _SEVERAL for name, values in fields.items() if len(values) > 1}}


def chosen(arguments: Mapping[str, str], name: str) -> str:
    """Return what was chosen in a form's field, as arguments have it: the text, empty where the field was not sent.

    A name that ends in `GIVEN` tells whether anything was."""
    field = name.removesuffix(GIVEN)
    text = arguments.get(field, arguments.get(f"{field}{_AS_SEVERAL}", ""))
    return text if field == name else "yes" if text.strip() else ""


def field_kind(name: str) -> str:
    """Return a field's name as it counts in all rows of a form: without numbers, and whether it was sent once or more often."""
    return re.sub(r"\d+", "#", name.removesuffix(_AS_SEVERAL))


def given_fields(arguments: Mapping[str, str]) -> set[str]:
    """Return the kinds of a form's fields that were filled in; of a number, a day and a mail address also that it was one."""
    given: set[str] = set()
    for name, text in arguments.items():
        if name.startswith("form ") and not name.startswith(CHANGED) and text.strip():
            kind = field_kind(name)
            given.add(kind)
            given.update(f"{kind}{AS}{way}" for way, pattern in _WAYS.items() if pattern.fullmatch(text.strip()))
    return given


def _changed(names: Sequence[str]) -> dict[str, str]:
    """Return the names of fields that were changed as messages list them, also in addresses."""
    listed = {"": ", ".join(names), " sorted": ", ".join(sorted(names))} if names else {}
    coded = {f"*changed{way} {spelling.__name__}": spelling(text)
             for way, text in listed.items() for spelling in (quote, quote_plus)}
    return {f"{CHANGED}{way}": text for way, text in listed.items()} | coded


CHANGED, GIVEN = "form *changed", " given"
"""Begin of names for the fields that were changed; end of names that tell whether a field was filled in."""
AS = " as a "
"""Between the name of a field and how it was filled in."""
_WAYS = {"number": re.compile(r"[+-]?\d+(?:[.,]\d+)*"), "day": re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}"),
         "mail": re.compile(r"[^@\s]+@[^@\s]+")}
_AS_SEVERAL, _SEVERAL = " several", "\x02"
"""What stands for the texts of a field that was posted more than once; no page holds it."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def written_days(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return each day among the values of a request as pages write days, by name and way of writing."""
    written: dict[str, str] = {}
    for name, value in arguments.items():
        if _DAY.fullmatch(value):
            try:
                at = datetime.fromisoformat(value)
            except ValueError:
                continue
            written |= {f"{name} {way}": text for way, text in written_instant(at) if way.startswith("day")}
    return written


_NUMBER_BEHIND = re.compile(r".*\D(\d+)", re.DOTALL)
_WORD = re.compile(r"[^\s/?&=#\"',;:()<>\[\]{}]+")


@lru_cache(maxsize=1 << 15)
def words_of(text: str) -> frozenset[str]:
    """Return the words of a text that may be ids, for they have digits; each part of an address is a word of its own."""
    return frozenset(word for word in _WORD.findall(text) if any(map(str.isdigit, word)))


_NUMBERED = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])([A-Za-z]+)(?:%20|[^A-Za-z0-9%]){0,3}(\d{1,9})(?!\d)")


@lru_cache(maxsize=1 << 15)
def greatest_numbers(text: str) -> Mapping[str, int]:
    """Return the greatest number behind each word of a text, as ids have one (`issue12`, `/ticket/12`, `comment:12`)."""
    greatest: dict[str, int] = {}
    for word, number in _NUMBERED.findall(text):
        greatest[word.lower()] = max(greatest.get(word.lower(), 0), int(number))
    return greatest


_N_HOURS = 12


def written_instant(at: datetime) -> Iterator[tuple[str, str]]:
    """Yield day and time of an instant (UTC) as pages in English and in numbers write them, by the way of writing."""
    day, year = at.day, at.year
    ordinal = "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    days = {"th": f"{day}{ordinal}", "d": f"{day}", "dd": f"{day:02}"}
    months = {"month": MONTHS[at.month - 1], "mon": MONTHS[at.month - 1][:3], "mon.": f"{MONTHS[at.month - 1][:3]}."}
    yield from (("day iso", f"{year}-{at.month:02}-{day:02}"), ("day dd/mm", f"{day:02}/{at.month:02}/{year}"),
                ("day mm/dd", f"{at.month:02}/{day:02}/{year}"), ("day dd.mm", f"{day:02}.{at.month:02}.{year}"))
    for (name, text), (month_name, month) in product(days.items(), months.items()):
        yield f"day {name} {month_name}", f"{text} {month} {year}"
        yield f"day {month_name} {name}", f"{month} {text}, {year}"
    hour, half = at.hour % _N_HOURS or _N_HOURS, "p" if at.hour >= _N_HOURS else "a"
    yield "time 24", f"{at.hour:02}:{at.minute:02}"
    yield "time seconds", f"{at.hour:02}:{at.minute:02}:{at.second:02}"
    yield "time dotted", f"{hour}:{at.minute:02} {half}.m." if at.minute else f"{hour} {half}.m."
    yield "time 12", f"{hour:02}:{at.minute:02}"
    yield "time half", f"{hour}:{at.minute:02} {half.upper()}M"
