"""Tools that calculate: the answer is the value of the expression in the one argument (runtime/arithmetic.py).

Sees: expressions of numbers. Does not see: functions, units, other notations.
"""

from __future__ import annotations

from typing import NamedTuple

from env_builder.runtime.arithmetic import FORMATS, evaluate
from env_builder.world.calls import Call

MINIMUM_QUESTIONS = 3
"""Different expressions that must have been answered so: fewer may be chance."""


class Calculation(NamedTuple):
    """How a tool calculates."""

    argument: str
    styles: list[str]
    """Keys of `FORMATS`: every way of writing that gives all the answers."""


def find(calls: list[Call]) -> Calculation | None:
    """The calculation that gives every answer of these calls that is not a failure, or None."""
    asked = {call.key: call for call in calls if not call.failed}
    names = {tuple(call.arguments) for call in asked.values()}
    if len(asked) < MINIMUM_QUESTIONS or len(names) != 1 or len(next(iter(names))) != 1:
        return None
    (argument,) = next(iter(names))
    values = {key: _value(call.arguments[argument]) for key, call in asked.items()}
    known = {key: value for key, value in values.items() if value is not None}
    if len(known) < len(asked) or len(set(known.values())) < MINIMUM_QUESTIONS:
        return None
    styles = [
        style for style, write in FORMATS.items() if all(write(value) == asked[key].content for key, value in known.items())]
    return Calculation(argument, styles) if styles else None


def _value(text: object) -> int | float | None:
    try:
        return evaluate(text) if isinstance(text, str) else None
    except ValueError:
        return None
