"""Names that tools give to new entities: with a number that counts up (`T-1041` after `T-1040`), or sampled.

A form is [before, width, after]: the texts around the number, and the digits to which it is filled up with zeros (0: not);
null: the name is a whole number itself. A shape is a list of pieces: a text, or [characters, length]: so many of these
characters, by chance. A shape of the one piece ["number", length] gives a whole number of so many digits.
"""

from __future__ import annotations

import random
import re
from typing import Any

from .canonical import canonical

Form = list[Any]


def number_of(name: str, form: Form | None) -> int | None:
    """Return the number in a name of this form, None where it has another one."""
    before, width, after = form or ("", 0, "")
    matched = re.fullmatch(f"{re.escape(before)}(\\d+){re.escape(after)}", name)
    return int(matched[1]) if matched and (not width or len(matched[1]) >= width) else None


def named(number: int, form: Form | None) -> str | int:
    """Return the name with this number."""
    return number if form is None else f"{form[0]}{number:0{form[1]}}{form[2]}"


def next_name(name: Any) -> str | int | None:
    """Return the name after this one: its last number one higher. None where it has no number."""
    if isinstance(name, int) and not isinstance(name, bool):
        return name + 1
    numbered = re.fullmatch(r"(.*?)(\d+)(\D*)", name, re.DOTALL) if isinstance(name, str) else None
    if numbered is None:
        return None
    before, digits, after = numbered.groups()
    return named(int(digits) + 1, [before, len(digits) if digits[0] == "0" else 0, after])


SIGNS = {
    "digits": "0123456789", "hex": "0123456789abcdef", "HEX": "0123456789ABCDEF",
    "letters": "abcdefghijklmnopqrstuvwxyz", "LETTERS": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "signs": "abcdefghijklmnopqrstuvwxyz0123456789", "SIGNS": "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "any": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"}
"""Name of a set of signs -> the signs; in the order in which they are tried on what was seen."""


def drawn(shape: list[Any], *moment: Any) -> str | int:
    """Return a value of this shape. `moment`: JSON values that tell this draw from all others."""
    draw = random.Random(canonical(list(moment)))
    if shape and shape[0][0] == "number":
        length = shape[0][1]
        return draw.randrange(10 ** (length - 1), 10 ** length)
    return "".join(piece if isinstance(piece, str) else "".join(draw.choices(SIGNS[piece[0]], k=piece[1])) for piece in shape)
