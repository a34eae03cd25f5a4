"""What was looked up: the single values in answers, each with the record that it stands in.

In: answers of calls as JSON text. Out: values by source (tool and path; places in lists and names of things left out), so that
values of one kind from any answer stand together. Does not see: answers that are no JSON.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

_NAME_OF_A_THING = re.compile(r"^(?=.{4,})[\w@./:#-]*\d[\w@./:#-]*$")
_LONGEST = 200


class Held(NamedTuple):
    """A value and what stands around it."""

    value: str
    fields: tuple[tuple[str, str], ...]
    """(name, value lower-cased) of the other single values of its record; values one object further in by the object's name."""
    around: tuple[str, ...]
    """Single values of the objects around the record, lower-cased."""


class Answer(NamedTuple):
    """The values of one answer."""

    held: dict[str, list[Held]]
    """Path -> values."""
    names: frozenset[str]
    """Its outermost single values, lower-cased: what it can be called by."""
    content: str
    """The answer itself."""


@lru_cache(maxsize=16384)
def read(content: str) -> Answer | None:
    """The values in an answer, None where it is no JSON object or list."""
    if content[:1] not in "{[":
        return None
    try:
        told = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    names = frozenset(text.lower() for _, text in _singles(told)) if isinstance(told, dict) else frozenset[str]()
    answer = Answer({}, names, content)
    _walk(told, "", (), answer.held)
    return answer


@lru_cache(maxsize=512)
def singles(content: str) -> tuple[tuple[str, str], ...] | None:
    """(path, value) of the single values in an answer, as in `Answer.held` without what stands around them; None as `read`."""
    if content[:1] not in "{[":
        return None
    try:
        told = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    found: list[tuple[str, str]] = []
    _list(told, "", found)
    return tuple(found)


def _list(told: Any, path: str, found: list[tuple[str, str]]) -> None:
    if isinstance(told, list):
        for each in told:
            _list(each, f"{path}[]", found)
    elif isinstance(told, dict):
        for name, each in told.items():
            _list(each, f"{path}.{_step(name)}", found)
    elif text := _single(told):
        found.append((path, text))


def _walk(told: Any, path: str, around: tuple[str, ...], held: dict[str, list[Held]]) -> None:
    if isinstance(told, list):
        for each in told:
            if text := _single(each):
                held.setdefault(f"{path}[]", []).append(Held(text, (), around))
            else:
                _walk(each, f"{path}[]", around, held)
        return
    if not isinstance(told, dict):
        return
    own = _singles(told)
    inner = tuple((name, text.lower()) for name, each in told.items() if isinstance(each, dict) for _, text in _singles(each))
    for name, text in own:
        fields = tuple((other, value.lower()) for other, value in own if other != name) + inner
        held.setdefault(f"{path}.{_step(name)}", []).append(Held(text, fields, around))
    wider = around + tuple(text.lower() for _, text in own)
    for name, each in told.items():
        if isinstance(each, dict | list):
            _walk(each, f"{path}.{_step(name)}", wider, held)


def _singles(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, text) for name, each in told.items() if (text := _single(each))]


def _single(value: Any) -> str | None:
    """A single value as text, None for what is none, empty or too long."""
    if isinstance(value, str):
        return value if 0 < len(value) <= _LONGEST else None
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return None
    return orjson.dumps(value).decode()


@lru_cache(maxsize=65536)
def _step(name: str) -> str:
    """A name in a path; where an object's names are names of things, `*`."""
    return "*" if _NAME_OF_A_THING.match(name) else name
