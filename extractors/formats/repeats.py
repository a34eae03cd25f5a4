"""JSON lines that repeat a list from line to line and add a little: only what is new of a line is parsed.

In: lines, each with a list under a key (`"messages":[…]`). Out: the line's value, its list without the elements that the line
before it of the same conversation holds byte for byte, and what was known then. A list that equals another up to
where that one ended holds its elements: no byte is trusted unseen, and brackets that would not close fail to parse.
What it sees: equal bytes. What it does not see: a history written anew (other spaces, other ids); that line is parsed whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

T = TypeVar("T")
_LOOK_AT = 4096
_OPENING = 256
_MOST_SAME = 8
_ASKED = re.compile(rb'"role"\s*:\s*"user"')


@dataclass(slots=True)
class _Told(Generic[T]):
    """A line that was told, and what is known from it."""

    line: bytes
    start: int
    """Where its list begins, after the bracket."""
    known: T


class Repeats(Generic[T]):
    """Lines told so far, by conversation."""

    def __init__(self, key: str, names: tuple[str, ...]) -> None:
        """`key`: name of the list. `names`: fields that a conversation's id may stand in."""
        self._list = re.compile(rb'(?<!\\)"%s"\s*:\s*\[' % key.encode())
        self._names = re.compile(
            rb'(?<!\\)"(?:%s)"\s*:\s*"([^"\\]{1,200})"' % b"|".join(re.escape(name).encode() for name in names))
        self._told: dict[bytes, _Told[T]] = {}
        self._same: dict[str, Any] = {}
        self._marks: list[tuple[bytes, bytes]] = []

    def shortened(self, line: bytes) -> tuple[dict[str, Any], T] | None:
        """The line's value, its list without what is known, and what that is; None: the line must be parsed whole."""
        found = self._list.search(line)
        if found is None:
            return None
        start = found.end()
        told = self._told.get(self._hint(line, found.start(), start))
        if told is None:
            return None
        end = _common(told.line, told.start, line, start)
        if told.line[told.start + end:told.start + end + 1] != b"]" or line[start + end:start + end + 1] != b",":
            return None
        try:
            value = orjson.loads(self._marked(line[:start] + line[start + end + 1:]))
        except orjson.JSONDecodeError:
            return None
        return (value, told.known) if isinstance(value, dict) else None

    def tell(self, line: bytes, known: T) -> None:
        """Remember a line and what is known after it."""
        found = self._list.search(line)
        if found is not None:
            self._told[self._hint(line, found.start(), found.end())] = _Told(line, found.end(), known)

    def _hint(self, line: bytes, before: int, start: int) -> bytes:
        """What probably tells conversations apart: an id before the list or near the end, else what was said first."""
        stated = self._names.search(line, 0, before) or self._names.search(line, max(start, len(line) - _LOOK_AT))
        if stated is not None:
            return stated.group(1)
        asked = _ASKED.search(line, start)
        at = asked.start() if asked is not None else start
        return line[at:at + _OPENING]

    def same(self, name: str, value: Any, line: bytes) -> None:
        """From now on, where a line holds this value under this name as `line` does, a mark stands for it: see `meant`."""
        if len(self._same) >= _MOST_SAME or value in self._same.values():
            return
        for text in _spellings(name, value):
            if text in line:
                mark = f"@{len(self._same)}"
                self._same[mark] = value
                self._marks.append((text, f'"{name}":"{mark}"'.encode()))
                return

    def meant(self, value: Any) -> Any:
        """What a mark stands for; anything else stands for itself."""
        return self._same.get(value, value) if isinstance(value, str) else value

    def _marked(self, line: bytes) -> bytes:
        for text, mark in self._marks:
            line = line.replace(text, mark, 1)
        return line


def _common(one: bytes, at_one: int, other: bytes, at_other: int) -> int:
    """How many bytes from there on are equal: halving, since comparing slices is what the machine does fastest."""
    low, high = 0, min(len(one) - at_one, len(other) - at_other)
    while low < high:
        middle = (low + high + 1) // 2
        if one[at_one + low:at_one + middle] == other[at_other + low:at_other + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _spellings(name: str, value: Any) -> Iterator[bytes]:
    """A value under a name as the usual writers of JSON spell it."""
    yield b'"%s":%s' % (name.encode(), orjson.dumps(value))
    yield f'"{name}":{json.dumps(value, separators=(",", ":"))}'.encode()
    yield f'"{name}": {json.dumps(value)}'.encode()
    yield f'"{name}": {json.dumps(value, ensure_ascii=False)}'.encode()
