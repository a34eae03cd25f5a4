"""Rows that tools list: classes of rows, found from the answers alone.

A tool whose answers are lists of objects (or lists of such lists) shows rows; tools that show mostly the same fields show
one class of rows. An argument whose value stands in no field of the rows, or in a field of its own name, says something of
each row that the row may leave out.
Sees: lists at the top of an answer. Does not see: lists inside objects (those are part of a thing).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from env_builder.runtime.tables import Table, rows_in
from env_builder.world.calls import Call
from env_builder.world.documents import SIMILAR

MINIMUM_ROWS = 5
MAXIMUM_DEPTH = 2
Rule = dict[str, Any]


def find(calls: list[Call]) -> dict[str, Rule]:
    """Tool -> its `rows` rule."""
    by_tool: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if isinstance(call.parsed, list) and not call.failed:
            by_tool[call.tool].append(call)
    fields: dict[str, frozenset[str]] = {}
    found: dict[str, Rule] = {}
    for tool, mine in sorted(by_tool.items(), key=lambda item: (-len(item[1]), item[0])):
        shown = _rows(mine)
        if shown is None:
            continue
        depth, names = shown
        entity = next((known for known, theirs in fields.items() if _similar(theirs, names)), f"{tool}[]")
        fields.setdefault(entity, names)
        columns = sorted({name for call in mine for name, value in call.arguments.items() if isinstance(value, str | int)})
        found[tool] = {"rule": "rows", "class": entity, "depth": depth, "columns": columns}
    return found


def tables(calls: list[Call], rules: dict[str, Rule]) -> dict[str, Table]:
    """Class -> all its rows in these calls."""
    found: dict[str, Table] = {rule["class"]: Table() for rule in rules.values()}
    for call in calls:
        rule = rules.get(call.tool)
        if rule and not call.failed:
            for row in rows_in(rule, call.arguments, call.parsed):
                found[rule["class"]].add(row)
    return found


def _rows(calls: list[Call]) -> tuple[int, frozenset[str]] | None:
    """(depth of the lists, fields that all rows have), None where the answers are no lists of objects."""
    for depth in range(1, MAXIMUM_DEPTH + 1):
        rule = {"depth": depth, "columns": []}
        shown = [row for call in calls for row in rows_in(rule, {}, call.parsed)]
        if len(shown) >= MINIMUM_ROWS:
            names = frozenset.intersection(*(frozenset(row) for row in shown))
            return (depth, names) if names else None
    return None


def _similar(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > SIMILAR * len(one | other)
