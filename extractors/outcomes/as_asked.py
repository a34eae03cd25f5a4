"""Each goal against what was done for it, argument by argument.

Sees: goals with the slots that their words ask for (`tasks.goal_slots`), and the calls that acted with success. Each goal is
held against the call of its kind that differs least. Does not see: goals whose kind is no tool that acts, arguments that no
slot is known of, and whether a refusal to act was right.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from extractors.outcomes.evidence import Evidence, votes

_SCHEMA = {"session_id": pl.String(), "vote": pl.Float64(), "says": pl.String(), "turns": pl.List(pl.String())}


class _Done(NamedTuple):
    turn_id: str
    tool: str
    values: Mapping[str, Sequence[str]]


def as_asked(seen: Evidence) -> pl.DataFrame:
    """1 where every goal was done as its words ask; -1 where one was not, or something else was done."""
    done = _done(seen)
    acting = {call.tool for calls in done.values() for call in calls}
    asked: dict[str, list[tuple[str, dict[str, list[str]]]]] = defaultdict(list)
    for session, label, slots in seen.goals.sort("session_id", "place").select("session_id", "asks", "slots").iter_rows():
        asked[session].append((label, {name: _listed(value) for name, value in json.loads(slots).items()}))
    of_kinds = acting & {label for goals in asked.values() for label, _ in goals}
    rows = []
    for session, goals in sorted(asked.items()):
        told = _held([goal for goal in goals if goal[0] in of_kinds], [c for c in done[session] if c.tool in of_kinds])
        if told is not None:
            rows.append((session, *told))
    found = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return votes(found, pl.col("vote"), pl.col("says"), pl.col("turns"))


def _held(goals: Sequence[tuple[str, dict[str, list[str]]]], done: Sequence[_Done]) -> tuple[float, str, list[str]] | None:
    """Vote, reason and turns; None where nothing that acts was asked or done, or nothing could be compared."""
    left, against, used, n_compared = list(done), [], [], 0
    for label, slots in goals:
        calls = [call for call in left if call.tool == label]
        if not calls:
            against.append(f"{label} was asked for and not done")
            continue
        best = min(calls, key=lambda call: len(_otherwise(call, slots)))
        left.remove(best)
        used.append(best.turn_id)
        n_compared += len(slots)
        against += [f"{label} was given another {name}" for name in _otherwise(best, slots)]
    against += [f"{call.tool} was done and not asked for" for call in left]
    if against:
        return -1.0, "; ".join(against), used + [call.turn_id for call in left]
    return (1.0, "all was done as asked", used) if n_compared else None


def _otherwise(call: _Done, slots: Mapping[str, Sequence[str]]) -> list[str]:
    return [name for name, values in sorted(slots.items()) if _alike(call.values.get(name, ())) != _alike(values)]


def _alike(values: Sequence[str]) -> list[str]:
    return sorted(value.strip().lower() for value in values)


def _done(seen: Evidence) -> Mapping[str, list[_Done]]:
    """Calls of each session that acted with success, in order; the same call twice counts once."""
    of_turn: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for turn, path, value in seen.values.iter_rows():
        of_turn[turn][path].append(value)
    found: dict[str, list[_Done]] = defaultdict(list)
    once = seen.calls.filter(pl.col("acts") & ~pl.col("failed")).sort("session_id", "position").unique(
        ["session_id", "tool", "arguments"], keep="first", maintain_order=True)
    for session, turn, tool in once.select("session_id", "turn_id", "tool").iter_rows():
        found[session].append(_Done(turn, tool, of_turn[turn]))
    return found


def _listed(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]
