"""Sentences with slots: a template's pieces, filled in as tools write values into their answers.

A template is a list of pieces: a text stands for itself, a list is an expression whose value is written there. `form` says
how texts are written: `plain` (as they are), `json` and `json_ascii` (as inside a JSON string); `numbers` names the ways in
which numbers were seen written: where they differ, nothing is said.
"""

from __future__ import annotations

import json
from typing import Any

from .expressions import Missing, evaluate

Piece = str | list[Any]
Limits = dict[str, Any]
NUMBERS = ("as_given", "whole", "float")


def filled(
    rule: dict[str, Any], before: Any, arguments: dict[str, Any], said: list[tuple[dict[str, Any], str]] | None = None
) -> str | None:
    """The rule's sentence, None where a slot has no value that can be written, or where the ways of writing it differ.

    What the tool `said` in this session (arguments, answer) tells which of them is in force.
    """
    pieces, form = rule["pieces"], rule["form"]
    ways = [
        way for way in rule["numbers"]
        if all(filled_one_way(pieces, form, way, before, given) == answer for given, answer in said or ())]
    found = {filled_one_way(pieces, form, way, before, arguments) for way in ways or rule["numbers"]}
    return found.pop() if len(found) == 1 else None


def filled_one_way(pieces: list[Piece], form: str, numbers: str, before: Any, arguments: dict[str, Any]) -> str | None:
    """The sentence with its numbers written in one way."""
    texts: list[str | None] = []
    for piece in pieces:
        try:
            texts.append(piece if isinstance(piece, str) else written(evaluate(piece, before, arguments), form, numbers))
        except Missing:
            return None
    return None if None in texts else "".join(text for text in texts if text is not None)


def written(value: Any, form: str, numbers: str) -> str | None:
    """A text or a number as it is written, None for anything else."""
    if isinstance(value, str):
        return value if form == "plain" else json.dumps(value, ensure_ascii=form == "json_ascii")[1:-1]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if numbers == "whole":
        return str(int(value)) if value == int(value) else None
    return json.dumps(value) if numbers == "as_given" else repr(float(value))


def admits(when: Limits | None, arguments: dict[str, Any]) -> bool:
    """Are these arguments such as were seen to work? Those `always` given, their `types` and, where few, `values`.
    None: all are."""
    return when is None or (
        all(name in arguments for name in when["always"])
        and all(type_of(value) in when["types"].get(name, ()) for name, value in arguments.items())
        and all(name not in arguments or arguments[name] in values for name, values in when["values"].items())
    )


def type_of(value: Any) -> str:
    """Type of a JSON value: null, boolean, number, text, list or object."""
    names = {bool: "boolean", int: "number", float: "number", str: "text", list: "list", dict: "object"}
    return names.get(type(value), "null")
