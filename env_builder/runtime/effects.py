"""What a write changes besides the thing that it shows: values inside the documents that hang together with it.

A consequence, as data: `class` and `key` (expression: which thing), `path` (names, positions, or expressions that give them),
`by` (expression: what is added to the number there) with `digits` (to which the sum is rounded, null: not), `more`
(expression: what comes to the end of the list there), or `to` (expression: what is put there); `over` (expression of a list,
null: none): once for each of its elements, in which `before` is the element. Where the path leads nowhere nothing changes.
`style`: how the document is written as JSON.
"""

from __future__ import annotations

from typing import Any, Protocol

from .answers import Document
from .canonical import styled
from .expressions import Look, Missing, evaluate, nothing
from .scopes import amount, at, rows
from .world import Name

Consequence = dict[str, Any]


class Known(Protocol):
    """What of the episode is needed."""

    @property
    def look(self) -> Look:
        """Document of a thing as JSON value."""


class Unknowable(Exception):
    """What is put there is not known, so neither is the document from then on."""


def consequences(
    also: list[Consequence], before: Any, arguments: dict[str, Any], state: Known
) -> tuple[tuple[Name, str], ...]:
    """Texts of all other documents that the write is known to change or to leave alone; those not known are left out."""
    if not also:
        return ()
    found: dict[Name, Any] = {}
    styles: dict[Name, dict[str, Any]] = {}
    for one in also:
        try:
            name = (one["class"], str(evaluate(one["key"], before, arguments, state.look)))
        except Missing:
            continue
        there = found[name] if name in found else state.look(*name)
        styles[name] = one["style"]
        try:
            found[name] = None if there is None else applied(one, there, before, arguments, state.look)
        except Unknowable:
            found[name] = None
    known = ((name, value) for name, value in found.items() if value is not None)
    return tuple([(name, Document.of(styled(value, styles[name]), value)) for name, value in known])


def applied(one: Consequence, there: Any, before: Any, arguments: dict[str, Any], look: Look = nothing) -> Any:
    """The other document after one consequence; `there` itself is left as it is. Raises Unknowable."""
    try:
        elements = [before] if one["over"] is None else evaluate(one["over"], before, arguments, look)
    except Missing:
        raise Unknowable from None
    for element in elements:
        try:
            path = [evaluate(step, element, arguments, look) if isinstance(step, list) else step for step in one["path"]]
            old = at(there, path)
        except Missing:
            continue
        there = _put(there, path, _changed(old, one, element, arguments, look))
    return there


def _put(value: Any, path: list[Any], new: Any) -> Any:
    """A copy of the value with `new` at the path."""
    if not path:
        return new
    step, *rest = path
    if isinstance(value, dict):
        return {**value, step: _put(value[step], rest, new)}
    place = step % len(value)
    return [*value[:place], _put(value[place], rest, new), *value[place + 1:]]


def _changed(value: Any, one: Consequence, element: Any, arguments: dict[str, Any], look: Look) -> Any:
    try:
        if "to" in one:
            return evaluate(one["to"], element, arguments, look)
        if "more" in one:
            more = evaluate(one["more"], element, arguments, look)
            return [*rows(value), more]
        number = amount(value) + amount(evaluate(one["by"], element, arguments, look))
    except Missing:
        raise Unknowable from None
    return number if one["digits"] is None else round(number, one["digits"])
