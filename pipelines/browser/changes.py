"""What changed in the world beside a call: documents as they were and as the call left them, and rows of databases.

In: the turns of a session. Out: for each call what it changed (`mart.recorded`), what it showed (`mart.facts`), and which rows
changed while it ran (`core.row_changes`). Sees: what the build made of the logs. Does not see: which of several things that ran
at once changed a row; whoever was open then is shown it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from pipelines.browser.library import Library

Row = dict[str, Any]
MOST = 40
"""Differences of a document that are shown."""
MOST_ROWS = 20
"""Row changes beside a call."""
_AT_ONCE = timedelta(seconds=2)
"""How long after a call a row may change and stand beside it, where its answer has no time."""


def beside(library: Library, service: str, turns: list[Row]) -> dict[str, Row]:
    """turn_id of each call -> {"changed", "seen", "rows"}."""
    calls = [turn for turn in turns if turn["kind"] == "call"]
    events = [name for turn in calls for name in (turn["turn_id"], turn["result_id"]) if name]
    if not events:
        return {}
    left = _by(library.rows(
        "select event_id, effects from mart.recorded where event_id in (select unnest($ids)) and effects != '[]' "
        "order by recorded_id", ids=events), "event_id")
    seen = _by(library.rows(
        "select event_id, entity_class, key, value, known from mart.facts where event_id in (select unnest($ids)) "
        "and known in ('seen', 'implied') order by entity_class, key, fact_id", ids=events), "event_id")
    things = {(each["class"], each["key"]) for rows in left.values() for row in rows for each in json.loads(row["effects"])}
    before = _Known(library, service, things)
    changed_rows = _row_changes(library, calls)
    found: dict[str, Row] = {}
    for turn in calls:
        own = [row for name in dict.fromkeys((turn["turn_id"], turn["result_id"])) for row in left.get(name, ())]
        shown = [row for name in dict.fromkeys((turn["turn_id"], turn["result_id"])) for row in seen.get(name, ())]
        effects = {(each["class"], each["key"]): each["value"] for row in own for each in json.loads(row["effects"])}
        found[turn["turn_id"]] = {
            "changed": [_changed(thing, before.of(thing, turn["happened_at"]), value) for thing, value in effects.items()],
            "seen": list({(row["entity_class"], row["key"]): row for row in shown
                          if (row["entity_class"], row["key"]) not in effects}.values()),
            "rows": changed_rows.get(turn["turn_id"], [])}
        for thing, value in [*effects.items(), *(((row["entity_class"], row["key"]), row["value"]) for row in shown)]:
            before.learn(thing, value)
    return found


class _Known:
    """What was known of some things before each call: as the session itself was last shown them, else as of then."""

    def __init__(self, library: Library, service: str, things: set[tuple[str, str]]) -> None:
        self._seen: dict[tuple[str, str], str] = {}
        rows = library.rows(
            "select entity_class, key, value, valid_from, valid_to from mart.facts where service = $service "
            "and session_id is null and key in (select unnest($keys)) order by valid_from nulls first, fact_id",
            service=service, keys=sorted({key for _, key in things})) if things else []
        self._facts: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            self._facts.setdefault((row["entity_class"], row["key"]), []).append(row)

    def of(self, thing: tuple[str, str], at: datetime | None) -> str | None:
        if thing in self._seen:
            return self._seen[thing]
        held = [row["value"] for row in self._facts.get(thing, ()) if row["valid_from"] is None or (
            at is not None and row["valid_from"] < at)]
        return held[-1] if held else None

    def learn(self, thing: tuple[str, str], value: str) -> None:
        self._seen[thing] = value


def _changed(thing: tuple[str, str], before: str | None, after: str) -> Row:
    moves = list(differences(loaded(before), loaded(after))) if before is not None else []
    return {"entity_class": thing[0], "key": thing[1], "before": before, "after": after, "moves": moves[:MOST],
            "n_more": max(0, len(moves) - MOST)}


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, str | None, str | None]]:
    """(place, value before, value after) of all that differs in two JSON values, as JSON text; None: it is not there."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            place = f"{path}.{name}" if path else str(name)
            if name not in after or name not in before:
                yield place, _text(before, name), _text(after, name)
            else:
                yield from differences(before[name], after[name], place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif type(before) is not type(after) or before != after:
        yield path or "value", json.dumps(before, ensure_ascii=False), json.dumps(after, ensure_ascii=False)


def _text(holder: dict[str, Any], name: str) -> str | None:
    return json.dumps(holder[name], ensure_ascii=False) if name in holder else None


def loaded(value: Any) -> Any:
    """A text as the JSON value that it is, if it is one."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _row_changes(library: Library, calls: list[Row]) -> dict[str, list[Row]]:
    """turn_id -> the rows of databases that changed from the call on until its answer came."""
    times = [(turn["happened_at"], turn["answered_at"] or turn["happened_at"] + _AT_ONCE, turn["turn_id"])
             for turn in calls if turn["happened_at"] is not None]
    if not times:
        return {}
    rows = library.rows(
        "select change_id, happened_at, table_name, operation, key, before, after from core.row_changes "
        "where happened_at between $first and $last and operation != 'snapshot' order by happened_at, change_id "
        f"limit {MOST_ROWS * len(times)}", first=min(time[0] for time in times), last=max(time[1] for time in times))
    found: dict[str, list[Row]] = {}
    for begin, end, turn_id in times:
        during = [row for row in rows if begin <= row["happened_at"] <= end][:MOST_ROWS]
        if during:
            found[turn_id] = [{**row, "moves": list(differences(
                loaded(row["before"]) or {}, loaded(row["after"]) or {}))[:MOST]} for row in during]
    return found


def _by(rows: list[Row], name: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found
