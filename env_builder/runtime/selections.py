"""What a search selects from a list that is known whole: a `select` rule and an `unlisted` rule, as data.

    select      source      [tool, arguments]: the question whose answer is the whole list
                ways        [[[operator, path, argument], …], …]: all conditions of one way must hold of an element; the ways
                            explain all examples alike, and where they select otherwise nothing is said
                order       null (as listed), "reversed", or [path, descending]
                limit       null or [argument, "first" or "last"]
                shows       "list", "one", or [path]: the value there of each element
                form        of the list (lists.py); null for "one"
                empty       what is said where nothing is selected; null: not known
    unlisted    source, path, argument, and a template (texts.py): said where the argument is none of the values at the path of
                the elements; `is_error`

A condition on an argument that is not given, or null, holds. An argument that no condition speaks of makes it silent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from .lists import Listing, written
from .misses import order as ordered

Path = list[str]
Condition = tuple[str, Path, str]


def selected(rule: dict[str, Any], listing: Listing, arguments: dict[str, Any]) -> str | None:
    """The text that the rule gives of the list, None where it does not answer."""
    given = {name: value for name, value in arguments.items() if value is not None}
    limit = rule["limit"]
    found: list[list[int]] = []
    for way in rule["ways"]:
        if not set(given) <= {name for _, _, name in way} | ({limit[0]} if limit else set()):
            return None
        places = [place for place, value in enumerate(listing.values) if all(
            holds(operator, at(value, path), given[name]) for operator, path, name in way if name in given)]
        found.append(limited(limit, arranged(rule["order"], listing.values, places), given))
    if any(places != found[0] for places in found):
        return None
    return _said(rule, listing, found[0])


def is_unlisted(rule: dict[str, Any], listing: Listing, arguments: dict[str, Any]) -> bool:
    """Is the argument none of the values in the list?"""
    return arguments[rule["argument"]] not in [at(value, rule["path"]) for value in listing.values]


def _said(rule: dict[str, Any], listing: Listing, places: list[int]) -> str | None:
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


def arranged(order: Any, values: list[Any], places: list[int]) -> list[int]:
    """The places in the order of the rule."""
    if order is None:
        return places
    if order == "reversed":
        return places[::-1]
    path, descending = order
    try:
        return sorted(places, key=lambda place: at(values[place], path), reverse=descending)
    except TypeError:
        return places


def limited(limit: Any, places: list[int], given: dict[str, Any]) -> list[int]:
    """The first or last so many of them."""
    if limit is None or limit[0] not in given:
        return places
    n = int(given[limit[0]])
    return places[:n] if limit[1] == "first" else places[max(0, len(places) - n):]


def at(value: Any, path: Path) -> Any:
    """Value at a path of names, None where it leads nowhere."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def holds(operator: str, there: Any, given: Any) -> bool:
    """Does the condition hold of the value there?"""
    return OPERATORS[operator](there, given)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
    elif value is not None:
        yield str(value)


def _is(there: Any, given: Any) -> bool:
    return bool(there == given) and isinstance(there, bool) == isinstance(given, bool)


def _folded(there: Any, given: Any) -> bool:
    return isinstance(there, str) and isinstance(given, str) and there.casefold() == given.casefold()


def _part(there: Any, given: Any) -> bool:
    return isinstance(there, str) and isinstance(given, str) and given in there


def _part_folded(there: Any, given: Any) -> bool:
    return isinstance(there, str) and isinstance(given, str) and given.casefold() in there.casefold()


def _anywhere(there: Any, given: Any) -> bool:
    return isinstance(given, str) and any(given.casefold() in text.casefold() for text in _texts(there))


def _element(there: Any, given: Any) -> bool:
    return isinstance(there, list) and given in there


def _one_of(there: Any, given: Any) -> bool:
    return isinstance(given, list) and there in given


def _starts(there: Any, given: Any) -> bool:
    return isinstance(there, str) and isinstance(given, str) and bool(given) and there.startswith(given)


def _compared(there: Any, given: Any, holds: Callable[[Any, Any], bool]) -> bool:
    """Numbers, or dates and instants to the exactness of what is given."""
    one, other = ordered(there), ordered(given)
    if one is None or other is None or bool(one[0]) != bool(other[0]):
        return False
    exact = len(str(given)) if one[0] else None
    return holds(one[1] if exact is None else str(one[1])[:exact].replace("T", " "), other[1] if exact is None
                 else str(other[1]).replace("T", " "))


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "is": _is, "element": _element, "one_of": _one_of, "is_folded": _folded, "starts": _starts, "part": _part,
    "part_folded": _part_folded, "anywhere": _anywhere,
    "from": lambda there, given: _compared(there, given, lambda one, other: one >= other),
    "until": lambda there, given: _compared(there, given, lambda one, other: one <= other),
    "above": lambda there, given: _compared(there, given, lambda one, other: one > other),
    "below": lambda there, given: _compared(there, given, lambda one, other: one < other)}
"""In the order of their simplicity."""
