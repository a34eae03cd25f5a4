"""The forms that a value may have in what people say, and whether a text holds one.

Sees: leading marks left out, separators of thousands, dates with the month's English name. Does not see: other languages'
months, and other words for the same.
"""

from __future__ import annotations

import re
from calendar import month_abbr, month_name
from functools import lru_cache

_DATE = re.compile(r"^(\d{4})-(\d{2})-(\d{2})$")
_MARKS = "#@$"


@lru_cache(maxsize=65536)
def key_of(value: str) -> str:
    """Equal for values that are the same but for case and the form of a number."""
    lower = value.lower()
    if lower.endswith(".0") and lower[:-2].removeprefix("-").isdecimal():
        return lower[:-2]
    return lower


@lru_cache(maxsize=65536)
def spellings(value: str) -> tuple[str, ...]:
    """Forms of a value, lower-cased, its own first."""
    lower = value.lower()
    forms = [lower]
    if lower[:1] in _MARKS and len(lower) > 1:
        forms.append(lower[1:])
    if lower.replace(".", "", 1).isdecimal():
        number = float(lower)
        forms += [f"{number:,.2f}", f"{number:,.0f}"] if number >= 1000 and number.is_integer() else [f"{number:,.2f}"]
    if (date := _DATE.match(lower)) and 1 <= int(date[2]) <= 12:
        day, names = int(date[3]), (month_name[int(date[2])].lower(), month_abbr[int(date[2])].lower())
        ordinals = [f"{day}{end}" for end in ("", "st", "nd", "rd", "th")]
        forms += [f"{name} {each}" for name in names for each in ordinals]
        forms += [f"{each}{of}{name}" for name in names for each in ordinals for of in (" ", " of ")]
    return tuple(dict.fromkeys(forms))


def mentions(text: str, value: str) -> bool:
    """Whether a text holds a value as words of its own; both lower-cased."""
    at = text.find(value) if value else -1
    while at >= 0:
        end = at + len(value)
        if not (_joined(text, at - 1, value[0]) or _joined(text, end, value[-1])):
            return True
        at = text.find(value, at + 1)
    return False


def _joined(text: str, at: int, edge: str) -> bool:
    """Whether the character at a place goes on with the word that a value begins or ends with."""
    return 0 <= at < len(text) and text[at].isalnum() and edge.isalnum()
