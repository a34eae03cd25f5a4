"""What a text states: its numbers, dates and ids, in one normal form each.

In: a text of an agent, a user or a tool. Out: a frozen set of (type, value) facts.
Sees: numbers with either decimal sign and thousands marks, dates in ISO, English month names and slashes or dots,
ids (a letter and a digit, or seven digits and more). Does not see: numbers in words, times of day, languages other
than English for month names, names without a digit. Text is only ever searched: never run, never a pattern or format.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from .caching import cached

Fact = tuple[str, str]

LONGEST_TEXT = 200_000
"""Characters of a text that are read: a flood of words costs no more than this."""

BEFORE, AFTER = 16, 32
"""Characters before and after the beginning of a month's name that may belong to the same date: "15th of September, 2024"."""

LONGEST_NUMBER = 24
"""Characters of a number that is read: longer ones are no quantity that anybody is told."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
          r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?")
_ANY_MONTH = re.compile("|".join(_MONTHS))
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s{1,2}(\d{4}))?(?!\d)"
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)", re.ASCII)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s{{1,2}}{_DAY}\b{_YEAR}", re.IGNORECASE | re.ASCII)
_DAY_FIRST = re.compile(rf"(?<![\w]){_DAY}\s{{1,2}}(?:of\s)?{_MONTH}{_YEAR}", re.IGNORECASE | re.ASCII)
_PARTS = re.compile(r"(?<![\d/.])(\d{1,2})([/.])(\d{1,2})\2(\d{4}|\d{2})(?![\d/])", re.ASCII)
_CLOCK = re.compile(r"(?<!\d)\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?", re.ASCII)
_ID = re.compile(r"(?<![^\W_])(?=[\w\-.@]*\d)[^\W_]+(?:[_\-.@][^\W_]+)*", re.ASCII)
_MEASURE = re.compile(r"\d+(?:[.,]\d+)?-?[a-z]+", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"(?<![^\W_])\d+(?:[.,]\d+)*(?![^\W_])", re.ASCII)
_AMOUNT = re.compile(r"\d{1,6}(?:,\d{3})*(?:\.\d+)?", re.ASCII)
_NAME = re.compile(r"[^\W_]+(?:_[^\W_]+)+", re.ASCII)
_ABOUT = "#$*(),.;:!?\"'[]{}%<>"
"""Marks about a word that are no part of a number or an id."""
_DIGIT = re.compile(r"\d", re.ASCII)
_TEN = frozenset("0123456789")
_GROUP_SPACE = re.compile(r"(?<=\d)[\u00a0\u202f](?=\d{3}(?!\d))", re.ASCII)


@cached(256)
def facts_in(text: str) -> frozenset[Fact]:
    """Facts that `text` states: ("number", "1234.5"), ("date", "2024-05-15" or "--05-15"), ("id", "hat123")."""
    facts: set[Fact] = set()
    rest = text[:LONGEST_TEXT]
    if "\u00a0" in rest or "\u202f" in rest:
        rest = _GROUP_SPACE.sub(",", rest)
    if any(map(rest.lower().__contains__, _MONTHS)):
        small = rest.lower()
        if len(small) != len(rest):  # a letter that is two small ones
            small = "".join(c.lower() if len(c.lower()) == 1 else c for c in rest)
        parts, done = [], 0
        for begin, end in _about_months(small):
            part = rest[begin:end]
            if _DIGIT.search(part):
                part = _ISO.sub(lambda m: _take(facts, [(m[1], m[2], m[3])]), part)
                part = _MONTH_FIRST.sub(lambda m: _take(facts, [(m[3], _month(m[1]), m[2])]), part)
                part = _DAY_FIRST.sub(lambda m: _take(facts, [(m[3], _month(m[2]), m[1])]), part)
                parts += [rest[done:begin], part]
                done = end
        rest = "".join((*parts, rest[done:])) if parts else rest
    numbered = [word for word in rest.split() if not word.isalpha() and not _TEN.isdisjoint(word)]
    rest = " ".join([word for word in numbered if not _taken(facts, word)])
    if not rest:
        return frozenset(facts)
    if rest.count("-") > 1:
        rest = _ISO.sub(lambda m: _take(facts, [(m[1], m[2], m[3])]), rest)
    if "/" in rest or rest.count(".") > 1:
        rest = _PARTS.sub(lambda m: _take(facts, [(_year(m[4]), m[1], m[3]), (_year(m[4]), m[3], m[1])]), rest)
    rest = _CLOCK.sub(" ", rest) if ":" in rest else rest
    rest = _ID.sub(lambda m: _take_id(facts, m[0]), rest)
    for token in _NUMBER.findall(rest):
        facts.update([("number", value) for value in _values(token)])
    return frozenset(facts)


def _taken(facts: set[Fact], word: str) -> bool:
    """Take the facts of a word that needs no search: one number or one id, with marks about it. False: it may be more."""
    token = word.strip(_ABOUT)
    if not token.isascii():
        return False
    one = token.isalnum()
    if token.isdigit() if one else _AMOUNT.fullmatch(token):
        _take_id(facts, token)
        facts.update([("number", value) for value in _values(token)])
        return True
    if one:
        _take_id(facts, token)
        return True
    return _NAME.fullmatch(token) is not None and _take_id(facts, token) == " "


def _about_months(small: str) -> list[tuple[int, int]]:
    """(begin, end) about the names of months, cut at blanks, in order and apart."""
    spans: list[tuple[int, int]] = []
    for at in [month.start() for month in _ANY_MONTH.finditer(small)]:
        begin, end = small.rfind(" ", 0, max(0, at - BEFORE)) + 1, small.find(" ", at + AFTER)
        end = len(small) if end < 0 else end
        if spans and begin <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((begin, end))
    return spans


def heard_in(text: str) -> frozenset[Fact]:
    """Return the same, beside each date its day of the year: ("day", "05-15")."""
    facts = facts_in(text)
    return facts.union([("day", value[-5:]) for kind, value in facts if kind == "date"])


def bare(text: str) -> str:
    """Return the text as `hints_of` speaks of it: in small letters, without the marks that part the digits of a number."""
    plain = text[:LONGEST_TEXT].casefold().replace(",", "").replace(".", "")
    return plain if plain.isascii() else plain.replace("\u00a0", "").replace("\u202f", "")


def hints_of(facts: frozenset[Fact]) -> tuple[str, ...]:
    """Return what of it a bare text holds that states one of the facts: an id, the digits of a number, the day of a date."""
    return tuple(sorted({value[-2:].lstrip("0") if kind in ("date", "day") else bare(value) for kind, value in facts}))


def forms_of(fact: Fact) -> frozenset[Fact]:
    """Return what of `heard_in` states the fact, any of them: a date may be told without its year, a number without its sign or
    rounded to cents; a fact --05-15 names no year and is told by a date of any year; words are no fact and stated by none.
    """
    kind, value = fact
    if kind == "words":
        return frozenset()
    if kind == "date":
        return frozenset({("day", value[-5:])}) if value.startswith("--") else frozenset({fact, ("date", f"--{value[-5:]}")})
    return frozenset((fact, *(("number", form) for form in number_forms(value)))) if kind == "number" else frozenset((fact,))


def number_forms(value: str) -> tuple[str, ...]:
    """Return normal forms in which a number may be told: as it is, without its sign, rounded to two decimals."""
    number = abs(Decimal(value))
    return _normal(number), _normal(number.quantize(Decimal("0.01"), ROUND_HALF_UP))


def fact_of(kind: str, value: str) -> Fact:
    """Return the normal form of a value that a rubric names; an unknown kind or unreadable value is a ValueError."""
    if kind == "number":
        if not re.fullmatch(r"[-+]?[\d.,]{1,24}", value) or not (values := _values(value.lstrip("+-"))):
            raise ValueError(f"a fact says number, but {value!r} is none: write it as 1234.5")
        return "number", values[0]
    if kind == "date":
        year, day = ("2000", value[2:]) if value.startswith("--") else (value[:4], value[5:])
        read = date.fromisoformat(f"{year}-{day}").isoformat()
        return "date", f"--{read[5:]}" if value.startswith("--") else read
    if kind in ("id", "words"):
        return kind, " ".join(value.casefold().lstrip("#").split())
    raise ValueError(f"no fact of type {kind!r}; there are: date, id, number, words")


def _take(facts: set[Fact], readings: list[tuple[str | None, str, str]]) -> str:
    """Keep the readings that are days of the calendar, and blank the span."""
    for year, month, day in readings:
        try:
            read = date(int(year) if year else 2000, int(month), int(day))
        except ValueError:
            continue
        facts.add(("date", read.isoformat() if year else f"--{read.isoformat()[5:]}"))
    return " "


def _take_id(facts: set[Fact], token: str) -> str:
    if token.isdigit():
        if len(token) >= 7:
            facts.add(("id", token))
    elif len(token) >= 4 and token.lower() != token.upper() and not _TEN.isdisjoint(token) and not _MEASURE.fullmatch(token):
        facts.add(("id", token.casefold()))
        return " "
    return token


def _month(name: str) -> str:
    return str(_MONTHS.index(name[:3].lower()) + 1)


def _year(text: str) -> str:
    return text if len(text) == 4 else f"20{text}"


def _values(token: str) -> list[str]:
    """Return readings of digits with marks, the likeliest first: 1,234.50 and 1.234,50 are both 1234.5. Several zeros alone are
    none: they are the rest of a number that a blank parts (7. 00), or a code."""
    if len(token) > LONGEST_NUMBER:
        return []
    commas, dots = token.count(","), token.count(".")
    if commas and dots:
        mark = "." if token.rfind(".") > token.rfind(",") else ","
        whole, fraction = token.rsplit(mark, 1)
        other = "," if mark == "." else "."
        return [_written(whole.replace(other, ""), fraction)] if whole.count(mark) == 0 else []
    if not commas and not dots:
        return [_written(token)] if token.strip("0") or len(token) == 1 else []
    mark = "," if commas else "."
    head, *groups = token.split(mark)
    thousands = len(head) <= 3 and all(len(group) == 3 for group in groups)
    whole = _written("".join([head, *groups]))
    if len(groups) == 1:
        fraction = _written(head, groups[0])
        if not thousands:
            return [fraction]
        return [whole] if mark == "," else [fraction, whole]
    return [whole] if thousands else [_written(part) for part in (head, *groups) if mark == ","]


def _written(whole: str, fraction: str = "") -> str:
    """Return the normal form of digits, without zeros that say nothing."""
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def _normal(number: Decimal) -> str:
    text = format(number, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text.lstrip("0")) or "0"
