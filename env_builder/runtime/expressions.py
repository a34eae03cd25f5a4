"""Expressions of the behaviour language: JSON lists ["operator", …] over the document before, the arguments, other documents.

    ["before", name, …]        value at a path of the document before
    ["argument", name, …]      value at a path of the arguments
    ["constant", value]        the value itself
    ["document", class, e]     the document of the entity of this class that e names, as known just before
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
    ["else", e, e2]            e, or e2 where a path of e leads nowhere in what is known
    ["given", name, e, e2]     e where this argument is given, else e2
    ["first", e, …]            the first of them that has a value
    ["same", e, e2, e3]        e3 where e and e2 are the same, else no value
    ["times", e, e2] ["over", e, e2] ["length", e]
    ["last", e]                in `replace` and `rows`: e at the last position of the arguments
    ["nth", tool, [value, …]]  the value for the n-th call of the tool in this episode that worked
    ["following", class, form]
                               the name after the highest one of this form (`numbering`) that an entity of the class has
    ["now", form, seconds]     the instant of the call, so many seconds later, in this form (`clock`)
    ["now", form, seconds, instant]    the same, after this instant where the log has no clock
    ["fresh", place, shape]    a value of this shape (`numbering`) that nothing has yet; `place` tells draws of one call apart
    ["append_above", e, n, item] ["append_unless_zero", e, n, item]    the list e with item at its end where the number n
                               is above zero, is not zero; else the list e
    ["choose", e, [[v, e2], …]]  the e2 of the first v that e is
    ["text", e, …]             their values written one after the other
    ["later", e, n]            the day or instant e, written as it is, n days later
    ["without", e, e2]         the list e without its elements that are e2, or objects with e2 in a field
    ["amend", e, e2, [[name, e3], …]]  the list e, its first object with e2 in a field with these fields; in e3 `before` is it
    ["next", e]                the name after the name e: its last number one higher
    ["joined", e, e2]          the elements of both lists, each once, sorted

An expression is made into a function of its scope once (`compiled`), however often it is asked: nobody may change it then.
Parts that cost more than a dictionary read are worked out once in a scope that keeps them, wherever they stand (`shared`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from . import clock
from .answers import UNKNOWN_VALUE
from .canonical import IdentityCache, canonical
from .numbering import named, next_name

Expression = list[Any]
Look = Callable[[str, str], Any]
"""(class, key) -> document as JSON value, None where it is not known."""
DONE = "#done"
"""The class under which a read tells how many calls of a tool worked in this episode."""
NOW = "#now"
"""The class under which a read tells the ISO instant: by `day` to the day, by `exact` as a clock would; None: unknown."""
LAST = "#last"
"""The class under which a read at [class, form] tells the highest number in names, None where it is unknown."""
SPOKEN = "#spoken"
"""The argument under which a consequence knows what its act speaks of: the document before it, or its answer."""
FRESH = "#fresh"
"""The class under which a read at [place, shape] tells a sampled value, None where nothing is sampled."""

NAMES = (str, int)
SCALARS = (str, int, float)
NUMBERS = (int, float)


class NoValue(Exception):
    """A path leads nowhere, or a value has another type than the operator needs: the rule does not answer."""


class Nowhere(NoValue):
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
"""Value of an expression in a scope; raises NoValue where it has none."""
Make = Callable[[Expression], Run]
"""What makes a function of an expression."""
Operator = Callable[[list[Any], Make], Run]
"""What makes a function of an operator's operands."""


def at(value: Any, path: list[Any]) -> Any:
    """Return the value at the path; raises Nowhere."""
    for step in path:
        if isinstance(value, dict):
            if not isinstance(step, str) or step not in value:
                raise Nowhere(step)
        elif not (isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value)):
            raise Nowhere(step)
        value = value[step]
    if type(value) is str and value.startswith(UNKNOWN_VALUE):
        raise NoValue("unknown")
    return value


def amount(value: Any) -> Any:
    """Return the value, which has to be a number; raises NoValue."""
    if isinstance(value, bool) or not isinstance(value, NUMBERS):
        raise NoValue("number")
    return value


def positions(names: list[str], scope: Scope) -> list[Scope]:
    """Return the scope once for each position of these arguments; raises NoValue if they are not lists of one length."""
    worked, question = scope.worked, tuple(names)
    if worked is not None and question in worked:
        kept: list[Scope] = worked[question]
        return kept
    before, given, look = scope.before, scope.arguments, scope.look
    lists = [rows(at(given, [name])) for name in names]
    if len({len(scopes) for scopes in lists}) != 1:
        raise NoValue("rows")
    each = [{**given, **dict(zip(names, row, strict=True))} for row in zip(*lists, strict=True)]
    if worked is None:
        return [Scope(before, arguments, look, each[-1]) for arguments in each]
    scopes = worked[question] = [Scope(before, arguments, look, each[-1], {}) for arguments in each]
    return scopes


def rows(value: Any) -> list[Any]:
    """Return the value, which has to be a list; raises NoValue."""
    if not isinstance(value, list):
        raise NoValue("list")
    return value


def evaluate(expression: Expression, before: Any, arguments: Any, look: Look = nothing) -> Any:
    """Value of the expression; raises NoValue where it has none."""
    return compiled(expression)(Scope(before, arguments, look))


def _run(expression: Expression) -> Run:
    return OPERATORS[expression[0]](expression[1:], _run)


compiled = IdentityCache(_run)
"""The expression as a function, kept: from now on nobody may change it."""
COSTLY = ("document", "find", "match", "row", "rows", "sum", "total")


def _shared(expression: Expression) -> Run:
    run = OPERATORS[expression[0]](expression[1:], _shared)
    if expression[0] not in COSTLY:
        return run
    text = canonical(expression)

    def once(scope: Scope) -> Any:
        worked = scope.worked
        if worked is None:
            return run(scope)
        if text not in worked:
            worked[text] = run(scope)
        return worked[text]

    return once


shared = IdentityCache(_shared)
"""The same of a rule that answers calls: equal parts of its expressions are worked out once in a scope that keeps them."""


def _fields(pairs: Iterable[tuple[str, Expression]], make: Make) -> list[tuple[str, Run]]:
    return [(name, make(expression)) for name, expression in pairs]


def _argument(path: list[Any], make: Make, holder: Callable[[Scope], Any] = operator.attrgetter("arguments")) -> Run:
    """Give the value at a path of the arguments, or of what else of the scope the `holder` gives."""
    if len(path) != 1:
        return lambda scope: at(holder(scope), path)
    name = path[0]

    def run(scope: Scope) -> Any:
        given = holder(scope)
        value = given[name] if type(given) is dict and type(name) is str and name in given else at(given, path)
        if type(value) is str and value.startswith(UNKNOWN_VALUE):
            raise NoValue("unknown")
        return value

    return run


def _typed(work: Callable[..., Any], *kinds: Callable[[Any, Make], Run]) -> Operator:
    """Return an operator that works on the values of its operands, each of a kind."""
    def operator_of(operands: list[Any], make: Make) -> Run:
        runs = [kind(operands[place], make) for place, kind in enumerate(kinds)]
        return lambda scope: work(*[run(scope) for run in runs])

    return operator_of


def _over(one: float, other: float) -> float:
    if not other:
        raise NoValue
    return one / other


def _list(expression: Expression, make: Make) -> Run:
    e = make(expression)
    return lambda scope: rows(e(scope))


def _number(expression: Expression, make: Make) -> Run:
    e = make(expression)
    return lambda scope: amount(e(scope))


def _written(value: Any, make: Make) -> Run:
    """Take an operand as it is written."""
    return lambda scope: value


def _append(operands: list[Any], make: Make) -> Run:
    runs = list(map(make, operands))

    def run(scope: Scope) -> Any:
        first, *items = [one(scope) for one in runs]
        return [*rows(first), *items]

    return run


def _append_where(holds: Callable[[Any], bool]) -> Operator:
    """Return the list with the item at its end where this holds of the number."""
    def operator_of(operands: list[Any], make: Make) -> Run:
        e, number, item = operands
        with_it, without, n = _append([e, item], make), _append([e], make), _number(number, make)
        return lambda scope: (with_it if holds(n(scope)) else without)(scope)

    return operator_of


def total(values: list[Any]) -> Any:
    """Sum from left to right, as a loop adds (the built-in sum compensates for rounding since Python 3.12)."""
    sum_so_far: Any = 0
    for value in values:
        sum_so_far += amount(value)
    return sum_so_far


def _sign(operands: list[Any], make: Make) -> Run:
    number, (above, other) = _number(operands[0], make), list(map(make, operands[1:]))
    return lambda scope: above(scope) if number(scope) > 0 else other(scope)


def path_of(steps: list[Any], make: Make) -> Callable[[Scope], list[Any]]:
    """Return steps, those that are expressions worked out."""
    if not any(type(step) is list for step in steps):
        return lambda scope: steps
    runs = [make(step) if type(step) is list else _written(step, make) for step in steps]
    return lambda scope: [run(scope) for run in runs]


def _inside(operands: list[Any], make: Make) -> Run:
    value, path = make(operands[0]), path_of(operands[1:], make)
    return lambda scope: at(value(scope), path(scope))


def _document(operands: list[Any], make: Make) -> Run:
    kind, named = operands[0], make(operands[1])

    def run(scope: Scope) -> Any:
        key = named(scope)
        text = scope.look(kind, str(key)) if isinstance(key, NAMES) else None
        if text is None:
            raise NoValue(key)
        return text

    return run


def _find(operands: list[Any], make: Make) -> Run:
    e, field, sought = _list(operands[0], make), operands[1], make(operands[2])

    def run(scope: Scope) -> Any:
        items = e(scope)
        return items[_place(items, field, sought(scope))]

    return run


def _place(items: list[Any], field: str, wanted: Any) -> int:
    for place, row in enumerate(items):
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
            except NoValue:
                continue
            if values and (type(value) is not type(values[0]) or value != values[0]):
                raise NoValue("agree")
            values.append(value)
        if not values:
            raise NoValue("agree")
        return values[0]

    return run


def _object(operands: list[Any], make: Make) -> Run:
    fields = _fields(operands[0], make)
    return lambda scope: {name: run(scope) for name, run in fields}


def _sorted(items: list[Any]) -> list[str]:
    if not all(isinstance(item, str) for item in items):
        raise NoValue("sorted")
    return sorted(items)


def _each(operands: list[Any], make: Make) -> Run:
    e, item = _list(operands[0], make), make(operands[1])

    def run(scope: Scope) -> Any:
        arguments, look, last = scope.arguments, scope.look, scope.last
        return [item(Scope(element, arguments, look, last)) for element in e(scope)]

    return run


def _replace(operands: list[Any], make: Make) -> Run:
    e, field, names = _list(operands[0], make), *operands[1:3]
    key, changes = make(operands[3]), _fields(operands[4], make)

    def run(scope: Scope) -> Any:
        items = list(e(scope))
        for inner in positions(names, scope):
            place = _place(items, field, key(inner))
            items[place] = {**items[place], **{name: change(inner) for name, change in changes}}
        return items

    return run


def _row(operands: list[Any], make: Make) -> Run:
    kind, columns, path = operands[0], _fields(operands[1], make), path_of(operands[2:], make)

    def run(scope: Scope) -> Any:
        wanted = {column: value(scope) for column, value in columns}
        if not all(isinstance(value, SCALARS) for value in wanted.values()):
            raise NoValue("row")
        row = scope.look(kind, canonical(wanted))
        if row is None:
            raise NoValue("row")
        return at(row, path(scope))

    return run


def _match(operands: list[Any], make: Make) -> Run:
    e, fields = make(operands[0]), _fields(operands[1], make)

    def run(scope: Scope) -> Any:
        wanted = {name: value(scope) for name, value in fields}
        for row in rows(e(scope)):
            if isinstance(row, dict) and all(name in row and row[name] == value for name, value in wanted.items()):
                return row
        raise NoValue("match")

    return run


def _with(operands: list[Any], make: Make) -> Run:
    e, fields = make(operands[0]), _fields(operands[1], make)

    def run(scope: Scope) -> Any:
        value = e(scope)
        if not isinstance(value, dict):
            raise NoValue("with")
        return {**value, **{name: one(scope) for name, one in fields}}

    return run


def _first(operands: list[Any], make: Make) -> Run:
    runs = list(map(make, operands))

    def run(scope: Scope) -> Any:
        for one in runs:
            try:
                return one(scope)
            except NoValue:
                continue
        raise NoValue("first")

    return run


def _else(operands: list[Any], make: Make) -> Run:
    one, other = map(make, operands)

    def run(scope: Scope) -> Any:
        try:
            return one(scope)
        except Nowhere:
            return other(scope)

    return run


def _given(operands: list[Any], make: Make) -> Run:
    name, one, other = operands[0], *map(make, operands[1:])
    return lambda scope: one(scope) if name in scope.arguments else other(scope)


def _same(operands: list[Any], make: Make) -> Run:
    one, other, value = map(make, operands)

    def run(scope: Scope) -> Any:
        if one(scope) != other(scope):
            raise NoValue("same")
        return value(scope)

    return run


def _last(operands: list[Any], make: Make) -> Run:
    e = make(operands[0])

    def run(scope: Scope) -> Any:
        if scope.last is None:
            raise NoValue("last")
        return e(Scope(scope.before, scope.last, scope.look, scope.last))

    return run


def _external(kind: str, key: str, such: type | tuple[type, ...], made: Callable[[Any], Any]) -> Run:
    """Return what is made of what a look tells under one of the names above, where that is such."""
    def run(scope: Scope) -> Any:
        given = scope.look(kind, key)
        if given is None or not isinstance(given, such):
            raise NoValue(kind)
        return made(given)

    return run


def _now(operands: list[Any], make: Make) -> Run:
    form, seconds, *without_clock = operands
    exactness = "day" if clock.is_day(form) else without_clock[0] if without_clock else "exact"
    return _external(NOW, exactness, str, lambda instant: clock.write(form, clock.after(instant, seconds)))


def _choose(operands: list[Any], make: Make) -> Run:
    e, ways = make(operands[0]), [(value, make(one)) for value, one in operands[1]]

    def run(scope: Scope) -> Any:
        chosen = e(scope)
        for value, one in ways:
            if type(value) is type(chosen) and value == chosen:
                return one(scope)
        raise NoValue("choose")

    return run


def _text(operands: list[Any], make: Make) -> Run:
    runs = list(map(make, operands))
    return lambda scope: "".join(map(_plain, [run(scope) for run in runs]))


def _plain(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, SCALARS):
        raise NoValue("text")
    return str(value)


def later(value: Any, n_days: Any) -> Any:
    """Return a day or instant so many days later, in its own form; raises NoValue where it is none."""
    written = clock.read(value)
    if written is None:
        raise NoValue("later")
    try:
        after = written[1] + timedelta(days=amount(n_days))
    except OverflowError:
        raise NoValue("later") from None
    if clock.is_ambiguous(*written, after):
        raise NoValue("later")
    return clock.write(written[0], after)


def without(items: list[Any], wanted: Any) -> list[Any]:
    """Return the list without the elements that are so, or that are objects with it in a field; raises Nowhere for none."""
    remaining = [item for item in items if item != wanted and not (isinstance(item, dict) and wanted in item.values())]
    if len(remaining) == len(items):
        raise Nowhere("without")
    return remaining


def _amend(operands: list[Any], make: Make) -> Run:
    e, wanted, fields = _list(operands[0], make), make(operands[1]), _fields(operands[2], make)

    def run(scope: Scope) -> Any:
        items, named = list(e(scope)), wanted(scope)
        place = next((at for at, item in enumerate(items) if isinstance(item, dict) and named in item.values()), None)
        if place is None:
            raise Nowhere("amend")
        inner = Scope(items[place], scope.arguments, scope.look, scope.last)
        items[place] = {**items[place], **{name: one(inner) for name, one in fields}}
        return items

    return run


def _next(name: Any) -> Any:
    after = next_name(name)
    if after is None:
        raise NoValue(name)
    return after


def _joined(items: list[Any], more: list[Any]) -> list[str]:
    return sorted(set(_sorted([*items, *more])))


def _rows(operands: list[Any], make: Make) -> Run:
    names, item = operands[0], make(operands[1])
    return lambda scope: [item(inner) for inner in positions(names, scope)]


OPERATORS: dict[str, Operator] = {
    "before": lambda path, make: _argument(path, make, operator.attrgetter("before")), "argument": _argument,
    "constant": lambda operands, make: _written(operands[0], make), "document": _document, "at": _inside, "find": _find,
    "agree": _agree, "object": _object, "sorted": _typed(_sorted, _list), "concat": _typed(operator.add, _list, _list),
    "each": _each, "rows": _rows, "row": _row, "match": _match, "with": _with, "first": _first,
    "else": _else, "given": _given, "same": _same,
    "replace": _replace, "last": _last,
    "nth": lambda operands, make: _external(DONE, operands[0], int, lambda done: at(operands[1], [done])),
    "following": lambda operands, make: _external(LAST, canonical(operands), int, lambda last: named(last + 1, operands[1])),
    "now": _now,
    "fresh": lambda operands, make: _external(FRESH, canonical(operands), object, lambda given: given),
    "append": _append, "append_above": _append_where(lambda number: bool(number > 0)),
    "append_unless_zero": _append_where(lambda number: bool(number != 0)),
    "times": _typed(operator.mul, _number, _number), "over": _typed(_over, _number, _number),
    "plus": _typed(operator.add, _number, _number),
    "later": _typed(later, lambda e, make: make(e), _number), "without": _typed(without, _list, lambda e, make: make(e)),
    "amend": _amend, "joined": _typed(_joined, _list, _list), "choose": _choose, "text": _text,
    "next": _typed(_next, lambda e, make: make(e)),
    "minus": _typed(operator.sub, _number, _number), "negative": _typed(operator.neg, _number),
    "absolute": _typed(abs, _number), "round": _typed(round, _number, _written), "length": _typed(len, _list),
    "sum": _typed(total, _list),
    "total": _typed(lambda items, name: total([at(row, [name]) for row in items]), _list, _written), "sign": _sign}
