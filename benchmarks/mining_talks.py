"""Protocols of the mining benchmark for conversations: families, where the goal changes, same task again, slots."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from benchmarks.mining_baselines import groupings
from benchmarks.mining_data import Data
from benchmarks.mining_scores import ari_of, atoms, f1_of, figure, matched
from extractors.tasks import Tasks, find
from warehouse.records import Outcome, empty

_NEAR = 2
"""A boundary is found where a prediction lies within so many messages."""
_FOLDS = 5


def plans(data: Data) -> dict[str, Any]:
    """Sessions with plans (`tasks`, `selected`): families on those of one task, boundaries in those of several."""
    single = {row["session_id"]: row["tasks"][0] for row in data.truth if not row["multi_task"]}
    turns = data.tables["core.turns"]
    words = turns.filter(pl.col("kind") == "message")
    wordless, applied = _found(data, words), _applied(data, single)
    true = _changes(data)
    places = _places(turns, data.tables["core.events"])
    figures = {
        **figure("family_ari", _labelled(single, _asked(data.tables["mart.goals"])), ari_of),
        **figure("family_ari_words_only", _labelled(single, _asked(wordless.goals)), ari_of),
        "family_ari_words_applied": round(sum(applied) / len(applied), 4),
        **figure("boundary_f1", _boundaries(true, data.tables["mart.goals"], places), f1_of),
        **figure("boundary_f1_words_only", _boundaries(true, wordless.goals, places), f1_of),
        **figure("boundary_f1_baseline_other_call", _boundaries(true, _other_calls(turns), places), f1_of),
        "n_boundaries": sum(map(len, true.values())), "n_sessions_scored": len(true),
        "n_sessions_without_events": sum(row["multi_task"] and not row["selected"] for row in data.truth),
        "n_families": len(set(data.families.values()))}
    spoken = words.filter(pl.col("role") == "user")
    return {**figures, **_beside("family_ari", groupings(_texts(spoken), single, 15))}


def repeats(data: Data) -> dict[str, Any]:
    """Sessions of tasks that come again (`task_id`): the same task found again, by service; the lowest is the figure."""
    tasks = data.tables["mart.tasks"].select("task_id", "session_ids").explode("session_ids")
    of_session: dict[str, str] = dict(tasks.select("session_ids", "task_id").iter_rows())
    services = defaultdict(dict)
    for row in data.truth:
        services[str(row.get("service", "main"))][row["session_id"]] = str(row["task_id"])
    figures: dict[str, Any] = {}
    for service, truth in sorted(services.items()):
        mark = f"_{service}" if len(services) > 1 else ""
        figures |= figure(f"task_ari{mark}", _labelled(truth, of_session), ari_of)
        figures |= _beside(f"task_ari{mark}", groupings(_texts(_users(data)), truth, 2))
        if "trial" in data.truth[0]:
            merged = {name: _TWINS.get(task, task) for name, task in truth.items()}
            figures |= figure("task_ari_twins_merged", _labelled(merged, of_session), ari_of)
            figures["n_twins_merged"] = _n_merged(truth, of_session)
    if len(services) > 1:
        figures["task_ari"] = min(figures[f"task_ari_{service}"] for service in services)
    return {**figures, "n_tasks_found": len(set(of_session.values()))}


def goals(data: Data) -> dict[str, Any]:
    """Sessions of several goals (`kinds`, `slots`): families by the tuple of kinds, each goal's kind, and slots."""
    truth = {row["session_id"]: tuple(row["kinds"]) for row in data.truth}
    found = _goals_of(data)
    each = [(kind, found[name][i][0] if i < len(found.get(name, ())) else "left")
            for name, kinds in truth.items() for i, kind in enumerate(kinds)]
    done = _done(data)
    as_done = {name: tuple(sorted(tool for tool, _ in calls)) for name, calls in done.items()}
    return {
        **figure("family_ari", _labelled(truth, data.families), ari_of),
        **figure("goal_ari", each, ari_of),
        "family_ari_baseline_done": round(ari_of(_labelled(truth, as_done)), 4),
        **_slots(data, found, "slot_f1"),
        **_slots(data, {name: [(tool, json.loads(slots)) for tool, slots in calls] for name, calls in done.items()},
                 "slot_f1_baseline_done"),
        "n_families": len(set(data.families.values())), **_beside("family_ari", groupings(_texts(_users(data)), truth, 5))}


_TWINS = {"9": "8", "7": "6", "5": "4", "29": "28", "24": "23", "27": "26"}
"""Pairs of tasks that share the user and nearly all words, as the set's README names them."""


def _found(data: Data, turns: pl.DataFrame) -> Tasks:
    """Return the miner on changed turns: no outcome is known."""
    return find(data.tables["core.sessions"], turns, empty(Outcome), data.effects, data.starts_from)


def _applied(data: Data, single: Mapping[str, str]) -> list[float]:
    """Each fifth of the sessions read by its words alone, where the others' calls were seen: ARI of each."""
    turns, told = data.tables["core.turns"], []
    for fold in range(_FOLDS):
        held = {name: task for name, task in single.items() if int(name, 16) % _FOLDS == fold}
        left = pl.col("session_id").is_in(list(held)) & (pl.col("kind") == "call")
        told.append(ari_of(_labelled(held, _asked(_found(data, turns.filter(~left)).goals))))
    return told


def _asked(goals: pl.DataFrame) -> dict[str, str]:
    """session -> family of its goals, also where nobody answered and it is no task."""
    return dict(goals.select("session_id", "family").unique().iter_rows())


def _labelled(truth: Mapping[str, Any], found: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return (true, found) of each session; those that the miner left are one group of their own."""
    return [(truth[name], found.get(name, "left")) for name in sorted(truth)]


def _beside(name: str, others: Mapping[str, float]) -> dict[str, float]:
    return {f"{name}_baseline_{other}": value for other, value in others.items()}


def _users(data: Data) -> pl.DataFrame:
    return data.tables["core.turns"].filter((pl.col("kind") == "message") & (pl.col("role") == "user"))


def _texts(messages: pl.DataFrame) -> dict[str, str]:
    told = messages.sort("session_id", "position").group_by("session_id", maintain_order=True).agg(
        pl.col("content").str.join("\n"))
    return dict(told.iter_rows())


# where the goal changes -------------------------------------------------------------------------------------------------------


def _changes(data: Data) -> dict[str, list[int]]:
    """Return true boundaries by session: indices of messages (goal protocol)."""
    messages = _messages(data)
    return {row["session_id"]: _runs(row, messages[row["session_id"]])
            for row in data.truth if row["multi_task"] and row["selected"]}


def _messages(data: Data) -> dict[str, list[tuple[int, str, str | None]]]:
    """session -> (index in the log, role, tool) of its messages and calls, in order."""
    events = data.tables["core.events"].filter(pl.col("kind").is_in(["message", "call"])).sort("session_id", "position")
    told: dict[str, list[tuple[int, str, str | None]]] = defaultdict(list)
    for session, position, kind, role, tool in events.select("session_id", "position", "kind", "role", "tool").iter_rows():
        told[session].append((position, "assistant" if kind == "call" else role, tool))
    return told


def _runs(row: Mapping[str, Any], messages: Sequence[tuple[int, str, str | None]]) -> list[int]:
    last = {0: row["tasks"][0]} | {event["message"]: event["task"] for event in row["selected"]}
    starts = sorted(last)
    kept: list[tuple[int, str]] = []
    merged: list[tuple[int, str]] = []
    for place in starts:
        if not merged or merged[-1][1] != last[place]:
            merged.append((place, last[place]))
    for (place, task), after in zip(merged, [*(place for place, _ in merged[1:]), 10**9], strict=True):
        inside = [(role, tool) for index, role, tool in messages if place <= index < after]
        called = any(tool == task for _, tool in inside)
        if (called or sum(role == "user" for role, _ in inside) >= 2) and (not kept or kept[-1][1] != task):
            kept.append((place, task))
    return [place for place, _ in kept[1:]]


def _places(turns: pl.DataFrame, events: pl.DataFrame) -> dict[tuple[str, int], int]:
    """(session, position of a turn) -> index in the log of the agent's next message or call."""
    indexed = turns.join(events.select(pl.col("event_id").alias("turn_id"), pl.col("position").alias("index")), on="turn_id")
    indexed = indexed.sort("session_id", "position").with_columns(
        pl.when((pl.col("kind") == "call") | (pl.col("role") == "assistant")).then("index").alias("agents"))
    following = indexed.with_columns(pl.col("agents").shift(-1).fill_null(strategy="backward").over("session_id"))
    rows = following.select("session_id", "position", pl.coalesce("agents", "index"))
    return {(session, position): index for session, position, index in rows.iter_rows()}


def _boundaries(true: Mapping[str, list[int]], goals: pl.DataFrame, places: Mapping[tuple[str, int], int],
                ) -> list[tuple[float, float, float]]:
    """(right, found, true) of each session; a goal's first turn is the user's message that brings it."""
    begins: dict[str, set[int]] = defaultdict(set)
    for session, begin in goals.filter(pl.col("place") > 0).select("session_id", "begins").iter_rows():
        begins[session].add(places[session, begin])
    return [(matched(sorted(begins[name]), places_, _NEAR), len(begins[name]), len(places_)) for name, places_ in true.items()]


def _other_calls(turns: pl.DataFrame) -> pl.DataFrame:
    """Baseline: a goal begins with the last message of the user before a call of another tool."""
    calls = turns.filter(pl.col("kind") == "call").sort("session_id", "position").with_columns(
        pl.col("tool").shift(1).over("session_id").alias("before")).filter(pl.col("tool") != pl.col("before"))
    said = turns.filter(pl.col("role") == "user").select("session_id", pl.col("position").alias("begins"), pl.col("position"))
    joined = calls.select("session_id", "position").sort("position").join_asof(
        said.sort("position"), on="position", by="session_id", check_sortedness=False)
    return joined.drop_nulls("begins").select("session_id", "begins", pl.lit(1).alias("place"))


# slots ------------------------------------------------------------------------------------------------------------------------


def _goals_of(data: Data) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """session -> (family, slots) of its goals in order."""
    told: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    ordered = data.tables["mart.goals"].sort("session_id", "place").select("session_id", "kind", "slots")
    for session, kind, slots in ordered.iter_rows():
        told[session].append((kind, json.loads(slots)))
    return told


def _done(data: Data) -> dict[str, list[tuple[str, str]]]:
    """Baseline: the calls that changed something, with their arguments, in order."""
    writes = data.tables["core.turns"].join(data.effects.filter(pl.col("effect") == "write"), on=["service", "tool"])
    told: dict[str, list[tuple[str, str]]] = defaultdict(list)
    fine = ~pl.coalesce("is_error", pl.col("content").str.contains("(?i)^\\s*error"), pl.lit(False))
    for session, tool, arguments in writes.filter(fine).sort("session_id", "position").select(
            "session_id", "tool", "arguments").iter_rows():
        told[session].append((tool, arguments or "{}"))
    return told


def _slots(data: Data, found: Mapping[str, list[tuple[str, dict[str, Any]]]], name: str) -> dict[str, Any]:
    """Micro F1 over (goal, slot, atom): names matched on one half of the sessions, scored on the other, and the reverse."""
    halves: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for row in data.truth:
        halves[int(row["session_id"], 16) % 2].append(row)
    scored: list[tuple[bool, tuple[int, int, int]]] = []
    for fit, held in (halves, halves[::-1]):
        names = _names(fit, found)
        scored += [(row["success"], _right(row, found, names)) for row in held]
    return {**figure(name, [count for _, count in scored], f1_of),
            **figure(f"{name}_failed", [count for good, count in scored if not good], f1_of)}


def _names(rows: Sequence[Mapping[str, Any]], found: Mapping[str, list[tuple[str, dict[str, Any]]]],
           ) -> dict[tuple[str, str], str]:
    """(family, mined name) -> true name, one to one per true kind, the largest overlap of values first."""
    overlap: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        for (kind, slots), (family, mined) in zip(_paired(row), found.get(row["session_id"], ()), strict=False):
            for true_name, true_value in slots.items():
                for name, value in mined.items():
                    overlap[kind, family, name, true_name] += atoms(_flat(value), _flat(true_value))[0]
    names: dict[tuple[str, str], str] = {}
    taken: set[tuple[str, str]] = set()
    for (_, family, name, true_name), n in sorted(overlap.items(), key=lambda each: (-each[1], each[0])):
        if n and (family, name) not in names and (family, true_name) not in taken:
            names[family, name] = true_name
            taken.add((family, true_name))
    return names


def _right(row: Mapping[str, Any], found: Mapping[str, list[tuple[str, dict[str, Any]]]],
           names: Mapping[tuple[str, str], str]) -> tuple[int, int, int]:
    true = [(i, name, atom)
            for i, (_, slots) in enumerate(_paired(row)) for name, value in slots.items() for atom in _flat(value)]
    mined = [(i, names.get((family, name), f"?{name}"), atom)
             for i, (family, slots) in enumerate(found.get(row["session_id"], ())) for name, value in slots.items()
             for atom in _flat(value)]
    return atoms(mined, true)


def _paired(row: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return list(zip(row["kinds"], row["slots"], strict=True))


def _flat(value: Any) -> list[str]:
    return [atom for each in value for atom in _flat(each)] if isinstance(value, list) else [str(value).strip().lower()]


def _n_merged(truth: Mapping[str, str], found: Mapping[str, str]) -> int:
    """How many twin pairs have sessions in one found task."""
    of: dict[str, set[str]] = defaultdict(set)
    for name, task in truth.items():
        of[task].add(found.get(name, ""))
    return sum(bool(of[one] & of[two]) for one, two in _TWINS.items())
