"""How a person is recognized in texts: by values that stand for them, as a whole word, however a log spells it.

A value of letters and digits together, of six digits or more, or with an `@` is looked for as a word anywhere; any other (a
plain word, a short number) only where it is the whole value of a field whose name speaks of a person, for as a word it says
nothing. Upper and lower case are the same; JSON's and URLs' ways to write a value are looked for as well. Does not see:
misspellings, pictures, a value that is spread over several fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cached_property
from urllib.parse import quote

_WORD_BEGINS = r"(?:(?<![^\W_])|(?<=\\[nrtbf])|(?<=\\u[0-9a-f]{4}))"
_WORD_ENDS = r"(?![^\W_])"
_PERSON = "user|customer|client|account|member|person|patient|employee|owner|author|e-?mail|login|identity|subject"
_FIELD_BEGINS = rf'\\*"[^"\\]*(?:{_PERSON})[^"\\]*\\*"\s*:\s*(?:\\*")?'
_FIELD_ENDS = r'(?=\\*"|\s*[,}\]])'
_LEAST_DIGITS, _LEAST = 6, 4


def is_word(value: str) -> bool:
    """Does the value say something wherever it stands?"""
    letters, digits = sum(map(str.isalpha, value)), sum(map(str.isdigit, value))
    return "@" in value or digits >= _LEAST_DIGITS or (letters > 0 and digits > 0 and len(value) >= _LEAST)


def spellings(value: str) -> list[str]:
    """The value in lower case: plain, as JSON and as URLs write it."""
    forms = (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe=""))
    return list(dict.fromkeys(form.lower() for form in forms))


def looks(spelling: str) -> str:
    """What the spelling looks like, as a regular expression: so many letters, so many digits, all else as it is."""
    parts = re.findall(r"[^\W\d_]+|\d+|[\W_]", spelling)
    return "".join(rf"[^\W\d_]{{{len(part)}}}" if part[0].isalpha() else rf"\d{{{len(part)}}}" if part[0].isdigit()
                   else re.escape(part) for part in parts)


def pattern(core: str, is_word: bool) -> re.Pattern[str]:
    """Where in a text of lower case something like `core` stands as a word, or as a field of a person; overlapping ones too."""
    begins, ends = (_WORD_BEGINS, _WORD_ENDS) if is_word else (_FIELD_BEGINS, _FIELD_ENDS)
    return re.compile(rf"{begins}(?=({core}){ends})")


class Identifiers:
    """The values that stand for one person."""

    def __init__(self, values: Iterable[str]) -> None:
        self.values = list(dict.fromkeys(value.strip() for value in values if value.strip()))

    @cached_property
    def needles(self) -> list[str]:
        """All spellings: a text without one of them needs no closer look."""
        return list(dict.fromkeys(each for value in self.values for each in spellings(value)))

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        found = []
        for words in (True, False):
            cores = [re.escape(each) for value in self.values if is_word(value) is words for each in spellings(value)]
            if cores:
                found.append(pattern("|".join(sorted(cores, key=len, reverse=True)), words))
        return found

    def within(self, text: str | None) -> bool:
        """Does the text speak of the person?"""
        if not text:
            return False
        lowered = text.lower()
        return any(each in lowered for each in self.needles) and any(each.search(lowered) for each in self._patterns)

    def within_bytes(self, content: bytes) -> bool:
        """The same of a file's bytes."""
        lowered = content.lower()
        if not any(each.encode() in lowered for each in self.needles) and all(each.isascii() for each in self.needles):
            return False
        return self.within(content.decode("utf-8", "replace"))
