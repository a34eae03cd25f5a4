"""Formulas and conditions over rows of tables: what a trigger or an in-house tool writes, as data.

In: a formula or a condition (JSON lists) and a `RowScope`: the rows that it names. Out: a value; true, false or unknown.

    ["constant", value]
    ["column", name, column]   a column of a named row: `new` and `old` (the row that was written, after and before), `target`
                               (the row that follows), `actor` (column: a table; the acting person's key in it)
    ["argument", step, …]      a value inside the arguments of the call
    ["plus", f, f] ["minus", f, f] ["times", f, f]
    ["sum", table, reference, column]  over the rows of a table whose column `reference` is the key of the target
    ["count", table, reference]
    ["lookup", table, f, column]   a column of the row of a table whose key f is
    ["now", form]              the instant of the act, in a form of `CLOCK_FORMS`
    ["following", table, prefix, width]  prefix and number after the highest number of the table's keys
    ["text", f, …]             the values written one after another

    ["in", f, yes, no]         whether f is one of the list `yes`; unknown if it is in neither list
    ["at_least", f, no, yes]   whether f is `yes` or more; not if it is `no` or less; unknown between

A value that is missing, or of the wrong type, makes the formula `Unanswered`. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

Formula = list[Any]
Row = Mapping[str, Any]


class Unanswered(Exception):
    """The formula has no value for these rows."""


class RowScope(NamedTuple):
    """What a formula may name."""

    rows: Mapping[str, Row]
    arguments: Mapping[str, Any]
    now: float
    """Seconds since 1970 UTC."""
    children: Callable[[str, str], Iterable[Row]]
    """(table, reference) -> the rows of the table that refer to the target."""
    keys: Callable[[str], Iterable[str]]
    """Table -> the keys of its rows."""
    row_at: Callable[[str, str], Row] = lambda table, key: {}
    """(table, key) -> the row."""


def _iso(now: float, digits: int, end: str, between: str = "T") -> str:
    moment = datetime.fromtimestamp(now, UTC)
    seconds = moment.strftime(f"%Y-%m-%d{between}%H:%M:%S")
    return seconds + (f".{moment.microsecond // 10 ** (6 - digits):0{digits}}" if digits else "") + end


CLOCK_FORMS: dict[str, Callable[[float], Any]] = {
    "date": lambda now: _iso(now, 0, "")[:10],
    "seconds_z": lambda now: _iso(now, 0, "Z"),
    "milliseconds_z": lambda now: _iso(now, 3, "Z"),
    "seconds_offset": lambda now: _iso(now, 0, "+00:00"),
    "seconds": lambda now: _iso(now, 0, ""),
    "seconds_space": lambda now: _iso(now, 0, "", " "),
    "epoch": int,
    "epoch_milliseconds": lambda now: int(now * 1000),
}
"""Name -> an instant as a table may write it."""


def evaluate(formula: Formula, scope: RowScope) -> Any:
    """Return the value of a formula. Errors: Unanswered."""
    try:
        return _FORMULAS[formula[0]](scope, *formula[1:])
    except (KeyError, IndexError, TypeError, ValueError):
        raise Unanswered(str(formula)) from None


def holds(condition: Formula | None, scope: RowScope) -> bool | None:
    """Return whether a condition holds; None: unknown."""
    if condition is None:
        return True
    try:
        value = evaluate(condition[1], scope)
    except Unanswered:
        return None
    if condition[0] == "in":
        return True if value in condition[2] else False if value in condition[3] else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return True if value >= condition[3] else False if value <= condition[2] else None


def _argument(scope: RowScope, *path: Any) -> Any:
    value: Any = scope.arguments
    for step in path:
        value = value[step]
    return value


def number_of(value: Any) -> float:
    """Return a number. TypeError: it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} is not a number")
    return value


def _following(scope: RowScope, table: str, prefix: str, width: int) -> str:
    tails = [key[len(prefix):] for key in scope.keys(table) if key.startswith(prefix)]
    return f"{prefix}{max((int(tail) for tail in tails if tail.isdigit()), default=0) + 1:0{width}}"


_FORMULAS: dict[str, Callable[..., Any]] = {
    "constant": lambda scope, value: value,
    "column": lambda scope, name, column: scope.rows[name][column],
    "argument": _argument,
    "plus": lambda scope, one, two: number_of(evaluate(one, scope)) + number_of(evaluate(two, scope)),
    "minus": lambda scope, one, two: number_of(evaluate(one, scope)) - number_of(evaluate(two, scope)),
    "times": lambda scope, one, two: number_of(evaluate(one, scope)) * number_of(evaluate(two, scope)),
    "sum": lambda scope, table, reference, column: sum(
        number_of(row[column]) for row in scope.children(table, reference)),
    "count": lambda scope, table, reference: sum(1 for _ in scope.children(table, reference)),
    "lookup": lambda scope, table, key, column: scope.row_at(table, str(evaluate(key, scope)))[column],
    "now": lambda scope, form: CLOCK_FORMS[form](scope.now),
    "following": _following,
    "text": lambda scope, *parts: "".join(str(evaluate(part, scope)) for part in parts),
}


def is_same(one: Any, two: Any) -> bool:
    """Return whether two values are the same but for the last digits of a float."""
    if isinstance(one, bool) or isinstance(two, bool) or not (isinstance(one, (int, float)) and isinstance(two, (int, float))):
        return type(one) is type(two) and bool(one == two)
    return abs(one - two) <= 1e-6 * max(1.0, abs(one))
