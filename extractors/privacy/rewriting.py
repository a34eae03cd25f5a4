"""Rewrite texts with pseudonyms, in one pass over their chunks, the longest first.

A chunk (characters without spaces, with dots, underscores, hyphens or an @ between) is looked up once for all texts; only one
that begins something is examined where it stands. Fields take precedence over forms, forms over words. A name that is also
another word is replaced next to another name or after a title. Does not see people whom no log and no list names."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from extractors.privacy import fields
from extractors.privacy.letters import (
    LETTERS,
    MARKS,
    STREETS,
    TITLES,
    camel,
    encoded,
    has_unspaced,
    is_caseless,
    is_given,
    is_listed,
    lowered,
    runs,
    words_in,
)
from extractors.privacy.name_lists import places
from extractors.privacy.people import People, PersonFact
from extractors.privacy.pseudonyms import Pseudonyms

_WORD = rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*"
_CHUNK = re.compile(rf"\\[nrtbf\"\\/]|(?:(?:%[0-9A-Fa-f]{{2}})+[^\W_]*|{_WORD})(?:[._@+%'’-]+{_WORD})*")
_PLAIN = re.compile(r"[A-Za-z0-9]+(?:[._@+'-]+[A-Za-z0-9]+)*")
"""The same, of a text in ASCII without \\ and %."""
_SEP = re.compile(r"""\\*["']?\s*(?::|=>?)[ \t]*(\\*["'])?(\[)?""")
_BARE = re.compile(r"[^\n,;&}\])\"'<>]{1,200}?(?=\s+[\w.-]+\\*[\"']?[=:]|[\n,;&}\])\"'<>]|\Z)")
_TIGHT = re.compile(r"[^\s,;&}\])\"'<>]{1,200}")
_TAG = re.compile(r">([^<>\n]{1,200})</")
_LIST = re.compile(r"""\[[^\[\]{}]*\]""")
_ITEM = re.compile(r"""(["'])((?:(?!\1).){1,200})\1""")
_LETTERS = re.compile(LETTERS)
_GOES_ON, _OPENS = frozenset(" -.)"), frozenset("+(")
_LEAST = 5
"""Signs of a known value, more of which a part of a chunk has."""
_LONGEST = 200
"""Signs of a field's value."""
_REMEMBERED = 1 << 24
"""Signs of texts of which is kept in mind what became of them: other files tell the same again."""


class _Chunk(NamedTuple):
    """What is to be done where a chunk stands."""

    made: str | None
    """Its replacement wherever it stands."""
    names: tuple[str, ...] = ()
    """Words of names in it."""
    field: str | None = None
    """Kind of the values that follow it."""
    begins: tuple[tuple[str, str], ...] = ()
    """Values that begin with it, the longest first, with their kinds."""
    cue: str | None = None
    number: bool = False
    account: bool = False
    doubtful: bool = False
    """It is a name beside another one."""
    noun: bool = False
    """It is what persons are called before their ids in paths."""
    goes_on: tuple[tuple[int, str], ...] = ()
    """Where names begin in it that go on behind a space, and how."""
    lone: bool = False
    """It is a number, and nothing where no sign opens it and none goes on from it."""


class _FieldValue(NamedTuple):
    """What stands in the place of a field's value."""

    made: str
    names: frozenset[str]
    zips: frozenset[str]


class Carried(NamedTuple):
    """A text with pseudonyms."""

    text: str
    names: frozenset[str]
    zips: frozenset[str]


class _Met(NamedTuple):
    names: set[str]
    zips: set[str]
    ahead: dict[int, fields.TextSpan]
    """Where postal codes of addresses begin that are still to come."""


class Carrier:
    """The walk, with what it remembers of chunks."""

    def __init__(self, people: People, pseudonyms: Pseudonyms) -> None:
        self._people, self._pseudonyms, self._names = people, pseudonyms, NameRecogniser(people, pseudonyms)
        self.met: set[PersonFact] = set()
        """What was replaced for its form."""
        self._chunk = cache(self._entry_of)
        self._value = lru_cache(1 << 16)(self._valued)
        self._walked: dict[str, Carried] = {}
        self._n_walked = 0
        """Signs of these."""
        self._whole: dict[str, list[str]] = defaultdict(list)
        """Names in scripts that join words, the longest first, by their first two characters."""
        self._spaced: dict[str, list[str]] = defaultdict(list)
        """What follows the first words of such names behind a space."""
        for name in sorted(people.whole, key=lambda each: (-len(each), each)):
            first, space, rest = name.partition(" ")
            if space:
                self._spaced[first].append(space + rest)
            self._whole[name[:2]].append(name)
        self._begins: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for value, kind in people.values.items():
            match = _CHUNK.match(value)
            if match and match[0] != value:
                self._begins[match[0]].append((value, kind))
        for each in self._begins.values():
            each.sort(key=lambda pair: (-len(pair[0]), pair))

    def cached(self, text: str) -> Carried | None:
        return self._walked.get(text)

    def carry(self, text: str, safe: str) -> Carried:
        """Return a text (`safe`: without its secrets) with pseudonyms."""
        if self._n_walked > _REMEMBERED:
            self._walked, self._n_walked = {}, 0
        self._n_walked += len(text)
        made = self._walked[text] = self._carry(safe)
        return made

    def _carry(self, text: str) -> Carried:
        if not text.isascii() and (plain := unicodedata.normalize("NFC", text)) != text:
            made = self._carry(plain)
            return made if made.text != plain else made._replace(text=text)
        if "\\u" not in text:
            return self._walk(text)
        escapes = {chr(int(match[1], 16)): match[0] for match in _ESCAPED.finditer(text)}
        plain = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
        made = self._walk(plain)
        if made.text == plain:
            return made._replace(text=text)
        is_all = text.isascii()   # escaped is then every letter, those of pseudonyms too
        return made._replace(text="".join(
            each if each < "\x80" else escapes[each] if each in escapes and each not in text
            else json.dumps(each)[1:-1] if is_all else each for each in made.text))

    def _walk(self, text: str) -> Carried:
        pieces: list[str] = []
        met = _Met(set(), set(), {})
        done = 0
        chunk = _PLAIN if text.isascii() and "\\" not in text and "%" not in text else _CHUNK
        for match in chunk.finditer(text):
            entry = self._chunk(match[0])
            if entry is None:
                continue
            at, end = match.span()
            if at < done or (entry.lone and at not in met.ahead
                             and text[end:end + 1] not in _GOES_ON and text[at - 1:at] not in _OPENS):
                continue   # a lone number: no sign before it opens it, and none behind it goes on
            for start, end, made in self._spans(text, match, entry, met):
                if start >= done:
                    pieces += text[done:start], made
                    done = end
        return Carried("".join(pieces) + text[done:] if pieces else text, frozenset(met.names), frozenset(met.zips))

    def _spans(self, text: str, match: re.Match[str], entry: _Chunk, met: _Met) -> list[tuple[int, int, str]]:
        start, end = match.span()
        if entry.field and (spans := self._field(text, start, end, entry.field, met)):
            return spans
        segment = fields.segment_after(text, start, end) if entry.noun else None
        if segment and (person := self._value("id", text[segment[0]:segment[1]])):   # an id in a path
            return [(*segment, person.made)]
        for value, kind in entry.begins:
            after = start + len(value)
            if lowered(text[start:after]) == value and not text[after:after + 1].isalnum():
                self._look_ahead(text, after, kind, met)
                return [(start, after, self._pseudonyms.of(kind, text[start:after]))]
        for at, rest in entry.goes_on:
            if text.startswith(rest, end):
                return [(start + at, end + len(rest), self._pseudonyms.of("name", text[start + at:end + len(rest)]))]
        place = met.ahead.get(start) or _by_form(text, start, end, entry)
        if place:
            value = text[place[0]:place[1]]
            if place[2] == "zip":
                met.zips.add(value)
            self.met.add((place[2], value))
            self._look_ahead(text, place[1], place[2], met)
            return [(place[0], place[1], self._pseudonyms.of(place[2], value))]
        if entry.doubtful and not self._names.stands_at(text, start, end):
            return []
        if entry.names and is_of_a_place(text, start, end, self._people.full):
            return []
        met.names.update(entry.names)
        return [(start, end, entry.made)] if entry.made is not None else []

    def _look_ahead(self, text: str, end: int, kind: str, met: _Met) -> None:
        """Where the postal code of an address whose street ends there begins."""
        if kind == "address" and (place := fields.zip_after(text, end)):
            met.ahead[place[0]] = place

    def _field(self, text: str, start: int, end: int, kind: str, met: _Met) -> list[tuple[int, int, str]]:
        sep = _SEP.match(text, end)
        if tag := _TAG.match(text, end) if text[start - 1:start] == "<" else None:
            items = [(tag.start(1), tag[1])]
        elif sep is None:
            return []
        elif sep[2]:
            match = _LIST.match(text, sep.end() - 1)
            items = [] if match is None else [(item.start(2), item[2]) for item in _ITEM.finditer(text, *match.span())]
        elif sep[1]:
            begin = sep.end()
            stop = text.find(sep[1], begin)
            items = [(begin, text[begin:stop])] if stop >= 0 else []
        else:
            match = (_BARE if kind in ("name", "people", "address", "phone", "card") else _TIGHT).match(text, sep.end())
            items = [(sep.end(), match[0].rstrip())] if match else []
        spans = []
        if kind == fields.OWN:
            kind = "id"
            items = [(start, value) for start, value in items
                     if value.lower() in self._people.short and fields.is_somebodys(text, start, self._people.nouns)]
        for start, value in items:
            if replacement := self._value(kind, value) if len(value) <= _LONGEST else None:
                spans.append((start, start + len(value), replacement.made))
                met.names.update(replacement.names)
                met.zips.update(replacement.zips)
        return spans

    def _valued(self, kind: str, value: str) -> _FieldValue | None:
        own_kind = fields.kind_of_value(kind, value)
        if own_kind is None or value.lower() in self._people.tools:
            return None
        words = frozenset(lowered(word) for word in _LETTERS.findall(value)) if own_kind == "name" else frozenset[str]()
        if kind == "people" and own_kind == "name" and not words & self._people.words:
            return None
        made = self._pseudonyms.of(self._people.values.get(lowered(value), own_kind), value)
        return _FieldValue(made, words, frozenset({value} if own_kind == "zip" else ()))

    def _entry_of(self, chunk: str) -> _Chunk | None:
        if chunk[0] == "\\":
            return None
        lower = lowered(chunk)
        if lower in self._people.tools:
            return None
        field = self._people.fields.get(lower)
        begins = tuple(self._begins.get(lower, ()))
        if kind := self._people.values.get(lower):
            return _Chunk(self._pseudonyms.of(kind, chunk), tuple(_LETTERS.findall(lower)), field, begins)
        if decoded := encoded(chunk):
            plain = self._walk(decoded[0])
            return (
                None if plain.text == decoded[0] else _Chunk(decoded[1](plain.text), tuple(sorted(plain.names)), field, begins))
        if "@" in chunk and (match := fields.EMAIL.search(chunk)):
            self.met.add(("email", match[0]))
            made = chunk[:match.start()] + self._pseudonyms.of("email", match[0]) + chunk[match.end():]
            return _Chunk(made, (), field, begins)
        if any(map(str.isdigit, chunk)) and (made_of := self._with_known(chunk, lower)) is not None:
            return made_of
        cue = lower if lower in fields.CUES else None
        number = chunk[0].isdigit()
        is_account = len(chunk) > 3 and chunk[:2].isalpha() and chunk[:2].isupper() and chunk[2:4].isdigit()
        if has_unspaced(chunk):
            first = max(0, len(chunk) - max(map(len, self._spaced), default=0))
            goes_on = tuple((at, rest) for at in range(first, len(chunk)) for rest in self._spaced.get(chunk[at:], ()))
            if (joined := self._joined(chunk)) or goes_on:
                return _Chunk(joined, (), field, begins, goes_on=goes_on)
        new, names, doubtful = self._names.replaced(chunk)
        noun = lower in self._people.nouns
        if new is None and not (field or begins or cue or number or is_account or noun):
            return None
        is_alone = number and new is None and not (field or begins or cue)
        lone = is_alone and not (fields.is_long(chunk) and fields.number_at(chunk, 0))
        return _Chunk(new, names, field, begins, cue, number, is_account, doubtful, noun, lone=lone)

    def _joined(self, chunk: str) -> str | None:
        """Return a chunk in a script that joins words with the names in it replaced; None: it holds none."""
        pieces, at, done = list[str](), 0, 0
        while at < len(chunk) - 1:
            name = next((each for each in self._whole.get(chunk[at:at + 2], ()) if chunk.startswith(each, at)), None)
            if name:
                pieces += [chunk[done:at], self._pseudonyms.of(self._people.values.get(name, "name"), name)]
                done = at = at + len(name)
            else:
                at += 1
        return "".join(pieces) + chunk[done:] if pieces else None

    def _with_known(self, chunk: str, lower: str) -> _Chunk | None:
        """Return a chunk that holds a known value and more, as `ID_v2`."""
        for start, end in runs(chunk):
            if end - start > _LEAST and any(map(str.isdigit, chunk[start:end])) and (
                    kind := self._people.values.get(lower[start:end])):
                new = self._pseudonyms.of(kind, chunk[start:end])
                rest = [self._walk(each) for each in (chunk[:start], chunk[end:])]
                names = {*_LETTERS.findall(lower[start:end]), *rest[0].names, *rest[1].names}
                return _Chunk(rest[0].text + new + rest[1].text, tuple(sorted(names)))
        return None

def _by_form(text: str, start: int, end: int, entry: _Chunk) -> fields.TextSpan | None:
    if entry.cue:
        return fields.cue_at(text, entry.cue, end)
    if entry.number and (text[end:end + 1] in _GOES_ON or fields.is_long(text[start:end]) or text[start - 1:start] == "+"):
        return fields.number_at(text, start)
    return fields.account_at(text, start) if entry.account else None


_ESCAPED = re.compile(r"(?<!\\)\\u((?!00[0-9][0-9a-fA-F]|d[89abAB]|D[89abAB]|d[c-fC-F]|D[c-fC-F])[0-9a-fA-F]{4})")


_OPENED = re.compile(r"""["'(,\[{=:/>]""")
_ENDED = re.compile(rf"(?is)^.*\b(?!(?:{'|'.join(sorted(TITLES))})\.)\w\w+[.!?] +$")
"""Sentences that ended before."""
_LAST, _NEXT = re.compile(rf"({LETTERS}),? $"), re.compile(rf",? ({LETTERS})")
_AFTER_NAME = re.compile(r"([._-]?)(\d+)")
_BEFORE = frozenset((*TITLES, "name", "named", "dear", "hi", "hello", "hey", "i'm", "called"))


_PLACES_BEGIN = words_in("san santa santo sant sankt saint sainte st ste são fort port mount mt lake")


def is_of_a_place(text: str, start: int, end: int, full: set[tuple[str, str]]) -> bool:
    """Whether a word is the second of a place's name (San José), and not of a person's in `full`, though one is called so."""
    before = _LAST.search(text[max(0, start - 40):start])
    if before is None or before[0].endswith(", "):
        return False
    pair = lowered(before[1]), lowered(text[start:end])
    return pair not in full and (pair[0] in _PLACES_BEGIN or " ".join(pair) in places())


class NameRecogniser:
    """What is known of names, and what stands in their place."""

    def __init__(self, people: People, pseudonyms: Pseudonyms) -> None:
        self._people, self._pseudonyms = people, pseudonyms
        self._initials = {(first[0], last) for first, last in people.full}

    def stands_at(self, text: str, start: int, end: int) -> bool:
        """Whether what is a word too is a name here: beside a name, or after a title; in lower case as a known name alone."""
        if is_caseless(text[start]):
            return self._is_pair(text, start, end) or self._stands_beside_a_name(text, start, end)
        if not text[start].isupper():
            return self._is_pair(text, start, end)
        before = _ENDED.sub("", text[max(0, start - 40):start]).rstrip(" .").rsplit(None, 1)
        last = _OPENED.split(before[-1].rstrip("\"',"))[-1].lower() if before and text[start - 1:start] == " " else ""
        if last in _BEFORE or last in self._people.words:
            return True
        if (last[:1], text[start:end].lower()) in self._initials and len(last) == 1 and text[start - 2] == ".":
            return True
        after = re.match(rf" ({LETTERS})", text[end:end + 30])
        return after is not None and after[1][0].isupper() and lowered(after[1]) in self._people.words

    def _stands_beside_a_name(self, text: str, start: int, end: int) -> bool:
        """Whether a word of another name stands before or after it."""
        before, after = _LAST.search(text[max(0, start - 40):start]), _NEXT.match(text[end:end + 40])
        return any(each is not None and lowered(each[1]) in self._people.words for each in (before, after))

    def _is_pair(self, text: str, start: int, end: int) -> bool:
        word = text[start:end].lower().removesuffix("'s").removesuffix("’s")
        before, after = _LAST.search(text[max(0, start - 40):start]), _NEXT.match(text[end:end + 40])
        full = self._people.full
        return any(each and ((word, lowered(each[1])) in full or (lowered(each[1]), word) in full) for each in (before, after))

    def _together(self, chunk: str) -> tuple[str, tuple[str, ...], bool] | None:
        """Names that are written together, with their capitals."""
        parts, people = camel(chunk), self._people
        lower = [lowered(part) for part in parts]
        pair_starts = {at for at, pair in enumerate(pairwise(lower)) if pair in people.full or pair[::-1] in people.full or (
            people.words.issuperset(pair) and not people.doubtful.issuperset(pair))}
        named = {each for at in pair_starts for each in (at, at + 1)}
        if not named:
            return None
        made = [self._pseudonyms.word(part) if at in named else part for at, part in enumerate(parts)]
        return "".join(made), tuple(lower[at] for at in sorted(named)), False

    def replaced(self, chunk: str) -> tuple[str | None, tuple[str, ...], bool]:
        """Return the chunk with its names replaced, these, and whether it is a name beside another one alone."""
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
        names = set(sure)
        pieces: list[str] = []
        done = 0
        for match in _LETTERS.finditer(chunk):
            if lowered(match[0]) not in names or match.start() < done or lowered(match[0]) in STREETS:
                continue
            pieces += [chunk[done:match.start()], self._pseudonyms.word(match[0])]
            done = match.end()
            if number := _AFTER_NAME.match(chunk, done):
                pieces += [number[1], self._pseudonyms.of("id", number[2])]
                done = number.end()
        return ("".join(pieces) + chunk[done:]), tuple(sure), False
