"""Letters: which ones may stand for one another, and how a word's case is given to another word.

An alphabet is a string of the signs of one script and case. A sign without one (punctuation, spaces, signs of rare scripts
outside the blocks below) stays as it is.
"""

from __future__ import annotations

from functools import lru_cache

_LOWER, _UPPER, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_LATIN = "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþ"
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
_GREEK = "αβγδεζηθικλμνξοπρστυφχψω"
_BLOCKS = tuple("".join(map(chr, range(first, last))) for first, last in (
    (0x05D0, 0x05EB), (0x0621, 0x063B), (0x0641, 0x064B), (0x0905, 0x093A), (0x0E01, 0x0E2F), (0x3041, 0x3097),
    (0x30A1, 0x30FB), (0x4E00, 0x9FA6), (0xAC00, 0xD7A4)))
_ALL = (_LOWER, _UPPER, _DIGITS, _LATIN, _LATIN.upper(), _CYRILLIC, _CYRILLIC.upper(), _GREEK, _GREEK.upper(), *_BLOCKS)


@lru_cache(1 << 12)
def _alphabet(sign: str) -> str:
    return next((each for each in _ALL if sign in each), "")


def alphabet_of(sign: str, is_first: bool = False) -> str:
    """The signs that may stand for this one, empty where it stays; a number keeps its leading zero, or that it has none."""
    if is_first and sign in _DIGITS:
        return "" if sign == "0" else _DIGITS[1:]
    return _alphabet(sign)


def lowered(text: str) -> str:
    """A text in lower case, of which no letter becomes two signs: İ is i."""
    return (text if text.isascii() else text.replace("İ", "i")).lower()


def cased(model: str, word: str) -> str:
    """A word in lower case, in the case of `model`: small, CAPITAL, Title, else letter by letter."""
    if model.islower():
        return word
    if model.isupper() and (len(model) > 1 or len(word) == 1):
        return word.upper()
    if (model[:1].isupper() and model[1:].islower()) or len(model) == 1:
        return word[:1].upper() + word[1:]
    return "".join(
        sign.upper() if index < len(model) and model[index].isupper() else sign for index, sign in enumerate(word))
