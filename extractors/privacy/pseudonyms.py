"""Give each value a pseudonym of the same kind and shape.

The same key gives the same pseudonym, and no two values share one. Words of names are replaced one by one, so a name inside
an id, an e-mail address or a sentence stays the same name: given names by given names, surnames by surnames (`given.txt`,
`surnames.txt`), words that are also names by such words, all others by letters of the same sound, with the ending that names
of the language have (`sounds`). Dates all move by the same number of days and keep their notation (1980-03-31, 19800331
alone, 31.03.1980, 31.3.80, 03/31/1980, 31 March 1980, March 31st, 1980). Does not check whether a value is what its kind
says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import lru_cache

from extractors.privacy import letters
from extractors.privacy.credentials import SECRET
from extractors.privacy.fields import iban_digits, iban_holds, luhn_digit, luhn_holds
from extractors.privacy.permuting import SCHEMES, Permutation
from extractors.privacy.sounds import ending_of, sound_alphabet

KINDS = ("name", "email", "phone", "address", "zip", "card", "ending", "account", "id", "ip", "date")
_RUNS = re.compile(rf"{letters.LETTERS}|\d+|(?:(?!{letters.LETTERS})[\W_])+")
_PARTS = re.compile(r"([\W_]+)")
_HEX = re.compile(r"[0-9a-f]{16,}|[0-9A-F]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX_GROUP = re.compile(r"[0-9a-fA-F]{1,4}")
_PUBLIC = letters.words_in(
    "gmail googlemail yahoo hotmail outlook live icloud aol proton protonmail gmx web mail msn example test localhost")
"""Providers of addresses: they say nothing of who has one."""
_NO_NAME = letters.TITLES | letters.words_in("jr sr ii iii iv phd md von van de der den di da la el al bin ibn and y e und")


_SOUNDING = 3
"""Scheme from which on a word that no list holds keeps its ending, its vowels and its consonants as such."""


def _is_free(word: str) -> bool:
    """Whether a word may be the pseudonym of one that no list holds."""
    return not (letters.is_listed(word) or letters.is_household(word) or word in letters.GENERIC or word in letters.STREETS)


class Pseudonyms:
    """The pseudonyms of one key, by a scheme of `permuting.SCHEMES`."""

    def __init__(self, key: bytes, scheme: int = SCHEMES[-1]) -> None:
        self._by_kind = {kind: Permutation(key, kind, scheme) for kind in (*KINDS, "word", "number", "text")}
        self._scheme = scheme
        self._days = Permutation(key, "days", scheme).number(0, 300) + 30
        self.word = lru_cache(1 << 16)(self._word)
        self.of = lru_cache(1 << 16)(self._of)
        self._made: dict[str, Callable[[str], str]] = {
            "name": self._name, "email": self._email, "phone": self._phone, "address": self._address, "zip": self._zip,
            "card": self._card, "ending": self._ending, "account": self._account, "id": self._id, "ip": self._ip,
            "date": lambda value: shifted(value, self._days)}

    def _of(self, kind: str, value: str) -> str:
        return SECRET if kind == "secret" else self._made[kind](value)

    def _word(self, word: str) -> str:
        lower = letters.lowered(word)
        for name in ("household", "given", "surnames"):
            if lower in letters.listed(name):
                words = letters.words_of(name)
                return letters.cased(word, words[self._by_kind["word"].number(words.index(lower), len(words), name)])
        if self._scheme < _SOUNDING:
            return letters.cased(word, self._by_kind["word"].shaped(lower, _is_free))
        tail = ending_of(lower)
        head = self._by_kind["word"].shaped(
            lower.removesuffix(tail), lambda text: _is_free(text + tail) and ending_of(text + tail) == tail, sound_alphabet)
        return letters.cased(word, head + tail)

    def _name(self, value: str) -> str:
        return "".join(
            run if not run[0].isalpha() or run.lower() in _NO_NAME else self.word(run) for run in _RUNS.findall(value))

    def _number(self, digits: str) -> str:
        return self._by_kind["number"].shaped(digits)

    def _id(self, value: str) -> str:
        """Of an id: words and numbers one by one; parts that mix both, as a whole."""
        if _HEX.fullmatch(value):
            plain = value.replace("-", "")
            lower = plain.lower()
            made = f"{self._by_kind['id'].number(int(lower, 16), 16 ** len(lower), 'hex'):0{len(lower)}x}"
            made = made if plain == lower else made.upper()
            signs = iter(made)
            return "".join(sign if sign == "-" else next(signs) for sign in value)
        return "".join(each if index % 2 else self._part(each) for index, each in enumerate(_PARTS.split(value)))

    def _part(self, part: str) -> str:
        if not part or part.lower() in letters.GENERIC:
            return part
        match = re.fullmatch(r"([^\W\d_]*)(\d*)", part)
        if match and (not match[2] or not match[1] or len(match[1]) > 2):
            head = match[1] and (match[1] if match[1].lower() in letters.GENERIC else self.word(match[1]))
            return head + (match[2] and self._number(match[2]))
        if part.isascii() and part.isupper():   # one id, however loud
            return self._by_kind["id"].shaped(part.lower()).upper()
        return self._by_kind["id"].shaped(part)

    def _email(self, value: str) -> str:
        local, _, domain = value.rpartition("@")
        labels = domain.split(".")
        public_at = next((index for index, label in enumerate(labels) if label.lower() in _PUBLIC), None)
        if public_at is None and len(labels) > 1:
            labels[:-1] = [self.word(label) if label.isalpha() else self._id(label) for label in labels[:-1]]
        name, plus, tag = local.partition("+")
        return f"{self._id(name)}{plus}{self._id(tag)}@{'.'.join(labels)}"

    def _phone(self, value: str) -> str:
        """Return the last seven digits: a number that is written with and without its country stays one number."""
        places = [index for index, sign in enumerate(value) if sign.isdigit()][-7:]
        characters = list(value)
        for at, digit in zip(places, self._digits("phone", "".join(value[at] for at in places)), strict=True):
            characters[at] = digit
        return "".join(characters)

    def _digits(self, kind: str, digits: str) -> str:
        n = len(digits)
        return f"{self._by_kind[kind].number(int(digits), 10 ** n, str(n)):0{n}}" if digits else ""

    def _address(self, value: str) -> str:
        """Of a street and number every word; of what stands after a comma (a city, a state) the numbers alone."""
        first, comma, rest = value.partition(",")
        made = "".join(
            run if run.lower() in letters.STREETS or not run.strip() else self._number(run) if run.isdigit()
            else self.word(run) if run[0].isalpha() else run for run in _RUNS.findall(first))
        return made + comma + "".join(
            self._zip(run) if run.isdigit() and len(run) == 5 else self._number(run) if run.isdigit() else run
            for run in _RUNS.findall(rest))

    def _zip(self, value: str) -> str:
        parts = value.split("-", 1)
        if all(map(str.isdigit, parts)):
            return "-".join(self._digits("zip", part) for part in parts)
        return self._by_kind["zip"].shaped(value)

    def _ending(self, value: str) -> str:
        return self._digits("ending", value) if value.isdigit() else self._by_kind["text"].shaped(value)

    def _card(self, value: str) -> str:
        """First digit and separators stay; the last four are those of `ending`; check digits that hold, hold."""
        digits = "".join(sign for sign in value if sign.isdigit())
        if not 13 <= len(digits) <= 19:
            return self._account(value)
        last = self._ending(digits[-4:])
        middle = self._digits("card", digits[2:-4])
        second = luhn_digit(digits[0], middle + last)
        if not luhn_holds(digits):   # as far from the digit that would hold as it was
            off = (int(digits[1]) - luhn_digit(digits[0], digits[2:])) % 10
            second = (second + off) % 10
        signs = iter(f"{digits[0]}{second}{middle}{last}")
        return "".join(next(signs) if sign.isdigit() else sign for sign in value)

    def _account(self, value: str) -> str:
        if value != value.upper() and value.isascii():   # one account, however loud
            loud = self._account(value.upper())
            return "".join(sign.lower() if was.islower() else sign for sign, was in zip(loud, value, strict=True))
        plain = re.sub(r"\s", "", value)
        if iban_holds(plain):
            made = self._by_kind["account"].shaped(plain[4:])
            signs = iter(plain[:2] + iban_digits(plain[:2], made) + made)
            return "".join(sign if sign.isspace() else next(signs) for sign in value)
        return self._by_kind["account"].shaped(value)

    def _ip(self, value: str) -> str:
        octets = value.split(".")
        if len(octets) == 4 and all(each.isdigit() and int(each) < 256 for each in octets):
            inner = int(octets[1]) << 16 | int(octets[2]) << 8 | int(octets[3])
            made = self._by_kind["ip"].number(inner, 1 << 24)
            return f"{octets[0]}.{made >> 16}.{made >> 8 & 255}.{made & 255}"
        first, *rest = value.split(":")
        if len(rest) < 2:
            return self._id(value)
        return ":".join([first, *(
            f"{self._by_kind['ip'].number(int(each, 16), 1 << 16, str(at)):x}" if _HEX_GROUP.fullmatch(each) else each
            for at, each in enumerate(rest))])


_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")
_NAMED = "|".join((*_MONTHS, *(month[:3] for month in _MONTHS), "sept"))
_YEAR_FIRST = re.compile(r"(?<!\d)(?P<y>\d{4})(?P<a>[-/.])(?P<m>\d{1,2})(?P<b>(?P=a))(?P<d>\d{1,2})(?!\d)")
_MONTH_FIRST = re.compile(r"(?<!\d)(?P<m>0?[1-9]|1[0-2])(?P<a>/)(?P<d>\d{1,2})(?P<b>/)(?P<y>\d{4}|\d{2})(?!\d)")
_DAY_FIRST = re.compile(r"(?<!\d)(?P<d>\d{1,2})(?P<a>[-/.])(?P<m>\d{1,2})(?P<b>(?P=a))(?P<y>\d{4}|\d{2})(?!\d)")
_WITHOUT_SIGNS = re.compile(r"\s*(?P<y>(?:19|20)\d\d)(?P<a>)(?P<m>\d\d)(?P<b>)(?P<d>\d\d)\s*")
_DAY_NAMED = re.compile(
    rf"(?i)\b(?P<d>\d{{1,2}})(?P<a>(?:st|nd|rd|th|\.)?(?: of)? )(?P<m>{_NAMED})(?P<b>\.?,? )(?P<y>\d{{4}})\b")
_MONTH_NAMED = re.compile(rf"(?i)\b(?P<m>{_NAMED})(?P<a>\.? )(?P<d>\d{{1,2}})(?P<b>(?:st|nd|rd|th)?,? )(?P<y>\d{{4}})\b")
_FORMS = (_YEAR_FIRST, _MONTH_FIRST, _DAY_FIRST, _DAY_NAMED, _MONTH_NAMED)
_PIVOT = 30
"""Years of two digits from this one on are of the century before."""


def shifted(text: str, days: int) -> str:
    """Move the dates in a text so many days back."""
    if _WITHOUT_SIGNS.fullmatch(text):
        return _WITHOUT_SIGNS.sub(_mover(days), text)
    form = next((each for each in _FORMS if each.search(text)), None)
    return form.sub(_mover(days), text) if form else text


def day_of(text: str) -> date | None:
    """Return the day that a text is; None where it is none, or more than one."""
    text = text.strip()
    if match := _WITHOUT_SIGNS.fullmatch(text):
        return _read(match)
    return next((_read(match) for form in _FORMS if (match := form.fullmatch(text))), None)


def spellings(day: date) -> Iterator[str]:
    """How people write a day, in lower case."""
    month = _MONTHS[day.month - 1]
    yield from (f"{day:%Y-%m-%d}", f"{day:%Y/%m/%d}", f"{day:%m/%d/%Y}", f"{day.month}/{day.day}/{day.year}", f"{day:%d.%m.%Y}",
                f"{day.day}.{day.month}.{day.year}", f"{day:%d-%m-%Y}")
    yield from (f"{first} {day.day}, {day.year}" for first in (month, month[:3]))
    yield from (f"{day.day} {last} {day.year}" for last in (month, month[:3]))
    if day.day > 12:
        yield f"{day:%d/%m/%Y}"


def _mover(days: int) -> Callable[[re.Match[str]], str]:
    def moved(match: re.Match[str]) -> str:
        day = _read(match)
        try:
            made = None if day is None else day - timedelta(days=days)
        except OverflowError:
            made = None
        if made is None or made.year < 1000:
            return match[0]
        new = {"y": f"{made.year % 100:02}" if len(match["y"]) == 2 else f"{made.year}",
               "m": _month_as(match["m"], made.month), "d": f"{made.day:0{len(match['d'])}}"}
        pieces, done = [], 0
        for name in sorted(new, key=match.start):
            pieces += [match[0][done:match.start(name) - match.start()], new[name]]
            done = match.end(name) - match.start()
        return "".join(pieces) + match[0][done:]
    return moved


def _read(match: re.Match[str]) -> date | None:
    year, month = int(match["y"]), match["m"].lower()
    if len(match["y"]) == 2:
        year += 1900 if year >= _PIVOT else 2000
    number = int(month) if month.isdigit() else 1 + next(at for at, each in enumerate(_MONTHS) if each.startswith(month[:3]))
    try:
        return date(year, number, int(match["d"]))
    except ValueError:
        return None


def _month_as(written: str, month: int) -> str:
    if written.isdigit():
        return f"{month:0{len(written)}}"
    name = _MONTHS[month - 1]
    name = name[:3] if len(written) < 5 and written.lower() not in _MONTHS else name
    return name.upper() if written.isupper() else name.title() if written[0].isupper() else name
