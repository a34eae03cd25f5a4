"""Conditions of refusals over whatever expressions reach: other documents, rows, computed numbers; for each element of a list.

    ["less", e, e2]              the number e is below the number e2
    ["differ", e, e2]            e and e2 are not the same
    ["among", [e, …], [[v, …], …]]   the values of e … are one of these
    ["strange", e, e2]           the object e2 has no field e, or the list e2 no element e
    ["any", [argument, …], skip, condition]
                                 at some position of these list arguments (in it each is its element there) the condition holds;
                                 positions at which the expression `skip` has a value count not; null: all count

Each holds, does not hold (also where a path leads nowhere in what is known), or cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .expressions import Missing, Nowhere, Scope, positions, value_of
from .texts import written


class Untold(Exception):
    """Something speaks for a refusal, but not enough to know."""


Condition = list[Any]
INNER = (dict, list)
KINDS = ("less", "differ", "among", "any")


def holds(condition: Condition, scope: Scope) -> bool | None:
    """Does the condition hold? None where that cannot be told."""
    kind, *operands = condition
    try:
        if kind == "any":
            return _somewhere([holds(operands[2], inner) for inner in counted(condition, scope)])
        if kind == "among":
            return [value_of(e, scope) for e in operands[0]] in operands[1]
        one, other = value_of(operands[0], scope), value_of(operands[1], scope)
    except Nowhere:  # what is known has no such thing: there is nothing to compare
        return False
    except Missing:
        return None
    if kind == "less":
        return one < other if _numbers(one, other) else None
    if kind == "differ":
        return bool(one != other)
    return one not in other if isinstance(one, str) and isinstance(other, INNER) else None


def counted(condition: Condition, scope: Scope) -> Iterator[Scope]:
    """The scopes of an `any` condition's positions that count."""
    _, names, skip, _ = condition
    for inner in positions(names, scope):
        if skip is None or not _has_value(skip, inner):
            yield inner


def said(message: dict[str, Any], scope: Scope) -> str | None:
    """The text of a message with slots, None where one cannot be filled: at the first position where its condition holds."""
    for condition in message["when"]:
        if condition[0] == "any":
            scope = next((inner for inner in counted(condition, scope) if holds(condition[3], inner)), scope)
            break
    texts: list[str] = []
    for piece in message["pieces"]:
        try:
            text = piece if isinstance(piece, str) else written(value_of(piece, scope), "plain", "as_given")
        except Missing:
            return None
        if text is None:
            return None
        texts.append(text)
    return "".join(texts)


def refusal(messages: list[dict[str, Any]], scope: Scope) -> str | None:
    """The text of the one message whose conditions hold, None where no message's do. Raises Untold.

    A message without `pieces` is one that nobody knows well enough to say: where any of its conditions holds, nobody knows.
    Neither it nor a `rare` one counts where its conditions cannot be told.
    Of messages that may apply, the one is said that was seen said where the others applied (`over`), or where nobody knew
    whether they did (`past`).
    """
    sure: set[int] = set()
    partly: set[int] = set()
    unknown: set[int] = set()
    for place, message in enumerate(messages):
        held = [holds(condition, scope) for condition in message["when"]]
        if message["pieces"] is None:
            partly |= {place} if True in held else set()
        elif all(held):
            sure.add(place)
        elif True in held:
            partly.add(place)
        elif False not in held and not message.get("rare"):
            unknown.add(place)
    if not sure | partly | unknown:
        return None
    first = [one for one in sure if sure | partly <= {one, *messages[one]["over"]}
             and unknown <= {*messages[one]["over"], *messages[one]["past"]}]
    text = said(messages[first[0]], scope) if len(first) == 1 else None
    if text is None:
        raise Untold
    return text


def _somewhere(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


def _has_value(expression: list[Any], scope: Scope) -> bool:
    try:
        value_of(expression, scope)
    except Missing:
        return False
    return True


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
