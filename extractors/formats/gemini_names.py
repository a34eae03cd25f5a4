"""Gemini's field names: camelCase over REST, snake_case in Python's dumps; they are known here by the former."""

from __future__ import annotations

import re

_HUMP = re.compile(r"(?<=[a-z])([A-Z])")


def snake_case(name: str) -> str:
    """A name in camelCase as Python writes it."""
    return _HUMP.sub(r"_\1", name).lower()
