"""What a write changes besides the thing that it shows: values inside the documents that hang together with it.

A consequence, as data: `class` and `key` (expression: which thing), `path` (names, positions, or expressions that give them),
`by` (expression: what is added to the number there) with `digits` (to which the sum is rounded, null: not), `more`
(expression: what comes to the end of the list there), or `to` (expression: what is put there); `over` (expression of a list,
null: none): once for each of its elements, in which `before` is the element. Where the path leads nowhere nothing changes.
`style`: how the document is written as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .answers import Document
from .canonical import encoding
from .expressions import Look, Missing, Scope, nothing, path_of, shared
from .kept import Kept
from .scopes import amount, at, rows
from .world import Name

Consequence = dict[str, Any]


class Unknowable(Exception):
    """What is put there is not known, so neither is the document from then on."""


class Effect:
    """One consequence, ready to be worked out."""

    __slots__ = ("_adds", "_change", "_digits", "_over", "_path", "_puts", "encode", "key", "kind")

    def __init__(self, one: Consequence) -> None:
        self.kind: str = one["class"]
        self.key = shared(one["key"])
        self.encode = encoding(one["style"])
        self._over = None if one["over"] is None else shared(one["over"])
        self._path = path_of(one["path"], shared)
        self._puts, self._adds = "to" in one, "more" in one
        self._change = shared(one["to"] if self._puts else one["more"] if self._adds else one["by"])
        self._digits: int | None = one["digits"] if not (self._puts or self._adds) else None

    def applied(self, there: Any, scope: Scope) -> Any:
        """The other document after it; `there` itself is left as it is. Raises Unknowable."""
        if self._over is None:
            return self._once(there, scope)
        try:
            elements = self._over(scope)
        except Missing:
            raise Unknowable from None
        for element in elements:
            there = self._once(there, Scope(element, scope.arguments, scope.look))
        return there

    def _once(self, there: Any, scope: Scope) -> Any:
        try:
            path = self._path(scope)
            old = at(there, path)
        except Missing:
            return there
        try:
            new = self._changed(old, scope)
        except Missing:
            raise Unknowable from None
        return _put(there, path, new)

    def _changed(self, value: Any, scope: Scope) -> Any:
        if self._puts:
            return self._change(scope)
        if self._adds:
            more = self._change(scope)
            return [*rows(value), more]
        number = amount(value) + amount(self._change(scope))
        return number if self._digits is None else round(number, self._digits)


def consequences(also: Sequence[Effect], scope: Scope) -> tuple[tuple[Name, str], ...]:
    """Texts of all other documents that the write is known to change or to leave alone; those not known are left out."""
    found: dict[Name, Any] = {}
    encoders: dict[Name, Callable[[Any], str]] = {}
    for effect in also:
        try:
            name = (effect.kind, str(effect.key(scope)))
        except Missing:
            continue
        there = found[name] if name in found else scope.look(*name)
        encoders[name] = effect.encode
        try:
            found[name] = None if there is None else effect.applied(there, scope)
        except Unknowable:
            found[name] = None
    return tuple([
        (name, Document.of(encoders[name](value), value)) for name, value in found.items() if value is not None])


def effects_of(rule: dict[str, Any]) -> tuple[Effect, ...]:
    """What a rule says of other documents."""
    return tuple(map(Effect, rule.get("also", ())))


def applied(one: Consequence, there: Any, before: Any, arguments: dict[str, Any], look: Look = nothing) -> Any:
    """The other document after one consequence, which from now on nobody may change; `there` is left as it is.

    Raises Unknowable."""
    return _ready(one).applied(there, Scope(before, arguments, look))


_ready = Kept(Effect)


def _put(value: Any, path: list[Any], new: Any) -> Any:
    """A copy of the value with `new` at the path."""
    if not path:
        return new
    step, *rest = path
    if isinstance(value, dict):
        return {**value, step: _put(value[step], rest, new)}
    place = step % len(value)
    return [*value[:place], _put(value[place], rest, new), *value[place + 1:]]
