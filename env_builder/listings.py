"""Lists whose order says nothing, learnt from the answers that hold them.

In: calls of one service. Out: tool -> places of such lists (`guises.lists_in`). A list is one where it was seen in two orders
under one question, or where no field of its elements, nor the elements themselves, put all lists seen at its place in order.
Left alone are lists of numbers (a pair of coordinates), lists with an element twice, and lists under a name that calls give
lists under: what is handed back is compared in order. Does not see: an order by rank, relevance or steps that no field tells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from env_builder.runtime.canonical import canonical
from env_builder.runtime.canonical import written as text_of
from env_builder.runtime.guises import ANY, lists_in
from env_builder.world.calls import Call

LEAST_LISTS = 3
"""Lists of two and more at a place, below which nothing is said of their order."""
MOST_LISTS = 2000
Place = tuple[str, ...]


def find(calls: Iterable[Call]) -> dict[str, list[list[str]]]:
    """Tool -> places of lists whose order says nothing, sorted."""
    seen: dict[tuple[str, Place], list[list[Any]]] = defaultdict(list)
    orders: dict[tuple[str, Place, str, str], set[str]] = defaultdict(set)
    given: set[str] = set()
    for call in calls:
        given.update(place[-1] for place, _ in lists_in(call.arguments) if place)
        if call.failed or not isinstance(call.parsed, dict | list):
            continue
        for place, found in lists_in(call.parsed):
            written = [text for each in found if (text := text_of(each)) is not None]
            if len(set(written)) == len(found) and not all(isinstance(each, int | float) for each in found):
                if len(seen[call.tool, place]) < MOST_LISTS:
                    seen[call.tool, place].append(found)
                orders[call.tool, place, call.key, canonical(sorted(written))].add(canonical(written))
    varied = {(tool, place) for (tool, place, *_), ways in orders.items() if len(ways) > 1}
    chosen: dict[str, list[list[str]]] = defaultdict(list)
    for (tool, place), lists in sorted(seen.items()):
        handed_back = any(name in given for name in place if name != ANY)
        if not handed_back and ((tool, place) in varied or (len(lists) >= LEAST_LISTS and not _is_sorted(lists))):
            chosen[tool].append(list(place))
    return dict(chosen)


def _is_sorted(lists: list[list[Any]]) -> bool:
    """Does one field, or the elements themselves, put all of the lists in one order, up or down?"""
    fields = set.intersection(*(set(_fields(each)) for found in lists for each in found))
    return any(all(_rises(found, field, up) for found in lists) for field in sorted(fields) for up in (True, False))


def _fields(element: Any) -> Iterator[str]:
    """Names of the scalars of an element; the empty name for an element that is one."""
    if isinstance(element, dict):
        yield from (name for name, value in element.items() if isinstance(value, str | int | float))
    elif isinstance(element, str | int | float):
        yield ""


def _rises(found: list[Any], field: str, up: bool) -> bool:
    values = [_ordered(each[field] if field else each) for each in found]
    return all(one[0] == other[0] and (one <= other if up else other <= one) for one, other in pairwise(values))


def _ordered(value: Any) -> tuple[str, Any]:
    """A value with others of whose kind it can be compared; texts of digits by size."""
    if isinstance(value, str):
        return ("number", float(value)) if value.isdecimal() and value.isascii() else ("text", value)
    return ("number", value)
