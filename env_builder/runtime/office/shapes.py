"""Answers of in-house tools as shapes with holes: JSON or text, as recorded answers had them.

In: a shape, its style and an `AnswerView`: what the holes may show. Out: the text of an answer.

    ["object", [[name, shape], …]]  ["list", [shape, …]]
    ["row"]                 the row, all its columns or those that the tool shows
    ["rows", shape]         the selected rows, one after the other
    ["children", table, reference, shape]   the rows of a table that refer to the row
    ["tables", {table: shape}]  the shape for the table that the call means
    ["leaf", [hole, …]]     a value; every hole must give the same
    ["text", [part, …]]     texts and leaves, one after the other
    holes: ["constant", v] ["argument", step, …] ["column", name] ["via", column, table, name]
           ["total"] ["shown"] ["more"] ["next"] ["start"] ["formula", f]

Style: {"format": "text"}, or {"format": "json", "separators", "indent", "sort", "ascii"};
`ascii`: a list of true (escapes), false, or both where no record tells.
A hole without a value, or two that differ, make the answer `Undecided`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..company import Undecided
from .formulas import Row

Shape = list[Any]


class AnswerView(NamedTuple):
    """What an answer may show."""

    row: Row
    rows: Sequence[Row]
    """Selected rows, after paging."""
    columns: tuple[str, ...]
    """That a shown row has, in this order."""
    arguments: Mapping[str, Any]
    total: int
    """Of the selected rows, before paging."""
    start: int
    children: Callable[[str, str, Row], Iterable[Row]]
    """(table, reference, row) -> rows that refer to it."""
    formula: Callable[[Any], Any]
    table: str = ""
    row_at: Callable[[str, str], Row] = lambda table, key: {}
    """(table, key) -> the row; empty if it is not there."""


def written(shape: Shape, style: Mapping[str, Any], view: AnswerView) -> str:
    """Return the text of an answer. Errors: Undecided."""
    value = filled(shape, view)
    if style["format"] == "text":
        return str(value)
    texts = {json.dumps(value, separators=tuple(style["separators"]), indent=style["indent"], sort_keys=style["sort"],
                        ensure_ascii=ascii_only) for ascii_only in style["ascii"]}
    if len(texts) > 1:
        raise Undecided("how the tool writes other letters than those of ASCII")
    return texts.pop()


def filled(shape: Shape, view: AnswerView) -> Any:
    """Return the value of a shape. Errors: Undecided."""
    kind, *parts = shape
    if kind == "object":
        return {name: filled(own, view) for name, own in parts[0]}
    if kind == "list":
        return [filled(own, view) for own in parts[0]]
    if kind == "row":
        return {column: view.row[column] for column in view.columns or view.row}
    if kind == "rows":
        return [filled(parts[0], view._replace(row=row)) for row in view.rows]
    if kind == "children":
        return [filled(parts[2], view._replace(row=row, columns=())) for row in view.children(parts[0], parts[1], view.row)]
    if kind == "tables":
        if view.table not in parts[0]:
            raise Undecided(f"how the tool shows a row of {view.table}")
        return filled(parts[0][view.table], view)
    if kind == "leaf":
        return _agreed(parts[0], view)
    return "".join(part if isinstance(part, str) else _agreed(part[1], view, str) for part in parts[0])


def _agreed(holes: list[Any], view: AnswerView, form: Callable[[Any], Any] = lambda value: value) -> Any:
    values = [form(hole_value(hole, view)) for hole in holes]
    if not values or any(type(value) is not type(values[0]) or value != values[0] for value in values):
        raise Undecided("what a part of the answer shows")
    return values[0]


def hole_value(hole: list[Any], view: AnswerView) -> Any:
    """Return what a hole shows. Errors: Undecided."""
    try:
        return _HOLES[hole[0]](view, *hole[1:])
    except (KeyError, IndexError, TypeError):
        raise Undecided("what a part of the answer shows") from None


def _argument(view: AnswerView, *path: Any) -> Any:
    value: Any = view.arguments
    for step in path:
        value = value[step]
    return value


_HOLES: dict[str, Callable[..., Any]] = {
    "constant": lambda view, value: value,
    "argument": _argument,
    "column": lambda view, name: view.row[name],
    "via": lambda view, column, table, name: view.row_at(table, str(view.row[column]))[name],
    "total": lambda view: view.total,
    "shown": lambda view: len(view.rows),
    "start": lambda view: view.start,
    "more": lambda view: view.start + len(view.rows) < view.total,
    "next": lambda view: view.start + len(view.rows) if view.start + len(view.rows) < view.total else None,
    "formula": lambda view, formula: view.formula(formula),
}
