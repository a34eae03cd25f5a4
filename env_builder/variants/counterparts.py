"""Counterparts: what stands in another thing's document where a value stands in this one's.

In: two things of one class in their rooms, each as of an instant. Out: value -> counterpart, over the documents of both and of
the things that they name. Sees: fields by name, elements of lists and names of things by their place. Does not see: which of
two equal values is meant; where they have different counterparts there is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from env_builder.runtime.answers import parsed
from env_builder.runtime.episode import Room
from env_builder.runtime.world import Name

_SHORTEST = 2
_WORD = re.compile(r"\w")


class Counterparts:
    """Values of the documents around one thing, and what they are around another."""

    def __init__(self, here: Room, there: Room, classes: Mapping[str, tuple[str, ...]], free: frozenset[str]) -> None:
        """`classes`: thing -> classes that have one of that name; `free`: values that stay as they are, whatever holds them."""
        self._here, self._there, self._classes, self._free = here, there, classes, free
        self._pairs: dict[str, set[str]] = {}
        self._fixed: dict[str, str] = {}
        self.known: set[str] = set()
        """All values of the documents on this side."""
        self.things: dict[Name, Name] = {}
        """Thing -> its counterpart."""

    def add(self, kind: str, one: str, other: str, named: frozenset[str]) -> bool:
        """Take in two things, and those of `named` that their documents name. False where one of them is not known."""
        if (kind, one) in self.things:
            return self.things[kind, one] == (kind, other)
        first, second = self._here.document((kind, one)), self._there.document((kind, other))
        if first is None or second is None:
            return False
        self.things[kind, one] = (kind, other)
        self.known.add(one)
        self._fixed[one] = other
        before = set(self._pairs)
        self._walk(parsed(first), parsed(second))
        return all(
            self.add(inner, value, next(iter(self._pairs[value])), named)
            for value in sorted(set(self._pairs) - before)
            if value in named and value not in self._fixed and len(self._pairs[value]) == 1
            for inner in self._classes.get(value, ()))

    def of(self, value: str) -> str | None:
        """The counterpart of a value, itself where no document holds it; None where there is none, or several."""
        if value not in self.known or value in self._free:
            return value
        found = {self._fixed[value]} if value in self._fixed else self._pairs.get(value, set())
        return next(iter(found)) if len(found) == 1 else None

    def reworded(self, text: str) -> str:
        """The text with the counterparts of all values that are words of it. Raises LookupError where one has none."""
        values = (value for value in self.known | self._free if len(value) >= _SHORTEST and value in text)
        there = sorted(values, key=lambda value: (-len(value), value))
        if not there:
            return text

        def exchanged(match: re.Match[str]) -> str:
            other = self.of(match[0])
            if other is None:
                raise LookupError(match[0])
            return other

        return re.sub("|".join(map(_whole, there)), exchanged, text)

    def exchanged(self, value: Any) -> Any:
        """A JSON value with the counterparts of its single values. Raises LookupError where one has none."""
        if isinstance(value, dict):
            return {name: self.exchanged(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.exchanged(inner) for inner in value]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return value
        text = value if isinstance(value, str) else json.dumps(value)
        other = self.of(text)
        if other is None:
            raise LookupError(text)
        return other if isinstance(value, str) else json.loads(other)

    def _walk(self, one: Any, other: Any) -> None:
        if isinstance(one, dict):
            self._named(one, other if isinstance(other, dict) else {})
        elif isinstance(one, list):
            for place, value in enumerate(one):
                self._walk(value, other[place] if isinstance(other, list) and place < len(other) else None)
        elif isinstance(one, str | int | float) and not isinstance(one, bool):
            alike = isinstance(other, str | int | float) and not isinstance(other, bool) and isinstance(one, str) == isinstance(
                other, str)
            self._pair(_text(one), _text(other) if alike else None)

    def _named(self, one: dict[str, Any], other: dict[str, Any]) -> None:
        """Fields by name; names that only one side has (things that are filed under their names) by their place."""
        own, others = [name for name in one if name not in other], [name for name in other if name not in one]
        for name in one:
            if name in other:
                self._walk(one[name], other[name])
        for place, name in enumerate(own):
            there = others[place] if place < len(others) else None
            self._pair(name, there)
            self._walk(one[name], None if there is None else other[there])

    def _pair(self, one: str, other: str | None) -> None:
        self.known.add(one)
        if other is not None:
            self._pairs.setdefault(one, set()).add(other)


def _text(value: str | int | float) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _whole(value: str) -> str:
    """A pattern for the value where it is no part of a longer word."""
    before = r"(?<!\w)" if _WORD.match(value[0]) else ""
    after = r"(?!\w)" if _WORD.match(value[-1]) else ""
    return before + re.escape(value) + after


def texts_of(value: Any) -> Iterator[str]:
    """The single values of a JSON value as texts; names of fields are none."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_of(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield _text(value)
