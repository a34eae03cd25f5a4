"""Lines of JSON made short before they are parsed: what a long text repeats of one that came before is not unescaped again.

In: the bytes of a line that holds JSON text in strings, as OTLP attributes do. Out: the same line, where the known beginning of
such a text is a reference, and what the reference stands for. A log that repeats the whole history in each record costs what is
new in it. References begin with a mark that is drawn anew for each file, so that no log can hold one.
What it sees: equal bytes. What it does not see: the same text escaped in another way; that is parsed as it is.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from extractors.formats.otlp_span import plain

_VALUE = re.compile(rb'"gen_ai\.(?:(input\.messages|prompt)|system_instructions|tool\.definitions)"'
                    rb'\s*,\s*"value"\s*:\s*\{\s*"(?:stringValue|string_value)"\s*:\s*"')
"""Where a text begins; one whose name is in the group grows, the others are repeated as a whole."""
_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"')
_HEAD = 96
_LONG = 400
_ALIKE = 8
_MOST_HELD = 1 << 26


class Reference(NamedTuple):
    """A shortened text: it goes on from text `base` (0: from none) with `rest`, and is itself text `own` (0: it is `base`)."""

    base: int
    own: int
    rest: str


@dataclass(slots=True, eq=False)
class _Known:
    """A text as it stands in the lines, escaped; of a list without its closing bracket. What it grows to takes its place."""

    raw: bytes
    number: int
    text: str | None = None


class Shortened:
    """Texts of one file that later ones may repeat."""

    def __init__(self) -> None:
        self._by_head: dict[bytes, list[_Known]] = {}
        self._numbers: dict[int, tuple[_Known, int]] = {}
        self._held = 0
        nonce = secrets.token_hex(8)
        self._mark = f"\0{nonce}\0"
        self._escaped_mark = f"\\u0000{nonce}\\u0000".encode()

    def line(self, content: bytes) -> bytes:
        """The line with references for what is known; the line itself where there is nothing to shorten."""
        while self._held > _MOST_HELD and self._by_head:
            self._held -= sum(len(each.raw) for each in self._by_head.pop(next(iter(self._by_head))))
        found: list[bytes] = []
        done = 0
        value = _VALUE.search(content)
        while value is not None:
            said, after = self._refer(content, value.end(), value[1] is not None)
            if said is not None:
                found += (content[done:value.end()], said)
                done = after
            value = _VALUE.search(content, after)
        return b"".join((*found, content[done:])) if found else content

    def _refer(self, content: bytes, start: int, grows: bool) -> tuple[bytes | None, int]:
        """The reference for the beginning of the text at `start`, and where the rest of it begins."""
        head = content[start:start + _HEAD]
        alike = self._by_head.get(head, [])
        known = next((each for each in reversed(alike) if content.startswith(each.raw, start)), None)
        after = start + len(known.raw) if known is not None else start
        if not grows and known is not None and content[after:after + 1] == b'"':
            return b"%s%d\\u00000\\u0000" % (self._escaped_mark, known.number), after
        rest = _REST.match(content, after)
        end = rest.end() - 1 - grows if rest is not None else 0
        if end - start < _LONG or (grows and content[end:end + 1] != b"]"):
            return None, start
        base = known.number if known is not None and grows else 0
        own = self._learn(head, known if grows else None, content[start:end])
        if not grows:
            return None, end
        return b"%s%d\\u0000%d\\u0000" % (self._escaped_mark, base, own), start if not base else after

    def _learn(self, head: bytes, known: _Known | None, raw: bytes) -> int:
        """Number of a text that is new, or that a known one has grown to."""
        number = len(self._numbers) + 1
        if known is None:
            known = _Known(raw, number)
            alike = self._by_head.setdefault(head, [])
            alike.append(known)
            self._held += len(raw)
            if len(alike) > _ALIKE:
                self._held -= len(alike.pop(0).raw)
        else:
            self._held += len(raw) - len(known.raw)
            known.raw, known.number = raw, number
        self._numbers[number] = known, len(raw)
        return number

    def reference(self, text: str) -> Reference | None:
        """What a shortened text says; None for any other text."""
        if not text.startswith(self._mark):
            return None
        base, own, rest = text[len(self._mark):].split("\0", 2)
        return Reference(int(base), int(own), rest)

    def text(self, shortened: str) -> str:
        """The whole text that a shortened one stands for; any other text as it is."""
        reference = self.reference(shortened)
        if reference is None:
            return shortened
        if not reference.base:
            return reference.rest
        known, length = self._numbers[reference.base]
        if reference.own:
            return str(orjson.loads(b'"%s"' % known.raw[:length])) + reference.rest
        if known.text is None:
            known.text = str(orjson.loads(b'"%s"' % known.raw))
        return known.text

    def value_of(self, value: Any) -> Any:
        """An AnyValue as a plain value, whole."""
        found = plain(value)
        if isinstance(found, str):
            return self.text(found) if found[:1] == "\0" else found
        return self._whole(found) if isinstance(found, (list, dict)) and self._numbers else found

    def _whole(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._whole(each) for each in value]
        return {key: self._whole(each) for key, each in value.items()} if isinstance(value, dict) else value
