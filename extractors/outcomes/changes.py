"""What the rows say: did what was asked for happen in the database, and did it stay?

In: row changes as of their time, goals with the slots that their words ask for, and when each session ran. A change belongs to
a goal if it happened while the goal's session ran and its row holds a name that the goal's slots hold. Which kinds of request
change rows at all, and which of a request's slots its rows hold afterwards, is learnt from all sessions; of a kind whose rows
are not logged, rows say nothing.

A change is undone where within some days, but not in the same session, another one of the same row takes away all that it
brought and brings back all that it took, instants apart. Rows are the same that hold mostly the same.

Sees: creations, updates and deletions with an instant. Does not see: rows that are not logged, changes long after the session,
what was changed beside the request, and who else changed the same thing meanwhile.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import polars as pl

from extractors.outcomes.evidence import Evidence, votes
from extractors.tasks.looked_up import singles
from extractors.tasks.spellings import key_of

_SCHEMA = {"session_id": pl.String(), "vote": pl.Float64(), "says": pl.String(), "changes": pl.List(pl.String())}

_ENOUGH = 5
"""Goals with a change, below which nothing is learnt of their kind."""

_MOSTLY = 0.5
"""Share of a kind's goals with a change, from which on the kind changes rows."""

_HELD = 0.9
"""Share of a kind's changes that hold the value of a slot, from which on the slot is looked for in them."""

_SLACK = timedelta(seconds=5)
"""How far the clocks of the log and of the changes may lie apart."""

_DAYS = timedelta(days=7)
"""Within these a change may be undone."""

_SAME = 0.8
"""Share of the values of a row and of what it is when it changes again that both hold."""

_INSTANT = re.compile(r"^\d{4}-\d\d-\d\d[t ]\d\d:")

_NAME = 5
"""A shorter value names nothing."""

_Values = frozenset[str]


class _Goal(NamedTuple):
    session_id: str
    kind: str
    asks: str
    slots: Mapping[str, _Values]

    @property
    def names(self) -> _Values:
        """What the goal names things by: long words with a digit."""
        values = _Values().union(*self.slots.values())
        return _Values(v for v in values if len(v) >= _NAME and " " not in v and any(map(str.isdigit, v)))


class _Change(NamedTuple):
    at: datetime
    change_id: str
    before: _Values
    after: _Values


def changed(seen: Evidence) -> pl.DataFrame:
    """1 where every goal of a kind that changes rows changed them as asked; -1 where one did not."""
    held = _held(seen, _changes(seen.row_changes))
    kinds = _Kinds(held)
    by_session: dict[str, list[tuple[str | None, list[_Change]]]] = defaultdict(list)
    for goal, own in held:
        if goal.kind in kinds.changing:
            by_session[goal.session_id].append((kinds.against(goal, own), own))
    rows = []
    for session, told in sorted(by_session.items()):
        against = [sentence for sentence, _ in told if sentence]
        evidence = sorted({change.change_id for _, own in told for change in own})
        rows.append((session, -1.0 if against else 1.0, "; ".join(against) or "the rows changed as asked", evidence))
    return votes(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), pl.col("vote"), pl.col("says"), pl.col("changes"))


def undone(seen: Evidence) -> pl.DataFrame:
    """-1 where a change of a session's goals was undone after it."""
    changes = _changes(seen.row_changes)
    rows: dict[str, list[str]] = {}
    for goal, own in _held(seen, changes):
        for change in own:
            later = _about(goal.names, changes, change.at, change.at + _DAYS)
            back = next((each for each in later if each not in own and _undoes(each, change)), None)
            if back is not None:
                rows.setdefault(goal.session_id, [change.change_id, back.change_id])
    found = [(session, -1.0, "what it changed was undone later on", ids) for session, ids in sorted(rows.items())]
    return votes(pl.DataFrame(found, schema=_SCHEMA, orient="row"), pl.col("vote"), pl.col("says"), pl.col("changes"))


def _undoes(later: _Change, change: _Change) -> bool:
    if len(later.before & change.after) < _SAME * len(later.before | change.after):
        return False
    brought, took = _lasting(change.after - change.before), _lasting(change.before - change.after)
    return bool(brought or took) and brought <= later.before - later.after and took <= later.after - later.before


def _lasting(values: _Values) -> _Values:
    """Values without instants: the time of a change does not come back."""
    return _Values(value for value in values if not _INSTANT.match(value))


def _held(seen: Evidence, changes: Sequence[_Change]) -> list[tuple[_Goal, list[_Change]]]:
    """Goals that name something, each with the changes of it while its session ran."""
    goals = [goal for goal in _goals(seen.goals) if goal.names] if changes else []
    ran = seen.turns.group_by("session_id").agg(
        pl.col("happened_at").min(), pl.max_horizontal("happened_at", "answered_at").max().alias("ended")).drop_nulls()
    spans = {session: (began - _SLACK, ended + _SLACK) for session, began, ended in ran.iter_rows()}
    return [(goal, _about(goal.names, changes, *spans[goal.session_id])) for goal in goals if goal.session_id in spans]


class _Kinds:
    """Which kinds of request change rows, and which of their slots the rows then hold."""

    def __init__(self, held: Sequence[tuple[_Goal, list[_Change]]]) -> None:
        n_goals = Counter(goal.kind for goal, _ in held)
        n_changed = Counter(goal.kind for goal, own in held if own)
        n_slot = Counter((goal.kind, slot) for goal, own in held if own for slot in goal.slots)
        n_held = Counter((goal.kind, slot) for goal, own in held if own for slot, values in goal.slots.items()
                         if values <= _after(own))
        self.changing = {kind for kind, n in n_changed.items() if n >= max(_ENOUGH, _MOSTLY * n_goals[kind])}
        self._held = {key for key, n in n_slot.items() if n >= _ENOUGH and n_held[key] >= _HELD * n}

    def against(self, goal: _Goal, own: list[_Change]) -> str | None:
        """What speaks against the goal's having been done; None where nothing does."""
        if not own:
            return f"{goal.asks} was asked for and no row changed"
        after = _after(own)
        looked_for = (slot for slot in sorted(goal.slots) if (goal.kind, slot) in self._held)
        other = next((slot for slot in looked_for if not goal.slots[slot] <= after), None)
        return f"the rows of {goal.asks} hold another {other}" if other else None


def _after(own: Sequence[_Change]) -> _Values:
    return _Values().union(*(change.after for change in own))


def _about(names: _Values, changes: Sequence[_Change], began: datetime, ended: datetime) -> list[_Change]:
    first = bisect_left(changes, began, key=lambda change: change.at)
    last = bisect_right(changes, ended, key=lambda change: change.at)
    return [change for change in changes[first:last] if names & change.before or names & change.after]


def _goals(goals: pl.DataFrame) -> list[_Goal]:
    rows = goals.sort("session_id", "place").select("session_id", "kind", "asks", "slots").iter_rows()
    return [_Goal(session, kind, asks, {slot: _listed(value) for slot, value in json.loads(slots).items()})
            for session, kind, asks, slots in rows]


def _listed(value: str | list[str]) -> _Values:
    return _Values(key_of(each) for each in (value if isinstance(value, list) else [value]))


def _changes(rows: pl.DataFrame) -> list[_Change]:
    """Changes with an instant, in order of time."""
    moved = rows.filter((pl.col("operation") != "snapshot") & pl.col("happened_at").is_not_null())
    ordered = moved.sort("happened_at", "change_id").select("happened_at", "change_id", "key", "before", "after")
    return [_Change(at, change_id, _values(key, before), _values(key, after))
            for at, change_id, key, before, after in ordered.iter_rows()]


def _values(*texts: str | None) -> _Values:
    return _Values(key_of(value) for text in texts if text for _, value in singles(text) or (("", text),))
