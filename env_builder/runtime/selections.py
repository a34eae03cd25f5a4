"""What a search finds in a list that is known whole, or that there is nothing: `select` and `nothing` rules.

In: a rule (docs/behaviour.md), arguments, and a list (lists.py) or what other questions to the tool found. Out: the text of
what is selected, or whether nothing is found. All conditions of one way must hold of an element; a condition on an argument
that is not given, or null, holds. Where ways select otherwise, or no condition speaks of an argument, there is no answer. A
`nothing` rule answers only where questions beyond a range, or with the same values, found nothing and none found something.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .lists import Listing, written

LEAST = 3
"""Questions beyond that must have found nothing at the least: what lies just outside of what was seen is not known."""
CHANCE = 0.01
"""Probability up to which it is no chance that all questions beyond found nothing."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?)?")
Outcome = tuple[dict[str, Any], bool]
"""(arguments of a question, did it find something?)"""
Ordered = tuple[int, float | str]


def finds_nothing(rule: dict[str, Any], arguments: dict[str, Any], outcomes: Iterable[Outcome]) -> bool:
    """Is it known that the question finds nothing? `asked`: questions to the same tool and whether they found something."""
    if sorted(arguments) != rule["names"]:
        return False
    same = [(given, has_content) for given, has_content in outcomes if sorted(given) == rule["names"]]
    return any(is_beyond(arguments, name, same) for name in rule["beyond"]) or any(
        _is_empty(arguments, names, same) for names in rule["by"])


def is_beyond(arguments: dict[str, Any], name: str, outcomes: list[Outcome]) -> bool:
    """Return whether the value lies beyond all with a match, and beyond enough without one."""
    value = order(arguments[name])
    if value is None:
        return False
    places = ((order(given[name]), has_content) for given, has_content in outcomes)
    ordered = [(at, has_content) for at, has_content in places if at is not None and at[0] == value[0]]
    full = [at for at, has_content in ordered if has_content]
    if not full:
        return False
    first, last = min(full), max(full)
    within = [has_content for at, has_content in ordered if first <= at <= last]
    above = sum(last < at <= value for at, _ in ordered)
    below = sum(value <= at < first for at, _ in ordered)
    rate = (within.count(False) + 1) / (len(within) + 2)
    return max(above, below) >= LEAST and bool(rate ** max(above, below) < CHANCE)


def _is_empty(arguments: dict[str, Any], names: list[str], outcomes: list[Outcome]) -> bool:
    """Did questions with the same values of these arguments find nothing, and none of them something?"""
    alike = [has_content for given, has_content in outcomes if all(given[name] == arguments[name] for name in names)]
    return bool(alike) and not any(alike)


def order(value: Any) -> Ordered | None:
    """Return a value with an order, so that equal kinds compare: a number, an ISO date or instant; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (0, float(value))
    if isinstance(value, str) and _DATE.fullmatch(value):
        return (len(value), value)
    return None


Path = list[str]
Condition = tuple[str, Path, str]


def selected(rule: dict[str, Any], listing: Listing, arguments: dict[str, Any]) -> str | None:
    """Return the text that the rule gives of the list, None where it does not answer."""
    given = {name: value for name, value in arguments.items() if value is not None}
    limit = rule["limit"]
    groups: list[list[int]] = []
    for way in rule["ways"]:
        if not set(given) <= {name for _, _, name in way} | ({limit[0]} if limit else set()):
            return None
        places = [place for place, value in enumerate(listing.values) if all(
            OPERATORS[kind](at(value, path), given[name]) for kind, path, name in way if name in given)]
        groups.append(_limited(limit, _arranged(rule["order"], listing.values, places), given))
    if any(places != groups[0] for places in groups):
        return None
    places = groups[0]
    values = [listing.values[place] for place in places]
    texts = [listing.texts[place] for place in places] if listing.texts else []
    if not values:
        empty: str | None = rule["empty"]
        return empty
    if rule["shows"] == "one":
        return json.dumps(values[0], **rule["form"]["style"]) if len(values) == 1 else None
    if rule["shows"] != "list":
        values = [at(value, rule["shows"]) for value in values]
        texts = [f"- {value}" for value in values]
    if rule["form"]["notation"] == "yaml" and (not texts or (listing.form["notation"] != "yaml" and rule["shows"] == "list")):
        return None
    return written(rule["form"], values, texts)


def _arranged(order: Any, values: list[Any], places: list[int]) -> list[int]:
    """Return the places in the order of the rule."""
    if order is None:
        return places
    if order == "reversed":
        return places[::-1]
    path, descending = order
    try:
        return sorted(places, key=lambda place: at(values[place], path), reverse=descending)
    except TypeError:
        return places


def _limited(limit: Any, places: list[int], given: dict[str, Any]) -> list[int]:
    """Return the first or last so many of them."""
    if limit is None or limit[0] not in given:
        return places
    n = int(given[limit[0]])
    return places[:n] if limit[1] == "first" else places[max(0, len(places) - n):]


def at(value: Any, path: Path) -> Any:
    """Value at a path of names, None where it leads nowhere."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
    elif value is not None:
        yield str(value)


def _anywhere(there: Any, given: Any) -> bool:
    return isinstance(given, str) and any(given.casefold() in text.casefold() for text in _texts(there))


def _of_texts(holds: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    return lambda there, given: isinstance(there, str) and isinstance(given, str) and holds(there, given)


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Compare numbers, or dates and instants to the exactness of what is given."""
    def compared(there: Any, given: Any) -> bool:
        one, other = order(there), order(given)
        if one is None or other is None or bool(one[0]) != bool(other[0]):
            return False
        if not one[0]:
            return holds(one[1], other[1])
        return holds(str(one[1])[:len(str(given))].replace("T", " "), str(other[1]).replace("T", " "))

    return compared


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "is": lambda there, given: bool(there == given) and isinstance(there, bool) == isinstance(given, bool),
    "element": lambda there, given: isinstance(there, list) and given in there,
    "one_of": lambda there, given: isinstance(given, list) and there in given,
    "is_folded": _of_texts(lambda there, given: there.casefold() == given.casefold()),
    "starts": _of_texts(lambda there, given: bool(given) and there.startswith(given)),
    "part": _of_texts(lambda there, given: given in there),
    "part_folded": _of_texts(lambda there, given: given.casefold() in there.casefold()),
    "anywhere": _anywhere, "from": _ordered(operator.ge), "until": _ordered(operator.le), "above": _ordered(operator.gt),
    "below": _ordered(operator.lt)}
"""In the order of their simplicity."""
