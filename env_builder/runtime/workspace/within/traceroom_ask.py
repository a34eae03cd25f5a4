"""What questions report their answers through, in the sandbox: a line of JSON for each value that a test looked at.

A question is a known test without the answers: where the test compares, it reports the value (`ask`), and where it expects an
error, which one came (`asking`). Who compares is outside. Values of the same meaning are written alike: mappings of any kind,
1 and 1.0; an object goes by its class and fields. Standard library only.
"""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_DEEPEST, _LONGEST = 12, 20_000
_PLAIN = (str, bytes, int, bool, type(None))
_FILE = os.environ.get("TRACEROOM_ANSWERS", "")


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


def raised(expected: Any, function: Any, *arguments: Any, **named: Any) -> asking:
    """Report which error a call raises."""
    report = asking()
    with report:
        function(*arguments, **named)
    return report


def _report(row: list[Any]) -> None:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    line = json.dumps([test, row], sort_keys=True, ensure_ascii=True)[:_LONGEST]
    with Path(_FILE).open("a", encoding="ascii") as file:
        file.write(line + "\n")


def _plain(value: Any, depth: int) -> Any:
    """Return a value as JSON, with a mark of its kind."""
    if depth > _DEEPEST:
        return "…"
    kind = type(value)
    if kind is float:
        return ["number", str(int(value)) if value == value and abs(value) < 1e15 and value == int(value) else repr(value)]
    if kind is int:
        return ["number", str(value)] if value.bit_length() < 4096 else ["number", hex(value)]
    if kind in _PLAIN:
        return [kind.__name__, value.hex() if kind is bytes else value]
    if kind.__module__ in ("builtins", "collections", "types") and isinstance(value, Mapping):
        return ["mapping", sorted(([_plain(key, depth + 1), _plain(item, depth + 1)] for key, item in value.items()), key=repr)]
    if kind in (list, tuple):
        return [kind.__name__, [_plain(item, depth + 1) for item in value]]
    if kind in (set, frozenset):
        return ["set", sorted((_plain(item, depth + 1) for item in value), key=repr)]
    if isinstance(value, enum.Enum):
        return [kind.__qualname__, value.name]
    if isinstance(value, type) or callable(value):
        return ["named", getattr(value, "__qualname__", kind.__qualname__).rpartition(".")[2]]
    return _object(value, kind, depth)


def _object(value: Any, kind: type, depth: int) -> Any:
    name = kind.__qualname__.rpartition(".")[2]
    if isinstance(value, BaseException):
        return ["error", name, [_plain(item, depth + 1) for item in value.args]]
    if kind.__module__.partition(".")[0] in ("datetime", "decimal", "fractions", "uuid", "pathlib", "zoneinfo"):
        return [name, str(value)]
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict):
        return [name, sorted([str(key), _plain(item, depth + 1)] for key, item in fields.items())]
    return [name]
