"""Find what changed next to each call of a session: documents before and after, and rows of databases.

Input: the turns of a session. Output: for each call what it changed (`mart.recorded`), what it showed (`mart.facts`), and which
rows changed while it ran (`core.row_changes`). Does not see which of several simultaneous calls changed a row: each shows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from pipelines.browser.library import Library

Row = dict[str, Any]
Before = Callable[[tuple[str, str], datetime | None], str | None]
MOST = 40
"""Differences of a document that are shown."""
MOST_ROWS = 20
"""Row changes that a call shows."""
_AT_ONCE = timedelta(seconds=2)
"""How long after a call a row may change and count as changed by it, where its answer has no time."""


def changes_of_calls(library: Library, service: str, turns: list[Row]) -> dict[str, Row]:
    """turn_id of each call -> {"changed", "read", "rows"}."""
    calls = [turn for turn in turns if turn["kind"] == "call"]
    events = [name for turn in calls for name in (turn["turn_id"], turn["result_id"]) if name]
    if not events:
        return {}
    recorded = _by(library.rows(
        "select event_id, effects from mart.recorded where event_id in (select unnest($ids)) and effects != '[]' "
        "order by recorded_id", ids=events), "event_id")
    facts = _by(library.rows(
        "select event_id, entity_class, key, value, derivation from mart.facts where event_id in (select unnest($ids)) "
        "and derivation in ('seen', 'implied') order by entity_class, key, fact_id", ids=events), "event_id")
    written = [each for rows in recorded.values() for row in rows for each in json.loads(row["effects"])]
    entities = {(each["class"], each["key"]) for each in written}
    before = _values_before(library, service, entities)
    latest: dict[tuple[str, str], str] = {}   # what the session itself was last shown
    changed_rows = _row_changes(library, calls)
    by_turn: dict[str, Row] = {}
    for turn in calls:
        names = dict.fromkeys((turn["turn_id"], turn["result_id"]))
        shown = [row for name in names for row in facts.get(name, ())]
        effects = {(each["class"], each["key"]): each["value"]
                   for name in names for row in recorded.get(name, ()) for each in json.loads(row["effects"])}
        values = {(row["entity_class"], row["key"]): row for row in shown}
        by_turn[turn["turn_id"]] = {
            "changed": [
                _changed(entity, latest[entity] if entity in latest else before(entity, turn["happened_at"]), value)
                for entity, value in effects.items()],
            "read": [row for entity, row in values.items() if entity not in effects],
            "rows": changed_rows.get(turn["turn_id"], [])}
        latest |= {**effects, **{entity: row["value"] for entity, row in values.items()}}
    return by_turn


def _values_before(library: Library, service: str, entities: set[tuple[str, str]]) -> Before:
    """Return a function that reads what any session knew of an entity as of an instant."""
    rows = library.rows(
        "select entity_class, key, value, valid_from, valid_to from mart.facts where service = $service "
        "and session_id is null and key in (select unnest($keys)) order by valid_from nulls first, fact_id",
        service=service, keys=sorted({key for _, key in entities})) if entities else []
    by_key = _by(rows, "key")

    def before(entity: tuple[str, str], at: datetime | None) -> str | None:
        values = [row["value"] for row in by_key.get(entity[1], ()) if row["entity_class"] == entity[0] and (
            row["valid_from"] is None or (at is not None and row["valid_from"] < at))]
        return values[-1] if values else None

    return before


def _changed(entity: tuple[str, str], before: str | None, after: str) -> Row:
    moves = list(differences(loaded(before), loaded(after))) if before is not None else []
    return {"entity_class": entity[0], "key": entity[1], "before": before, "after": after, "moves": moves[:MOST],
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
    """Return a text as the JSON value that it is, if it is one."""
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
    by_turn: dict[str, list[Row]] = {}
    for begin, end, turn_id in times:
        during = [row for row in rows if begin <= row["happened_at"] <= end][:MOST_ROWS]
        if during:
            by_turn[turn_id] = [{**row, "moves": list(differences(
                loaded(row["before"]) or {}, loaded(row["after"]) or {}))[:MOST]} for row in during]
    return by_turn


def _by(rows: list[Row], name: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[name], []).append(row)
    return groups
