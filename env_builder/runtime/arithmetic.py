"""Arithmetic as tools answer it: numbers, + - * / and brackets, and the ways in which a number is written."""

from __future__ import annotations

import re
from collections.abc import Callable

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


def written(text: str, styles: list[str]) -> str | None:
    """The expression's value as all these styles write it, None where they differ or there is no value."""
    try:
        value = evaluate(text)
        texts = {FORMATS[style](value) for style in styles}
    except (ValueError, OverflowError):
        return None
    return texts.pop() if len(texts) == 1 else None


def evaluate(text: str) -> Number:
    """Value of an arithmetic expression; ValueError where it is none, or divides by nothing."""
    if len(text) > MAXIMUM_LENGTH:
        raise ValueError("too long")
    tokens = _tokens(text)
    try:
        value, rest = _sum(tokens, 0)
    except (IndexError, ZeroDivisionError, OverflowError, RecursionError) as error:
        raise ValueError(text) from error
    if rest != len(tokens):
        raise ValueError(text)
    return value


def _tokens(text: str) -> list[str]:
    tokens, at, text = [], 0, text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(text)
        tokens.append(found.group(1) or found.group(2))
        at = found.end()
    return tokens


def _sum(tokens: list[str], at: int) -> tuple[Number, int]:
    value, at = _product(tokens, at)
    while at < len(tokens) and tokens[at] in "+-":
        operator = tokens[at]
        other, at = _product(tokens, at + 1)
        value = value + other if operator == "+" else value - other
    return value, at


def _product(tokens: list[str], at: int) -> tuple[Number, int]:
    value, at = _factor(tokens, at)
    while at < len(tokens) and tokens[at] in "*/":
        operator = tokens[at]
        other, at = _factor(tokens, at + 1)
        value = value * other if operator == "*" else value / other
    return value, at


def _factor(tokens: list[str], at: int) -> tuple[Number, int]:
    token = tokens[at]
    if token in "+-":
        value, at = _factor(tokens, at + 1)
        return (-value if token == "-" else value), at
    if token == "(":
        value, at = _sum(tokens, at + 1)
        if tokens[at] != ")":
            raise ValueError(token)
        return value, at + 1
    if token in "*/)":
        raise ValueError(token)
    return (float(token) if "." in token else int(token)), at + 1
