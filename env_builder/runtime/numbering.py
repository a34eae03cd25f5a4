"""Names with a number that counts up: `T-1041` after `T-1040`.

A form is [before, width, after]: the texts around the number, and the digits to which it is filled up with zeros (0: not);
null: the name is a whole number itself.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

Form = list[Any]


def number_of(name: str, form: Form | None) -> int | None:
    """The number in a name of this form, None where it has another one."""
    before, width, after = form or ("", 0, "")
    found = re.fullmatch(f"{re.escape(before)}(\\d+){re.escape(after)}", name)
    return int(found[1]) if found and (not width or len(found[1]) >= width) else None


def named(number: int, form: Form | None) -> str | int:
    """The name with this number."""
    return number if form is None else f"{form[0]}{number:0{form[1]}}{form[2]}"


class Highest:
    """The highest number as of any instant."""

    def __init__(self, since: Iterable[tuple[str, int]]) -> None:
        """`since`: (ISO instant from which there is a name, its number)."""
        ordered = sorted(since)
        self._instants = [instant for instant, _ in ordered]
        self._highest = list(accumulate((number for _, number in ordered), max))

    def at(self, instant: str) -> int | None:
        """None where there is none yet."""
        place = bisect_right(self._instants, instant)
        return self._highest[place - 1] if place else None
