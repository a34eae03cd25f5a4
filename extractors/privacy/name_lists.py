"""Names of people, ordinary words and places in some seventy languages, as Faker (MIT) lists them for its providers.

Lists alone never decide: they add to what fields, addresses and sentences show (`mentions`, `scripts`, `records`), and they
only find names. No pseudonym depends on them, so that another version of the package changes no pseudonym. Does not see:
names that are in no list."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module

from extractors.privacy.letters import LETTERS, is_caseless, listed, lowered

_WORD = re.compile(LETTERS)
_HAN = re.compile(r"[\u3005\u3400-\u9fff]+")
_KANA = re.compile(r"[\u3041-\u30ff]")
_FAMILY, _GIVEN = ("last", "surname"), ("first", "middle")
_PLACES = ("countries", "cities", "city_names", "real_city_names", "states", "provinces", "regions", "prefectures", "counties")


def words_in_name(text: str) -> list[str]:
    """Return the words of a name in lower case, with the vowel signs of scripts that write them as marks."""
    return [lowered(text)] if text.isalpha() else _WORD.findall(lowered(text))


@cache
def given() -> frozenset[str]:
    """Return given names in lower case."""
    return frozenset(word for value in _values("person", _GIVEN) for word in words_in_name(value) if len(word) > 1)


@cache
def family() -> frozenset[str]:
    """Return surnames in lower case."""
    return frozenset(word for value in _values("person", _FAMILY) for word in words_in_name(value) if len(word) > 1)


_SAME = str.maketrans({"أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه", "ؤ": "و", "ئ": "ي"})
_POINTS = re.compile("[\u0591-\u05c7\u064b-\u065f\u0670\u093c\u200c\u200d]")


def plainly(word: str) -> str:
    """Spell a word of a script without capitals as people write it in haste: without points, with the usual letters."""
    return _POINTS.sub("", word).translate(_SAME)


@cache
def caseless() -> tuple[frozenset[str], frozenset[str]]:
    """Return given names and surnames in scripts without capitals, as `plainly` spells them."""
    own, families = (frozenset(plainly(word) for word in words if is_caseless(word)) for words in (given(), family()))
    return own, families


@cache
def ordinary() -> frozenset[str]:
    """Return frequent words of many languages that are no names, or names as well."""
    own = {*listed("ordinary"), *listed("plain"), *listed("household")}
    return frozenset(own | {lowered(text) for text in _values("lorem", ("word_list",))} - _clearly_given())


def _clearly_given() -> frozenset[str]:
    """Given names of four letters or more: lists of words hold some of them."""
    return frozenset(word for word in given() if len(word) > 3)


@cache
def english_and_german() -> frozenset[str]:
    """Return frequent words of the two languages in which much that is no name has capitals."""
    return frozenset({*listed("plain"), *(lowered(text) for locale in ("en_US", "de_DE")
                                          for text in _values("lorem", ("word_list",), locale))})


@cache
def places() -> frozenset[str]:
    """Return names of countries, regions and towns in lower case."""
    return frozenset(lowered(text) for text in _values("address", _PLACES))


@cache
def han_surnames() -> frozenset[str]:
    """Return surnames in Han characters: of one character or two."""
    return frozenset(text for locale in ("zh_CN", "zh_TW") for text in _values("person", _FAMILY, locale)
                     if _HAN.fullmatch(text) and len(text) < 3)


@cache
def han_given() -> frozenset[str]:
    """Return the characters of given names in Chinese."""
    return frozenset(sign for locale in ("zh_CN", "zh_TW") for text in _values("person", _GIVEN, locale)
                     if _HAN.fullmatch(text) for sign in text)


@cache
def japanese() -> tuple[frozenset[str], frozenset[str]]:
    """Return surnames and given names of Japan as they are written in kanji and kana."""
    lists = (frozenset(text for text in _values("person", kind, "ja_JP") if _HAN.match(text) or _KANA.match(text))
             for kind in (_FAMILY, _GIVEN))
    surnames, names = lists
    return surnames, names


@cache
def korean() -> tuple[frozenset[str], frozenset[str]]:
    """Return surnames and given names of Korea in Hangul."""
    surnames, names = (frozenset(_values("person", kind, "ko_KR")) for kind in (_FAMILY, _GIVEN))
    return surnames, names


@cache
def thai() -> frozenset[str]:
    """Return given names in Thai."""
    return frozenset(text for text in _values("person", _GIVEN, "th_TH") if len(text) > 2)


def _values(provider: str, kinds: tuple[str, ...], locale: str = "") -> Iterator[str]:
    """Values of the lists of a provider whose names begin so, of one locale or of all."""
    package = import_module(f"faker.providers.{provider}")
    for module in sorted(each.name for each in pkgutil.iter_modules(package.__path__)):
        if locale in ("", module):
            lists = vars(import_module(f"{package.__name__}.{module}").Provider)
            for name in sorted(lists):
                if any(kind in name for kind in kinds) and "format" not in name and isinstance(lists[name], Iterable):
                    yield from (text for text in lists[name] if isinstance(text, str) and "{{" not in text)
