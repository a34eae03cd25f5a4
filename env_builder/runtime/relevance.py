"""Which earlier write call can matter to which later call: by the ids they share and by what was seen of the tools.

Sees: scalar values of arguments and answers that look like ids (they hold a digit, or are keys of known entities).
Does not see: a write call on an entity that neither its arguments nor its answer names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .answers import parse
from .caching import cached
from .clock import read

MINIMUM_LENGTH = 3
NAME_LENGTH = 40
TRUTHS = frozenset(("True", "False"))
"""How truth values are named, other than JSON writes them."""
_TEN = re.compile("[0-9]")
_WORD = re.compile(r"[^\s,;:!?\"'()\[\]{}]+")
_JOINT = re.compile(r"[@#/|]")
"""Signs that join names to the name of what they are of."""


def leaves(value: Any) -> Iterator[Any]:
    """Yield the scalars of a JSON value, depth first."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            stack += reversed(one.values())
        elif isinstance(one, list):
            stack += reversed(one)
        else:
            yield one


def ids(value: Any) -> frozenset[str]:
    """Id-like words of a JSON value: at least three characters with a digit among them; also keys of its objects."""
    words: set[str] = set()
    _gather(value, words)
    return frozenset(filter(_is_id, words))


def texts_in(arguments: dict[str, Any]) -> frozenset[str]:
    """Return the texts that were given, also inside of lists and objects."""
    return frozenset(leaf for leaf in leaves(arguments) if isinstance(leaf, str) and leaf)


def parts_by_name(document: Any) -> dict[str, dict[str, Any]]:
    """Return the objects inside a document by what names them: their key, or one of their values that looks like an id."""
    parts: dict[str, dict[str, Any]] = {}
    stack = [document]
    while stack:
        one = stack.pop()
        for key, inner in one.items() if isinstance(one, dict) else ((None, item) for item in one):
            if isinstance(inner, dict):
                own = [value for value in inner.values() if isinstance(value, str) and _is_id(value)]
                parts |= dict.fromkeys([*([key] if key is not None and _is_id(key) else []), *own], inner)
            if isinstance(inner, dict | list):
                stack.append(inner)
    return parts


def chosen_fields(part: dict[str, Any]) -> Iterator[tuple[str, str | bool]]:
    """Yield the fields of a part that take words."""
    return ((field, value) for field, value in sorted(part.items())
            if isinstance(value, bool) or (isinstance(value, str) and not _has_digit(value)))


def _has_digit(word: str) -> bool:
    return _TEN.search(word) is not None if word.isascii() else any(map(str.isdigit, word))


def names(arguments: dict[str, Any]) -> frozenset[str]:
    """All words of the arguments that may name something: ids, and whole scalars that are no prose."""
    words: set[str] = set()
    _name(arguments, words)
    words.discard("")
    return frozenset(words)


def _name(value: Any, words: set[str]) -> None:
    if isinstance(value, str):
        if len(value) <= NAME_LENGTH or _has_digit(value):
            words.add(value)
        if " " in value and _has_digit(value):
            words.update([word for one in _WORD.findall(value) if _is_id(word := one.rstrip("."))])
    elif isinstance(value, dict):
        words.update([word for word in value if _is_id(word)])
        for item in value.values():
            _name(item, words)
    elif isinstance(value, list):
        for item in value:
            _name(item, words)
    elif isinstance(value, int):
        words.add(str(value))


def _is_id(word: str) -> bool:
    return len(word) >= MINIMUM_LENGTH and _has_digit(word)


def _gather(value: Any, words: set[str]) -> None:
    """Put the words of a JSON value into the set."""
    if isinstance(value, dict):
        words.update(value)
        for item in value.values():
            _gather(item, words)
    elif isinstance(value, list):
        for item in value:
            _gather(item, words)
    elif isinstance(value, str):
        words.add(value)
        if " " in value:
            words.update(word.rstrip(".") for word in _WORD.findall(value))
    elif isinstance(value, int) and not isinstance(value, bool):
        words.add(str(value))


def act_names(arguments: dict[str, Any], content: str) -> frozenset[str]:
    """All words that a write call names, in its arguments and its answer."""
    return names(arguments) | ids_in(content)


@cached(4096)
def names_in(key: str) -> frozenset[str]:
    """All words of canonical arguments that may name something, kept."""
    return names(parse(key))


def may_hold(text: str, words: frozenset[str]) -> bool:
    """May one of the words be named in the text? No, where it stands nowhere in a text that writes all as it is."""
    return "\\" in text or not words.isdisjoint(TRUTHS) or any(map(text.__contains__, words))


def with_parts(words: frozenset[str]) -> frozenset[str]:
    """Return the words, and the ids that are joined in them."""
    joined = [word for word in words if _JOINT.search(word)]
    return words.union(part for word in joined for part in _JOINT.split(word) if _is_id(part)) if joined else words


@cached(16384)
def ids_in(content: str) -> frozenset[str]:
    """Id-like words of an answer's text."""
    value = parse(content)
    return ids(content if value is None else value)


@cached(16384)
def fields_in(content: str) -> frozenset[str]:
    """Id-like names of fields of an answer that are no value of it: they name nothing."""
    value = parse(content)
    return frozenset() if value is None else ids(value) - ids(list(leaves(value)))


@cached(16384)
def listed_in(content: str) -> frozenset[str]:
    """Id-like texts in the objects of lists that an answer shows: each names what a row of it speaks of."""
    return frozenset(
        leaf for row in _rows(parse(content)) for leaf in leaves(row)
        if isinstance(leaf, str) and MINIMUM_LENGTH <= len(leaf) <= NAME_LENGTH and _has_digit(leaf))


SMALLEST_ID = 100
"""Numbers from which on a column of different whole numbers may name rows."""


@cached(16384)
def row_names(content: str) -> frozenset[str]:
    """Return what may name the rows that an answer lists: the columns that tell them apart, and their values; no days."""
    rows = list(_rows(parse(content)))
    names: set[str] = set()
    for column in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(column) for row in rows]
        if len({str(value) for value in values}) == len(values) and all(map(_may_name, values)):
            names.update((column, *map(str, values)))
    return frozenset(names)


def _may_name(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= NAME_LENGTH and read(value) is None
    return isinstance(value, int) and not isinstance(value, bool) and value >= SMALLEST_ID


def _rows(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _rows(item)
    elif isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def matters(relation: str | None, act_names: frozenset[str], call_names: frozenset[str]) -> bool:
    """Return whether the write call may change the answer. `relation`: of the two tools: keeps, changes, reaches (also what it
    does not name) or None (unknown)."""
    return relation == "reaches" or (relation != "keeps" and (not call_names or not call_names.isdisjoint(act_names)))
