"""Slots of goals: what each argument of a goal's kind should be, as its words ask (`resolving`).

A goal's slots are the arguments of the tool that names its kind. Where no tool does (questions), they are those arguments of
looking tools that most goals of the kind name in their words.

Sees: calls of the kind in all sessions, as examples of what words mean. Does not see: arguments of kinds with few calls.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import polars as pl

from extractors.tasks.looked_up import Answer, read
from extractors.tasks.resolving import SUPPORT, Request, resolve
from extractors.tasks.spans import phrases_of
from warehouse.records import Remember, anew

_FEW = 3
"""Things that share a name at most, for the name to lead to them."""

_MOSTLY = 0.5
_NEVER = datetime.min.replace(tzinfo=UTC)


class _Goal(NamedTuple):
    session_id: str
    place: int
    service: str
    label: str
    words: str
    begins: int
    ends: int


class _Call(NamedTuple):
    tool: str
    arguments: str
    position: int
    at: datetime | None
    answer: Answer | None
    """None where it is no JSON, and for what acts: its answer shows what was done, not what was there."""
    acted: frozenset[str]
    """Tools that acted in the session before."""
    values: dict[str, list[str]]


_Named = Mapping[str, Sequence[tuple[str, Sequence[_Call]]]]
"""Name -> (arguments, looks in order of time) of the things that have it."""


def goal_slots(
    goals: pl.DataFrame, turns: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame, remember: Remember = anew
) -> pl.DataFrame:
    """Columns session_id, place, slots (JSON object: argument -> value, or list of values)."""
    read_goals = [_Goal(*row) for row in goals.sort("session_id", "place").select(_Goal._fields).iter_rows()]
    called = _calls(calls, turns, values)
    said = _said(turns)
    by_kind: dict[tuple[str, str], list[_Goal]] = defaultdict(list)
    for goal in read_goals:
        by_kind[goal.service, goal.label].append(goal)
    n_alike = Counter((goal.session_id, goal.label) for goal in read_goals)
    n_goals = Counter(goal.session_id for goal in read_goals)
    named = {service: _by_name(call for session in sessions for call in called[session])
             for service, sessions in calls.group_by("service").agg(pl.col("session_id").unique().sort()).iter_rows()}
    rows = []
    for (service, label), asked in sorted(by_kind.items()):
        given = _given(label, asked, called, n_alike, n_goals)
        requests = [_request(goal, called[goal.session_id], said[goal.session_id], named.get(service, {})) for goal in asked]
        for goal, slots in zip(asked, resolve(requests, given, remember), strict=True):
            rows.append((goal.session_id, goal.place, _object(slots)))
    return pl.DataFrame(rows, schema={"session_id": pl.String, "place": pl.Int64, "slots": pl.String}, orient="row")


def _calls(calls: pl.DataFrame, turns: pl.DataFrame, values: pl.DataFrame) -> Mapping[str, list[_Call]]:
    """Calls of each session that did not fail, in order."""
    of_turn: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for turn, path, value in values.iter_rows():
        of_turn[turn][path].append(value)
    found: dict[str, list[_Call]] = defaultdict(list)
    acted: dict[str, frozenset[str]] = defaultdict(frozenset)
    fine = calls.filter(~pl.col("failed")).join(turns.select("turn_id", "happened_at"), on="turn_id", how="left")
    for session, turn, tool, arguments, position, at, content, acts in fine.sort("session_id", "position").select(
            "session_id", "turn_id", "tool", "arguments", "position", "happened_at", "content", "acts").iter_rows():
        answer = None if acts else read(content or "")
        found[session].append(_Call(tool, arguments or "", position, at, answer, acted[session], dict(of_turn[turn])))
        if acts:
            acted[session] |= {tool}
    return found


def _said(turns: pl.DataFrame) -> Mapping[str, list[tuple[int, str]]]:
    """(position, text) of each session's user's messages."""
    spoken = turns.filter((pl.col("kind") == "message") & (pl.col("role") == "user")).sort("session_id", "position")
    told: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for session, position, text in spoken.select("session_id", "position", "content").iter_rows():
        told[session].append((position, text or ""))
    return told


def _by_name(calls: Iterable[_Call]) -> _Named:
    """Looks before anything was done, by what the things are called, where few have the name."""
    looks: dict[tuple[str, str], list[_Call]] = defaultdict(list)
    for call in calls:
        if call.answer and not call.acted:
            looks[call.tool, call.arguments].append(call)
    found: dict[str, list[tuple[str, list[_Call]]]] = defaultdict(list)
    for (_, arguments), seen in sorted(looks.items()):
        seen.sort(key=lambda call: (call.at is not None, call.at or _NEVER))
        for name in sorted({name for call in seen if call.answer for name in call.answer.names}):
            found[name].append((arguments, seen))
    return {name: things for name, things in found.items() if len(things) <= _FEW}


def _request(goal: _Goal, calls: Sequence[_Call], said: Sequence[tuple[int, str]], named: _Named) -> Request:
    later = [text for position, text in said if goal.begins <= position < goal.ends and goal.words not in text]
    own = [call for call in calls if call.position < goal.ends and goal.label not in call.acted]
    met = {(call.tool, call.arguments) for call in own if call.answer}
    began = min((call.at for call in calls if call.at), default=None)
    told = [(call.tool, call.answer) for call in own if call.answer]
    for phrase in sorted(phrases_of(goal.words)):
        for arguments, looks in named.get(phrase, ()):
            before = [look for look in looks if not (look.at and began) or look.at < began]
            if before and before[-1].answer and (before[-1].tool, arguments) not in met:
                met.add((before[-1].tool, arguments))
                told.append((before[-1].tool, before[-1].answer))
    return Request(goal.words, "\n".join(later), tuple(told))


def _given(label: str, asked: Sequence[_Goal], called: Mapping[str, list[_Call]], n_alike: Mapping[tuple[str, str], int],
           n_goals: Mapping[str, int]) -> list[dict[str, list[str]] | None]:
    """What calls for each goal were given, None where it is not clear which."""
    given: list[dict[str, list[str]] | None] = []
    place: Counter[str] = Counter()
    for goal in asked:
        own = [call for call in called[goal.session_id] if call.tool == label]
        once = list({call.arguments: call for call in own}.values())
        clear = len(once) == n_alike[goal.session_id, label]
        given.append(once[place[goal.session_id]].values if clear else None)
        place[goal.session_id] += 1
    if any(given):
        return given
    return _looked_for([goal if n_goals[goal.session_id] == 1 else None for goal in asked], called)


def _looked_for(asked: Sequence[_Goal | None], called: Mapping[str, list[_Call]]) -> list[dict[str, list[str]] | None]:
    """The arguments of calls that stand in the words, where most goals name them."""
    given: list[dict[str, list[str]] | None] = []
    for goal in asked:
        if goal is None:
            given.append(None)
            continue
        said = phrases_of(goal.words)
        found: dict[str, list[str]] = {}
        for call in called[goal.session_id]:
            for path, values in call.values.items():
                if all(value.lower() in said for value in values):
                    found.setdefault(f"{call.tool}.{path}", values)
        given.append(found)
    counts = Counter(name for found in given if found for name in found)
    n_asked = sum(goal is not None for goal in asked)
    usual = {name for name, n in counts.items() if n >= max(SUPPORT, _MOSTLY * n_asked)}
    return [found and {name: values for name, values in found.items() if name in usual} for found in given]


def _object(slots: dict[str, list[str]]) -> str:
    flat = {name: values[0] if len(values) == 1 else values for name, values in slots.items()}
    return json.dumps(flat, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
