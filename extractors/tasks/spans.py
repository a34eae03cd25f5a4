"""What words hold: every run of neighbouring words, with its shape and what stands beside it.

In: a text. Out: its spans. A shape is the text with letters as `a` or `A` and digits as `9`, runs collapsed: two values of one
kind mostly have one. Sees: values said to the letter. Does not see: a value said in another
form (a month by name); what comes after the first words of a very long text.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

LONGEST = 6
"""Words in a span at most."""

_FURTHEST = 500
"""Words of a text that are looked at."""

_TOKEN = re.compile(r"[^\s,;!?()\[\]\"“”]+")
_ENDS = ".:'’"
_MARKS = "#@$"
"""A mark before a name, which may or may not be a part of it."""

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
    features: tuple[str, ...]
    """Its shape, its number of words, the words beside it, and how many spans of its shape begin before it."""


@lru_cache(maxsize=262144)
def shape_of(text: str) -> str:
    """Letters and digits of a text by their kind, runs of one kind once."""
    return _AGAIN.sub(r"\1", text.translate(_KINDS))


def spans_of(text: str, shapes: frozenset[str]) -> list[Span]:
    """The spans of a text that have one of these shapes, shorter ones first, then by where they begin."""
    lengths = sorted({min(shape.count(" ") + 1, LONGEST) for shape in shapes})
    return [span for length in lengths for span in _spans(text, length) if span.shape in shapes]


@lru_cache(maxsize=32768)
def _spans(text: str, length: int) -> tuple[Span, ...]:
    """The spans of so many words."""
    tokens = _tokens(text)
    words = ["", *(text[start:end].lower() for start, end in tokens), ""]
    shapes = [shape_of(text[start:end]) for start, end in tokens]
    gaps = [shape_of(text[end:start]) for (_, end), (start, _) in pairwise(tokens)]
    found: list[Span] = []
    n_of: Counter[str] = Counter()
    for first in range(len(tokens) - length + 1):
        last = first + length - 1
        start, end = tokens[first][0], tokens[last][1]
        shape = shapes[first] + "".join(gaps[i] + shapes[i + 1] for i in range(first, last))
        spelled = [(text[start:end], shape)]
        if length == 1 and text[start] in _MARKS and end > start + 1:
            spelled.append((text[start + 1:end], shape_of(text[start + 1:end])))
        for spelling, shape in spelled:
            found.append(Span(spelling, shape, (
                f"shape {shape}", f"words {length}", f"before {words[first]}", f"after {words[last + 2]}",
                f"place {min(n_of[shape], 3)}")))
            n_of[shape] += 1
    return tuple(found)


@lru_cache(maxsize=16384)
def phrases_of(text: str) -> frozenset[str]:
    """All runs of up to `LONGEST` words, lower-cased, with single spaces: what the text can be said to mention."""
    words = [text[start:end].lower() for start, end in _tokens(text)]
    return frozenset(" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, min(i + LONGEST, len(words)) + 1))


def _tokens(text: str) -> list[tuple[int, int]]:
    """(start, end) of the first words, without the punctuation around them."""
    placed: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        while end > start and text[end - 1] in _ENDS:
            end -= 1
        if end > start:
            placed.append((start, end))
        if len(placed) == _FURTHEST:
            break
    return placed
