"""Formulas that could explain a value which an act wrote.

In: the rows around the value. Out: formulas (`runtime.office.formulas`) that give it, simple ones first: constants, columns,
instants, counts, sums over rows that refer to the target, sums, differences and products of two columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from env_builder.runtime.office.formulas import CLOCK_FORMS, Formula, RowScope, Unanswered, evaluate, is_same

_TAIL = re.compile(r"^(.*?)(\d+)$", re.DOTALL)
CLOCK_TOLERANCE = 5.0
"""Seconds by which a written instant may differ from the log's."""


def candidates(scope: RowScope, value: Any, tables: Mapping[str, Any]) -> Iterator[Formula]:
    """Yield formulas that give the value."""
    if value is None or isinstance(value, (str, int, float)):
        yield ["constant", value]
    columns: list[Formula] = [["column", name, column] for name, row in scope.rows.items() if name != "after" for column in row]
    yield from (formula for formula in columns if is_same(_value(formula, scope), value))
    distant = lookups(scope, columns, tables)
    yield from (formula for formula in distant if is_same(_value(formula, scope), value))
    yield from (["now", form] for form in CLOCK_FORMS if is_same(CLOCK_FORMS[form](scope.now), value))
    if isinstance(value, str):
        yield from key_candidates("", scope, value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    for table, described in tables.items():
        for reference, kind in described["types"].items():
            if kind != "real" and scope.children(table, reference):
                yield ["count", table, reference]
                yield from (["sum", table, reference, column] for column, own in described["types"].items()
                            if own in ("integer", "real", "numeric"))
    numbers = [formula for formula in (*columns, *distant) if _is_number(_value(formula, scope))]
    numbers.append(["constant", 1])
    for number, one in enumerate(numbers):
        for two in numbers:
            yield from ([word, one, two] for word in ("plus", "minus", "times")
                        if (word == "minus" or numbers.index(two) >= number)
                        and is_same(_value([word, one, two], scope), value))
    changed = [column for column, after in scope.rows["new"].items() if _is_number(after)
               and _is_number(scope.rows["old"].get(column)) and after != scope.rows["old"][column]]
    for column in changed:
        delta = ["minus", ["column", "new", column], ["column", "old", column]]
        yield from ([word, one, delta] for one in numbers for word in ("plus", "minus"))


def lookups(scope: RowScope, formulas: Iterable[Formula], tables: Mapping[str, Any]) -> list[Formula]:
    """Return the columns of the rows whose keys the formulas give."""
    distant: list[Formula] = []
    for formula in formulas:
        key = _value(formula, scope)
        if isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool)):
            distant += [["lookup", table, formula, column] for table in tables for column in scope.row_at(table, str(key))]
    return distant


def key_candidates(table: str, scope: RowScope, key: Any) -> Iterator[Formula]:
    """Yield formulas that give the key of a new row."""
    for name, row in scope.rows.items():
        if name in ("target", "after"):
            continue
        for column, value in row.items():
            if value == key:
                yield ["column", name, column]
            elif isinstance(value, str) and len(value) > 1 and isinstance(key, str) and key.count(value) == 1:
                before, _, after = key.partition(value)
                start = [part for part in (["constant", before], ["column", name, column]) if part[1] != ""]
                yield ["text", *start, *([["constant", after]] if after else [])]
                yield from (["text", *start, ["constant", after[:-len(str(number))]], ["column", name, own]]
                            for own, number in row.items() if type(number) is int and after.endswith(str(number))
                            and after != str(number))
    tail = _TAIL.match(key) if table and isinstance(key, str) else None
    if tail is not None:
        yield ["following", table, tail[1], len(tail[2]) if tail[2].startswith("0") else 1]


def _value(formula: Formula, scope: RowScope) -> Any:
    try:
        return evaluate(formula, scope)
    except Unanswered:
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
