"""Read what a session knew before it acted or declined, as facts that can be compared across sessions.

Facts are of the last answer of each tool: a value, the days from a date to the session's instant, the number of items in a
list, a difference of two numbers of one record, whether the user had said a value, whether a value is missing. Of a list of
records only the one whose name the user said is read.

Reads JSON, Python literals, lines of `key: value`, separated lines under a header, and labels and numbers in set sentences.
Does not see: other prose, records of a list that the user described without naming them, facts from two answers together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import lru_cache
from itertools import combinations
from typing import Any

import orjson

from extractors.tasks.words import mentions

Fact = str | float | bool
ABOUT = "name of "
"""Begins the fact by which the user named a record: no condition is about it."""
_DATE = re.compile(r"^(\d{4})-(\d\d)-(\d\d)(?:$|[T ]\d\d:)")
_LINE = re.compile(r"(?m)^\s*(?:- )?([A-Za-z]\w*):[ \t]+(\S.*)$")
_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?$")
_NAME = re.compile(r"\d|@")
_KEY = re.compile(r"(?i)(?:^|_)(?:id|no|nr|number|code|key|token|ref|uuid)$|Id$")
"""Fields that name a thing: neither their value nor its size says anything of it."""
_LABELLED = re.compile(r"(?:^|[.,;]\s+)([^\W\d_][\w ]{1,30}): ([^,.;:]{1,40}|[\d.,-]+\d)(?=[.,;]?(?:\s|$))")
_CLAUSE = re.compile(r"[.,;!](?:\s+|$)|\n+")
_AMOUNT = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])")
_ISO = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_USER_NUMBER = re.compile(r"(?<![\w#@.,/:-])\d{1,3}(?:(?:,\d{3})+|\d{0,2})(?:\.\d+)?(?![\w/:-]|\.\d)")
_PAIRS = 6
"""Numbers of one record, above which no differences are taken."""
_LONGEST = 60
_PROSE = 400
_SEPARATORS = ",", ";", "\t", "|"


@lru_cache(maxsize=4096)
def parse_answer(text: str) -> Any:
    """Return an answer's objects and lists, None for prose. Callers must not change them."""
    text = text.strip()
    if text[:1] not in ("{", "[", "("):
        return _lines(text)
    for load in (orjson.loads, ast.literal_eval):
        try:
            return load(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def _lines(text: str) -> Any:
    lines = [line for line in text.split("\n") if line.strip()]
    for mark in _SEPARATORS:
        cells = [[cell.strip() for cell in line.split(mark)] for line in lines]
        if len(cells) > 1 and len(cells[0]) > 1 and len({len(row) for row in cells}) == 1:
            return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]
    return {name: value.strip("\"' ") for name, value in _LINE.findall(text)
            if ". " not in value} or _clauses(text) or None


def _clauses(text: str) -> dict[str, str]:
    """Return what a set sentence tells by `label: value`, and each number by the words around it."""
    values = {name: value.strip() for name, value in _LABELLED.findall(text)}
    for clause in _CLAUSE.split(text) if len(text) <= _PROSE else ():
        numbers = _AMOUNT.findall(clause)
        if len(numbers) == 1 and ":" not in clause:
            values[_AMOUNT.sub("#", clause)] = numbers[0]
    return values


def facts_of(tool: str, answer: str, user_words: str, today: date | None) -> dict[str, Fact]:
    """Return the facts of an answer by name. `user_words`: the user's words, lower-cased."""
    return dict(_walk(parse_answer(answer), tool, user_words, today))


def _walk(value: Any, path: str, user_words: str, today: date | None) -> Iterator[tuple[str, Fact]]:
    if isinstance(value, list | tuple):
        yield f"number of {path}", float(len(value))
        records = [each for each in value if isinstance(each, dict)]
        named = [record for record in records if any(_is_named(each, user_words) for each in record.values())]
        if len(value) == 1 or len(named) == 1 or isinstance(value, tuple):
            for each in named or records:
                yield from _walk(each, path, user_words, today)
    elif isinstance(value, dict):
        numbers = []
        for name, each in sorted(value.items(), key=lambda item: str(item[0])):
            place = f"{path}.{name}"
            yield f"{place} is missing", each in (None, "", [], {})
            if isinstance(each, dict | list | tuple):
                yield from _walk(each, place, user_words, today)
            else:
                number, named_by_user = _number(each), _is_named(each, user_words)
                if named_by_user:
                    yield ABOUT + path, str(each).lower()
                yield from _single(each, number, named_by_user, place, user_words, today)
                numbers += [] if number is None or named_by_user or _names_thing(str(name)) else [(place, number)]
        if len(numbers) <= _PAIRS:
            for (one, high), (other, low) in combinations(numbers, 2):
                yield f"{one} minus {other}", round(high - low, 6)


@lru_cache(maxsize=4096)
def _names_thing(field: str) -> bool:
    return _KEY.search(field) is not None


def _single(value: Any, number: float | None, is_named: bool, place: str, user_words: str,
            today: date | None) -> Iterator[tuple[str, Fact]]:
    text = str(value).strip().lower()
    day = _day(text)
    if is_named or _names_thing(place):
        pass
    elif isinstance(value, bool):
        yield place, text
    elif day is not None:
        if today is not None:
            yield f"days since {place}", float((today - day).days)
    elif number is not None:
        yield place, number
    elif 0 < len(text) <= _LONGEST and value is not None:
        yield place, text
    if value is not None and not isinstance(value, bool) and 1 < len(text) <= _LONGEST and day is None:
        yield f"the user said {place}", mentions(user_words, text)


def facts_said(words: str, values: Mapping[str, Fact], today: date | None) -> dict[str, Fact]:
    """Return the facts of the only number, or the only date, in a user's words, and the number beside those that were read."""
    numbers = {float(each.replace(",", "")) for each in _USER_NUMBER.findall(words)}
    days = {day for each in _ISO.findall(words) if (day := _day(each))}
    facts: dict[str, Fact] = {}
    if len(days) == 1 and today is not None:
        facts["days since the date that the user said"] = float((today - min(days)).days)
    if len(numbers) == 1:
        facts["the number that the user said"] = number = min(numbers)
        facts |= {f"the number that the user said minus {name}": round(number - fact, 6) for name, fact in values.items()
                  if isinstance(fact, float) and " " not in name}
    return facts


def named_record(field: str, facts: Mapping[str, Fact]) -> Fact | None:
    """Return by what the user named the record with this field, or the one around it; None where nothing was named."""
    while field:
        field = field.rpartition(".")[0]
        if ABOUT + field in facts:
            return facts[ABOUT + field]
    return None


def _is_named(value: Any, user_words: str) -> bool:
    text = str(value).lower()
    return isinstance(value, str | int) and len(text) > 2 and bool(_NAME.search(text)) and mentions(user_words, text)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    return float(value) if isinstance(value, str) and len(value) < 12 and _NUMBER.match(value.strip()) else None


def _day(text: str) -> date | None:
    match = _DATE.match(text)
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None
