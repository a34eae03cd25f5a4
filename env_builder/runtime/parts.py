"""Answers made of one part for each name that was asked for: a `parts` rule, as data.

    argument    the list of names
    notation    how the object is written: `json` with its `style` of json.dumps, or `python`
    order       `given`: parts stand in the order of the names; `fixed`: always in one order, told by the answers that are known

A name that an answer leaves out has no part. Sees the answers to other questions, in the state of the moment; a name with two
different parts is not known.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any

from .answers import parse

NOTHING = object()
"""Stands for the part of a name that answers leave out."""
Known = dict[str, Any]


def put_together(rule: dict[str, Any], arguments: dict[str, Any], asked: Iterable[tuple[dict[str, Any], str]]) -> str | None:
    """The answer made of parts of other answers, None where one is not known."""
    names = arguments.get(rule["argument"])
    rest = {name: value for name, value in arguments.items() if name != rule["argument"]}
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        return None
    parts: Known = {}
    unsure: set[str] = set()
    after: dict[str, set[str]] = {}
    for given, content in asked:
        value = read(rule["notation"], content)
        theirs = given.get(rule["argument"])
        if value is None or not isinstance(theirs, list) or {**given, rule["argument"]: 0} != {**rest, rule["argument"]: 0}:
            continue
        for name in filter(lambda name: isinstance(name, str), theirs):
            part = value.get(name, NOTHING)
            if parts.setdefault(name, part) != part:
                unsure.add(name)
        shown = list(value)
        for one, other in pairwise(shown):
            after.setdefault(one, set()).add(other)
    if any(name not in parts or name in unsure for name in names):
        return None
    there = [name for name in dict.fromkeys(names) if parts[name] is not NOTHING]
    ordered = there if rule["order"] == "given" else _in_order(there, after)
    return None if ordered is None else written(rule, {name: parts[name] for name in ordered})


@lru_cache(4096)
def read(notation: str, content: str) -> dict[str, Any] | None:
    """The object of a text, None where it is none that would be written the same again. Not to be changed."""
    if content[:1] != "{":
        return None
    if notation == "json":
        value = parse(content)
    else:
        try:
            value = ast.literal_eval(content)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    return value if isinstance(value, dict) and all(isinstance(name, str) for name in value) else None


def written(rule: dict[str, Any], value: dict[str, Any]) -> str:
    """The text of the object."""
    return repr(value) if rule["notation"] == "python" else json.dumps(value, **rule["style"])


def _in_order(names: list[str], after: dict[str, set[str]]) -> list[str] | None:
    """The names in the one order that all answers follow, None where they do not tell."""
    reach = {name: _reached(name, after) for name in names}
    ordered = sorted(names, key=lambda name: (-len(reach[name] & set(names)), name))
    follows = all(other in reach[one] and one not in reach[other] for one, other in pairwise(ordered))
    return ordered if follows else None


def _reached(name: str, after: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for other in after.get(waiting.pop(), set()) - found:
            found.add(other)
            waiting.append(other)
    return found
