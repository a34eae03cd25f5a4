"""Alphabets, cases, shipped lists of names and words, and other spellings of a chunk of text.

An alphabet is the characters of one script and case; a character without one stays as it is. A chunk may be encoded for a URL
or be several words written together. Does not see base64 and other codes without a mark."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from urllib.parse import quote, unquote

_LOWER, _UPPER, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_LATIN = "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþ"
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
_GREEK = "αβγδεζηθικλμνξοπρστυφχψω"
_BLOCKS = tuple("".join(map(chr, range(first, last))) for first, last in (
    (0x05D0, 0x05EB), (0x0621, 0x063B), (0x0641, 0x064B), (0x0905, 0x093A), (0x0E01, 0x0E2F), (0x3041, 0x3097),
    (0x30A1, 0x30FB), (0x4E00, 0x9FA6), (0xAC00, 0xD7A4)))
_ALL = (_LOWER, _UPPER, _DIGITS, _LATIN, _LATIN.upper(), _CYRILLIC, _CYRILLIC.upper(), _GREEK, _GREEK.upper(), *_BLOCKS)

_LETTER_NAME = re.compile(r"([A-Z]+) ((?:SMALL |CAPITAL )?LETTER|SYLLABLE) ([A-Z]+)")
_NEAR = 0x180
"""Characters before and after a letter among which its script is looked for."""
MARKS = "".join(map(chr, (*(each for each in range(0x0300, 0x1AFF) if unicodedata.category(chr(each)) in ("Mn", "Mc")),
                          0x200C, 0x200D)))
"""Signs that belong to the letter before: vowel signs of India and Thailand, points of Arabic and Hebrew, joiners."""
LETTERS = rf"[^\W\d_]+(?:[{MARKS}]+[^\W\d_]*)*"
"""A word in any script, as a pattern."""
_UNSPACED = re.compile(r"[\u0e01-\u0e4e\u1100-\u11ff\u3005\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


def has_unspaced(text: str) -> bool:
    """Whether letters of a script stand in a text that joins words: Han, kana, Hangul with its particles, Thai."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def is_caseless(word: str) -> bool:
    """Whether a word is written in a script without capitals."""
    return not word.isascii() and word.lower() == word.title()   # Georgian has capitals that no sentence uses


@lru_cache(1 << 12)
def alphabet_of(character: str, is_first: bool) -> str:
    """Return the characters that may replace this one, empty if it stays; a number keeps its leading zero, or its absence."""
    if is_first and character in _DIGITS:
        return "" if character == "0" else _DIGITS[1:]
    return next((alphabet for alphabet in _ALL if character in alphabet), None) or _same_kind(character)


def _same_kind(character: str) -> str:
    """Return the letters of a script that stand where one stands, as Unicode names them: of the same case, vowels for a vowel,
    syllables with the same vowel; for a digit the ten of its script."""
    if character.isdecimal():
        zero = ord(character) - int(character)
        return "".join(map(chr, range(zero, zero + 10)))
    model = _kind_of_letter(character)
    if not model:
        return ""
    near = range(max(0x0100, ord(character) - _NEAR), ord(character) + _NEAR)
    return "".join(each for each in map(chr, near) if _kind_of_letter(each) == model)


def _kind_of_letter(character: str) -> tuple[str, ...]:
    """Return script, case and sound of a letter, as its Unicode name states them; empty for what is no plain letter."""
    match = _LETTER_NAME.fullmatch(unicodedata.name(character, "")) if character.isalpha() else None
    if match is None:
        return ()
    script, form, sound = match.groups()
    vowel = sound[len(sound.rstrip("AEIOU")):]
    return script, form, vowel if form == "SYLLABLE" else "vowel" if vowel == sound else "consonant"


def lowered(text: str) -> str:
    """Return a text in lower case, with as many characters: İ is i."""
    return (text if text.isascii() else text.replace("İ", "i")).lower()


def cased(model: str, word: str) -> str:
    """Return a word in lower case, in the case of `model`: small, CAPITAL, Title, else letter by letter."""
    if model.islower():
        return word
    if model.isupper() and (len(model) > 1 or len(word) == 1):
        return word.upper()
    if (model[:1].isupper() and model[1:].islower()) or len(model) == 1:
        return word[:1].upper() + word[1:]
    return "".join(sign.upper() if index < len(model) and model[index].isupper() else sign for index, sign in enumerate(word))


def words_in(text: str) -> frozenset[str]:
    """Split a text into its words."""
    return frozenset(text.split())


GENERIC = words_in(
    "user usr customer cust client member account acct id uid employee emp patient guest agent person contact clerk admin "
    "org tenant team staff test driver rider host buyer seller tel ext")
"""Beginnings of ids that say what is counted: they stay."""
TITLES = words_in("mr mrs ms miss dr prof herr frau monsieur madame mx sir")
STREETS = words_in(
    "street st road rd avenue ave boulevard blvd lane ln drive dr court ct way place pl square sq terrace ter highway hwy "
    "parkway pkwy circle cir trail trl suite ste apartment apt unit floor fl room rm building bldg box po p.o north south "
    "east west n s e w ne nw se sw strasse straße gasse weg platz rue allee")
"""Words of an address that name no place."""


@cache
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a shipped list, in order."""
    text = files("extractors.privacy").joinpath(f"{name}.txt").read_text("utf-8")
    return tuple(sorted({word for line in text.splitlines() if not line.startswith("#") for word in line.split()}))


@cache
def listed(name: str) -> frozenset[str]:
    """Return the words of a shipped list as a set."""
    return frozenset(words_of(name))


def is_given(word: str) -> bool:
    """Whether it is a given name."""
    return word in listed("given")


def is_listed(word: str) -> bool:
    """Whether it is a given name or a surname, and no other word."""
    return word in listed("given") or word in listed("surnames")


def is_household(word: str) -> bool:
    """Whether it is a word that is also a name."""
    return word in listed("household")


def is_plain(word: str) -> bool:
    """Whether it is no name where it stands alone."""
    return word in listed("plain")


_JOINT = re.compile(r"[._@+%'’-]+")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_MOST = 8
"""Parts of a chunk of which runs are looked at."""


def encoded(chunk: str) -> tuple[str, Callable[[str], str]] | None:
    """How a chunk reads that is encoded for an address on the web, and how to encode such a text again; None: it is not."""
    if "%" in chunk and _ENCODED.search(chunk):
        plus = "+" in chunk and "%20" not in chunk and "%40" not in chunk
        plain = unquote(chunk.replace("+", " ") if plus else chunk)
        return plain, lambda text: quote(text, safe="+").replace("%20", "+" if plus else "%20")
    if "+" in chunk and "@" not in chunk and chunk.replace("+", "").isalpha():
        return chunk.replace("+", " "), lambda text: text.replace(" ", "+")
    return None


def runs(chunk: str) -> Iterator[tuple[int, int]]:
    """Where runs of neighbouring parts stand in a chunk, the longest first; not the whole."""
    joints = [match.span() for match in _JOINT.finditer(chunk)]
    begins, ends = [0, *(end for _, end in joints)], [*(start for start, _ in joints), len(chunk)]
    n = len(begins)
    if 1 < n <= _MOST:
        for size in range(n - 1, 0, -1):
            for first in range(n - size + 1):
                yield begins[first], ends[first + size - 1]


def camel(word: str) -> list[str]:
    """Return the words that are written together in one, each with a capital: `AnnLee`."""
    cuts = [at for at in range(1, len(word)) if word[at].isupper() and word[at - 1].islower()]
    return [word[start:end] for start, end in zip([0, *cuts], [*cuts, len(word)], strict=True)]
