"""How much of a conversation's history is already known (formats.md 0.3, rule 1).

Sees equality of what was said, called and answered. Does not see call ids (providers rewrite them) and times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import orjson

Print = tuple[Any, ...]
_LONG_ENOUGH = 20


def fingerprint(kind: str, role: str | None, content: str | None, tool: str | None, arguments: str | None) -> Print:
    """What makes two parts of a conversation the same part."""
    if kind == "call":
        return (kind, tool, canonical(arguments) or arguments)
    if kind == "result":
        return (kind, content)
    return (kind, "system" if role == "developer" else role, content or "")


def canonical(arguments: str | None) -> str | None:
    """Arguments as canonical JSON (sorted keys, no spaces, UTF-8), None where they are no JSON object, or nested deeper than
    254 times.
    """
    if arguments is None:
        return None
    try:
        value = orjson.loads(arguments)
        if not isinstance(value, dict):
            return None
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONDecodeError, TypeError):
        return None
    if _LONG_NUMBER.search(arguments) is None:
        return text
    return json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


_LONG_NUMBER = re.compile(r"\d{19}")
"""orjson rounds whole numbers beyond 64 bits; where there may be one, Python's json keeps every digit."""


def n_known(known: Sequence[Print], history: Sequence[Print]) -> int | None:
    """How many leading parts of `history` are `known` already; None: the two have nothing in common.

    A history that extends the known one, that is a part of it, or that was shortened or rewritten at its beginning
    (compaction) but still holds the known one's end.
    """
    if not known:
        return 0
    if list(history[:len(known)]) == list(known):
        return len(known)
    if list(known[:len(history)]) == list(history):
        return len(history)
    shared = _ends_shared(known, history)
    best = max(shared, default=0)
    end = max((j for j, k in enumerate(shared, start=1) if k == best), default=0)
    if best > 1 or (best == 1 and is_telling(history[end - 1])):
        return end
    return None


def _ends_shared(known: Sequence[Print], history: Sequence[Print]) -> list[int]:
    """How many parts the known one's end shares with the history up to each of its parts: the Z function, backwards."""
    parts: list[Print | None] = [*reversed(known), None, *reversed(history)]
    found = [0] * len(parts)
    left = right = 0
    for i in range(1, len(parts)):
        k = min(right - i, found[i - left]) if i < right else 0
        while i + k < len(parts) and parts[k] == parts[i + k]:
            k += 1
        found[i] = k
        if i + k > right:
            left, right = i, i + k
    return found[:len(known):-1]


def is_telling(part: Print) -> bool:
    """Whether one equal part alone shows that two histories are one conversation: no short phrase, no instructions."""
    return part[0] == "call" or (part[0] == "message" and part[1] == "assistant" and len(part[2]) >= _LONG_ENOUGH)
