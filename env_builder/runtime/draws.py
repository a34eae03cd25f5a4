"""Names that a tool draws at random, drawn anew: the same seed, moment and place give the same name.

A shape is a list of pieces: a text, or [signs, length]: so many of these signs, by chance. A shape of the one piece
["number", length] gives a whole number of so many digits.
"""

from __future__ import annotations

import random
from typing import Any

from .canonical import canonical

SIGNS = {
    "digits": "0123456789", "hex": "0123456789abcdef", "HEX": "0123456789ABCDEF",
    "letters": "abcdefghijklmnopqrstuvwxyz", "LETTERS": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "signs": "abcdefghijklmnopqrstuvwxyz0123456789", "SIGNS": "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "any": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"}
"""Name of a set of signs -> the signs; in the order in which they are tried on what was seen."""


def drawn(shape: list[Any], *moment: Any) -> str | int:
    """A value of this shape. `moment`: JSON values that tell this draw from all others."""
    draw = random.Random(canonical(list(moment)))
    if shape and shape[0][0] == "number":
        length = shape[0][1]
        return draw.randrange(10 ** (length - 1), 10 ** length)
    return "".join(piece if isinstance(piece, str) else "".join(draw.choices(SIGNS[piece[0]], k=piece[1])) for piece in shape)
