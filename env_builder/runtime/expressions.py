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
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import clock
from .canonical import canonical
from .numbering import named

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


class Missing(Exception):
    """A path leads nowhere, or a value has another type than the operator needs: the rule does not answer."""


class Nowhere(Missing):
    """A path leads nowhere in a value that is known: whatever the tool does there, it is not what the expression says."""


def nothing(entity_class: str, key: str) -> Any:
    """Look at a world of which nothing is known."""
    return None


class Scope(NamedTuple):
    """What an expression may speak of."""

    before: Any
    arguments: Any
    look: Look = nothing
    last: Any = None
    """Where one position of list arguments is meant: the arguments at the last."""


def evaluate(expression: list[Any], before: Any, arguments: Any, look: Look = nothing) -> Any:
    """Value of the expression; raises Missing where it has none."""
    return value_of(expression, Scope(before, arguments, look))


def value_of(expression: list[Any], scope: Scope) -> Any:
    """The same in a scope at hand."""
    operator = expression[0]
    if operator == "before" or operator == "argument":
        value = scope[operator == "argument"]
        for step in expression[1:]:
            if type(value) is not dict or type(step) is not str or step not in value:
                return _at(scope[operator == "argument"], expression[1:])
            value = value[step]
        return value
    return expression[1] if operator == "constant" else OPERATORS[operator](expression[1:], scope)


def _at(value: Any, path: list[Any]) -> Any:
    for step in path:
        if not ((type(value) is dict and type(step) is str and step in value) or _has(value, step)):
            raise Nowhere(step)
        value = value[step]
    return value


def _has(value: Any, step: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(step, str) and step in value
    return isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value)


def _inside(operands: list[Any], scope: Scope) -> Any:
    value, *path = operands
    return _at(value_of(value, scope), [value_of(step, scope) if type(step) is list else step for step in path])


def _document(operands: list[Any], scope: Scope) -> Any:
    key = value_of(operands[1], scope)
    found = scope.look(operands[0], str(key)) if isinstance(key, str | int) else None
    if found is None:
        raise Missing(key)
    return found


def _find(operands: list[Any], scope: Scope) -> Any:
    rows = _rows(value_of(operands[0], scope))
    return rows[_place(rows, operands[1], value_of(operands[2], scope))]


def _place(rows: list[Any], field: str, wanted: Any) -> int:
    for place, row in enumerate(rows):
        if isinstance(row, dict) and field in row and row[field] == wanted:
            return place
    raise Nowhere(field)


def _agree(operands: list[Any], scope: Scope) -> Any:
    values: list[Any] = []
    for operand in operands:
        try:
            value = value_of(operand, scope)
        except Missing:
            continue
        if values and (type(value) is not type(values[0]) or value != values[0]):
            raise Missing("agree")
        values.append(value)
    if not values:
        raise Missing("agree")
    return values[0]


def _object(operands: list[Any], scope: Scope) -> Any:
    return {name: value_of(expression, scope) for name, expression in operands[0]}


def _sorted(operands: list[Any], scope: Scope) -> Any:
    value = _rows(value_of(operands[0], scope))
    if not all(isinstance(item, str) for item in value):
        raise Missing("sorted")
    return sorted(value)


def _append(operands: list[Any], scope: Scope) -> Any:
    first, *items = (value_of(operand, scope) for operand in operands)
    return [*_rows(first), *items]


def _concat(operands: list[Any], scope: Scope) -> Any:
    return _rows(value_of(operands[0], scope)) + _rows(value_of(operands[1], scope))


def _each(operands: list[Any], scope: Scope) -> Any:
    items, (_, arguments, look, last) = _rows(value_of(operands[0], scope)), scope
    return [value_of(operands[1], Scope(item, arguments, look, last)) for item in items]


def positions(names: list[str], scope: Scope) -> list[Scope]:
    """The scope once for each position of these arguments; raises Missing where they are not lists of one length."""
    lists = [_rows(_at(scope.arguments, [name])) for name in names]
    if len({len(found) for found in lists}) != 1:
        raise Missing("rows")
    each = [{**scope.arguments, **dict(zip(names, row, strict=True))} for row in zip(*lists, strict=True)]
    return [scope._replace(arguments=arguments, last=each[-1]) for arguments in each]


def _each_position(operands: list[Any], scope: Scope) -> Any:
    return [value_of(operands[1], inner) for inner in positions(operands[0], scope)]


def _replace(operands: list[Any], scope: Scope) -> Any:
    e, field, names, key, changes = operands
    rows = list(_rows(value_of(e, scope)))
    for inner in positions(names, scope):
        place = _place(rows, field, value_of(key, inner))
        rows[place] = {**rows[place], **{name: value_of(change, inner) for name, change in changes}}
    return rows


def _number(expression: list[Any], scope: Scope) -> Any:
    value = value_of(expression, scope)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Missing("number")
    return value


def total(values: list[Any]) -> Any:
    """Sum from left to right, as a loop adds (the built-in sum compensates for rounding since Python 3.12)."""
    found: Any = 0
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Missing("total")
        found += value
    return found


def _sign(operands: list[Any], scope: Scope) -> Any:
    return value_of(operands[1] if _number(operands[0], scope) > 0 else operands[2], scope)


def _row(operands: list[Any], scope: Scope) -> Any:
    wanted = {column: value_of(e, scope) for column, e in operands[1]}
    if not all(isinstance(value, str | int | float) for value in wanted.values()):
        raise Missing("row")
    row = scope.look(operands[0], canonical(wanted))
    if row is None:
        raise Missing("row")
    return _at(row, [value_of(step, scope) if isinstance(step, list) else step for step in operands[2:]])


def _match(operands: list[Any], scope: Scope) -> Any:
    wanted = {name: value_of(e, scope) for name, e in operands[1]}
    for row in _rows(value_of(operands[0], scope)):
        if isinstance(row, dict) and all(name in row and row[name] == value for name, value in wanted.items()):
            return row
    raise Missing("match")


def _with(operands: list[Any], scope: Scope) -> Any:
    value = value_of(operands[0], scope)
    if not isinstance(value, dict):
        raise Missing("with")
    return {**value, **{name: value_of(e, scope) for name, e in operands[1]}}


def _first(operands: list[Any], scope: Scope) -> Any:
    for operand in operands:
        try:
            return value_of(operand, scope)
        except Missing:
            continue
    raise Missing("first")


def _same(operands: list[Any], scope: Scope) -> Any:
    if value_of(operands[0], scope) != value_of(operands[1], scope):
        raise Missing("same")
    return value_of(operands[2], scope)


def _last(operands: list[Any], scope: Scope) -> Any:
    if scope.last is None:
        raise Missing("last")
    return value_of(operands[0], scope._replace(arguments=scope.last))


def _nth(operands: list[Any], scope: Scope) -> Any:
    tool, values = operands
    done = scope.look(DONE, tool)
    if not isinstance(done, int):
        raise Missing(tool)
    return _at(values, [done])


def _following(operands: list[Any], scope: Scope) -> Any:
    last = scope.look(LAST, canonical(operands))
    if not isinstance(last, int):
        raise Missing("following")
    return named(last + 1, operands[1])


def _now(operands: list[Any], scope: Scope) -> Any:
    form, seconds = operands
    found = scope.look(NOW, "day" if form == clock.DAY else "exact")
    if not isinstance(found, str):
        raise Missing(form)
    return clock.write(form, clock.after(found, seconds))


def _fresh(operands: list[Any], scope: Scope) -> Any:
    found = scope.look(FRESH, canonical(operands))
    if found is None:
        raise Missing("fresh")
    return found


def _append_above(operands: list[Any], scope: Scope) -> Any:
    more = [operands[2]] if _number(operands[1], scope) > 0 else []
    return _append([operands[0], *more], scope)


def _append_unless_zero(operands: list[Any], scope: Scope) -> Any:
    more = [operands[2]] if _number(operands[1], scope) != 0 else []
    return _append([operands[0], *more], scope)


def _rows(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Missing("list")
    return value


OPERATORS: dict[str, Callable[[list[Any], Scope], Any]] = {
    "before": lambda operands, scope: _at(scope.before, operands),
    "argument": lambda operands, scope: _at(scope.arguments, operands),
    "constant": lambda operands, scope: operands[0],
    "document": _document,
    "at": _inside,
    "find": _find,
    "agree": _agree,
    "object": _object,
    "sorted": _sorted,
    "append": _append,
    "concat": _concat,
    "each": _each,
    "rows": _each_position,
    "row": _row,
    "match": _match,
    "with": _with,
    "first": _first,
    "same": _same,
    "times": lambda operands, scope: _number(operands[0], scope) * _number(operands[1], scope),
    "length": lambda operands, scope: len(_rows(value_of(operands[0], scope))),
    "append_above": _append_above,
    "append_unless_zero": _append_unless_zero,
    "replace": _replace,
    "negative": lambda operands, scope: -_number(operands[0], scope),
    "absolute": lambda operands, scope: abs(_number(operands[0], scope)),
    "round": lambda operands, scope: round(_number(operands[0], scope), operands[1]),
    "plus": lambda operands, scope: _number(operands[0], scope) + _number(operands[1], scope),
    "minus": lambda operands, scope: _number(operands[0], scope) - _number(operands[1], scope),
    "sum": lambda operands, scope: total(_rows(value_of(operands[0], scope))),
    "total": lambda operands, scope: total([_at(row, [operands[1]]) for row in _rows(value_of(operands[0], scope))]),
    "sign": _sign,
    "last": _last,
    "nth": _nth,
    "following": _following,
    "now": _now,
    "fresh": _fresh,
}
