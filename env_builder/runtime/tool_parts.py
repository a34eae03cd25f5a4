"""Parts of a tool that does what one of its arguments says: `api⟨action=cancel⟩` is what `api` does for that value.

In: the names that an environment's programs have, and calls as agents make them. Out: the name of the part that a call asks
for; of a value without a part the tool itself, of which nothing is known. Where a second argument decides further, the parts of
a part are named the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .bindings import Binding

OPEN, CLOSE = "⟨", "⟩"
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
METHODS = SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
"""Methods of HTTP, and those that only read (RFC 9110, 9.2.1 and 9.3; RFC 5789)."""
_PART = re.compile(rf"(.+){OPEN}([^={OPEN}{CLOSE}]+)=([^{OPEN}{CLOSE}]+){CLOSE}", re.DOTALL)


def whole_of(name: str) -> str:
    """Return the name of the whole tool, as agents call it."""
    return name.partition(OPEN)[0]


def values_of(name: str) -> list[str]:
    """Return the values that name a part, the first decision first; none of a whole tool."""
    match = _PART.fullmatch(name)
    return [*values_of(match[1]), match[3]] if match else []


class ToolParts:
    """The parts of an environment's tools."""

    def __init__(self, names: Iterable[str]) -> None:
        self._decides: dict[str, str] = {}
        """Tool, or part, that has parts -> the argument that decides."""
        self._names = frozenset(names)
        for name in self._names:
            while match := _PART.fullmatch(name):
                name = match[1]
                self._decides[name] = match[2]

    def named(self, tool: str, arguments: Any) -> str:
        """Return the part that a call of a whole tool asks for; the tool itself where it has none for these arguments."""
        name = whole_of(tool) if self._decides else tool
        given = arguments if isinstance(arguments, Mapping) else {}
        while name in self._decides and isinstance(value := given.get(self._decides[name]), str):
            part = f"{name}{OPEN}{self._decides[name]}={value}{CLOSE}"
            if part not in self._names and part not in self._decides:
                break
            name = part
        return name

    def whole(self, tool: str) -> str:
        """Return the tool that has a part; of another name itself."""
        return whole_of(tool) if self._decides else tool

    def bound(self, tool: str, source: Binding) -> dict[str, Binding]:
        """Return a binding of a tool for it and all its parts; the real tool has the whole one's name alone."""
        if tool not in self._decides:
            return {tool: source}
        parts = sorted(name for name in self._names if whole_of(name) == tool)
        return {name: lambda ask: source(ask._replace(tool=tool)) for name in parts}


def part_in(row: Mapping[str, Any]) -> str:
    """Return the tool that a call's row of a journal is of, its part where it has one."""
    return str(row.get("part", row["tool"]))


def as_called(steps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return steps as agents make them: with the names of whole tools."""
    return [step | {"tool": whole_of(step["tool"])} if "tool" in step else step for step in steps]


def by_part(rows: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return rows of a journal as graders see them: a call's tool is its part."""
    return tuple([row | {"tool": row["part"]} if "part" in row else row for row in rows])
