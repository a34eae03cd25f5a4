"""When a write rule may answer: conditions on the document before and the arguments, as data.

    names       sets of argument names that were seen to work
    document    field -> values that were seen to work, for fields that take few
    arguments   argument -> values that were seen to work, for arguments that take few
    lengths     field -> lengths that were seen to work, for lists of the document that have few
    within      arguments whose every value stands somewhere in the document
    alike       pairs of arguments that are lists of one length
    differs     (argument, path in the document): the value is not the one there
    items       argument that is an object or a list of them -> [fields that such always had, all fields that they ever had]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .relevance import leaves
from .scopes import Missing, at

Guards = dict[str, Any]
INNER = (dict, list)


def allowed(when: Guards | None) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    """Whether all guards hold, of the document before and the arguments. None: there are none."""
    if when is None:
        return lambda before, arguments: True
    asked = usual(when)
    values, lengths = list(when["document"].items()), list(when["lengths"].items())
    within, alike, others = when["within"], when["alike"], when["differs"]

    def hold(before: dict[str, Any], arguments: dict[str, Any]) -> bool:
        if not asked(arguments):
            return False
        for name, seen in values:
            if before.get(name) not in seen:
                return False
        for name, seen in lengths:
            if length_of(before.get(name)) not in seen:
                return False
        if within:  # mostly what names the thing, which stands at the top of its document
            top = before.values() if isinstance(before, dict) else ()
            inner = [value for name in within if type(value := arguments.get(name)) is not str or value not in top]
            if inner and not is_within(before, inner):
                return False
        for one, other in alike:
            if not is_alike(arguments.get(one), arguments.get(other)):
                return False
        return not others or all(differs(arguments.get(name), before, path) for name, path in others)

    return hold


def usual(when: Guards) -> Callable[[dict[str, Any]], bool]:
    """Whether the guards hold that speak of nothing but the arguments."""
    names, values = list(map(frozenset, when["names"])), list(when["arguments"].items())
    items = [(name, *fields) for name, fields in when.get("items", {}).items()]

    def hold(arguments: dict[str, Any]) -> bool:
        if not any(map(arguments.keys().__eq__, names)):
            return False
        for name, seen in values:
            if arguments.get(name) not in seen:
                return False
        return not items or all(has_fields(arguments.get(name), always, ever) for name, always, ever in items)

    return hold


def length_of(value: Any) -> int | None:
    """Length of a list, None for anything else."""
    return len(value) if isinstance(value, list) else None


def is_within(before: dict[str, Any], value: Any) -> bool:
    """Does every scalar of the value stand somewhere in the document?"""
    sought = set(leaves(value))
    left: list[Any] = [[before]]
    for one in left if sought else ():  # what is nearest to the top first
        for item in one.values() if isinstance(one, dict) else one:
            if type(item) is not str and isinstance(item, INNER):
                left.append(item)
            elif item in sought:
                sought.remove(item)
                if not sought:
                    return True
    return not sought


def is_alike(one: Any, other: Any) -> bool:
    """Are both lists, and of one length?"""
    return isinstance(one, list) and isinstance(other, list) and len(one) == len(other)


def has_fields(value: Any, always: list[str], ever: list[str]) -> bool:
    """Is it an object, or a list of objects, with all the fields that such always had and no others than such ever had?"""
    items = value if isinstance(value, list) else [value]
    return all(isinstance(item, dict) and set(always) <= item.keys() <= set(ever) for item in items)


def differs(value: Any, before: dict[str, Any], path: list[Any]) -> bool:
    """Is the value another than the document's at the path?"""
    try:
        return bool(at(before, path) != value)
    except Missing:
        return True
