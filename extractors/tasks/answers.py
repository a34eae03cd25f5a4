"""List the single values in answers with the record that holds them, and numbers computed from them.

Values are grouped by source (tool and path; list positions and entity names left out). Computed are sums, differences and
products of two numbers that were read, and totals of one path. Does not see: answers that are no JSON, three numbers at once,
small whole numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import orjson

_NAME_OF_A_THING = re.compile(r"^(?=.{4,})[\w@./:#-]*\d[\w@./:#-]*$")
_LONGEST = 200


class AnswerValue(NamedTuple):
    """A value and what stands around it."""

    value: str
    fields: tuple[tuple[str, str], ...]
    """(name, value lower-cased) of the other single values of its record; values one object further in by the object's name."""
    around: tuple[str, ...]
    """Single values of the objects around the record, lower-cased."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The values of one answer; what is not asked for is not made, and what was made can be forgotten: it is many times as
    large as the answer."""

    content: str
    """The answer itself."""

    @property
    def document(self) -> Any:
        """What it holds, read anew."""
        return _document(self.content)

    def forget(self) -> None:
        """Hold no values until they are asked for again."""
        for name in ("values", "places"):
            self.__dict__.pop(name, None)

    @cached_property
    def names(self) -> frozenset[str]:
        """Its outermost single values, lower-cased: what it can be called by."""
        document = self.document
        outermost = _singles(document) if isinstance(document, dict) else []
        return frozenset(text.lower() for _, text in outermost)

    @cached_property
    def values(self) -> dict[str, list[AnswerValue]]:
        """Path -> values."""
        values: dict[str, list[AnswerValue]] = {}
        _walk(self.document, "", (), values)
        return values

    @cached_property
    def places(self) -> dict[str, set[str]]:
        """Value -> paths of `values`."""
        places: dict[str, set[str]] = defaultdict(set)
        for path, value in _leaves(self.document, ""):
            places[value].add(path)
        return places


@lru_cache(maxsize=512)
def read(content: str) -> Answer | None:
    """Return the values in an answer, None where it is no JSON object or list."""
    return None if _document(content) is None else Answer(content)


@lru_cache(maxsize=512)
def singles(content: str) -> tuple[tuple[str, str], ...] | None:
    """(path, value) of the single values in an answer, as in `Answer.values`, these alone; None as `read`."""
    document = _document(content)
    return None if document is None else tuple(_leaves(document, ""))


def _document(content: str) -> Any:
    try:
        return orjson.loads(content) if content[:1] in ("{", "[") else None
    except orjson.JSONDecodeError:
        return None


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each, f"{path}[]")
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, f"{path}.{_step(name)}")
    elif text := _single(value):
        yield path, text


def _walk(document: Any, path: str, around: tuple[str, ...], values: dict[str, list[AnswerValue]]) -> None:
    if isinstance(document, list):
        for each in document:
            if text := _single(each):
                values.setdefault(f"{path}[]", []).append(AnswerValue(text, (), around))
            else:
                _walk(each, f"{path}[]", around, values)
        return
    if not isinstance(document, dict):
        return
    own = _singles(document)
    inner = tuple(
        (name, text.lower()) for name, each in document.items() if isinstance(each, dict) for _, text in _singles(each))
    lowered = tuple((name, text.lower()) for name, text in own)
    for place, (name, text) in enumerate(own):
        fields = lowered[:place] + lowered[place + 1:] + inner
        values.setdefault(f"{path}.{_step(name)}", []).append(AnswerValue(text, fields, around))
    wider = around + tuple(text for _, text in lowered)
    for name, each in document.items():
        if isinstance(each, dict | list):
            _walk(each, f"{path}.{_step(name)}", wider, values)


def _singles(record: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, text) for name, each in record.items() if (text := _single(each))]


def _single(value: Any) -> str | None:
    """Return a single value as text, None for what is none, empty or too long."""
    if isinstance(value, str):
        return value if 0 < len(value) <= _LONGEST else None
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return None
    return orjson.dumps(value).decode()


@lru_cache(maxsize=65536)
def _step(name: str) -> str:
    """Return a name in a path; `*` if it is the name of an entity."""
    return "*" if _NAME_OF_A_THING.match(name) else name


_LEAST = 100.0
"""A smaller whole number comes out of anything."""
_MOST = 80
"""Numbers that are looked at, the latest."""
Read = tuple[str, Sequence[tuple[str, str]]]
"""Tool, and (path, value) of what it answered."""


def reckonings(value: str, answers: Sequence[Read]) -> Iterator[str]:
    """How a number comes out of numbers in answers, as `tool path + tool path`; nothing for what is no number."""
    wanted = _number(value)
    if wanted is None or (wanted.is_integer() and abs(wanted) < _LEAST):
        return
    names = _named(answers)
    if wanted in names and " total of " in names[wanted]:
        yield names[wanted]
    for number, name in names.items():
        rest, more = round(wanted - number, 6), round(number - wanted, 6)
        if rest in names and number <= rest:
            yield " + ".join(sorted((name, names[rest])))
        if more in names:
            yield f"{name} - {names[more]}"
        if number > 1 and (factor := round(wanted / number, 6)) in names and 1 < factor <= number:
            yield " * ".join(sorted((name, names[factor])))


def _named(answers: Sequence[Read]) -> dict[float, str]:
    """Return number -> the tool and path that showed it, the latest first."""
    names: dict[float, str] = {}
    for tool, values in reversed(answers):
        by_path: dict[str, list[float]] = defaultdict(list)
        for path, value in values:
            if (number := _number(value)) is not None:
                by_path[path].append(number)
        for path, numbers in by_path.items():
            for number in numbers:
                names.setdefault(number, f"{tool} {path.removeprefix('.')}")
            if len(numbers) > 1:
                names.setdefault(round(sum(numbers), 6), f"{tool} total of {path.removeprefix('.')}")
    return dict(list(names.items())[:_MOST])


def _number(value: str) -> float | None:
    if not (value[-1:].isdecimal() and value.removeprefix("-")[:1].isdecimal() and len(value) < 16):
        return None
    try:
        return round(float(value), 6)
    except ValueError:
        return None
