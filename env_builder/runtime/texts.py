"""Texts that tools write: sentences with slots, filled in as tools write values into their answers, and calculated numbers.

A template is a list of pieces: a text stands for itself, a list is an expression whose value is written there. `form` says
how texts are written: `plain` (as they are), `json` and `json_ascii` (as inside a JSON string); `numbers` names the ways in
which numbers were seen written: where they differ, nothing is said. Arithmetic: numbers, + - * / and brackets.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from typing import Any

from .expressions import NoValue, evaluate

Piece = str | list[Any]
Limits = dict[str, Any]
NUMBERS = ("as_given", "whole", "float")


def filled(
    rule: dict[str, Any], before: Any, arguments: dict[str, Any], answered: list[tuple[dict[str, Any], str]] | None = None
) -> str | None:
    """Return the rule's sentence, None where a slot has no value that can be written, or where the ways of writing it differ.

    What the tool `said` in this session (arguments, answer) tells which of them is in force.
    """
    pieces, form = rule["pieces"], rule["form"]
    ways = [
        way for way in rule["numbers"]
        if all(filled_one_way(pieces, form, way, before, given) == answer for given, answer in answered or ())]
    texts = {filled_one_way(pieces, form, way, before, arguments) for way in ways or rule["numbers"]}
    return texts.pop() if len(texts) == 1 else None


def filled_one_way(pieces: list[Piece], form: str, numbers: str, before: Any, arguments: dict[str, Any]) -> str | None:
    """Return the sentence with its numbers written in one way."""
    try:
        texts = [piece if isinstance(piece, str) else written(evaluate(piece, before, arguments), form, numbers)
                 for piece in pieces]
    except NoValue:
        return None
    return None if None in texts else "".join(map(str, texts))


def written(value: Any, form: str, numbers: str) -> str | None:
    """Return a text or a number as it is written, None for anything else."""
    if isinstance(value, str):
        return value if form == "plain" else json.dumps(value, ensure_ascii=form == "json_ascii")[1:-1]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if numbers == "whole":
        return str(int(value)) if value == int(value) else None
    return json.dumps(value) if numbers == "as_given" else repr(float(value))


def admits(when: Limits | None, arguments: dict[str, Any]) -> bool:
    """Are these arguments such as were seen to work? Those `always` given, their `types` and, where few, `values`, `signs` and
    `shapes`.
    None: all are."""
    return when is None or (
        all(name in arguments for name in when["always"])
        and all(type_of(value) in when["types"].get(name, ()) for name, value in arguments.items())
        and all(name not in arguments or arguments[name] in values for name, values in when["values"].items())
        and all(name not in arguments or signs_of(arguments[name]) in signs for name, signs in when.get("signs", {}).items())
        and all(name not in arguments or shape_of(arguments[name]) in shapes for name, shapes in when.get("shapes", {}).items())
    )


def shape_of(value: Any) -> str:
    """Return a text with `0` for each digit and `a` for each run of letters: `0000-00-00a00:00` of an instant."""
    return re.sub(r"\d", "0", re.sub(r"[^\W\d_]+", "a", str(value)))


def form_of(value: str) -> str:
    """Return a text with one `0` for each run of digits and one `a` for each run of letters: `0.0,0 a` of an amount."""
    return re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", value))


def signs_of(value: Any) -> str:
    """Return the signs of a name, sorted: a `w` for all letters and digits, and what else stands in it."""
    return "".join(sorted({"w" if sign.isalnum() or sign == "_" else sign for sign in str(value)}))


def type_of(value: Any) -> str:
    """Type of a JSON value: null, boolean, number, text, list or object."""
    names = {bool: "boolean", int: "number", float: "number", str: "text", list: "list", dict: "object"}
    return names.get(type(value), "null")


Number = int | float
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d*)?|\.\d+)|([-+*/()]))")
MAXIMUM_LENGTH = 1000

FORMATS: dict[str, Callable[[Number], str]] = {
    "plain": str,
    "float": lambda value: str(float(value)),
    "rounded": lambda value: str(round(float(value), 2)),
    "two_places": lambda value: f"{value:.2f}",
    "short": lambda value: str(int(value)) if value == int(value) else str(value),
}


def calculated(text: str, styles: list[str]) -> str | None:
    """Return the expression's value as all these styles write it, None where they differ or there is no value."""
    try:
        value = arithmetic_value(text)
        texts = {FORMATS[style](value) for style in styles}
    except (ValueError, OverflowError):
        return None
    return texts.pop() if len(texts) == 1 else None


def arithmetic_value(text: str) -> Number:
    """Value of an arithmetic expression; ValueError where it is none, or divides by nothing."""
    if len(text) > MAXIMUM_LENGTH:
        raise ValueError("too long")
    tokens, at, text = list[str](), 0, text.rstrip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(text)
        tokens.append(token.group(1) or token.group(2))
        at = token.end()
    try:
        value, rest = _combined(tokens, 0, _SUMS)
    except (IndexError, ZeroDivisionError, OverflowError, RecursionError) as error:
        raise ValueError(text) from error
    if rest != len(tokens):
        raise ValueError(text)
    return value


_PRODUCTS: dict[str, Callable[[Number, Number], Number]] = {"*": operator.mul, "/": operator.truediv}
_SUMS: dict[str, Callable[[Number, Number], Number]] = {"+": operator.add, "-": operator.sub}


def _combined(tokens: list[str], at: int, operators: dict[str, Callable[[Number, Number], Number]]) -> tuple[Number, int]:
    """Return the value of a sum of products, or of a product of factors, and where it ends."""
    value, at = _combined(tokens, at, _PRODUCTS) if operators is _SUMS else _factor(tokens, at)
    while at < len(tokens) and tokens[at] in operators:
        work = operators[tokens[at]]
        other, at = _combined(tokens, at + 1, _PRODUCTS) if operators is _SUMS else _factor(tokens, at + 1)
        value = work(value, other)
    return value, at


def _factor(tokens: list[str], at: int) -> tuple[Number, int]:
    token = tokens[at]
    if token in "+-":
        value, at = _factor(tokens, at + 1)
        return (-value if token == "-" else value), at
    if token == "(":
        value, at = _combined(tokens, at + 1, _SUMS)
        if tokens[at] != ")":
            raise ValueError(token)
        return value, at + 1
    if token in "*/)":
        raise ValueError(token)
    return (float(token) if "." in token else int(token)), at + 1
