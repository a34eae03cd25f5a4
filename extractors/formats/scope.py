"""Where the fields of a mapped record stand: dotted paths into it, and into the records around it.

A path is a key, or keys and places in lists joined by dots; a key with dots in it counts too, and text that spells JSON is
walked into. `^.` before a path means: in what holds the list that this is an element of. `.` is the value itself; `=text` is no
path but that very text; of paths joined by `|` the first that leads to something counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

_MISSING = object()


class Scope(NamedTuple):
    """A value and those around it, the innermost first."""

    values: tuple[Any, ...]
    place: str
    """Its place in the record, element by element."""

    def get(self, path: str, outward: bool = False) -> Any:
        """What stands at `path`, None where nothing does; `outward`: in the innermost value that has it."""
        return None if (found := self._find(path, outward)) is _MISSING else found

    def has(self, path: str) -> bool:
        """Whether something stands there, be it null."""
        return self._find(path, False) is not _MISSING

    def _find(self, path: str, outward: bool) -> Any:
        if path.startswith("="):
            return path[1:]
        if "|" in path:
            found = [self._find(each, outward) for each in path.split("|")]
            there = [each for each in found if each is not _MISSING]
            return next((each for each in there if each not in (None, "")), there[0] if there else _MISSING)
        values = self.values
        while path.startswith("^."):
            path, values = path[2:], values[1:]
        looked_at = values if outward else values[:1]
        return next((found for value in looked_at if (found := at(value, path)) is not _MISSING), _MISSING)

    def each(self, path: str) -> Iterator[Scope]:
        """The elements of the list at `path`; lists on the way to it are walked too, each a scope of its own."""
        yield from _elements(self.values[0], path.split(".") if path != "." else [], self)


def at(value: Any, path: str) -> Any:
    """What stands at the dotted path, the marker for nothing where nothing does."""
    if path == ".":
        return value
    value = opened(value)
    if isinstance(value, dict):
        if path in value:
            return value[path]
        head, _, rest = path.partition(".")
        while rest:
            if head in value and (found := at(value[head], rest)) is not _MISSING:
                return found
            more, _, rest = rest.partition(".")
            head = f"{head}.{more}"
    elif isinstance(value, list):
        head, _, rest = path.partition(".")
        if head.isdecimal() and int(head) < len(value):
            return at(value[int(head)], rest) if rest else value[int(head)]
    return _MISSING


def opened(value: Any) -> Any:
    """What text spells, where that is a JSON object or list; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _elements(value: Any, parts: list[str], scope: Scope) -> Iterator[Scope]:
    value = opened(value)
    if isinstance(value, list):
        for number, element in enumerate(value):
            inner = Scope((element, *scope.values), f"{scope.place}/{number}")
            if parts:
                yield from _elements(element, parts, inner)
            else:
                yield inner
    elif parts and isinstance(value, dict):
        for size in range(len(parts), 0, -1):
            if (key := ".".join(parts[:size])) in value:
                yield from _elements(value[key], parts[size:], scope)
                return
