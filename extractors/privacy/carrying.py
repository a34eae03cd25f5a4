"""What is known of people, carried into a text: in one walk over its chunks, the longest first.

In: a text. Out: the text with pseudonyms, and the words of names that were met. A chunk (signs without spaces, with dots,
underscores, hyphens or an @ between) is looked up once for all texts; only one that begins something is looked at where it
stands. Fields win over forms, forms over words. Names that are words too are replaced beside another name, or after a title.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from extractors.privacy.fields import EMAIL, kind_of_value
from extractors.privacy.letters import lowered
from extractors.privacy.names import Names
from extractors.privacy.patterns import CUES, Found, account_at, cue_at, is_long, number_at, zip_after
from extractors.privacy.people import Known, People
from extractors.privacy.pseudonyms import Pseudonyms
from extractors.privacy.records import OWN, is_somebodys, segment_after
from extractors.privacy.spelled import composed, encoded, runs

_CHUNK = re.compile(r"\\[nrtbf\"\\/]|(?:(?:%[0-9A-Fa-f]{2})+[^\W_]*|[^\W_]+)(?:[._@+%'’-]+[^\W_]+)*")
_PLAIN = re.compile(r"[A-Za-z0-9]+(?:[._@+'-]+[A-Za-z0-9]+)*")
"""The same, of a text in ASCII without \\ and %."""
_SEP = re.compile(r"""\\*["']?\s*(?::|=>?)[ \t]*(\\*["'])?(\[)?""")
_BARE = re.compile(r"[^\n,;&}\])\"'<>]{1,200}?(?=\s+[\w.-]+\\*[\"']?[=:]|[\n,;&}\])\"'<>]|\Z)")
_TIGHT = re.compile(r"[^\s,;&}\])\"'<>]{1,200}")
_TAG = re.compile(r">([^<>\n]{1,200})</")
_LIST = re.compile(r"""\[[^\[\]{}]*\]""")
_ITEM = re.compile(r"""(["'])((?:(?!\1).){1,200})\1""")
_LETTERS = re.compile(r"[^\W\d_]+")
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
    lone: bool = False
    """It is a number, and nothing where no sign opens it and none goes on from it."""


class _Chunks(dict[str, _Chunk | None]):
    """What is to be done where each chunk stands, told when it is first met."""

    def __init__(self, told: Callable[[str], _Chunk | None]) -> None:
        super().__init__()
        self._told = told

    def __missing__(self, chunk: str) -> _Chunk | None:
        found = self[chunk] = self._told(chunk)
        return found


class _Value(NamedTuple):
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
    """What one walk has come upon."""

    names: set[str]
    zips: set[str]
    ahead: dict[int, Found]
    """Where postal codes of addresses begin that are still to come."""


class Carrier:
    """The walk, with what it remembers of chunks."""

    def __init__(self, people: People, pseudonyms: Pseudonyms) -> None:
        self._people, self._pseudonyms, self._names = people, pseudonyms, Names(people, pseudonyms)
        self.met: set[Known] = set()
        """What was replaced for its form."""
        self._chunks = _Chunks(self._told)
        self._value = lru_cache(1 << 16)(self._valued)
        self._walked: dict[str, Carried] = {}
        self._n_walked = 0
        """Signs of these."""
        self._begins: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for value, kind in people.values.items():
            found = _CHUNK.match(value)
            if found and found[0] != value:
                self._begins[found[0]].append((value, kind))
        for each in self._begins.values():
            each.sort(key=lambda pair: (-len(pair[0]), pair))

    def held(self, text: str) -> Carried | None:
        """What became of a text, where it was told lately."""
        return self._walked.get(text)

    def carry(self, text: str, safe: str) -> Carried:
        """A text (`safe`: without its secrets) with pseudonyms."""
        if self._n_walked > _REMEMBERED:
            self._walked, self._n_walked = {}, 0
        self._n_walked += len(text)
        made = self._walked[text] = self._carry(safe)
        return made

    def _carry(self, text: str) -> Carried:
        if not text.isascii() and (plain := composed(text)) != text:
            made = self._carry(plain)
            return made if made.text != plain else made._replace(text=text)
        if "\\u" not in text:
            return self._walk(text)
        plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
        made = self._walk(plain)
        if plain.isascii() or not text.isascii():
            return made
        return made._replace(text="".join(sign if sign < "\x80" else _escape(sign) for sign in made.text))

    def _walk(self, text: str) -> Carried:
        pieces: list[str] = []
        met = _Met(set(), set(), {})
        done, chunks = 0, self._chunks
        chunk = _PLAIN if text.isascii() and "\\" not in text and "%" not in text else _CHUNK
        for match in chunk.finditer(text):
            known = chunks[match[0]]
            if known is None:
                continue
            at, end = match.span()
            if at < done or (known.lone and at not in met.ahead
                             and text[end:end + 1] not in _GOES_ON and text[at - 1:at] not in _OPENS):
                continue   # a lone number: no sign before it opens it, and none behind it goes on
            for start, end, made in self._spans(text, match, known, met):
                if start >= done:
                    pieces += (text[done:start], made)
                    done = end
        return Carried("".join(pieces) + text[done:] if pieces else text, frozenset(met.names), frozenset(met.zips))

    def _spans(self, text: str, match: re.Match[str], known: _Chunk, met: _Met) -> list[tuple[int, int, str]]:
        """Places to be replaced, from this chunk on."""
        start, end = match.span()
        if known.field and (found := self._field(text, start, end, known.field, met)):
            return found
        if known.noun and (found := self._segment(text, start, end)):
            return found
        for value, kind in known.begins:
            after = start + len(value)
            if lowered(text[start:after]) == value and not text[after:after + 1].isalnum():
                self._look_ahead(text, after, kind, met)
                return [(start, after, self._pseudonyms.of(kind, text[start:after]))]
        place = met.ahead.get(start) or _by_form(text, start, end, known)
        if place:
            value = text[place[0]:place[1]]
            if place[2] == "zip":
                met.zips.add(value)
            self.met.add((place[2], value))
            self._look_ahead(text, place[1], place[2], met)
            return [(place[0], place[1], self._pseudonyms.of(place[2], value))]
        if known.doubtful and not self._names.stands_at(text, start, end):
            return []
        met.names.update(known.names)
        return [(start, end, known.made)] if known.made is not None else []

    def _look_ahead(self, text: str, end: int, kind: str, met: _Met) -> None:
        """Where the postal code of an address whose street ends there begins."""
        if kind == "address" and (place := zip_after(text, end)):
            met.ahead[place[0]] = place

    def _segment(self, text: str, start: int, end: int) -> list[tuple[int, int, str]]:
        """The id of a person in a path."""
        place = segment_after(text, start, end)
        told = self._value("id", text[place[0]:place[1]]) if place else None
        return [(*place, told.made)] if place and told else []

    def _field(self, text: str, start: int, end: int, kind: str, met: _Met) -> list[tuple[int, int, str]]:
        """The value of a field, or each one of a list."""
        sep = _SEP.match(text, end)
        if tag := _TAG.match(text, end) if text[start - 1:start] == "<" else None:
            items = [(tag.start(1), tag[1])]
        elif sep is None:
            return []
        elif sep[2]:
            found = _LIST.match(text, sep.end() - 1)
            items = [] if found is None else [(item.start(2), item[2]) for item in _ITEM.finditer(text, *found.span())]
        elif sep[1]:
            begin = sep.end()
            stop = text.find(sep[1], begin)
            items = [(begin, text[begin:stop])] if stop >= 0 else []
        else:
            found = (_BARE if kind in ("name", "people", "address", "phone", "card") else _TIGHT).match(text, sep.end())
            items = [(sep.end(), found[0].rstrip())] if found else []
        spans = []
        if kind == OWN:
            kind = "id"
            items = [(start, value) for start, value in items
                     if value.lower() in self._people.short and is_somebodys(text, start, self._people.nouns)]
        for start, value in items:
            if told := self._value(kind, value) if len(value) <= _LONGEST else None:
                spans.append((start, start + len(value), told.made))
                met.names.update(told.names)
                met.zips.update(told.zips)
        return spans

    def _valued(self, kind: str, value: str) -> _Value | None:
        """What stands in the place of a value of a field of this kind; None: it stays."""
        found = kind_of_value(kind, value)
        if found is None or value.lower() in self._people.tools:
            return None
        words = frozenset(lowered(word) for word in _LETTERS.findall(value)) if found == "name" else frozenset[str]()
        if kind == "people" and found == "name" and not words & self._people.words:
            return None
        made = self._pseudonyms.of(self._people.values.get(lowered(value), found), value)
        return _Value(made, words, frozenset({value} if found == "zip" else ()))

    def _told(self, chunk: str) -> _Chunk | None:
        if chunk[0] == "\\":
            return None
        lower = lowered(chunk)
        if lower in self._people.tools:
            return None
        field = self._people.fields.get(lower)
        begins = tuple(self._begins.get(lower, ()))
        if kind := self._people.values.get(lower):
            return _Chunk(self._pseudonyms.of(kind, chunk), tuple(_LETTERS.findall(lower)), field, begins)
        if told := encoded(chunk):
            plain = self._walk(told[0])
            return None if plain.text == told[0] else _Chunk(told[1](plain.text), tuple(sorted(plain.names)), field, begins)
        if "@" in chunk and (found := EMAIL.search(chunk)):
            self.met.add(("email", found[0]))
            made = chunk[:found.start()] + self._pseudonyms.of("email", found[0]) + chunk[found.end():]
            return _Chunk(made, (), field, begins)
        if any(map(str.isdigit, chunk)) and (made_of := self._with_known(chunk, lower)) is not None:
            return made_of
        cue = lower if lower in CUES else None
        number = chunk[0].isdigit()
        is_account = len(chunk) > 3 and chunk[:2].isalpha() and chunk[:2].isupper() and chunk[2:4].isdigit()
        new, names, doubtful = self._names.replaced(chunk)
        noun = lower in self._people.nouns
        if new is None and not (field or begins or cue or number or is_account or noun):
            return None
        lone = number and new is None and not (field or begins or cue) and not (
            is_long(chunk) and number_at(chunk, 0))
        return _Chunk(new, names, field, begins, cue, number, is_account, doubtful, noun, lone)

    def _with_known(self, chunk: str, lower: str) -> _Chunk | None:
        """A chunk that holds a known value and more, as `ID_v2`."""
        for start, end in runs(chunk):
            if end - start > _LEAST and any(map(str.isdigit, chunk[start:end])) and (
                    kind := self._people.values.get(lower[start:end])):
                new = self._pseudonyms.of(kind, chunk[start:end])
                rest = [self._walk(each) for each in (chunk[:start], chunk[end:])]
                names = {*_LETTERS.findall(lower[start:end]), *rest[0].names, *rest[1].names}
                return _Chunk(rest[0].text + new + rest[1].text, tuple(sorted(names)))
        return None

def _by_form(text: str, start: int, end: int, known: _Chunk) -> Found | None:
    """What a chunk begins, or speaks of, by its form alone."""
    if known.cue:
        return cue_at(text, known.cue, end)
    if known.number and (text[end:end + 1] in _GOES_ON or is_long(text[start:end]) or text[start - 1:start] == "+"):
        return number_at(text, start)
    return account_at(text, start) if known.account else None


_ESCAPED = re.compile(r"(?<!\\)\\u((?!00[0-9][0-9a-fA-F]|d[89abAB]|D[89abAB]|d[c-fC-F]|D[c-fC-F])[0-9a-fA-F]{4})")


def _escape(sign: str) -> str:
    code = ord(sign)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"
