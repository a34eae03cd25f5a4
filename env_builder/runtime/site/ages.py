"""Ages in words: how old something is in, the text that a site writes for it out, and back to the ages that a text may mean.

What a site writes was learnt (`env_builder.site.ageing`): texts with numbers in them, each counted in units of some seconds,
and from which age on it is used. No language is known here. A text of which nothing was learnt is no age.
Sees: whole texts. Does not see: ages inside of longer texts that vary otherwise, days by the calendar (`yesterday` from
midnight on).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from .times import SiteTimes

__all__ = ["NUMBER", "AgeForm", "AgeFormat", "numbers_of"]

NUMBER = "\x02"
"""Stands in a form's text for a number."""
_DIGITS = re.compile(r"\d+")
_LONGEST = 60
_ENDLESS = 1e12
_NO_TIMES = SiteTimes()


class AgeForm(NamedTuple):
    """A text that is used from an age on."""

    text: str
    """With `NUMBER` for each number."""
    units: tuple[int, ...]
    """Seconds that each number counts, the longest first; none for a text without numbers."""
    lead: float
    """What the last number is rounded with: it is the whole part of its units and this."""
    least: float
    """Seconds from which on the text is used, until the next form's."""

    def written(self, age: float) -> str:
        """Return the text for an age."""
        rest, numbers = age, list[int]()
        for unit in self.units[:-1]:
            numbers.append(int(rest // unit))
            rest -= numbers[-1] * unit
        numbers += [int(rest / unit + self.lead) for unit in self.units[-1:]]
        parts = self.text.split(NUMBER)
        return "".join(part + (f"{numbers[index]}" if index < len(numbers) else "") for index, part in enumerate(parts))

    def meant(self, numbers: Sequence[int]) -> tuple[float, float]:
        """Return from which age on and until which one the text has these numbers."""
        if not self.units:
            return 0.0, _ENDLESS
        begin = sum(number * unit for number, unit in zip(numbers, self.units, strict=True))
        return begin - self.lead * self.units[-1], begin + (1 - self.lead) * self.units[-1]


class AgeFormat:
    """The forms of a site, which follow each other as ages grow."""

    def __init__(self, forms: Iterable[AgeForm], times: SiteTimes = _NO_TIMES) -> None:
        """Take the forms, and how the site writes instants."""
        self.forms = sorted(forms, key=lambda form: form.least)
        self.times = times
        self._ends = {form.text: (form, end.least) for form, end in zip(
            self.forms, [*self.forms[1:], AgeForm("", (), 0, _ENDLESS)], strict=True)}
        words = [re.escape(form.text).replace(re.escape(NUMBER), r"\d+") for form in self.forms]
        self._any = re.compile("|".join(sorted(words, key=len, reverse=True)) or r"(?!)")

    @classmethod
    def of(cls, plain: Sequence[Sequence[object]], times: SiteTimes) -> AgeFormat:
        """Return the format that `plain` wrote."""
        return cls([AgeForm(str(text), tuple(map(int, units)), float(lead), float(least))  # type: ignore[call-overload, arg-type]
                    for text, units, lead, least in plain], times)

    def plain(self) -> list[list[object]]:
        """Return the forms as JSON."""
        return [[form.text, list(form.units), form.lead, form.least] for form in self.forms]

    def is_in(self, value: str) -> bool:
        """Return whether a value may hold an age."""
        return self._any.search(value) is not None

    def written(self, age: float) -> str | None:
        """Return the text for an age in seconds, None where nothing was learnt of such ages."""
        form = next((form for form in reversed(self.forms) if form.least <= max(age, 0)), None)
        return form.written(max(age, 0)) if form is not None else None

    def meant(self, text: str) -> tuple[float, float] | None:
        """Return from which age on and until which one this is written, None for a text that is no age."""
        form, numbers = numbers_of(text)
        if text in self._ends:
            form, numbers = text, ()
        if not text or form not in self._ends:
            return None
        learnt, end = self._ends[form]
        low, high = learnt.meant(numbers)
        low, high = max(low, learnt.least, 0), min(high, end)
        return (low, high) if low < high else None


@lru_cache(maxsize=1 << 14)
def numbers_of(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a text with its numbers replaced, and the numbers; nothing for a text too long to be an age."""
    if not 0 < len(text) <= _LONGEST:
        return "", ()
    return _DIGITS.sub(NUMBER, text), tuple(int(number) for number in _DIGITS.findall(text))

