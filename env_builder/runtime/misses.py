"""When a search finds nothing: a `nothing` rule, as data.

    content, is_error   what the tool says where there is nothing
    names               the arguments of the questions it was learnt from
    beyond              arguments with an order (numbers, ISO dates): questions beyond all values at which anything was found
                        find nothing, where so many questions beyond, no further out than this one, found nothing that it is
                        no chance (`CHANCE`, as often as questions within the range find nothing)
    by                  sets of arguments that alone decide whether there is anything: where a question with the same values
                        of one of them found nothing, and none found something, there is nothing

Sees what was answered to other questions in the state of the moment. Where both kinds of answers were seen, it is silent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

LEAST = 3
"""Questions beyond that must have found nothing at the least: what lies just outside of what was seen is not known."""
CHANCE = 0.01
"""Probability up to which it is no chance that all questions beyond found nothing."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")
Asked = tuple[dict[str, Any], bool]
"""(arguments of a question, did it find something?)"""
Ordered = tuple[int, float | str]


def finds_nothing(rule: dict[str, Any], arguments: dict[str, Any], asked: Iterable[Asked]) -> bool:
    """Is it known that the question finds nothing? `asked`: questions to the same tool and whether they found something."""
    if sorted(arguments) != rule["names"]:
        return False
    same = [(given, found) for given, found in asked if sorted(given) == rule["names"]]
    return any(is_beyond(arguments, name, same) for name in rule["beyond"]) or any(
        is_empty(arguments, names, same) for names in rule["by"])


def is_beyond(arguments: dict[str, Any], name: str, asked: list[Asked]) -> bool:
    """Does the value lie beyond all at which anything was found, and beyond enough at which nothing was?"""
    value = order(arguments[name])
    if value is None:
        return False
    known = [(at, found) for given, found in asked for at in [order(given[name])] if at is not None and at[0] == value[0]]
    full = [at for at, found in known if found]
    if not full:
        return False
    first, last = min(full), max(full)
    within = [found for at, found in known if first <= at <= last]
    above = sum(last < at <= value for at, _ in known)
    below = sum(value <= at < first for at, _ in known)
    rate = (within.count(False) + 1) / (len(within) + 2)
    return max(above, below) >= LEAST and bool(rate ** max(above, below) < CHANCE)


def is_empty(arguments: dict[str, Any], names: list[str], asked: list[Asked]) -> bool:
    """Did questions with the same values of these arguments find nothing, and none of them something?"""
    alike = [found for given, found in asked if all(given[name] == arguments[name] for name in names)]
    return bool(alike) and not any(alike)


def order(value: Any) -> Ordered | None:
    """A value with an order, so that equal kinds compare: a number, an ISO date or instant; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (0, float(value))
    if isinstance(value, str) and _DATE.fullmatch(value):
        return (len(value), value)
    return None
