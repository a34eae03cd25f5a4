"""What words hold: every run of neighbouring words, with its shape and what stands beside it.

In: a text. Out: its spans. A shape is the text with letters as `a` or `A` and digits as `9`, runs collapsed: two values of one
kind mostly have one. Sees: values said to the letter. Does not see: a value said in another
form (a month by name); what comes after the first words of a very long text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

LONGEST = 6
"""Words in a span at most."""

_FURTHEST = 500
"""Words of a text that are looked at."""

_TOKEN = re.compile(r"[^\s,;!?()\[\]\"“”]+")
_ENDS = ".:'’"
_AGAIN = re.compile(r"(.)\1+")


class _Kinds(dict[int, str]):
    """Character -> `A`, `a`, `9` or itself."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = "A" if letter.isupper() else "a" if letter.isalpha() else "9" if letter.isdigit() else letter
        return self[code]


_KINDS = _Kinds()


class Span(NamedTuple):
    """A run of words."""

    text: str
    """As it stands there."""
    shape: str
    before: str
    """The word before it, lower-cased; empty at the beginning."""
    after: str
    n_before: int
    """Spans of the same shape that end before it begins."""


@lru_cache(maxsize=65536)
def shape_of(text: str) -> str:
    """Letters and digits of a text by their kind, runs of one kind once."""
    return _AGAIN.sub(r"\1", text.translate(_KINDS))


def spans_of(text: str, shapes: frozenset[str]) -> list[Span]:
    """The spans of a text that have one of these shapes, by where they begin and then by length."""
    return [span for span in _spans(text) if span.shape in shapes]


@lru_cache(maxsize=16384)
def _spans(text: str) -> tuple[Span, ...]:
    tokens = _tokens(text)[:_FURTHEST]
    words = ["", *(text[start:end].lower() for start, end in tokens), ""]
    found: list[Span] = []
    ended: dict[str, list[int]] = {}
    for first, (start, _) in enumerate(tokens):
        shape, reached = "", start
        for last in range(first, min(first + LONGEST, len(tokens))):
            begins, ends = tokens[last]
            shape += shape_of(text[reached:begins]) + shape_of(text[begins:ends])
            reached = ends
            earlier = ended.setdefault(shape, [])
            n_before = sum(end <= start for end in earlier)
            found.append(Span(text[start:ends], shape, words[first], words[last + 2], n_before))
            earlier.append(ends)
    return tuple(found)


@lru_cache(maxsize=16384)
def phrases_of(text: str) -> frozenset[str]:
    """All runs of up to `LONGEST` words, lower-cased, with single spaces: what the text can be said to mention."""
    words = [text[start:end].lower() for start, end in _tokens(text)[:_FURTHEST]]
    return frozenset(" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, min(i + LONGEST, len(words)) + 1))


def _tokens(text: str) -> list[tuple[int, int]]:
    """(start, end) of the words, without the punctuation around them."""
    placed = []
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        while end > start and text[end - 1] in _ENDS:
            end -= 1
        if end > start:
            placed.append((start, end))
    return placed
