"""How a person is recognized in texts: by values that identify them, as a whole word, however a log spells it.

A value of letters and digits together, of six digits or more, or with an `@` is searched for as a word anywhere; any other (a
plain word, a short number) only as the whole value of a field whose name is about a person, since as a word it identifies
nobody. Case does not matter; the spellings of JSON and URLs are searched for as well. Does not see: misspellings, pictures, a
value that is spread over several fields.

`known_of` finds other values of the person that are nobody else's: e-mail addresses and telephone numbers of the documents that
are stored under the identifier, and their name with the numbers of the same document (a post code, a birthday): a record with
that name and one of these numbers is taken for theirs. A name alone is not: other people have it too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import quote

from extractors.privacy.fields import kind_of_field
from warehouse.store import Store

_WORD_BEGINS = r"(?:(?<![^\W_])|(?<=\\[nrtbf])|(?<=\\u[0-9a-f]{4}))"
_WORD_ENDS = r"(?![^\W_])"
_PERSON = "user|customer|client|account|member|person|patient|employee|owner|author|e-?mail|login|identity|subject"
_FIELD_BEGINS = rf'\\*"[^"\\]*(?:{_PERSON})[^"\\]*\\*"\s*:\s*(?:\\*")?'
_FIELD_ENDS = r'(?=\\*"|\s*[,}\]])'
_LEAST_DIGITS, _LEAST = 6, 4
_MAIL = re.compile(r"[^\s\"'<>@,;]+@[^\s\"'<>@,;]+\.[a-z]{2,}", re.IGNORECASE)
_PHONE = re.compile(r"\+?\(?\d[\d ().-]{6,}\d")
_NAMED = re.compile(r"name", re.IGNORECASE)
_NUMBER = re.compile(r"\d{4,}(?:-\d+)*")
_DOCUMENTS = """
    select distinct value from mart.facts where lower(key) in (select unnest($keys))
    union select coalesce(after, before) from core.row_changes
    where lower(json_extract_string(coalesce(key, after, before), '$.*')[1]) in (select unnest($keys))
"""
"""Whose a changed row is, its key tells, or its first column if no key is logged."""
_ELSEWHERE = """
    select 1 from mart.facts where contains(value, $value) and not list_has_any([lower(key)], $keys)
    and not exists (select 1 from unnest($keys) as known(each) where contains(lower(value), each))
    and entity_class in (select entity_class from mart.facts where lower(key) in (select unnest($keys))) limit 1
"""


def is_word(value: str) -> bool:
    """Whether the value identifies a person wherever it is."""
    letters, digits = sum(map(str.isalpha, value)), sum(map(str.isdigit, value))
    return "@" in value or digits >= _LEAST_DIGITS or (letters > 0 and digits > 0 and len(value) >= _LEAST)


def spellings(value: str) -> list[str]:
    """Return the spellings of a value in lower case: plain, in JSON, and in URLs."""
    forms = (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe=""))
    return list(dict.fromkeys(form.lower() for form in forms))


def shape_of(spelling: str) -> str:
    """Return the shape of a spelling as a regular expression: numbers of letters and of digits, all else as it is."""
    parts = re.findall(r"[^\W\d_]+|\d+|[\W_]", spelling)
    return "".join(rf"[^\W\d_]{{{len(part)}}}" if part[0].isalpha() else rf"\d{{{len(part)}}}" if part[0].isdigit()
                   else re.escape(part) for part in parts)


def pattern(core: str, is_word: bool) -> re.Pattern[str]:
    """Return a pattern that finds `core` in lower-case text as a word, or as a field of a person; overlapping matches too."""
    begins, ends = (_WORD_BEGINS, _WORD_ENDS) if is_word else (_FIELD_BEGINS, _FIELD_ENDS)
    return re.compile(rf"{begins}(?=({core}){ends})")


class Identifiers:
    """The values that identify one person."""

    def __init__(self, values: Iterable[str], accounts: Iterable[str] = ()) -> None:
        """`accounts`: ids of the person's accounts in a company's apps, words wherever they have a letter."""
        self._accounts = {value.strip() for value in accounts if any(map(str.isalpha, value))}
        self.values = list(dict.fromkeys(value.strip() for value in (*values, *accounts) if value.strip()))

    def is_word(self, value: str) -> bool:
        """Whether one of the values identifies the person wherever it is."""
        return value in self._accounts or is_word(value)

    @cached_property
    def needles(self) -> list[str]:
        """All spellings: a text without one of them needs no closer check."""
        return list(dict.fromkeys(each for value in self.values for each in spellings(value)))

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        patterns = []
        for words in (True, False):
            cores = [re.escape(each) for value in self.values if self.is_word(value) is words for each in spellings(value)]
            if cores:
                patterns.append(pattern("|".join(sorted(cores, key=len, reverse=True)), words))
        return patterns

    def within(self, text: str | None) -> bool:
        """Whether the text names the person."""
        if not text:
            return False
        lowered = text.lower()
        return any(each in lowered for each in self.needles) and any(each.search(lowered) for each in self._patterns)

    def within_bytes(self, content: bytes) -> bool:
        """Whether a file's bytes name the person."""
        lowered = content.lower()
        if not any(each.encode() in lowered for each in self.needles) and all(each.isascii() for each in self.needles):
            return False
        return self.within(content.decode("utf-8", "replace"))

    def is_called(self, identity: str | None) -> bool:
        """Whether this identity of a log is the person."""
        return identity is not None and identity.strip().lower() in self.needles


class NameMatch(NamedTuple):
    """Values in the person's own documents."""

    values: list[str]
    """E-mail addresses and telephone numbers, sorted."""
    names: list[str]
    """Words of their name, in lower case; all of them are needed."""
    numbers: list[str]
    """Numbers that go with the name."""

    def speaks(self, text: str) -> bool:
        """Whether a text has the whole name and one of the numbers."""
        words = set(re.findall(r"[^\W_]+", text.lower()))
        return len(self.names) > 1 and words.issuperset(self.names) and any(
            re.search(rf"(?<!\w){re.escape(number)}(?!\w)", text) for number in self.numbers)


def known_of(store: Store, forms: list[str]) -> NameMatch:
    """Read the documents that are stored under one of the forms of the person's identifier."""
    keys = [form.lower() for form in forms]
    rows = store.read(_DOCUMENTS, keys=keys)
    values, names, numbers = set[str](), dict[str, None](), dict[str, None]()
    for text in rows["value"].drop_nulls().sort():
        try:
            document = json.loads(text)
        except ValueError:
            continue
        for path, leaf in _leaves(document):  # a telephone number by its field or sign: a date or price has as many digits
            is_phone = kind_of_field(path.rpartition("/")[2]) == "phone" or leaf.startswith(("+", "("))
            if _MAIL.fullmatch(leaf) or (is_phone and _PHONE.fullmatch(leaf) and sum(map(str.isdigit, leaf)) >= 8):
                values.add(leaf)
            elif _NAMED.search(path) and path.count("/") <= 2 and re.fullmatch(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*", leaf):
                names |= dict.fromkeys(re.findall(r"[^\W_]+", leaf.lower()))
            elif _NUMBER.fullmatch(leaf):
                numbers[leaf] = None
    shared = {value for value in values if store.read(_ELSEWHERE, keys=keys, value=value).height}  # a family's, an office's
    return NameMatch(sorted(values - shared), list(names), list(numbers))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, text) of a document, without the items of its lists: those may be about other people."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{path}/{key}")
    elif isinstance(value, str):
        yield path, value
