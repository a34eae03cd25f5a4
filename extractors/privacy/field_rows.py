"""What was typed into a field for passwords, where a row states the type of its field: a recorder's event, an audit's line.

In: an object, and which names are credentials'. Out: the same object with a mark in the place of each typed value. A row that
states the type `password` (or `autocomplete`) keeps what says which field it is, where and when, and loses all other values,
whatever their columns are called; a row that gives its field a credential's name loses its value. The field may be
described by an object inside (`target`, `element`). Does not see: a row that states neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from extractors.privacy.letters import words_in

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PASSWORD_TYPES = frozenset(("password", "current-password", "new-password", "one-time-code"))
_FIELD = words_in("input field element control target node html tag widget")
_DESCRIBED = ("target", "element", "field", "node", "input", "control")
_SAYS_WHICH = words_in(
    "tag type id name class xpath selector locator css path url uri href origin host title label placeholder role aria event "
    "action op operation autocomplete time timestamp ts at date day user account actor session page tab window frame index "
    "position x y width height browser agent kind form app application service method status duration count "
    "username email login required maxlength")
_NAMED = ("name", "id", "field", "fieldname", "field_name", "fieldName", "inputName", "input_name")
_VALUES = words_in("value text val content input typed data")
_WHICH_VALUE = words_in("new old field current previous raw entered") | _VALUES


def without_typed(row: dict[str, Any], is_credential: Callable[[str], bool], mark: str) -> dict[str, Any]:
    """Return a row without what was typed into a credential's field; the row itself where it states no such field."""
    described = [row, *(inner for name in _DESCRIBED if isinstance(inner := row.get(name), dict))]
    if any(map(_is_password, described)):
        return {name: value if _says_which(name) else _emptied(value, mark) for name, value in row.items()}
    if any(isinstance(name := each.get(key), str) and is_credential(name) for each in described for key in _NAMED):
        return {name: _emptied(value, mark) if _is_value(name) and not isinstance(value, dict) else value
                for name, value in row.items()}
    return row


def _is_password(row: dict[str, Any]) -> bool:
    return any(isinstance(value, str) and value.strip().lower() in _PASSWORD_TYPES and _states_type(name)
               for name, value in row.items())


def _states_type(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    return words[-1:] in (["type"], ["autocomplete"]) and _FIELD.issuperset(words[:-1])


def _says_which(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    return bool(words) and words[-1] in _SAYS_WHICH


def _is_value(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    return bool(words) and words[-1] in _VALUES and _WHICH_VALUE.issuperset(words)


def _emptied(value: Any, mark: str) -> Any:
    if isinstance(value, dict):
        return {name: each if _says_which(name) else _emptied(each, mark) for name, each in value.items()}
    if isinstance(value, list):
        return [_emptied(each, mark) for each in value]
    return value if value in (None, "") or isinstance(value, bool) else mark
