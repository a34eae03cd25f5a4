"""How tools turn pages, learnt from calls that asked for one page after another.

In: calls of one service and the effects of its tools. Out: tool -> how it turns pages (`runtime/pages.py`), for tools that only
look. Two calls of one session with the same arguments but one follow each other where that one says so: a text that stood in
the first answer, the next number, or the position after what was shown. Sees: lists at the top of an answer or in one field
of it. Does not see: pages that nobody turned; lists deeper inside; what is sorted anew between two pages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from env_builder.world.calls import Call

MINIMUM_TURNS = 3
"""Pages that must have been turned in the same way."""
ABSENT = "absent"


class Turn(NamedTuple):
    """Two calls, the second of which asks for the next page."""

    first: Call
    then: Call


def find(calls: Iterable[Call], effects: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Tool -> how it turns pages."""
    by_tool: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if not call.failed and effects.get(call.tool) == "read" and isinstance(call.parsed, dict | list):
            by_tool[call.tool].append(call)
    found = {tool: _turning(mine) for tool, mine in sorted(by_tool.items())}
    return {tool: turning for tool, turning in found.items() if turning}


def _turning(calls: list[Call]) -> dict[str, Any] | None:
    place = _list_of(calls)
    if place is None:
        return None
    votes: Counter[tuple[str, str, str, int]] = Counter()
    turns: dict[tuple[str, str, str, int], list[Turn]] = defaultdict(list)
    for turn, name in _followed(calls):
        for way in _ways(turn, name, place[0]):
            votes[way] += 1
            turns[way].append(turn)
    best = max(sorted(votes), key=lambda way: votes[way], default=None)
    if best is None or votes[best] < MINIMUM_TURNS:
        return None
    return _learnt(best, turns[best], [call for call in calls if _items(call, place[0]) is not None], place[0])


def _list_of(calls: list[Call]) -> tuple[str | None] | None:
    """The field that holds the list: (None,) where answers are lists; None where they hold none, or several."""
    if all(isinstance(call.parsed, list) for call in calls):
        return (None,)
    if not all(isinstance(call.parsed, dict) for call in calls):
        return None
    fields = {name for call in calls for name, value in call.parsed.items() if isinstance(value, list)}
    return (fields.pop(),) if len(fields) == 1 else None


def _items(call: Call, place: str | None) -> list[Any] | None:
    value = call.parsed if place is None else call.parsed.get(place)
    return value if isinstance(value, list) else None


def _followed(calls: list[Call]) -> Iterator[tuple[Turn, str]]:
    """Calls of one session that follow each other and differ in one argument, which the second has."""
    sessions: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        sessions[call.session_id].append(call)
    for mine in sessions.values():
        for first, then in pairwise(mine):
            names = {*first.arguments, *then.arguments}
            apart = [name for name in names if first.arguments.get(name) != then.arguments.get(name)]
            if len(apart) == 1 and apart[0] in then.arguments:
                yield Turn(first, then), apart[0]


def _ways(turn: Turn, name: str, place: str | None) -> Iterator[tuple[str, str, str, int]]:
    """(kind, argument, field of the cursor, start): what the second call may mean."""
    items, asked, before = _items(turn.first, place), turn.then.arguments[name], turn.first.arguments.get(name)
    if not items:
        return
    if isinstance(asked, str) and isinstance(turn.first.parsed, dict):
        yield from (("cursor", name, field, 0) for field, value in turn.first.parsed.items() if value == asked)
    if isinstance(asked, int) and not isinstance(asked, bool):
        if asked == (before or 0) + len(items):
            yield "offset", name, "", 0
        if before is None and asked in (1, 2):
            yield "page", name, "", asked - 1
        elif isinstance(before, int) and asked == before + 1:
            yield from (("page", name, "", start) for start in (0, 1))


def _learnt(
    way: tuple[str, str, str, int], turns: list[Turn], calls: list[Call], place: str | None
) -> dict[str, Any] | None:
    kind, argument, field, start = way
    full = list({turn.first.event_id: turn.first for turn in turns}.values())
    limit = _limit(full, argument, place)
    sizes = {len(_items(call, place) or ()) for call in full if limit not in call.arguments}
    if len(sizes) > 1 or (not sizes and limit is None):
        return None
    found: dict[str, Any] = {
        "argument": argument, "kind": kind, "start": start, "limit": limit, "size": sizes.pop() if sizes else None,
        "list": place, "next": field or None, "end": None, "of": None, "shape": None, "fields": {}, "order": []}
    if kind == "cursor":
        last = [call for call in calls if call.parsed.get(field) in (None, "")]
        ends = {ABSENT if field not in call.parsed else str(call.parsed[field]): call.parsed.get(field) for call in last}
        if len(ends) != 1:
            return None
        found["end"] = [ABSENT] if ABSENT in ends else ["is", next(iter(ends.values()))]
        found |= {"of": _repeated(turns, argument, place), "shape": _shape([turn.then.arguments[argument] for turn in turns])}
    return found if place is None else _with_fields(found, full, calls)


def _limit(full: list[Call], argument: str, place: str | None) -> str | None:
    """The argument that says how long a page is."""
    names = {name for call in full for name in call.arguments if name != argument}
    fits = [name for name in sorted(names) if all(
        name not in call.arguments or call.arguments[name] == len(_items(call, place) or ()) for call in full)]
    return fits[0] if fits else None


def _repeated(turns: list[Turn], argument: str, place: str | None) -> str | None:
    """The field of the last item that the cursor repeats."""
    lasts = [((_items(turn.first, place) or [None])[-1], turn.then.arguments[argument]) for turn in turns]
    names = {name for item, _ in lasts if isinstance(item, dict) for name in item}
    fits = [name for name in sorted(names) if all(isinstance(item, dict) and item.get(name) == asked for item, asked in lasts)]
    return fits[0] if fits else None


def _shape(cursors: list[str]) -> list[str | list[str]]:
    """The signs that all cursors share, and those that differ, each in a list; all differ where lengths do."""
    alike = len({len(cursor) for cursor in cursors}) == 1
    return [sign if alike and len({cursor[place] for cursor in cursors}) == 1 else [sign]
            for place, sign in enumerate(cursors[0])]


def _with_fields(found: dict[str, Any], full: list[Call], calls: list[Call]) -> dict[str, Any] | None:
    """What the other fields of a page say; None where one says something that is not known."""
    place, marks = found["list"], {call.event_id for call in full}
    order = list(dict.fromkeys(name for call in sorted(calls, key=lambda call: -len(call.parsed)) for name in call.parsed))
    if any([name for name in order if name in call.parsed] != list(call.parsed) for call in calls):
        return None
    for name in order:
        if name in (place, found["next"]):
            continue
        how = next((how for how in ("count", "echo", "limit", "more", "total", "same") if all(
            _says(how, name, call, call.event_id in marks, found) for call in calls if name in call.parsed)), None)
        if how is None:
            return None
        found["fields"][name] = how
    return {**found, "order": order}


def _says(how: str, name: str, call: Call, goes_on: bool, found: dict[str, Any]) -> bool:
    """May the field of this answer be what `how` says?"""
    value, n = call.parsed[name], len(_items(call, found["list"]) or ())
    limit = call.arguments.get(found["limit"], found["size"])
    known = {"count": n, "echo": call.arguments.get(found["argument"], found["start"]), "limit": limit}
    if how in known:
        return type(value) is type(known[how]) and value == known[how]
    if how == "more":
        return isinstance(value, bool) and (value or not goes_on) and (not value or limit is None or n >= limit)
    if how == "total":
        return isinstance(value, int) and not isinstance(value, bool) and value >= n
    return not isinstance(value, dict | list | int | float)
