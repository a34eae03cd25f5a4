"""What is known of people: values that identify them, words of their names, and fields that hold them.

In: what was found (`Finding`), the policy, and who was known before. Out: the dictionary that is carried into every text. What
is a name and something else too (a colour, a month, a value of some other field) is a name in its place alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import date

from extractors.privacy.dates import day_of, spellings
from extractors.privacy.fields import kind_of_field, kind_of_identity, kind_of_value
from extractors.privacy.finding import Finding
from extractors.privacy.kept import STREETS, TITLES, is_given, is_household, is_listed, is_plain
from extractors.privacy.letters import lowered
from extractors.privacy.policy import Policy
from extractors.privacy.records import OWN, nouns_of

_WORD = re.compile(r"[^\W\d_]+")
_BEFORE = re.compile(r"^[\W_]+")
_SHORT = 6
"""Digits of a number from which on it says by itself whose it is."""
_NATIONAL = 10
"""Digits of a telephone number without its country."""
_SOME = 3
"""Names from which on a field holds names."""
_GROWN = date(2010, 1, 1)
"""A day of birth from then on is carried into no text: it may be any day of which the logs speak."""
_FEW = 3
"""Different texts in which a misspelt name may stand."""
Known = tuple[str, str]
"""Kind, value; of the kind `word`, a word of a name; of `own`, an id too short to be looked for."""


class People:
    """The dictionary of a corpus."""

    def __init__(self, finding: Finding, policy: Policy, before: Iterable[Known] = ()) -> None:
        self.policy = policy
        self.fields: dict[str, str] = {}
        """Identifying field -> kind."""
        self.values: dict[str, str] = {}
        """Value that is carried into every text, in lower case -> kind."""
        self.words: set[str] = set()
        """Words of names."""
        self.full: set[tuple[str, str]] = set()
        """Names of two words that are somebody's, as they stand in a field, after a cue or in an id."""
        self.short: set[str] = set()
        """Ids of persons that are anybody's where no field or path says so."""
        self.tools = {*finding.tools, *(value.lower() for value in policy.keep.values)}
        self.rare = {word for word, n in finding.words.items() if n <= _FEW}
        self.known: set[Known] = set()
        """All of it, to be remembered."""
        finding.finish()
        others = self._read_fields(finding) | {noun.lower() for noun, _ in finding.segments}
        self.nouns = nouns_of(field for field, kind in self.fields.items() if kind == "id")
        """What persons are called where their ids stand."""
        for noun, value in sorted(finding.segments):
            if noun.lower() in self.nouns:
                self._take("id", value)
        for name in sorted(finding.names):
            self._take_name(name)
        for identity in sorted(finding.identities):
            if found := kind_of_identity(identity):
                self._take(found, identity)
        for kind, value in sorted(before):
            if kind in ("word", OWN):
                (self.words if kind == "word" else self.short).add(value)
            elif kind == "full":
                self.full.add(_pair(value))
            else:
                self._take(kind, value)
        self._leave_words(others)
        if self.short and "id" not in policy.fields:
            self.fields.setdefault("id", OWN)
        self.known.update(("word", word) for word in self.words)
        self.known.update(("full", " ".join(pair)) for pair in self.full)
        self.doubtful = {word for word in self.words if is_household(word) or word in STREETS
                         or (word in others and not is_given(word))}
        """Words of names that are something else too."""

    def _read_fields(self, finding: Finding) -> set[str]:
        """Take in values of identifying fields; gives words that are a value of others."""
        values: dict[str, list[str]] = defaultdict(list)
        for field, value in sorted(finding.pairs):
            values[field].append(value)
        others: set[str] = set()
        kinds = {field: self.policy.fields.get(field) or kind_of_field(field) or _looks(values[field]) for field in values}
        for field in sorted(values, key=lambda each: (kinds[each] in (None, "people"), each)):   # others tell what these are
            kind = kinds[field]
            if kind in (None, "people"):
                kind = self._names_of_known(values[field]) or kind
            if kind is None or kind == "keep":
                if field != "value":   # of which a field beside it says what it is
                    others.update(value.lower() for value in values[field] if value.isalpha())
                continue
            self.fields[field.lower()] = kind
            for value in values[field]:
                if (found := kind_of_value(kind, value)) and value not in self.policy.keep.values:
                    self._take(found, value)
                elif kind == "people" and value.isalpha():
                    others.add(value.lower())
        return others

    def _take(self, kind: str, value: str) -> None:
        lower = _BEFORE.sub("", lowered(value.strip()))
        if kind == "name":
            self._take_name(tuple(_WORD.findall(lower)))
            return
        if kind == "date" and (day := day_of(value)) and day < _GROWN:
            self.values.update(dict.fromkeys(spellings(day), kind))
            self.known.add((kind, value.strip()))
        n_digits = sum(sign.isdigit() for sign in lower)
        n_letters = sum(sign.isalpha() for sign in lower)
        if kind in ("zip", "ending", "date", "secret"):
            return   # their places are known by the field, or by a cue
        if (n_letters == 0 and n_digits < _SHORT) or len(lower) < 4:
            if kind == "id" and n_digits:
                self.short.add(lower)
                self.known.add((OWN, lower))
            return
        if (lower.isalpha() and (is_plain(lower) or is_household(lower))) or lower in self.tools:
            return
        self.values.setdefault(lower, kind)
        self.known.add((kind, value.strip()))
        if kind in ("email", "id"):
            self._take_spelt(lower)
        if kind == "phone":
            digits = "".join(sign for sign in lower if sign.isdigit())
            for each in {digits, digits[-_NATIONAL:]} if len(digits) >= _NATIONAL else ():
                self.values.setdefault(each, kind)

    def _leave_words(self, others: set[str]) -> None:
        """Names of accounts that are a word of the logs as well (a table, a kind) stand for somebody in their fields alone."""
        for value in [each for each, kind in self.values.items() if kind == "id" and each in others and not is_listed(each)]:
            del self.values[value]

    def _names_of_known(self, values: list[str]) -> str | None:
        """Kind of a field whose name says little, and that holds names of people who are known."""
        named = [words for value in values if (words := set(_WORD.findall(lowered(value)))) and words <= self.words]
        sure = sum(not any(map(is_household, words)) for words in named)
        return "name" if sure >= _SOME and 5 * len(named) >= 4 * len(values) else None

    def _take_spelt(self, value: str) -> None:
        """What stands before the @ of an address, as a name of its user; and the name that it, or an id, is made of."""
        local = value.partition("@")[0].partition("+")[0]
        if "@" in value and len(local) >= _SHORT and any(map(str.isdigit, local)) and not local.isdigit():
            self.values.setdefault(local, "id")
        words = _WORD.findall(local)
        if len(words) == 2 and all(is_given(word) or is_listed(word) or is_household(word) for word in words):
            self.full.add((words[0], words[1]))

    def _take_name(self, words: tuple[str, ...]) -> None:
        if len(words) == 2:
            self.full.add((words[0], words[1]))
        self.words.update(
            part for word in words for part in _WORD.findall(word)
            if len(part) > 1 and not is_plain(part) and part not in TITLES and part not in self.tools)


def _pair(name: str) -> tuple[str, str]:
    first, _, last = name.partition(" ")
    return first, last


def _looks(values: list[str]) -> str | None:
    """Kind of a field by the look of its values: addresses of e-mail."""
    few = values[:200]
    n_emails = sum("@" in value and kind_of_value("people", value) == "email" for value in few)
    return "email" if n_emails and 2 * n_emails > len(few) else None
