"""Short ids of persons: where they stand in the path of a request, and in the person's own record.

In: a text and a place. Out: where an id stands, or whether the object around a field is somebody's record. A number of one to
five digits says nothing by itself, but `/users/7`, `"user": {"id": 7}` and `{"id": 7, "birthday": …}` speak of the 7 of
`user_id: 7`. What it does not see: an id without a digit in a path; a record whose fields name no person.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from extractors.privacy.fields import NOUNS, kind_of_field, looks_like_a_person
from extractors.privacy.kept import words_in

OWN = "own"
"""Kind of the field `id`: of a person where the record is one's."""
_SEGMENT = re.compile(r"/((?=[\w~-]*\d)[\w~-]{1,40})(?=[/?#\s\"'\\,;)]|$)")
_VERSION = re.compile(r"v\d+")
_TOKEN = re.compile(r"""[{}\[\]]|\\*["']([A-Za-z_][\w .-]*)\\*["']\s*:\s*(?:\\*["']([^"'\\]*))?""")
_BEFORE = re.compile(r"""["']([A-Za-z_]+)\\*["']\s*:\s*$""")
_ENDS_IN_ID = re.compile(r"(?i)([a-z]+)[ _-]?id$")
_PERSONAL = words_in(
    "firstname lastname fullname givenname familyname middlename surname forename birthday birthdate dob dateofbirth username")
_AROUND = 2000
"""Signs before and after a field in which its object is looked for."""


def nouns_of(fields: Iterable[str]) -> frozenset[str]:
    """What persons are called in the fields of their ids, once and many."""
    found = {*NOUNS, *(told[1].lower() for field in fields if (told := _ENDS_IN_ID.search(field)))}
    return frozenset({*found, *(f"{each}s" for each in found), "people"})


def segment_after(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Where the id stands that follows a noun in a path; of /home/user nothing."""
    if text[start - 1:start] != "/" or text[max(0, start - 6):start] == "/home/":
        return None
    found = _SEGMENT.match(text, end)
    return None if found is None or _VERSION.fullmatch(found[1].lower()) else found.span(1)


def id_behind(path: str) -> tuple[str, str] | None:
    """The last name in a path before an id, and the id."""
    start = path.rfind("/", 0, path.rfind("/")) + 1
    end = path.rfind("/")
    place = segment_after(path, start, end)
    return (path[start:end], path[place[0]:place[1]]) if place else None


def is_somebodys(text: str, at: int, nouns: Collection[str]) -> bool:
    """Whether the object around a field that begins or ends there is a person's: it is called so, or it has fields of one and
    refers to none."""
    first = max(0, at - _AROUND)
    after, _ = _level(_TOKEN.finditer(text, at, at + _AROUND), "{[", "}]")
    before, opens = _level(reversed(list(_TOKEN.finditer(text, first, at))), "}]", "{[")
    if opens is not None and (called := _BEFORE.search(text, first, opens)) and called[1].lower() in nouns:
        return True
    fields = {re.sub(r"[\W_]", "", name).lower(): value for name, value in (*after, *before)}
    if any(kind_of_field(name) == "id" and name not in ("username", "login") for name in fields):
        return False
    return not _PERSONAL.isdisjoint(fields) or looks_like_a_person(fields.get("name") or "")


def _level(tokens: Iterable[re.Match[str]], opens: str, closes: str) -> tuple[list[tuple[str, str | None]], int | None]:
    """Fields on this level up to where the object ends, and where that is."""
    depth, found = 0, list[tuple[str, str | None]]()
    for token in tokens:
        if token[0] in opens:
            depth += 1
        elif token[0] in closes:
            if depth == 0:
                return found, token.start()
            depth -= 1
        elif depth == 0:
            found.append((token[1], token[2]))
    return found, None
