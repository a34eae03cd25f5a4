"""What expressions speak of, and how they say that there is nothing (expressions.py holds the language)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Expression = list[Any]
Look = Callable[[str, str], Any]
"""(class, key) -> document as JSON value, None where it is not known."""
DONE = "#done"
"""The class under which a look tells how many calls of a tool worked in this episode."""
NOW = "#now"
"""The class under which a look tells the ISO instant: by `day` to the day, by `exact` as a clock would; None: nobody knows."""
LAST = "#last"
"""The class under which a look at [class, form] tells the highest number in names, None where nobody knows it."""
FRESH = "#fresh"
"""The class under which a look at [place, shape] tells a drawn value, None where nothing is drawn."""

NAMES = (str, int)
SCALARS = (str, int, float)
NUMBERS = (int, float)


class Missing(Exception):
    """A path leads nowhere, or a value has another type than the operator needs: the rule does not answer."""


class Nowhere(Missing):
    """A path leads nowhere in a value that is known: whatever the tool does there, it is not what the expression says."""


def nothing(entity_class: str, key: str) -> Any:
    """Look at a world of which nothing is known."""
    return None


class Scope:
    """What an expression may speak of."""

    __slots__ = ("arguments", "before", "last", "look", "worked")

    def __init__(
        self, before: Any, arguments: Any, look: Look = nothing, last: Any = None, worked: dict[Any, Any] | None = None,
    ) -> None:
        self.before = before
        self.arguments = arguments
        self.look = look
        self.last = last
        """Where one position of list arguments is meant: the arguments at the last."""
        self.worked = worked
        """What was worked out in it, by what was asked; None: nothing is kept."""


Run = Callable[[Scope], Any]
"""Value of an expression in a scope; raises Missing where it has none."""
Make = Callable[[Expression], Run]
"""What makes a function of an expression."""


def at(value: Any, path: list[Any]) -> Any:
    """What stands at the path; raises Nowhere."""
    for step in path:
        if not ((type(value) is dict and type(step) is str and step in value) or has(value, step)):
            raise Nowhere(step)
        value = value[step]
    return value


def has(value: Any, step: Any) -> bool:
    """Does the step lead anywhere in the value?"""
    if isinstance(value, dict):
        return isinstance(step, str) and step in value
    return isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value)


def amount(value: Any) -> Any:
    """The value, which has to be a number; raises Missing."""
    if isinstance(value, bool) or not isinstance(value, NUMBERS):
        raise Missing("number")
    return value


def positions(names: list[str], scope: Scope) -> list[Scope]:
    """The scope once for each position of these arguments; raises Missing where they are not lists of one length."""
    worked, asked = scope.worked, tuple(names)
    if worked is not None and asked in worked:
        kept: list[Scope] = worked[asked]
        return kept
    before, given, look = scope.before, scope.arguments, scope.look
    lists = [rows(at(given, [name])) for name in names]
    if len({len(found) for found in lists}) != 1:
        raise Missing("rows")
    each = [{**given, **dict(zip(names, row, strict=True))} for row in zip(*lists, strict=True)]
    if worked is None:
        return [Scope(before, arguments, look, each[-1]) for arguments in each]
    found = worked[asked] = [Scope(before, arguments, look, each[-1], {}) for arguments in each]
    return found


def rows(value: Any) -> list[Any]:
    """The value, which has to be a list; raises Missing."""
    if not isinstance(value, list):
        raise Missing("list")
    return value
