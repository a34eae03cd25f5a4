"""Paths of requests to templates: `/doors/17/open` to `/doors/{doors_1}/open` and {"doors_1": "17"}.

In: paths, and how often each was asked. Out: for each its template and parameters, whatever the order of the paths.
A segment is an id where it looks like one (a digit, a sign that names do not have), or where more than twenty different
segments stand in one place. There a segment stays a name where an id stands right behind it, as behind a collection's name;
at the root also where anything follows it, or where it is asked for five times as often as most.
What it does not see: an id that looks like a word and comes seldom (it stays part of the template); the name of a route in a
crowded place that nothing tells from the ids beside it (it becomes a parameter).
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

_MANY = 20
_STANDS_OUT = 5
_LOOKS_LIKE_ID = re.compile(r"[^a-z_.~-]|^.{40,}$", re.IGNORECASE).search
_VERSION = re.compile(r"v\d{1,2}(\.\d+)?", re.IGNORECASE).fullmatch
_NO_WORD = re.compile(r"\W+")

Found = tuple[str, dict[str, str]]


@dataclass(slots=True, eq=False)
class _Place:
    """What stands below the same segments: names, and one place for all ids."""

    names: dict[str, _Place] = field(default_factory=dict)
    ids: _Place | None = None
    count: int = 0
    """How often it was asked for, with everything below it."""
    template: str = ""
    parameters: tuple[str, ...] = ()


def templates(paths: Iterable[str] | Mapping[str, int]) -> dict[str, Found]:
    """Template and parameters of each path; of a mapping the values say how often each path was asked."""
    counts = paths if isinstance(paths, Mapping) else _counted(paths)
    root = _Place()
    for path, count in counts.items():
        place = root
        for part in segments(path):
            place = _below(place, part)
            place.count += count
    _settle(root)
    _name(root)
    return {path: _found(root, path) for path in counts}


def segments(path: str) -> list[str]:
    """The parts between the slashes, unquoted."""
    parts = path.strip("/").split("/")
    return [unquote(part) for part in parts] if "%" in path else parts


def _counted(paths: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for path in paths:
        counts[path] = counts.get(path, 0) + 1
    return counts


def _below(place: _Place, part: str) -> _Place:
    found = place.names.get(part)
    if found is not None:
        return found
    if not part or not _LOOKS_LIKE_ID(part) or _VERSION(part):
        return place.names.setdefault(part, _Place())
    if place.ids is None:
        place.ids = _Place()
    return place.ids


def _settle(root: _Place) -> None:
    """Make ids of the names in crowded places, from the root down."""
    waiting = [root]
    while waiting:
        place = waiting.pop()
        if len(place.names) > _MANY:
            kept = _kept(place, place is root)
            for name in [name for name in place.names if name not in kept]:
                if place.ids is None:
                    place.ids = _Place()
                _merge(place.ids, place.names.pop(name))
        waiting += place.names.values()
        if place.ids is not None:
            waiting.append(place.ids)


def _kept(place: _Place, is_root: bool) -> set[str]:
    """The names in a crowded place that are names all the same."""
    usual = statistics.median_low(below.count for below in place.names.values())
    return {name for name, below in place.names.items()
            if below.ids is not None or (is_root and (below.names or below.count >= _STANDS_OUT * max(usual, 2)))}


def _merge(into: _Place, other: _Place) -> None:
    """What stands below one place, below the other too."""
    waiting = [(into, other)]
    while waiting:
        one, two = waiting.pop()
        one.count += two.count
        for name, below in two.names.items():
            if name in one.names:
                waiting.append((one.names[name], below))
            else:
                one.names[name] = below
        if two.ids is not None and one.ids is not None:
            waiting.append((one.ids, two.ids))
        elif two.ids is not None:
            one.ids = two.ids


def _name(root: _Place) -> None:
    """Give every place its template: a parameter is named after the last name before it, with a number."""
    waiting = [(root, "path")]
    while waiting:
        place, word = waiting.pop()
        for name, below in place.names.items():
            below.template, below.parameters = f"{place.template}/{name}", place.parameters
            waiting.append((below, _NO_WORD.sub("_", name).strip("_") or "path"))
        if place.ids is not None:
            number = 1 + sum(each.rpartition("_")[0] == word for each in place.parameters)
            own = f"{word}_{number}"
            place.ids.template, place.ids.parameters = f"{place.template}/{{{own}}}", (*place.parameters, own)
            waiting.append((place.ids, word))


def _found(root: _Place, path: str) -> Found:
    place, values = root, []
    for part in segments(path):
        below = place.names.get(part)
        if below is None:
            values.append(part)
            below = place.ids or root
        place = below
    return place.template, dict(zip(place.parameters, values, strict=True))
