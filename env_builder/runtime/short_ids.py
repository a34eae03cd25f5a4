"""Exchange ids of few digits among each other, where they stand as ids and do not count something.

In: numbers of one class, words that stand before them without a gap (`card12`), contexts in which such a number counts (`of {}`
or `{} days`). Out: texts with each number in another one's place, and back. A number is judged by what stands around
it, and nothing of that changes here: so what was exchanged comes back exactly. Stays: parts of dates, times, fractions and
numbers with marks between thousands; numbers in a counting context; digits with other letters around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

LEAST, MOST = 2, 4
"""Digits of such an id."""
_TOKEN = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)|%[0-9A-Fa-f]{2}|(?:(?<![^\W_])|(?<=%20))([A-Za-z]*?)([0-9]{2,4})(?![^\W_])",
                    re.DOTALL)
_BEFORE = re.compile(r"([^\W\d_]*)([^\w\n\"'\\]{1,2})$")
_AFTER = re.compile(r"([^\w\n\"'\\]{1,2})([^\W\d_]+)")
_JOINED_BEFORE = re.compile(r"[0-9][.:/-]$")
_JOINED_AFTER = re.compile(r"[.:/-][0-9]|,[0-9]{3}(?![0-9])")
_THOUSANDS = re.compile(r"[0-9],$")
_REACH = 32
"""Characters before a number that are looked at."""
ALWAYS_COUNTING = frozenset({"nth={}"})
"""Contexts that a browser's own language has."""


def is_joined(text: str, begin: int, end: int) -> bool:
    """Whether digits are a part of a date, a time, a fraction, a number of thousands, or of an encoded character."""
    before = text[max(begin - 2, 0):begin]
    return (_JOINED_BEFORE.search(before) is not None or _JOINED_AFTER.match(text, end) is not None
            or (end - begin == 3 and _THOUSANDS.search(before) is not None))


def contexts_of(text: str, begin: int, end: int) -> Iterator[str]:
    """Yield what stands directly before and after a number, `{}` in its place."""
    before = _BEFORE.search(text, max(begin - _REACH, 0), begin)
    if before is not None and (before[1] or before[2].strip()):
        yield f"{before[1].lower()}{before[2]}{{}}"
    after = _AFTER.match(text, end)
    if after is not None:
        yield f"{{}}{after[1]}{after[2].lower()}"


def short_numbers(text: str, stems: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield where the numbers of a text begin and end that may be ids of few digits."""
    for match in _TOKEN.finditer(text):
        if match[2] and (not match[1] or match[1].lower() in stems) and not is_joined(text, match.start(2), match.end(2)):
            yield match.start(2), match.end(2)


class ShortIds:
    """How one seed exchanges short ids."""

    def __init__(self, pairs: Mapping[str, str], stems: Iterable[str], counting: Iterable[str]) -> None:
        """`pairs`: number -> the one in its place, a permutation of numbers of the same length."""
        self._pairs = {False: dict(pairs), True: {there: here for here, there in pairs.items()}}
        self._stems = frozenset(stems)
        self._counting = ALWAYS_COUNTING.union(counting)

    def shown(self, text: str, back: bool = False) -> str:
        """Return a text as the agent sees it; `back`: as the environment has it."""
        pairs = self._pairs[back]
        if not pairs:
            return text
        parts, done = [], 0
        for begin, end in short_numbers(text, self._stems):
            number = pairs.get(text[begin:end])
            if number is not None and (text[begin - 1:begin].isalpha() or self._counting.isdisjoint(
                    contexts_of(text, begin, end))):
                parts += [text[done:begin], number]
                done = end
        return "".join([*parts, text[done:]])
