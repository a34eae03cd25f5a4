"""Measure how a service's tools behave in production: how long they take, how often they fail, how they page and order lists.

In: turns of one service and the effects of its tools. Out: rows of perturbations.jsonl (docs/environment.md), which a rollout
may switch on, seeded. Sees: the log's own durations, else the time between call and answer; failures that passed by themselves
(`world.faults`); sessions that expire (there too). Does not see: what depends on load, on the hour or on the arguments;
rate limits.

Paging, of tools that only read: two calls of one session with the same arguments but one follow each other if that one says so:
a text of the first answer, the next number, or the position after what was shown. Sees lists at the top of an answer or in one
of its fields; not pages that nobody turned, lists deeper inside, or lists that were sorted again between two pages.

A list has no order if it came in two orders under one question, or if no field of its elements, nor the elements themselves,
sorts all lists at its place. Lists of numbers (a pair of coordinates), lists with a repeated element, and lists whose name is
also an argument of calls are left out: an argument is compared in order. Does not see: an order by rank, relevance or steps
that no field tells.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime.canonical import canonical
from env_builder.runtime.canonical import written as text_of
from env_builder.runtime.relabelling import ANY, lists_in
from env_builder.runtime.relevance import leaves
from env_builder.world import faults
from env_builder.world.calls import LoggedCall, calls_by_tool, calls_of

MINIMUM_TIMED = 5
"""Timed calls of a tool below which nothing is said of how long it takes."""
QUANTILES = tuple(step / 20 for step in range(21))
SHORTEST_VALUE = 3
Part = str | list[str]


def perturbations(turns: pl.DataFrame, effects: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rows {"tool", "n_calls", "n_timed", "latency_ms", "fault_rate", "faults", "expiry"?, "pages"?,
    "shuffled"?}, by tool; none for a tool without any.

    `latency_ms`: its 21 quantiles from the least to the most, None where fewer than 5 calls are timed. `fault_rate`: share of
    the calls that failed by themselves. `faults`: [{"content": parts, "share"}], the most frequent first; a part is text, or
    [name] for the value of an argument. `expiry`, on the row of the tool that renews: {"tools": refused, "messages": as faults,
    "hazards": [[calls since the last renewal, share that ran out there], …], "beyond": share for longer lives}.
    `pages`: how the tool turns pages (`runtime/perturbations.py`). `shuffled`: places of lists that have no order.
    """
    calls = calls_of(turns)
    ends = {one.renewing: one for one in faults.find_expiries(calls)}
    passed = faults.find_faults(calls, effects) - faults.failures_of(ends.values())
    timed = _timed(turns)
    answered = [call for call in calls if call.event_id not in passed]
    turned, unordered = learn_paging(answered, effects), learn_unordered_lists(answered)
    rows = (_row(tool, mine, [call for call in mine if call.event_id in passed], timed.get(tool)) | (
        {"expiry": _expiry(ends[tool])} if tool in ends else {}) | (
        {"pages": turned[tool]} if tool in turned else {}) | (
        {"shuffled": unordered[tool]} if tool in unordered else {}) for tool, mine in sorted(calls_by_tool(calls).items()))
    return [row for row in rows if row["latency_ms"] or row["faults"] or {"expiry", "pages", "shuffled"} & row.keys()]


def _row(tool: str, calls: list[LoggedCall], failed: list[LoggedCall], timed: pl.Series | None) -> dict[str, Any]:
    return {
        "tool": tool, "n_calls": len(calls), "n_timed": 0 if timed is None else len(timed),
        "latency_ms": None if timed is None or len(timed) < MINIMUM_TIMED else [
            round(float(timed.quantile(at, "linear") or 0), 3) for at in QUANTILES],
        "fault_rate": round(len(failed) / len(calls), 6),
        "faults": _messages(failed)}


def _messages(failed: Sequence[LoggedCall]) -> list[dict[str, Any]]:
    messages = [_parts(call) for call in failed]
    parts, texts = {str(message): message for message in messages}, Counter(map(str, messages))
    return [{"content": parts[text], "share": round(n / len(failed), 6)}
            for text, n in sorted(texts.items(), key=lambda item: (-item[1], item[0]))]


def _expiry(expiry: faults.Expiry) -> dict[str, Any]:
    return {"tools": list(expiry.tools), "messages": _messages(expiry.failures), "hazards": [list(at) for at in expiry.hazards],
            "beyond": expiry.beyond}


def _timed(turns: pl.DataFrame) -> dict[str, pl.Series]:
    """Milliseconds of every timed call, by tool. A log of whole seconds, or none, in which most take no time says nothing."""
    took = pl.coalesce(
        "latency_ms", (pl.col("answered_at") - pl.col("happened_at")).dt.total_microseconds() / 1000).alias("took")
    calls = turns.filter((pl.col("kind") == "call") & pl.col("content").is_not_null()).select("tool", took)
    durations = calls.filter(pl.col("took") >= 0)
    if durations.is_empty() or not durations.select((pl.col("took") > 0).mean() > 0.5).item():
        return {}
    of_tool = durations.sort("tool", "took").group_by("tool", maintain_order=True)
    return {str(tool): frame["took"] for (tool,), frame in of_tool}


def _parts(call: LoggedCall) -> list[Part]:
    """Return the message with the values of top-level arguments as slots, the longest first."""
    parts: list[Part] = [call.content]
    values = [(name, str(value)) for name, value in call.arguments.items() if not isinstance(value, dict | list | bool)]
    for name, value in sorted(values, key=lambda item: (-len(item[1]), item[0])):
        if len(value) >= SHORTEST_VALUE and value in leaves(call.arguments):
            parts = [piece for part in parts for piece in _cut(part, name, value)]
    return parts


def _cut(part: Part, name: str, value: str) -> list[Part]:
    if not isinstance(part, str):
        return [part]
    pieces: list[Part] = []
    for index, text in enumerate(part.split(value)):
        pieces += [[name]] * bool(index) + [text] * bool(text)
    return pieces


MINIMUM_TURNS = 3
"""Pages that must have been turned in the same way."""
ABSENT = "absent"


class Turn(NamedTuple):
    """Two calls, the second of which asks for the next page."""

    first: LoggedCall
    then: LoggedCall


def learn_paging(calls: Iterable[LoggedCall], effects: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Tool -> how it turns pages."""
    reads = (call for call in calls
             if not call.failed and effects.get(call.tool) == "read" and isinstance(call.parsed, dict | list))
    turnings = {tool: _turning(mine) for tool, mine in sorted(calls_by_tool(reads).items())}
    return {tool: turning for tool, turning in turnings.items() if turning}


def _turning(calls: list[LoggedCall]) -> dict[str, Any] | None:
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


def _list_of(calls: list[LoggedCall]) -> tuple[str | None] | None:
    """Return the field that holds the list: (None,) if answers are lists; None if they hold none, or several."""
    if all(isinstance(call.parsed, list) for call in calls):
        return (None,)
    if not all(isinstance(call.parsed, dict) for call in calls):
        return None
    fields = {name for call in calls for name, value in call.parsed.items() if isinstance(value, list)}
    return (fields.pop(),) if len(fields) == 1 else None


def _items(call: LoggedCall, place: str | None) -> list[Any] | None:
    value = call.parsed if place is None else call.parsed.get(place)
    return value if isinstance(value, list) else None


def _followed(calls: list[LoggedCall]) -> Iterator[tuple[Turn, str]]:
    """Yield calls of one session that follow each other and differ in one argument, which the second has."""
    sessions: dict[str, list[LoggedCall]] = defaultdict(list)
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
    items, cursor, before = _items(turn.first, place), turn.then.arguments[name], turn.first.arguments.get(name)
    if not items:
        return
    if isinstance(cursor, str) and isinstance(turn.first.parsed, dict):
        yield from (("cursor", name, field, 0) for field, value in turn.first.parsed.items() if value == cursor)
    if isinstance(cursor, int) and not isinstance(cursor, bool):
        if cursor == (before or 0) + len(items):
            yield "offset", name, "", 0
        if before is None and cursor in (1, 2):
            yield "page", name, "", cursor - 1
        elif isinstance(before, int) and cursor == before + 1:
            yield from (("page", name, "", start) for start in (0, 1))


def _learnt(
    way: tuple[str, str, str, int], turns: list[Turn], calls: list[LoggedCall], place: str | None
) -> dict[str, Any] | None:
    kind, argument, field, start = way
    full = list({turn.first.event_id: turn.first for turn in turns}.values())
    names = {name for call in full for name in call.arguments if name != argument}
    fits = [name for name in sorted(names) if all(
        name not in call.arguments or call.arguments[name] == len(_items(call, place) or ()) for call in full)]
    limit = fits[0] if fits else None
    sizes = {len(_items(call, place) or ()) for call in full if limit not in call.arguments}
    if len(sizes) > 1 or (not sizes and limit is None):
        return None
    turning: dict[str, Any] = {
        "argument": argument, "kind": kind, "start": start, "limit": limit, "size": sizes.pop() if sizes else None,
        "list": place, "next": field or None, "end": None, "of": None, "shape": None, "fields": {}, "order": []}
    if kind == "cursor":
        last = [call for call in calls if call.parsed.get(field) in (None, "")]
        ends = {ABSENT if field not in call.parsed else str(call.parsed[field]): call.parsed.get(field) for call in last}
        if len(ends) != 1:
            return None
        turning["end"] = [ABSENT] if ABSENT in ends else ["is", next(iter(ends.values()))]
        lasts = [((_items(turn.first, place) or [None])[-1], turn.then.arguments[argument]) for turn in turns]
        names = {name for item, _ in lasts if isinstance(item, dict) for name in item}
        fits = [name for name in sorted(names)
                if all(isinstance(item, dict) and item.get(name) == cursor for item, cursor in lasts)]
        cursors = [turn.then.arguments[argument] for turn in turns]
        alike = len({len(cursor) for cursor in cursors}) == 1
        shape = [sign if alike and len({cursor[at] for cursor in cursors}) == 1 else [sign]
                 for at, sign in enumerate(cursors[0])]
        turning |= {"of": (fits[0] if fits else None), "shape": shape}
    return turning if place is None else _with_fields(turning, full, calls)


def _with_fields(turning: dict[str, Any], full: list[LoggedCall], calls: list[LoggedCall]) -> dict[str, Any] | None:
    """Return the turning with the meaning of a page's other fields; None if one has no known meaning."""
    place, marks = turning["list"], {call.event_id for call in full}
    order = list(dict.fromkeys(name for call in sorted(calls, key=lambda call: -len(call.parsed)) for name in call.parsed))
    if any([name for name in order if name in call.parsed] != list(call.parsed) for call in calls):
        return None
    for name in order:
        if name in (place, turning["next"]):
            continue
        how = next((how for how in ("count", "echo", "limit", "more", "total", "same") if all(
            _says(how, name, call, call.event_id in marks, turning) for call in calls if name in call.parsed)), None)
        if how is None:
            return None
        turning["fields"][name] = how
    return {**turning, "order": order}


def _says(how: str, name: str, call: LoggedCall, goes_on: bool, turning: dict[str, Any]) -> bool:
    """May the field of this answer be what `how` says?"""
    value, n = call.parsed[name], len(_items(call, turning["list"]) or ())
    limit = call.arguments.get(turning["limit"], turning["size"])
    expected = {"count": n, "echo": call.arguments.get(turning["argument"], turning["start"]), "limit": limit}
    if how in expected:
        return type(value) is type(expected[how]) and value == expected[how]
    if how == "more":
        return isinstance(value, bool) and (value or not goes_on) and (not value or limit is None or n >= limit)
    if how == "total":
        return isinstance(value, int) and not isinstance(value, bool) and value >= n
    return not isinstance(value, dict | list | int | float)


LEAST_LISTS = 3
"""Lists of two and more at a place, below which nothing is said of their order."""
MOST_LISTS = 2000
Place = tuple[str, ...]


def learn_unordered_lists(calls: Iterable[LoggedCall]) -> dict[str, list[list[str]]]:
    """Tool -> places of lists whose order says nothing, sorted."""
    lists_by_place: dict[tuple[str, Place], list[list[Any]]] = defaultdict(list)
    orders: dict[tuple[str, Place, str, str], set[str]] = defaultdict(set)
    given: set[str] = set()
    for call in calls:
        given.update(place[-1] for place, _ in lists_in(call.arguments) if place)
        if call.failed or not isinstance(call.parsed, dict | list):
            continue
        for place, items in lists_in(call.parsed):
            written = [text for each in items if (text := text_of(each)) is not None]
            if len(set(written)) == len(items) and not all(isinstance(each, int | float) for each in items):
                if len(lists_by_place[call.tool, place]) < MOST_LISTS:
                    lists_by_place[call.tool, place].append(items)
                orders[call.tool, place, call.key, canonical(sorted(written))].add(canonical(written))
    varied = {(tool, place) for (tool, place, *_), ways in orders.items() if len(ways) > 1}
    chosen: dict[str, list[list[str]]] = defaultdict(list)
    for (tool, place), lists in sorted(lists_by_place.items()):
        handed_back = any(name in given for name in place if name != ANY)
        if not handed_back and ((tool, place) in varied or (len(lists) >= LEAST_LISTS and not _is_sorted(lists))):
            chosen[tool].append(list(place))
    return dict(chosen)


def _is_sorted(lists: list[list[Any]]) -> bool:
    """Return whether one field, or the elements themselves, sorts all of the lists, up or down."""
    fields = set.intersection(*(set(_fields(each)) for items in lists for each in items))
    return any(all(_rises(items, field, up) for items in lists) for field in sorted(fields) for up in (True, False))


def _fields(element: Any) -> Iterator[str]:
    """Names of the scalars of an element; the empty name for an element that is one."""
    if isinstance(element, dict):
        yield from (name for name, value in element.items() if isinstance(value, str | int | float))
    elif isinstance(element, str | int | float):
        yield ""


def _rises(items: list[Any], field: str, up: bool) -> bool:
    values = [_ordered(each[field] if field else each) for each in items]
    return all(one[0] == other[0] and (one <= other if up else other <= one) for one, other in pairwise(values))


def _ordered(value: Any) -> tuple[str, Any]:
    """Return a value that compares with others of its kind; texts of digits by size."""
    if isinstance(value, str):
        return ("number", float(value)) if value.isdecimal() and value.isascii() else ("text", value)
    return ("number", value)
