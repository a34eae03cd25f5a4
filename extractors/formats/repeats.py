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
_DECODER = json.JSONDecoder()
_ASKED = re.compile(rb'"role"\s*:\s*"user"')


@dataclass(slots=True)
class _Told(Generic[T]):
    """A line that was told, and what is known from it."""

    line: bytes
    start: int
    """Where its list begins, after the bracket."""
    end: int
    """Where it ends, before the bracket."""
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
        self._marks: list[tuple[bytes, bytes, bytes]] = []
        self._asked: tuple[bytes, bytes, int, int] = (b"", b"", 0, 0)
        """The line that was asked for last: its hint, where its list begins, and where what is new of it does."""

    def shortened(self, line: bytes) -> tuple[dict[str, Any], T] | None:
        """The line's value, its list without what is known, and what that is; None: the line must be parsed whole."""
        found = self._list.search(line)
        if found is None:
            return None
        start = found.end()
        hint = self._hint(line, found.start(), start)
        self._asked = line, hint, start, start
        told = self._told.get(hint)
        if told is None or not line.startswith(told.line[told.start:told.end], start):
            return None
        new = start + told.end - told.start + 1
        if told.end == told.start or line[new - 1:new] != b",":
            return None
        try:
            value = orjson.loads(self._marked(line[:start] + line[new:]))
        except orjson.JSONDecodeError:
            return None
        self._asked = line, hint, start, new
        return (value, told.known) if isinstance(value, dict) else None

    def tell(self, line: bytes, known: T) -> None:
        """Remember a line, for which `shortened` was asked last, and what is known after it."""
        asked, hint, start, new = self._asked
        if asked is not line:
            return
        try:   # a byte is a character: places in the text are places in the line
            _, length = _DECODER.raw_decode("[" + line[new:].decode("latin-1"))
        except (ValueError, RecursionError):
            self._told.pop(hint, None)
        else:
            self._told[hint] = _Told(line, start, new + length - 2, known)

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
                self._marks.append((f'"{name}"'.encode(), text, f'"{name}":"{mark}"'.encode()))
                return

    def meant(self, value: Any) -> Any:
        """What a mark stands for; anything else stands for itself."""
        return self._same.get(value, value) if isinstance(value, str) else value

    def _marked(self, line: bytes) -> bytes:
        for name, text, mark in self._marks:
            at = line.find(name)   # looking for the long text itself takes longer
            if at >= 0 and line.startswith(text, at):
                line = line[:at] + mark + line[at + len(text):]
        return line


def _spellings(name: str, value: Any) -> Iterator[bytes]:
    """A value under a name as the usual writers of JSON spell it."""
    yield b'"%s":%s' % (name.encode(), orjson.dumps(value))
    yield f'"{name}":{json.dumps(value, separators=(",", ":"))}'.encode()
    yield f'"{name}": {json.dumps(value)}'.encode()
    yield f'"{name}": {json.dumps(value, ensure_ascii=False)}'.encode()
