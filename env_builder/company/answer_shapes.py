"""Infer the shape of a tool's answers from recorded ones (`runtime.office.shapes`).

In: recorded answers, each with the view that it was made of. Out: one shape that fits all, and the style of its text.
A part of an answer is a row, the selected rows, rows that refer to the row, or a value; a value keeps every hole that gives it
in all answers. Does not see: numbers that an answer rounds or groups, texts that no argument and no column holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from env_builder.runtime.company import Undecided
from env_builder.runtime.office.formulas import CLOCK_FORMS, Row
from env_builder.runtime.office.shapes import AnswerView, Shape, hole_value

_SEPARATORS = ((",", ":"), (", ", ": "), (",", ": "))
Hole = list[Any]


def style_of(answers: Iterable[str]) -> dict[str, Any] | None:
    """Return the style of answers: text, or the way in which JSON is written; None: they are JSON of no style known here."""
    values = []
    contents = list(answers)
    for content in contents:
        try:
            value = json.loads(content)
        except ValueError:
            return {"format": "text"}
        values.append(value)
    if all(not isinstance(value, (dict, list)) for value in values):
        return {"format": "text"}
    for sort in (True, False):
        for indent in (None, 2, 4, 1):
            for separators in _SEPARATORS:
                fits = [ascii_only for ascii_only in (True, False) if all(
                    json.dumps(value, separators=separators, indent=indent, sort_keys=sort, ensure_ascii=ascii_only)
                    == content for value, content in zip(values, contents, strict=True))]
                if fits:
                    return {"format": "json", "separators": list(separators), "indent": indent, "sort": sort, "ascii": fits}
    return None


def shape_of(samples: list[tuple[str, AnswerView]], style: Mapping[str, Any],
             references: Mapping[str, list[str]]) -> Shape | None:
    """Return the shape of answers, or None. `references`: table -> its columns that may name another row."""
    shape: Shape | None = None
    for content, view in samples:
        if style["format"] == "text":
            own = _text_shape(content, view) if shape is None else _matched(shape, content, view)
        else:
            own = _drawn(json.loads(content), view, references)
            own = own if shape is None or own is None else _unified(shape, own)
        if own is None:
            return None
        shape = own
    return shape


def shown_columns(value: Any, view: AnswerView) -> list[str] | None:
    """Return the columns of the first row that a JSON answer shows, in its order, or None."""
    for own in _objects(value):
        if any(_is_row(own, row) for row in view.rows):
            return list(own)
    return None


def has_part(shape: Shape, kind: str) -> bool:
    """Return whether a shape has a part of a kind (`row`, `rows`, `column`) anywhere."""
    return isinstance(shape, list) and (bool(shape and shape[0] == kind) or any(
        has_part(part, kind) for part in shape if isinstance(part, list)))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for own in value:
            yield from _objects(own)


def _is_row(value: Any, row: Row) -> bool:
    return isinstance(value, dict) and len(value) >= min(2, len(row)) and all(
        name in row and type(own) is type(row[name]) and own == row[name] for name, own in value.items())


def _drawn(value: Any, view: AnswerView, references: Mapping[str, list[str]]) -> Shape | None:
    if isinstance(value, list):
        return _drawn_list(value, view, references)
    if isinstance(value, dict):
        own = view.row or (view.rows[0] if len(view.rows) == 1 else {})
        if own and _is_row(value, own):
            return ["row"]
        items = []
        for name, part in value.items():
            is_column = name in own and type(own[name]) is type(part) and own[name] == part
            items.append([name, ["leaf", [["column", name]]] if is_column else _drawn(part, view, references)])
        return None if any(part is None for _, part in items) else ["object", items]
    holes = list(_holes(value, view, tables=references))
    if isinstance(value, str) and len(holes) == 1:
        text = _text_shape(value, view)
        if len(text[1]) > 1:
            return text
    return ["leaf", holes]


def _drawn_list(value: list[Any], view: AnswerView, references: Mapping[str, list[str]]) -> Shape | None:
    if value and len(value) == len(view.rows) and all(_is_row(own, row) for own, row in zip(value, view.rows, strict=True)):
        return ["rows", ["row"]]
    refers = _children(value, view, references)
    if refers is not None:
        return refers
    if value and len(value) == len(view.rows) and all(isinstance(own, dict) for own in value):
        shape: Shape | None = None
        for own, row in zip(value, view.rows, strict=True):
            part = _drawn(own, view._replace(row=row, rows=[row]), references)
            shape = part if shape is None else None if part is None else _unified(shape, part)
            if shape is None:
                break
        if shape is not None and has_part(shape, "column"):
            return ["rows", shape]
    parts = [_drawn(own, view, references) for own in value]
    return None if None in parts else ["list", parts]


def _children(value: list[Any], view: AnswerView, references: Mapping[str, list[str]]) -> Shape | None:
    if not value or not all(isinstance(own, dict) for own in value) or len(view.rows) != 1:
        return None
    for table, columns in references.items():
        for reference in columns:
            rows = list(view.children(table, reference, view.rows[0]))
            if len(rows) == len(value) and all(_is_row(own, row) for own, row in zip(value, rows, strict=True)):
                names = list(value[0])
                whole = set(names) == set(rows[0])
                return ["children", table, reference, ["row"] if whole else ["object", [
                    [name, ["leaf", [["column", name]]]] for name in names]]]
    return None


def _holes(value: Any, view: AnswerView, as_text: bool = False, tables: Iterable[str] = ()) -> Iterator[Hole]:
    yield ["constant", value]
    row = view.rows[0] if len(view.rows) == 1 else {}
    view = view._replace(row=row)
    possible: list[Hole] = [["total"], ["shown"], ["start"], ["more"], ["next"]]
    possible += [["argument", *path] for path in _paths(view.arguments)]
    possible += [["column", name] for name in row]
    possible += [["via", column, table, name] for column, key in row.items() if isinstance(key, (str, int))
                 for table in tables for name in view.row_at(table, str(key))]
    possible += [["formula", ["now", form]] for form in CLOCK_FORMS]
    for hole in possible:
        try:
            own = hole_value(hole, view)
        except Undecided:
            continue
        if (str(own) == value) if as_text else (type(own) is type(value) and own == value):
            yield hole


def _paths(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, dict):
        for name, own in value.items():
            yield from ([name, *path] for path in _paths(own))
    elif isinstance(value, list):
        for number, own in enumerate(value):
            yield from ([number, *path] for path in _paths(own))
    else:
        yield []


def _unified(one: Shape, two: Shape) -> Shape | None:
    """Return what two shapes have in common, or None."""
    empty = ["list", []]
    if one == empty and two[0] in ("rows", "children"):
        return two
    if two == empty and one[0] in ("rows", "children"):
        return one
    if one[0] == two[0] == "rows":
        part = _unified(one[1], two[1])
        return None if part is None else ["rows", part]
    if one[0] != two[0]:
        return None
    if one[0] == "leaf":
        holes = [hole for hole in one[1] if hole in two[1]]
        return ["leaf", holes] if holes else None
    if one[0] == "object":
        if [name for name, _ in one[1]] != [name for name, _ in two[1]]:
            return None
        items = [[name, _unified(own, other)] for (name, own), (_, other) in zip(one[1], two[1], strict=True)]
        return None if any(own is None for _, own in items) else ["object", items]
    if one[0] == "text" and len(one[1]) == len(two[1]):
        texts = [own if own == other else None if isinstance(own, str) or isinstance(other, str) else _unified(own, other)
                 for own, other in zip(one[1], two[1], strict=True)]
        return None if None in texts else ["text", texts]
    if one[0] == "list" and len(one[1]) == len(two[1]):
        parts = [_unified(own, other) for own, other in zip(one[1], two[1], strict=True)]
        return None if None in parts else ["list", parts]
    return one if one == two else None


def _text_shape(content: str, view: AnswerView) -> Shape:
    """Return a text with a hole wherever it has the value of an argument or a column."""
    row = view.rows[0] if len(view.rows) == 1 else {}
    values = [*row.values(), *(_at(view.arguments, path) for path in _paths(view.arguments)), view.total]
    words = sorted({str(value) for value in values if value not in (None, "")}, key=len, reverse=True)
    if not words:
        return ["text", [content]]
    pattern = re.compile(r"(?<!\w)(" + "|".join(map(re.escape, words)) + r")(?!\w)")
    parts: list[Any] = []
    for number, part in enumerate(pattern.split(content)):
        if number % 2:
            parts.append(["leaf", list(_holes(part, view, as_text=True))])
        elif part:
            parts.append(part)
    return ["text", parts]


def _matched(shape: Shape, content: str, view: AnswerView) -> Shape | None:
    """Return the text shape with the holes that also give another text."""
    pattern = "".join(re.escape(part) if isinstance(part, str) else "(.*?)" for part in shape[1])
    match = re.fullmatch(pattern, content, re.DOTALL)
    if match is None:
        return None
    groups = iter(match.groups())
    parts: list[Any] = []
    for part in shape[1]:
        if isinstance(part, str):
            parts.append(part)
            continue
        text = next(groups)
        holes = [hole for hole in _holes(text, view, as_text=True) if hole in part[1]]
        if not holes:
            return None
        parts.append(["leaf", holes])
    return ["text", parts]


def _at(value: Any, path: list[Any]) -> Any:
    for step in path:
        value = value[step]
    return value
