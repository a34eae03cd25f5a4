"""Parts of values: the rows of a table, the lines of a text, the members of a list, and the words in them.

In: values of fields. Out: their parts as cells or texts in one normal form, the words of a text.
Sees: that 399.00 and 399 are one number, that markup and blanks are not words. Does not see: what a text means.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

LONG = 80
"""A text of this many characters or more is compared line by line."""
_MARKUP = re.compile(r"</?[a-zA-Z][^>]*>|\s+")
_ENDS = re.compile(r"\n|(?<=</p>)|(?<=</tr>)|(?<=</li>)|(?<=</h\d>)")
_WORD = re.compile(r"[\w@][\w@.+:/#'-]*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
Part = tuple[str, ...]
"""A row's cells; a line, a member, or a whole value alone."""


def normal(value: Any) -> str:
    """Return a value as a cell shows it: numbers without zeros that say nothing."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    text = " ".join(text.split())
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    if _NUMBER.fullmatch(text) and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


def is_table(value: Any) -> bool:
    """Return whether a value is a list of rows."""
    return isinstance(value, list) and any(isinstance(row, list) for row in value)


def is_long(value: Any) -> bool:
    """Return whether a value is a text of several lines."""
    return isinstance(value, str) and len(value) >= LONG


def parts_of(value: Any) -> list[Part]:
    """Return the parts of a value, in order: rows without empty cells at their ends, lines without markup, members."""
    if isinstance(value, dict):
        return [(normal(key), normal(each)) for key, each in value.items()]
    if isinstance(value, list):
        return [_cells(row) if isinstance(row, list) else (normal(row),) for row in value]
    if is_long(value):
        return [(text,) for line in _ENDS.split(value) if (text := normal(_MARKUP.sub(" ", line)))]
    return [] if value is None else [(normal(value),)]


def difference_of(before: Any, after: Any) -> tuple[list[Part], list[Part]]:
    """Return the parts that a value lost and those that it got, in order; a part that is there twice counts twice."""
    was, now = (Counter(parts_of(value)) for value in (before, after))
    return list((was - now).elements()), list((now - was).elements())


def _cells(row: list[Any]) -> Part:
    cells = [normal(cell) for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return tuple(cells)


def words_of(text: Any) -> list[str]:
    """Return the words of a text or of any other value in small letters, in order, numbers and ids as words of their own."""
    if isinstance(text, dict):
        return [word for key, each in text.items() for word in (*words_of(key), *words_of(each))]
    if isinstance(text, list):
        return [word for each in text for word in words_of(each)]
    plain = _MARKUP.sub(" ", text) if isinstance(text, str) else normal(text)
    return [normal(word.strip(".,:;!?()'/-")).casefold() for word in _WORD.findall(plain)]
