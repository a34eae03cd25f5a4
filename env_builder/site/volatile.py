"""A text in, the same without its volatile parts out: random tokens and times of day. For comparing alone.

Sees: how a part is written. Does not see: whether it varies; a time that a page states of a record is volatile here too.
"""

from __future__ import annotations

import re

_MASK = "…"
_VOLATILE = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}(?![A-Za-z0-9])"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s*[ap]\.?m\b\.?)?|\b\d{1,2}\s+[ap]\.m\.|\b(?:noon|midnight)\b", re.IGNORECASE)


def mask_volatile(text: str) -> str:
    """Return a text with its random tokens and times of day replaced by one sign."""
    return _VOLATILE.sub(_MASK, text)
