"""Sentences as documents: a template of texts and slots reads an answer as a JSON object, and writes it back byte for byte.

A template is a list of pieces. A piece is a text, or an object: a slot (`name`, `number`: how its numbers are written), a list
(`name`, `item`: the template of one element, `between`, `empty`: what stands for no element), a text that is there or not
(`name`, `flag`: the text; its value is true or null), or a choice (`one_of`: templates, of which the one is in force whose
slots have values; one without slots says that all are null).
Does not see: sentences over several lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

Piece = Any
"""A text or an object, as above."""
ITEM = ""
"""Name of the only slot of elements that are no objects."""
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,14})$")


class NoSentence(ValueError):
    """A text is not in the template, or an object has no sentence there."""


def read_sentence(text: str, pieces: Sequence[Piece]) -> dict[str, Any]:
    """Read the object that the sentence tells. Raises NoSentence."""
    match = _compiled(_source(pieces)).fullmatch(text)
    if match is None:
        raise NoSentence("another sentence")
    slots = list(_slots(pieces))
    values = zip(slots, match.groups(), strict=True)
    document: dict[str, Any] = dict.fromkeys(names_of(pieces))
    return document | {slot["name"]: _value(slot, given) for slot, given in values if given is not None}


def write_sentence(document: dict[str, Any], pieces: Sequence[Piece]) -> str:
    """Write the sentence of the object. Raises NoSentence."""
    parts, used = _written(document, pieces)
    if used | {name for name, value in document.items() if value is None} != document.keys():
        raise NoSentence("fields without a slot")
    return "".join(parts)


def names_of(pieces: Sequence[Piece]) -> list[str]:
    """Return the names of all slots, in order."""
    return [slot["name"] for slot in _slots(pieces)]


def needed_by(pieces: Sequence[Piece]) -> list[str]:
    """Return the names of the slots that each sentence of the template has."""
    return [piece["name"] for piece in pieces if not isinstance(piece, str) and "one_of" not in piece and "flag" not in piece]


def _slots(pieces: Sequence[Piece]) -> Iterator[dict[str, Any]]:
    for piece in pieces:
        if isinstance(piece, str):
            continue
        if "one_of" in piece:
            for option in piece["one_of"]:
                yield from _slots(option)
        else:
            yield piece


@lru_cache(256)
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source)


def _source(pieces: Sequence[Piece]) -> str:
    """Return the regular expression of a template, one group for each slot."""
    return "".join(map(_piece_source, pieces))


def _piece_source(piece: Piece) -> str:
    if isinstance(piece, str):
        return re.escape(piece)
    if "one_of" in piece:
        return f"(?:{'|'.join(map(_source, piece['one_of']))})"
    return f"({re.escape(piece['flag'])})?" if "flag" in piece else "(.*?)" if "item" in piece else "(.+?)"


def _value(slot: dict[str, Any], text: str) -> Any:
    if "flag" in slot:
        return True
    if "item" in slot:
        if text == slot["empty"]:
            return []
        elements = [read_sentence(each, slot["item"]) for each in text.split(slot["between"])]
        return [one[ITEM] if one.keys() == {ITEM} else one for one in elements]
    number = slot["number"]
    if number is None:
        return text
    if number == 0:
        if not _WHOLE.match(text) or text == "-0":
            raise NoSentence("no whole number")
        return int(text)
    if not re.fullmatch(rf"-?(?:0|[1-9]\d*)\.\d{{{number}}}", text):
        raise NoSentence("no such number")
    return float(text)


def _written(document: dict[str, Any], pieces: Sequence[Piece]) -> tuple[list[str], set[str]]:
    """Return (the parts of the sentence, the fields that they tell). Raises NoSentence."""
    parts: list[str] = []
    used: set[str] = set()
    for piece in pieces:
        if isinstance(piece, str):
            parts.append(piece)
        elif "one_of" in piece:
            inner, names = _written(document, _chosen(document, piece["one_of"]))
            parts += inner
            used |= names
        elif "flag" in piece and document.get(piece["name"]) is None:
            used.add(piece["name"])
        elif document.get(piece["name"]) is None:
            raise NoSentence("a slot without a value")
        else:
            parts.append(_text(piece, document[piece["name"]]))
            used.add(piece["name"])
    return parts, used


def _chosen(document: dict[str, Any], options: Sequence[Sequence[Piece]]) -> Sequence[Piece]:
    """Return the template whose slots have values, the one with most of them. Raises NoSentence."""
    fitting = [option for option in options if all(document.get(name) is not None for name in needed_by(option))]
    if not fitting:
        raise NoSentence("no wording for these fields")
    return max(fitting, key=lambda option: (
        len(needed_by(option)), sum(document.get(name) is not None for name in names_of(option))))


def _text(slot: dict[str, Any], value: Any) -> str:
    if "flag" in slot and value is True:
        return str(slot["flag"])
    if "item" in slot:
        if not isinstance(value, list) or (not value and slot["empty"] is None):
            raise NoSentence("no list, or none that is empty")
        elements = (each if isinstance(each, dict) else {ITEM: each} for each in value)
        return slot["between"].join(write_sentence(each, slot["item"]) for each in elements) if value else str(slot["empty"])
    number = slot.get("number")
    if number is None and "flag" not in slot and isinstance(value, str):
        return value
    if number == 0 and type(value) is int:
        return str(value)
    if number and type(value) in (int, float):
        return f"{value:.{number}f}"
    raise NoSentence("another type")
