"""Letters that may replace a letter of a name so that the word still looks like a name of its language, and endings that stay.

A vowel becomes a vowel, a consonant a consonant, with the same accent; in Han a surname a surname and a usual sign of given
names such a sign; in Hangul likewise. Endings of names (`-ski`, `-ová`, `-sson`, `-oğlu`, `-ов`) stay, so that language and
gender can be seen, and nobody is known by them. Does not see: languages that share a script."""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache

from extractors.privacy.letters import alphabet_of, words_in
from extractors.privacy.scripts import GIVEN_HAN, GIVEN_KO, SURNAMES_HAN, SURNAMES_KO

_VOWELS = frozenset("aeiouyаеиоуыэюяёіїєαεηιουω")
_CLASSES = ("aeiou", "y", "bcdfghjklmnprstvz", "qwx", "аеиоуыэюя", "бвгдзклмнпрстфх", "жйцчшщ",
            "αεηιοω", "υ", "βγδζθκλμνξπρστφχψ",
            "بتثجحخدذرزسشصضطظعغفقكلمنه", "اوي", "אבגדהוזחטיכלמנסעפצקרשת", "अआइईउऊएऐओऔ",
            "कखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह", "กขคงจชซดตถทนบปผพมยรลวสหอ")
"""Letters of one sound; what is in none of these scripts' classes stays, or changes within its block."""
_STAY = frozenset("ьъςךםןףץءأإآىئؤة")
_ACCENTED = (*range(0x00C0, 0x0180), *range(0x1E00, 0x1F00), *range(0x0386, 0x03CF))
_ENDINGS = tuple(sorted(words_in(
    "ski ska cki cka dzki dzka owski owska ewski ewska wicz czyk ová ský ská ov ova ev eva in ina ovic ović ević ić "
    "ич sson sen dóttir mann berg baum heim oğlu escu eanu poulos opoulos idis akis yan ian shvili dze enko uk ez "
    "inho eira ini etti elli ella ucci uddin ullah nen lainen stra sma ский ская цкий цкая ов ова ев ева ёв ёва ин "
    "ина енко ук юк чук ович евич овна евна іна όπουλος οπούλου ίδης άκης ου ης ος"), key=lambda each: (-len(each), each)))
_LEAST = 2
"""Letters before an ending."""


@lru_cache(1 << 12)
def ending_of(word: str) -> str:
    """Return the longest ending of names that a word in lower case has; empty if it has none."""
    return next((each for each in _ENDINGS if word.endswith(each) and len(word) - len(each) >= _LEAST), "")


@lru_cache(1 << 14)
def sound_alphabet(character: str, is_first: bool) -> str:
    """Return the letters that may replace one, empty if it stays."""
    if character in _STAY:
        return ""
    own = next((each for each in _CLASSES if character in each), None) or _of_script(character, is_first)
    if own is not None:
        return own
    base, marks = _parts(character)
    if marks and base.isalpha():
        return _accented().get((base in _VOWELS, marks), "")
    return alphabet_of(character, is_first)


def _of_script(character: str, is_first: bool) -> str | None:
    """Return signs of Han and Hangul that stand where this one stands."""
    usual = ((SURNAMES_HAN, GIVEN_HAN), (SURNAMES_KO, GIVEN_KO))
    for surnames, given in usual:
        first, second = (surnames, given) if is_first else (given, surnames)
        if character in first:
            return first
        if character in second:
            return "".join(sign for sign in second if sign not in first)
    block = alphabet_of(character, is_first)
    if block[:1] in ("一", "가"):
        return _rest(block)
    return None


@cache
def _rest(block: str) -> str:
    """Return the signs of a block that no list of usual ones holds."""
    usual = frozenset(SURNAMES_HAN + GIVEN_HAN + SURNAMES_KO + GIVEN_KO)
    return "".join(sign for sign in block if sign not in usual)


def _parts(character: str) -> tuple[str, str]:
    plain = unicodedata.normalize("NFD", character)
    return plain[0], plain[1:]


@cache
def _accented() -> dict[tuple[bool, str], str]:
    """Return letters in lower case by whether they are vowels, and their accents."""
    made: dict[tuple[bool, str], str] = {}
    for number in _ACCENTED:
        sign = chr(number)
        base, marks = _parts(sign)
        if marks and sign.islower() and len(unicodedata.normalize("NFC", sign.upper())) == 1:
            key = base in _VOWELS, marks
            made[key] = made.get(key, "") + sign
    return made
