"""Split text into words, values' spellings and spans of words.

A word with a digit may name an entity. A shape is a text with letters as `a` or `A` and digits as `9`, runs collapsed: values
of one kind mostly share it. Sees letters and digits of any script, separators of thousands, and dates with English month names.
Does not see order beyond neighbours, meaning, month names of other languages, or the end of a very long text."""

from __future__ import annotations

import re
from calendar import month_abbr, month_name
from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import polars as pl

WORD = r"[\p{L}\p{N}](?:[\p{L}\p{N}_@./:'’#-]*[\p{L}\p{N}])?"
"""A word: letters and digits, with the punctuation that ids, addresses and instants hold inside."""
IDENTIFIER = r"^[\p{L}\p{N}_@./:#-]*\p{N}[\p{L}\p{N}_@./:#-]*$"
"""A word with a digit in it; together with `IDENTIFIER_LENGTH` it may name one entity."""
IDENTIFIER_LENGTH = 5
"""Shorter words with digits are mostly counts, hours and prices."""
_MEASURE = r"^(?:-?\p{N}+[.,]\p{N}+|\p{N}{4}-\p{N}{2}-\p{N}{2}.*|\p{N}{1,2}[:/.]\p{N}{1,2}.*)$"
"""Decimal numbers, dates and times of day have digits, but name nothing."""


def is_identifier(word: pl.Expr) -> pl.Expr:
    """Whether a word looks like the name of one entity: a digit in it, and no shorter than `IDENTIFIER_LENGTH`."""
    return (word.str.len_chars() >= IDENTIFIER_LENGTH) & word.str.contains(IDENTIFIER) & ~word.str.contains(_MEASURE)


def split_words(text: pl.Expr) -> pl.Expr:
    """Lower-cased words of a text, in order, as a list column."""
    return text.str.to_lowercase().str.extract_all(WORD)


def masked(text: pl.Expr) -> pl.Expr:
    """Return the text lower-cased with every word that holds a digit replaced by `0`: what is left is the kind of request."""
    return text.str.to_lowercase().str.replace_all(r"[\p{L}\p{N}_@.#-]*\p{N}[\p{L}\p{N}_@.#-]*", "0")


_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*"
"""A character of a script that writes without spaces between words."""


def document_words(documents: pl.DataFrame, document: str = "document") -> pl.DataFrame:
    """Words and pairs of neighbouring words of each document, counted: columns document, word, n.

    In a script without spaces each character is a word, so that pairs of neighbours stand for its words."""
    spaced = pl.col("text").str.replace_all(_UNSPACED, " ${0} ")
    listed = documents.select(document, split_words(spaced).alias("word")).explode("word").drop_nulls("word")
    follows = pl.col(document) == pl.col(document).shift(-1)
    neighbours = listed.with_columns((pl.col("word") + " " + pl.col("word").shift(-1)).alias("word")).filter(
        follows.fill_null(False))
    return pl.concat([listed, neighbours]).group_by(document, "word").agg(pl.len().alias("n")).sort(document, "word")


_DATE = re.compile(r"^(\d{4})-(\d{2})-(\d{2})$")
_MARKS = "#@$"
"""A mark before a name, which may or may not be a part of it."""


@lru_cache(maxsize=65536)
def key_of(value: str) -> str:
    """Equal for values that are the same but for case and the form of a number."""
    lower = value.lower()
    if lower.endswith(".0") and lower[:-2].removeprefix("-").isdecimal():
        return lower[:-2]
    return lower


@lru_cache(maxsize=65536)
def spellings(value: str) -> tuple[str, ...]:
    """Forms of a value, lower-cased, its own first."""
    lower = value.lower()
    forms = [lower]
    if lower[:1] in _MARKS and len(lower) > 1:
        forms.append(lower[1:])
    if lower.replace(".", "", 1).isdecimal():
        number = float(lower)
        forms += [f"{number:,.2f}", f"{number:,.0f}"] if number >= 1000 and number.is_integer() else [f"{number:,.2f}"]
    if (date := _DATE.match(lower)) and 1 <= int(date[2]) <= 12:
        day, names = int(date[3]), (month_name[int(date[2])].lower(), month_abbr[int(date[2])].lower())
        ordinals = [f"{day}{end}" for end in ("", "st", "nd", "rd", "th")]
        forms += [f"{name} {each}" for name in names for each in ordinals]
        forms += [f"{each}{of}{name}" for name in names for each in ordinals for of in (" ", " of ")]
    return tuple(dict.fromkeys(forms))


def mentions(text: str, value: str) -> bool:
    """Whether a text holds a value as words of its own; both lower-cased."""
    at = text.find(value) if value else -1
    while at >= 0:
        end = at + len(value)
        if not (_joined(text, at - 1, value[0]) or _joined(text, end, value[-1])):
            return True
        at = text.find(value, at + 1)
    return False


def _joined(text: str, at: int, edge: str) -> bool:
    return 0 <= at < len(text) and text[at].isalnum() and edge.isalnum()


LONGEST = 6
"""Words in a span at most."""
_FURTHEST = 500
"""Words of a text that are looked at."""
_TOKEN = re.compile(r"[^\s,;!?()\[\]\"“”]+")
_ENDS = ".:'’"
_AGAIN = re.compile(r"(.)\1+")


class _CharacterKinds(dict[int, str]):
    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = "A" if letter.isupper() else "a" if letter.isalpha() else "9" if letter.isdigit() else letter
        return self[code]


_KINDS = _CharacterKinds()


class WordSpan(NamedTuple):
    """A run of words."""

    text: str
    """As it stands there."""
    shape: str
    features: tuple[str, ...]
    """Its shape, its number of words, the words around it, and how many spans of its shape begin before it."""


@lru_cache(maxsize=262144)
def shape_of(text: str) -> str:
    """Letters and digits of a text by their kind, runs of one kind once."""
    return _AGAIN.sub(r"\1", text.translate(_KINDS))


def spans_of(text: str, shapes: frozenset[str]) -> list[WordSpan]:
    """Return the spans of a text that have one of these shapes, shorter ones first, then by where they begin."""
    lengths = sorted({min(shape.count(" ") + 1, LONGEST) for shape in shapes})
    return [span for length in lengths for span in _spans(text, length) if span.shape in shapes]


@lru_cache(maxsize=1024)
def _spans(text: str, length: int) -> tuple[WordSpan, ...]:
    tokens = _tokens(text)
    words = ["", *(text[start:end].lower() for start, end in tokens), ""]
    shapes = [shape_of(text[start:end]) for start, end in tokens]
    gaps = [shape_of(text[end:start]) for (_, end), (start, _) in pairwise(tokens)]
    spans: list[WordSpan] = []
    n_of: Counter[str] = Counter()
    for first in range(len(tokens) - length + 1):
        last = first + length - 1
        start, end = tokens[first][0], tokens[last][1]
        shape = shapes[first] + "".join(gaps[i] + shapes[i + 1] for i in range(first, last))
        spelled = [(text[start:end], shape)]
        if length == 1 and text[start] in _MARKS and end > start + 1:
            spelled.append((text[start + 1:end], shape_of(text[start + 1:end])))
        for spelling, shape in spelled:
            spans.append(WordSpan(spelling, shape, (
                f"shape {shape}", f"words {length}", f"before {words[first]}", f"after {words[last + 2]}",
                f"place {min(n_of[shape], 3)}")))
            n_of[shape] += 1
    return tuple(spans)


@lru_cache(maxsize=512)
def phrases_of(text: str) -> frozenset[str]:
    """All runs of up to `LONGEST` words, lower-cased, with single spaces: what the text can be said to mention."""
    words = words_of(text)
    return frozenset(" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, min(i + LONGEST, len(words)) + 1))


def words_of(text: str) -> list[str]:
    """Return the words of a text, lower-cased, in order."""
    return [text[start:end].lower() for start, end in _tokens(text)]


def phrases_among(text: str, by_word: Mapping[str, AbstractSet[str]]) -> set[str]:
    """Return what of `phrases_of` is among some phrases, given by their first words: few of all runs are ever asked for."""
    words = words_of(text)
    return {phrase for first, word in enumerate(words) if word in by_word
            for last in range(first + 1, min(first + LONGEST, len(words)) + 1)
            if (phrase := " ".join(words[first:last])) in by_word[word]}


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
