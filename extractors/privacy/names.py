"""Names of people: whether a word that may be something else is one where it stands, and what stands in its place.

In: a text and a place in it, or a chunk (signs without spaces) on its own. Out: whether it is a name; the chunk with its names
replaced. Names are told by whom the logs know (`People`) and by lists of given names. Does not see: who is known to nobody.
"""

from __future__ import annotations

import re
from itertools import pairwise

from extractors.privacy.kept import STREETS, TITLES, is_given, is_listed
from extractors.privacy.letters import lowered
from extractors.privacy.people import People
from extractors.privacy.pseudonyms import Pseudonyms
from extractors.privacy.spelled import camel

_LETTERS = re.compile(r"[^\W\d_]+")
_OPENED = re.compile(r"""["'(,\[{=:/>]""")
_ENDED = re.compile(rf"(?is)^.*\b(?!(?:{'|'.join(sorted(TITLES))})\.)\w\w+[.!?] +$")
"""Sentences that ended before."""
_AFTER_NAME = re.compile(r"([._-]?)(\d+)")
_BEFORE = frozenset((*TITLES, "name", "named", "dear", "hi", "hello", "hey", "i'm", "called"))


class Names:
    """What is known of names, and what stands in their place."""

    def __init__(self, people: People, pseudonyms: Pseudonyms) -> None:
        self._people, self._pseudonyms = people, pseudonyms
        self._initials = {(first[0], last) for first, last in people.full}

    def stands_at(self, text: str, start: int, end: int) -> bool:
        """Whether what is a word too is a name here: beside a name, or after a title; in lower case as a known name alone."""
        if not text[start].isupper():
            return self._is_pair(text, start, end)
        before = _ENDED.sub("", text[max(0, start - 40):start]).rstrip(" .").rsplit(None, 1)
        last = _OPENED.split(before[-1].rstrip("\"',"))[-1].lower() if before and text[start - 1:start] == " " else ""
        if last in _BEFORE or self._is_a_name(last):
            return True
        if (last[:1], text[start:end].lower()) in self._initials and len(last) == 1 and text[start - 2] == ".":
            return True
        after = re.match(r" ([^\W\d_]+)", text[end:end + 30])
        return after is not None and after[1][0].isupper() and self._is_a_name(lowered(after[1]))

    def _is_pair(self, text: str, start: int, end: int) -> bool:
        """Whether a word and the one before or behind it are somebody's name."""
        word = text[start:end].lower().removesuffix("'s").removesuffix("’s")
        before = re.search(r"([^\W\d_]+),? $", text[max(0, start - 40):start])
        after = re.match(r",? ([^\W\d_]+)", text[end:end + 40])
        full = self._people.full
        return any(each and ((word, lowered(each[1])) in full or (lowered(each[1]), word) in full) for each in (before, after))

    def _is_a_name(self, word: str) -> bool:
        return word in self._people.words

    def _together(self, chunk: str) -> tuple[str, tuple[str, ...], bool] | None:
        """Names that are written together, with their capitals."""
        parts, people = camel(chunk), self._people
        lower = [lowered(part) for part in parts]
        beside = {at for at, pair in enumerate(pairwise(lower)) if pair in people.full or pair[::-1] in people.full or (
            people.words.issuperset(pair) and not people.doubtful.issuperset(pair))}
        named = {each for at in beside for each in (at, at + 1)}
        if not named:
            return None
        made = [self._pseudonyms.word(part) if at in named else part for at, part in enumerate(parts)]
        return "".join(made), tuple(lower[at] for at in sorted(named)), False

    def replaced(self, chunk: str) -> tuple[str | None, tuple[str, ...], bool]:
        """The chunk with its names replaced, these, and whether it is a name beside another one alone."""
        people = self._people
        parts = _LETTERS.findall(chunk)
        lower = [lowered(part) for part in parts]
        mixed = parts == [chunk] and chunk not in people.words and not chunk.islower() and not chunk.isupper()
        if mixed and (together := self._together(chunk)):
            return together
        sure = [word for word in lower if word in people.words and word not in people.doubtful]
        joined = len(parts) > 1 and re.search(r"[._]", chunk) is not None
        if joined and is_given(lower[0]) and is_listed(lower[1]) and len(parts) == 2:
            return self._pseudonyms.of("id", chunk), tuple(lower), False
        if not sure:
            lone = len(parts) == 1 or (len(parts) == 2 and lower[1] == "s")
            if lone and lower[0] in people.doubtful and chunk.startswith(parts[0]) and not any(map(str.isdigit, chunk)):
                return self._pseudonyms.word(parts[0]) + chunk[len(parts[0]):], (lower[0],), True
            return None, (), False
        if joined and len(parts) == 2 and all(word in people.words or is_listed(word) for word in lower):
            return self._pseudonyms.of("id", chunk), tuple(lower), False
        return self._partly(chunk, set(sure)), tuple(sure), False

    def _partly(self, chunk: str, names: set[str]) -> str:
        """The chunk with these names replaced, and numbers that follow one at once."""
        pieces: list[str] = []
        done = 0
        for found in _LETTERS.finditer(chunk):
            if lowered(found[0]) not in names or found.start() < done or lowered(found[0]) in STREETS:
                continue
            pieces += [chunk[done:found.start()], self._pseudonyms.word(found[0])]
            done = found.end()
            if number := _AFTER_NAME.match(chunk, done):
                pieces += [number[1], self._pseudonyms.of("id", number[2])]
                done = number.end()
        return "".join(pieces) + chunk[done:]
