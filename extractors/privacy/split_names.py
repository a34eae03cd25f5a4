"""Find names that two fields of one record hold: the given name in one, the family name in the other.

In: texts: JSON (also inside strings of JSON) as a tree, anything else by the order of its fields. Out: (given name, family
name), as they are written. A record is an object, or fields that follow each other. Does not see: the two in different objects,
fields of other names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import orjson
import polars as pl

from extractors.privacy.fields import words_of_field
from extractors.privacy.letters import words_in

_FIELDS = {
    "given":
        "first name|firstname|given name|givenname|fname|forename|name first|first|given|vorname|prenom|nombre|nome|voornaam|"
        "imie|jmeno|keresztnev|fornavn|fornamn|etunimi|prenume|ime|vards",
    "family":
        "last name|lastname|family name|familyname|lname|surname|name last|last|family|nachname|familienname|zuname|"
        "nom de famille|apellido|apellidos|cognome|achternaam|apelido|sobrenome|nazwisko|prijmeni|vezeteknev|etternavn|"
        "efternavn|efternamn|sukunimi|soyad|soyadi|familiya|prezime|pavarde|uzvards|nom"}
_SIDES = {name: side for side, names in _FIELDS.items() for name in names.split("|")}
_ALONE = words_in("first given last family nome nombre ime nom")
"""Words that are a field of a name only alone."""
_SIGNS = sorted({each.replace(" ", joint) for each in _SIDES.keys() - _ALONE
                 if _SIDES[each] == "family" for joint in ("", " ", "_", "-")} | {
    f'"{each}{quote}' for each in ("last", "family", "nom") for quote in ('"', '\\"')})
"""What a text with a family name holds."""
_BETWEEN = re.compile(r"[{}]|\n\s*\n")
_DEEPEST = 12
Read = Callable[[str], Iterator[tuple[str, str]]]


def holds_family_names(texts: pl.Series) -> pl.Series:
    """Whether a text may hold the field of a family name."""
    return texts.str.contains_any(_SIGNS, ascii_case_insensitive=True)


def split_names(text: str, read: Read) -> Iterator[tuple[str, str]]:
    """Yield the names that records in a text hold in two fields; `read` reads the fields of one that is no JSON."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield from _in_tree(orjson.loads(text), 0)
            return
        except orjson.JSONDecodeError:
            pass
    for part in _BETWEEN.split(text):
        yield from _in_fields([(side, value) for field, value in read(part) if (side := _side_of(field)) is not None])


def _in_tree(node: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _DEEPEST:
        return
    if isinstance(node, dict):
        yield from _in_fields([(side, value) for field, value in node.items()
                               if isinstance(value, str) and (side := _side_of(field)) is not None])
    if isinstance(node, (dict, list)):
        for value in node.values() if isinstance(node, dict) else node:
            yield from _in_tree(value, depth + 1)
    elif isinstance(node, str) and node.lstrip()[:1] in ("{", "["):
        try:
            yield from _in_tree(orjson.loads(node), depth + 1)
        except orjson.JSONDecodeError:
            return


def _in_fields(fields: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Pair the names of one order: given and family name, or the other way round."""
    rest = fields
    while len(rest) > 1:
        (side, value), (next_side, next_value), *_ = rest
        if side == next_side:
            rest = rest[1:]
            continue
        yield (value, next_value) if side == "given" else (next_value, value)
        rest = rest[2:]


@lru_cache(1 << 14)
def _side_of(field: str) -> str | None:
    """Which name a field holds; `None` if neither."""
    words = words_of_field(field)
    ends = [" ".join(words), *(end for n in (3, 2, 1) if (end := " ".join(words[-n:])) not in _ALONE)]
    return next((_SIDES[end] for end in ends if end in _SIDES), None)
