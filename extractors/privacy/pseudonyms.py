"""A pseudonym for each value, by the kind of thing that it is.

In: a kind and a value. Out: a value of the same kind and shape, the same whenever the key is the same, and no other value's.
Words of names are replaced one by one, whatever stands around them, so that a name inside an id, an address of e-mail or a
sentence stays the same name: given names by given names, surnames by surnames (`given.txt`, `surnames.txt`), words that are
names too by such words, all others by letters. What it does not see: whether the value is what the kind says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from extractors.privacy.checks import iban_digits, iban_holds, luhn_digit, luhn_holds
from extractors.privacy.dates import shifted
from extractors.privacy.kept import GENERIC, STREETS, TITLES, is_household, is_listed, listed, words_in, words_of
from extractors.privacy.letters import cased, lowered
from extractors.privacy.permuting import Permutation

KINDS = ("name", "email", "phone", "address", "zip", "card", "ending", "account", "id", "ip", "date")
SECRET = "[secret]"
_RUNS = re.compile(r"[^\W\d_]+|\d+|[\W_]+")
_PARTS = re.compile(r"([\W_]+)")
_HEX = re.compile(r"[0-9a-f]{16,}|[0-9A-F]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PUBLIC = words_in(
    "gmail googlemail yahoo hotmail outlook live icloud aol proton protonmail gmx web mail msn example test localhost")
"""Providers of addresses: they say nothing of who has one."""
_NO_NAME = TITLES | words_in("jr sr ii iii iv phd md von van de der den di da la el al bin ibn and y e und")


class Pseudonyms:
    """The pseudonyms of one key."""

    def __init__(self, key: bytes) -> None:
        self._by_kind = {kind: Permutation(key, kind) for kind in (*KINDS, "word", "number", "text")}
        self._days = Permutation(key, "days").number(0, 300) + 30
        self.word = lru_cache(1 << 16)(self._word)
        self.of = lru_cache(1 << 16)(self._of)
        self._made: dict[str, Callable[[str], str]] = {
            "name": self._name, "email": self._email, "phone": self._phone, "address": self._address, "zip": self._zip,
            "card": self._card, "ending": self._ending, "account": self._account, "id": self._id, "ip": self._ip,
            "date": lambda value: shifted(value, self._days)}

    def _of(self, kind: str, value: str) -> str:
        """The pseudonym of a value of this kind; of a secret nothing but that it was one."""
        return SECRET if kind == "secret" else self._made[kind](value)

    def _word(self, word: str) -> str:
        """Of one word of a name, in its case."""
        lower = lowered(word)
        for name in ("household", "given", "surnames"):
            if lower in listed(name):
                words = words_of(name)
                return cased(word, words[self._by_kind["word"].number(words.index(lower), len(words), name)])
        made = self._by_kind["word"].shaped(lower, lambda text: not (
            is_listed(text) or is_household(text) or text in GENERIC or text in STREETS))
        return cased(word, made)

    def _name(self, value: str) -> str:
        return "".join(
            run if not run[0].isalpha() or run.lower() in _NO_NAME else self.word(run) for run in _RUNS.findall(value))

    def _number(self, digits: str) -> str:
        return self._by_kind["number"].shaped(digits)

    def _id(self, value: str) -> str:
        """Of an id: words and numbers one by one; parts that mix both, as a whole."""
        if _HEX.fullmatch(value):
            return self._hexadecimal(value)
        return "".join(each if index % 2 else self._part(each) for index, each in enumerate(_PARTS.split(value)))

    def _part(self, part: str) -> str:
        if not part or part.lower() in GENERIC:
            return part
        found = re.fullmatch(r"([^\W\d_]*)(\d*)", part)
        if found and (not found[2] or not found[1] or len(found[1]) > 2):
            head = found[1] and (found[1] if found[1].lower() in GENERIC else self.word(found[1]))
            return head + (found[2] and self._number(found[2]))
        if part.isascii() and part.isupper():   # one id, however loud
            return self._by_kind["id"].shaped(part.lower()).upper()
        return self._by_kind["id"].shaped(part)

    def _hexadecimal(self, value: str) -> str:
        plain = value.replace("-", "")
        lower = plain.lower()
        made = f"{self._by_kind['id'].number(int(lower, 16), 16 ** len(lower), 'hex'):0{len(lower)}x}"
        made = made if plain == lower else made.upper()
        signs = iter(made)
        return "".join(sign if sign == "-" else next(signs) for sign in value)

    def _email(self, value: str) -> str:
        local, _, domain = value.rpartition("@")
        labels = domain.split(".")
        held = next((index for index, label in enumerate(labels) if label.lower() in _PUBLIC), None)
        if held is None and len(labels) > 1:
            labels[:-1] = [self.word(label) if label.isalpha() else self._id(label) for label in labels[:-1]]
        name, plus, tag = local.partition("+")
        return f"{self._id(name)}{plus}{self._id(tag)}@{'.'.join(labels)}"

    def _phone(self, value: str) -> str:
        """The last seven digits: a number that is written with and without its country stays one number."""
        places = [index for index, sign in enumerate(value) if sign.isdigit()][-7:]
        made = self._by_kind["phone"].number(
            int("".join(value[at] for at in places) or "0"), 10 ** len(places), str(len(places)))
        signs = list(value)
        for at, digit in zip(places, f"{made:0{len(places)}}", strict=False):
            signs[at] = digit
        return "".join(signs)

    def _address(self, value: str) -> str:
        """Of a street and number every word; of what stands after a comma (a city, a state) the numbers alone."""
        first, comma, rest = value.partition(",")
        made = "".join(
            run if run.lower() in STREETS or not run.strip() else self._number(run) if run.isdigit()
            else self.word(run) if run[0].isalpha() else run for run in _RUNS.findall(first))
        return made + comma + "".join(
            self._zip(run) if run.isdigit() and len(run) == 5 else self._number(run) if run.isdigit() else run
            for run in _RUNS.findall(rest))

    def _zip(self, value: str) -> str:
        made = self._by_kind["zip"]
        if value.isdigit():
            return f"{made.number(int(value), 10 ** len(value), str(len(value))):0{len(value)}}"
        head, dash, tail = value.partition("-")
        return self._zip(head) + dash + self._zip(tail) if dash and head.isdigit() and tail.isdigit() else made.shaped(value)

    def _ending(self, value: str) -> str:
        if not value.isdigit():
            return self._by_kind["text"].shaped(value)
        n = len(value)
        return f"{self._by_kind['ending'].number(int(value), 10 ** n, str(n)):0{n}}"

    def _card(self, value: str) -> str:
        """First digit and separators stay; the last four are those of `ending`; check digits that hold, hold."""
        digits = "".join(sign for sign in value if sign.isdigit())
        if not 13 <= len(digits) <= 19:
            return self._account(value)
        last = self._ending(digits[-4:])
        n = len(digits) - 6
        middle = f"{self._by_kind['card'].number(int(digits[2:-4]), 10 ** n, str(n)):0{n}}"
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
        groups = value.split(":")
        return ":".join(
            [groups[0], *(f"{self._by_kind['ip'].number(int(each, 16), 1 << 16, str(at)):x}" if each and _is_hex(each) else each
                          for at, each in enumerate(groups[1:]))]) if len(groups) > 2 else self._id(value)


def _is_hex(text: str) -> bool:
    return len(text) <= 4 and all(sign in "0123456789abcdefABCDEF" for sign in text)
