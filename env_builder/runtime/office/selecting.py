"""Select rows of a table as in-house tools do: filters, order, pages.

In: a desk, the tables, the plan of a tool (`filters`, `orders`, `paging` of inhouse.json) and a call's arguments. Out: keys.

Filters, each {"argument", "form", …}:
    "column"   the argument's value and a column: "column" (`$key`: the table's key), "op"
    "object"   an object of column -> value, or of column -> {word: value}; "ops": words on record -> operation
    "suffix"   an object or flat argument <column><joint><word>: "joint", "ops"
    "triples"  a list of [column, word, value], or of objects with the names "names"
Orders: alternatives that must agree: ["stream"], ["key"], ["number"] (the key as a number, where all are),
["column", name, is_descending].
A word, a column or a kind of value that no record shows is `Undecided`, as the tool may refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..company import CompanyDesk, Undecided
from .row_tables import ROW, Tables, keys, matching, row_id, stored, value_of

OPERATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda own, value: own == value,
    "ne": lambda own, value: own != value,
    "gt": lambda own, value: own > value,
    "ge": lambda own, value: own >= value,
    "lt": lambda own, value: own < value,
    "le": lambda own, value: own <= value,
    "in": lambda own, value: own in value,
    "contains": lambda own, value: str(value).casefold() in str(own).casefold(),
    "starts": lambda own, value: str(own).startswith(str(value)),
}
KEY = "$key"
"""Stands for the key of a table, whatever its columns are: their values, joined by `/`."""
SAFE_ROWS = 10
"""Rows that every page is taken to hold; no tool on record shows fewer by default."""


class RowTest(NamedTuple):
    """A column, an operation and a value."""

    column: str
    op: str
    value: Any


def selected(desk: CompanyDesk, tables: Tables, plan: Mapping[str, Any], table: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the keys of the rows that a call means, in the tool's order, before paging. Errors: Undecided."""
    try:
        tests = [_typed(test, tables[table]) for spec in plan["filters"] for test in tests_of(spec, arguments)]
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        raise Undecided("what the tool makes of a filter of another form") from None
    matches = list(_passing(desk, tables, table, tests))
    if len(matches) < 2:
        return matches
    are_numbers = all(key.lstrip("-").isdigit() for key in matches)
    orders = {tuple(_sorted(desk, matches, table, order)) for order in plan["orders"] if are_numbers or order[0] != "number"}
    if len(orders) != 1:
        raise Undecided("the order of the rows")
    return list(orders.pop())


def tests_of(spec: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[RowTest]:
    """Yield the tests that an argument asks for. Errors: Undecided; others where the argument has another form."""
    if spec["argument"] not in arguments:
        return
    value = arguments[spec["argument"]]
    if spec["form"] == "column":
        yield RowTest(spec["column"], spec["op"], value)
    elif spec["form"] == "triples":
        for row in value:
            name, word, own = (row[key] for key in spec["names"]) if spec["names"] else row
            yield RowTest(name, _operation(spec, word), own)
    else:
        for name, own in value.items():
            if isinstance(own, dict):
                yield from (RowTest(name, _operation(spec, word), operand) for word, operand in own.items())
            elif spec["form"] == "suffix" and spec["joint"] in name:
                column, _, word = name.rpartition(spec["joint"])
                yield RowTest(column, _operation(spec, word), own)
            else:
                yield RowTest(name, "eq", own)


def _operation(spec: Mapping[str, Any], word: Any) -> str:
    op = spec["ops"].get(word)
    if op is None:
        raise Undecided(f"what the word {word!r} means in {spec['argument']!r}")
    return str(op)


def _typed(test: RowTest, described: Mapping[str, Any]) -> RowTest:
    if test.column == KEY:
        if isinstance(test.value, (str, int)) and not isinstance(test.value, bool):
            return test._replace(value=str(test.value))
        raise Undecided(f"which key {test.value!r} is")
    if test.value is None:
        raise Undecided("how the tool compares where there is no value")
    affinity = described["types"].get(test.column)
    if affinity is None:
        raise Undecided(f"what the tool says of the column {test.column!r}")
    if test.op == "in":
        return test._replace(value=[stored(value, affinity) for value in test.value])
    return test if test.op in ("contains", "starts") else test._replace(value=stored(test.value, affinity))


def _passing(desk: CompanyDesk, tables: Tables, table: str, tests: list[RowTest]) -> Iterator[str]:
    """Yield the rows that pass all tests, by an index where a test is for equality."""
    equal = next((test for test in tests if test.op == "eq" and (
        test.column == KEY or [test.column] == tables[table]["key"])), None)
    if equal is not None:
        candidates = [str(equal.value)] if desk.exists(ROW, row_id(table, str(equal.value))) else []
        if not candidates:
            matching(desk, table, tables[table]["key"][0], equal.value)   # an undecided row may be the one
    else:
        equal = next((test for test in tests if test.op == "eq" and test.value is not None), None)
        candidates = list(keys(desk, table) if equal is None else matching(desk, table, equal.column, equal.value))
    for key in candidates:
        if all(passes(value_of(desk, table, key, test.column), test) for test in tests if test is not equal):
            yield key


def passes(own: Any, test: RowTest) -> bool:
    """Return whether a column's value passes a test. Errors: Undecided."""
    if own is None and test.op != "ne":
        return False
    if own is None or test.value is None:
        raise Undecided("how the tool compares where there is no value")
    try:
        return OPERATIONS[test.op](own, test.value)
    except TypeError:
        raise Undecided(f"how {own!r} and {test.value!r} compare") from None


def _sorted(desk: CompanyDesk, matches: list[str], table: str, order: list[Any]) -> list[str]:
    kind, *rest = order
    if kind == "stream":
        return matches if not rest else matches[::-1]
    if kind == "key":
        return sorted(matches)
    if kind == "number":
        return sorted(matches, key=int)
    values = {key: value_of(desk, table, key, rest[0]) for key in matches}
    if any(value is None for value in values.values()):
        raise Undecided("the order of rows without a value")
    try:
        return sorted(matches, key=values.__getitem__, reverse=rest[1])
    except TypeError:
        raise Undecided("the order of values of two kinds") from None


def page_of(matches: list[str], paging: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Return the start and the keys of the page that a call means. Errors: Undecided.

    `paging`: {"limit", "offset", "page": names of arguments or null, "default": rows without a limit or null (none was ever
    reached), "most": rows of the longest answer on record, "first": number of the first page}."""
    limit = arguments.get(paging["limit"]) if paging["limit"] else None
    limit = paging["default"] if limit is None else limit
    start = arguments.get(paging["offset"], 0) if paging["offset"] else 0
    for number in (limit, start):
        if number is not None and (not isinstance(number, int) or number < 0):
            raise Undecided("what the tool makes of such a page")
    if paging["page"] and limit is not None:
        start = (arguments.get(paging["page"], paging["first"]) - paging["first"]) * limit
        if not isinstance(start, int) or start < 0:
            raise Undecided("what the tool makes of such a page")
    shown = matches[start:] if limit is None else matches[start:start + limit]
    if len(shown) > max(paging["most"], SAFE_ROWS):
        raise Undecided("how many rows the tool shows at most")
    return start, shown
