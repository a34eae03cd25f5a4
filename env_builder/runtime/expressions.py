"""Expressions of the behaviour language: JSON lists ["operator", …] over the document before, the arguments, other documents.

    ["before", name, …]        value at a path of the document before
    ["argument", name, …]      value at a path of the arguments
    ["constant", value]        the value itself
    ["document", class, e]     the document of the thing of this class that e names, as known just before
    ["at", e, step, …]         value at a path inside e; a step is a name, a position, or an expression that gives one
    ["find", e, name, e2]      the first object of the list e whose field `name` is e2
    ["agree", e, e2, …]        what all of them say that have a value; none where they differ
    ["object", [[name, e], …]] an object in this order
    ["sorted", e]              the list e, sorted
    ["append", e, e1, …]       the list e with the values of e1 … at its end
    ["concat", e, e2]          the list e followed by the list e2
    ["each", e, item]          the list of `item`, once for each element of the list e; in it `before` is the element
    ["rows", [name, …], item]  the list of `item`, once for each position of these arguments (lists of one length); in it
                               each of them is its element there
    ["replace", e, name, [argument, …], key, [[field, e2], …]]
                               the list e of objects, where, for each position of the arguments, the first object whose
                               field `name` is `key` has these fields changed
    ["negative", e] ["absolute", e] ["round", e, digits] ["plus", e, e2] ["minus", e, e2]    of numbers
    ["sum", e]                 the sum of the list of numbers e, from left to right
    ["total", e, name]         sum of the field `name` over the list of objects e
    ["sign", e, e1, e2]        e1 where the number e is above zero, else e2
    ["row", class, [[column, e], …], step, …]
                               value at a path of the row whose columns are so, as far as all that list it agree
    ["match", e, [[name, e2], …]]  the first object of the list e whose fields are all so
    ["with", e, [[name, e2], …]]   the object e with these fields
    ["first", e, …]            the first of them that has a value
    ["same", e, e2, e3]        e3 where e and e2 are the same, else no value
    ["times", e, e2] ["length", e]
    ["last", e]                in `replace` and `rows`: e at the last position of the arguments
    ["nth", tool, [value, …]]  the value for the n-th call of the tool in this episode that worked
    ["following", class, form]
                               the name after the highest one of this form (`numbering`) that a thing of the class has
    ["now", form, seconds]     the instant of the call, so many seconds later, in this form (`clock`)
    ["fresh", place, shape]    a value of this shape (`draws`) that nothing has yet; `place` tells draws of one call apart
    ["append_above", e, n, item] ["append_unless_zero", e, n, item]    the list e with item at its end where the number n
                               is above zero, is not zero; else the list e

An expression is made into a function of its scope once (`compiled`), however often it is asked: nobody may change it then.
Parts that cost more than a look in a dictionary are worked out once in a scope that keeps them, wherever they stand (`shared`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from . import clock
from .amounts import AMOUNTS, list_of
from .canonical import canonical
from .kept import Kept
from .numbering import named
from .scopes import (
    DONE,
    FRESH,
    LAST,
    NAMES,
    NOW,
    SCALARS,
    Expression,
    Look,
    Make,
    Missing,
    Nowhere,
    Run,
    Scope,
    at,
    nothing,
    positions,
    rows,
)

__all__ = [
    "DONE", "FRESH", "LAST", "NOW", "OPERATORS", "Expression", "Look", "Missing", "Nowhere", "Run", "Scope", "compiled",
    "evaluate", "nothing", "path_of", "positions", "shared", "value_of"]

def evaluate(expression: Expression, before: Any, arguments: Any, look: Look = nothing) -> Any:
    """Value of the expression; raises Missing where it has none."""
    return compiled(expression)(Scope(before, arguments, look))


def value_of(expression: Expression, scope: Scope) -> Any:
    """The same in a scope at hand."""
    return compiled(expression)(scope)


def _run(expression: Expression) -> Run:
    return OPERATORS[expression[0]](expression[1:], _run)


compiled = Kept(_run)
"""The expression as a function, kept: from now on nobody may change it."""
COSTLY = ("document", "find", "match", "row", "rows", "sum", "total")


def _shared(expression: Expression) -> Run:
    run = OPERATORS[expression[0]](expression[1:], _shared)
    if expression[0] not in COSTLY:
        return run
    asked = canonical(expression)

    def once(scope: Scope) -> Any:
        worked = scope.worked
        if worked is None:
            return run(scope)
        if asked not in worked:
            worked[asked] = run(scope)
        return worked[asked]

    return once


shared = Kept(_shared)
"""The same of a rule that answers calls: equal parts of its expressions are worked out once in a scope that keeps them."""


def _fields(pairs: Iterable[tuple[str, Expression]], make: Make) -> list[tuple[str, Run]]:
    return [(name, make(expression)) for name, expression in pairs]


def _before(path: list[Any], make: Make) -> Run:
    if len(path) != 1:
        return lambda scope: at(scope.before, path)
    name = path[0]

    def run(scope: Scope) -> Any:
        before = scope.before
        return before[name] if type(before) is dict and type(name) is str and name in before else at(before, path)

    return run


def _argument(path: list[Any], make: Make) -> Run:
    if len(path) != 1:
        return lambda scope: at(scope.arguments, path)
    name = path[0]

    def run(scope: Scope) -> Any:
        given = scope.arguments
        return given[name] if type(given) is dict and type(name) is str and name in given else at(given, path)

    return run


def _constant(operands: list[Any], make: Make) -> Run:
    value = operands[0]
    return lambda scope: value


def path_of(steps: list[Any], make: Make) -> Callable[[Scope], list[Any]]:
    """Steps, those that are expressions worked out."""
    if not any(type(step) is list for step in steps):
        return lambda scope: steps
    runs = [make(step) if type(step) is list else _constant([step], make) for step in steps]
    return lambda scope: [run(scope) for run in runs]


def _inside(operands: list[Any], make: Make) -> Run:
    value, path = make(operands[0]), path_of(operands[1:], make)
    return lambda scope: at(value(scope), path(scope))


def _document(operands: list[Any], make: Make) -> Run:
    kind, named = operands[0], make(operands[1])

    def run(scope: Scope) -> Any:
        key = named(scope)
        found = scope.look(kind, str(key)) if isinstance(key, NAMES) else None
        if found is None:
            raise Missing(key)
        return found

    return run


def _find(operands: list[Any], make: Make) -> Run:
    e, field, sought = list_of(operands[0], make), operands[1], make(operands[2])

    def run(scope: Scope) -> Any:
        found = e(scope)
        return found[_place(found, field, sought(scope))]

    return run


def _place(found: list[Any], field: str, wanted: Any) -> int:
    for place, row in enumerate(found):
        if isinstance(row, dict) and field in row and row[field] == wanted:
            return place
    raise Nowhere(field)


def _agree(operands: list[Any], make: Make) -> Run:
    runs = list(map(make, operands))

    def run(scope: Scope) -> Any:
        values: list[Any] = []
        for one in runs:
            try:
                value = one(scope)
            except Missing:
                continue
            if values and (type(value) is not type(values[0]) or value != values[0]):
                raise Missing("agree")
            values.append(value)
        if not values:
            raise Missing("agree")
        return values[0]

    return run


def _object(operands: list[Any], make: Make) -> Run:
    fields = _fields(operands[0], make)
    return lambda scope: {name: run(scope) for name, run in fields}


def _sorted(operands: list[Any], make: Make) -> Run:
    e = list_of(operands[0], make)

    def run(scope: Scope) -> Any:
        value = e(scope)
        if not all(isinstance(item, str) for item in value):
            raise Missing("sorted")
        return sorted(value)

    return run


def _concat(operands: list[Any], make: Make) -> Run:
    one, other = list_of(operands[0], make), list_of(operands[1], make)
    return lambda scope: one(scope) + other(scope)


def _each(operands: list[Any], make: Make) -> Run:
    e, item = list_of(operands[0], make), make(operands[1])

    def run(scope: Scope) -> Any:
        arguments, look, last = scope.arguments, scope.look, scope.last
        return [item(Scope(element, arguments, look, last)) for element in e(scope)]

    return run


def _each_position(operands: list[Any], make: Make) -> Run:
    names, item = operands[0], make(operands[1])
    return lambda scope: [item(inner) for inner in positions(names, scope)]


def _replace(operands: list[Any], make: Make) -> Run:
    e, field, names = list_of(operands[0], make), *operands[1:3]
    key, changes = make(operands[3]), _fields(operands[4], make)

    def run(scope: Scope) -> Any:
        found = list(e(scope))
        for inner in positions(names, scope):
            place = _place(found, field, key(inner))
            found[place] = {**found[place], **{name: change(inner) for name, change in changes}}
        return found

    return run


def _row(operands: list[Any], make: Make) -> Run:
    kind, columns, path = operands[0], _fields(operands[1], make), path_of(operands[2:], make)

    def run(scope: Scope) -> Any:
        wanted = {column: value(scope) for column, value in columns}
        if not all(isinstance(value, SCALARS) for value in wanted.values()):
            raise Missing("row")
        row = scope.look(kind, canonical(wanted))
        if row is None:
            raise Missing("row")
        return at(row, path(scope))

    return run


def _match(operands: list[Any], make: Make) -> Run:
    e, fields = make(operands[0]), _fields(operands[1], make)

    def run(scope: Scope) -> Any:
        wanted = {name: value(scope) for name, value in fields}
        for row in rows(e(scope)):
            if isinstance(row, dict) and all(name in row and row[name] == value for name, value in wanted.items()):
                return row
        raise Missing("match")

    return run


def _with(operands: list[Any], make: Make) -> Run:
    e, fields = make(operands[0]), _fields(operands[1], make)

    def run(scope: Scope) -> Any:
        value = e(scope)
        if not isinstance(value, dict):
            raise Missing("with")
        return {**value, **{name: one(scope) for name, one in fields}}

    return run


def _first(operands: list[Any], make: Make) -> Run:
    runs = list(map(make, operands))

    def run(scope: Scope) -> Any:
        for one in runs:
            try:
                return one(scope)
            except Missing:
                continue
        raise Missing("first")

    return run


def _same(operands: list[Any], make: Make) -> Run:
    one, other, value = map(make, operands)

    def run(scope: Scope) -> Any:
        if one(scope) != other(scope):
            raise Missing("same")
        return value(scope)

    return run


def _last(operands: list[Any], make: Make) -> Run:
    e = make(operands[0])

    def run(scope: Scope) -> Any:
        if scope.last is None:
            raise Missing("last")
        return e(Scope(scope.before, scope.last, scope.look, scope.last))

    return run


def _told(kind: str, key: str, such: type | tuple[type, ...], made: Callable[[Any], Any]) -> Run:
    """What is made of what a look tells under one of the names above, where that is such."""
    def run(scope: Scope) -> Any:
        found = scope.look(kind, key)
        if found is None or not isinstance(found, such):
            raise Missing(kind)
        return made(found)

    return run


def _now(operands: list[Any], make: Make) -> Run:
    form, seconds = operands
    exactness = "day" if form == clock.DAY else "exact"
    return _told(NOW, exactness, str, lambda found: clock.write(form, clock.after(found, seconds)))


OPERATORS: dict[str, Callable[[list[Any], Make], Run]] = {
    "before": _before,
    "argument": _argument,
    "constant": _constant,
    "document": _document,
    "at": _inside,
    "find": _find,
    "agree": _agree,
    "object": _object,
    "sorted": _sorted,
    "concat": _concat,
    "each": _each,
    "rows": _each_position,
    "row": _row,
    "match": _match,
    "with": _with,
    "first": _first,
    "same": _same,
    "replace": _replace,
    "last": _last,
    "nth": lambda operands, make: _told(DONE, operands[0], int, lambda done: at(operands[1], [done])),
    "following": lambda operands, make: _told(LAST, canonical(operands), int, lambda last: named(last + 1, operands[1])),
    "now": _now,
    "fresh": lambda operands, make: _told(FRESH, canonical(operands), object, lambda found: found),
    **AMOUNTS,
}
