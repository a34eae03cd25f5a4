"""What questions report their answers through, in the sandbox: a line of JSON for each value that a test looked at.

A question is a known test without the answers: where the test compares, it reports the value (`ask`), and where it expects an
error, which one came (`asking`). Who compares is outside. Values of the same meaning are written alike: mappings of any kind,
1 and 1.0; an object goes by its class and fields. Standard library only.
"""

from __future__ import annotations

import enum
import json
import operator
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_DEEPEST, _LONGEST = 12, 20_000
_FILE = os.environ.pop("TRACEROOM_ANSWERS", "")


class Current:
    """Which test runs; the runner's plug-in says it (traceroom_pytest.py)."""

    test = ""


def ask(*values: Any) -> None:
    """Report values."""
    _report([_plain(value, 0) for value in values])


class asking:
    """Report which error comes, and go on after it; stands in the place of `pytest.raises`."""

    def __init__(self, *expected: Any, **options: Any) -> None:
        self.value: Any = None
        self.type: Any = None

    def __enter__(self) -> asking:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        self.type, self.value = kind, value
        self.exception = value
        _report(["raised", None if kind is None else kind.__name__])
        return kind is None or issubclass(kind, Exception)

    def match(self, pattern: str) -> bool:
        """Report the text of the error."""
        ask(str(self.value))
        return True


class whole:
    """Report which error ended a test before its end, and go on."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        if kind is not None and issubclass(kind, Exception):
            _report(["ended", kind.__name__])
            return True
        return False


def raised(expected: Any, function: Any, *arguments: Any, **named: Any) -> asking:
    """Report which error a call raises."""
    report = asking()
    with report:
        function(*arguments, **named)
    return report


def compared(name: str, one: Any, other: Any) -> None:
    """Report a comparison: what kinds are compared, and whether it holds for what they hold, whatever they say themselves."""
    if name in ("contains", "ne"):
        holds = _holds(one, other) if name == "contains" else _plain(one, 0) != _plain(other, 0)
    else:
        holds = bool(getattr(operator, name)(_bare(one), _bare(other)))
    _report(["compared", name, _kind(one), _kind(other), holds])


def called(value: Any, name: str, *arguments: Any, **named: Any) -> None:
    """Report whether a method says yes, and of what kind the object is; texts and collections answer for what they hold."""
    _report(["called", _kind(value), bool(getattr(_bare(value), name)(*map(_bare, arguments), **named))])


def _holds(container: Any, member: Any) -> bool:
    bare = _bare(container)
    if isinstance(bare, list | tuple | set | frozenset | dict):
        return _plain(member, 0) in [_plain(each, 0) for each in bare]
    return bool(operator.contains(bare, _bare(member)))


def _bare(value: Any) -> Any:
    """Return a value of a kind that Python has itself as that kind alone, without methods of another class."""
    for kind in _BARE:
        if type(value) is not kind and issubclass(type(value), kind):
            return value if issubclass(type(value), enum.Enum) else _OF_KIND[kind](value)
    return value


def _kind(value: Any) -> str:
    return next((kind.__name__ for kind in _BARE if issubclass(type(value), kind)), "other")


_OF_KIND: dict[Any, Any] = {
    str: str.__str__, bytes: lambda value: bytes.__getitem__(value, slice(None)), int: int.__int__, float: float.__float__,
    list: lambda value: [*list.__iter__(value)], tuple: lambda value: (*tuple.__iter__(value),),
    dict: lambda value: dict(dict.items(value)), set: lambda value: {*set.__iter__(value)},
    frozenset: lambda value: frozenset(frozenset.__iter__(value))}
_BARE = tuple(_OF_KIND)


def _report(row: list[Any]) -> None:
    line = json.dumps([Current.test, row], sort_keys=True, ensure_ascii=True)[:_LONGEST]
    with Path(_FILE).open("a", encoding="ascii") as file:
        file.write(line + "\n")


def _plain(value: Any, depth: int) -> Any:
    """Return a value as JSON, with a mark of its kind; what inherits from a plain kind goes by what that kind holds."""
    if depth > _DEEPEST:
        return "…"
    for kind, written in _KINDS:
        if isinstance(value, kind):
            return written(value, depth)
    if isinstance(value, type) or callable(value):
        return ["named", getattr(value, "__qualname__", type(value).__qualname__).rpartition(".")[2]]
    return _object(value, depth)


def _number(value: Any, depth: int) -> Any:
    if isinstance(value, float):
        is_whole = value == value and abs(value) < 1e15 and float.is_integer(value)
        return ["number", str(int(float(value))) if is_whole else float.__repr__(value)]
    return ["number", int.__repr__(value) if int.bit_length(value) < 4096 else "large"]


def _mapping(value: Any, depth: int) -> Any:
    items = dict.items(value) if isinstance(value, dict) else value.items()
    return ["mapping", sorted(([_plain(key, depth + 1), _plain(item, depth + 1)] for key, item in items), key=repr)]


def _sequence(value: Any, depth: int) -> Any:
    kind: Any = list if isinstance(value, list) else tuple
    return [kind.__name__, [_plain(item, depth + 1) for item in kind.__iter__(value)]]


def _set(value: Any, depth: int) -> Any:
    kind: Any = set if isinstance(value, set) else frozenset
    return ["set", sorted((_plain(item, depth + 1) for item in kind.__iter__(value)), key=repr)]


_KINDS: tuple[tuple[Any, Any], ...] = (
    (type(None), lambda value, depth: None),
    (enum.Enum, lambda value, depth: [type(value).__qualname__, value.name]),
    (bool, lambda value, depth: value),
    ((int, float), _number),
    (str, lambda value, depth: ["str", str.__str__(value)]),
    ((bytes, bytearray), lambda value, depth: ["bytes", bytes(value).hex()]),
    (Mapping, _mapping), ((list, tuple), _sequence), ((set, frozenset), _set),
)


def _object(value: Any, depth: int) -> Any:
    """Return an object by its class and fields."""
    kind = type(value)
    name = kind.__qualname__.rpartition(".")[2]
    if isinstance(value, BaseException):
        return ["error", name, [_plain(item, depth + 1) for item in value.args]]
    if kind.__module__.partition(".")[0] in ("datetime", "decimal", "fractions", "uuid", "pathlib", "zoneinfo"):
        return [name, str(value)]
    slots = (slot for base in kind.__mro__ for slot in (*getattr(base, "__slots__", ()),))
    fields = {**{slot: getattr(value, slot, None) for slot in slots}, **getattr(value, "__dict__", {})}
    return [name, sorted([str(key), _plain(item, depth + 1)] for key, item in fields.items())]
