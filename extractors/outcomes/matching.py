"""Compare what was asked with what was done: with calls, and with rows of the database.

Calls: a goal's slots are compared with the successful write of its kind that differs least. Also sees names in a write that no
message or result holds, and a choice among few values that the user named otherwise. Does not see: goals without a writing
tool, arguments without a slot, whether a refusal was right, a wrong choice among entities that were all shown.

Rows: a change belongs to a goal if it happened during its session and its row holds a name of the goal's slots. Which kinds of
request change rows, and which slots rows then hold, is learnt from all sessions. A change is undone if, within days but in
another session, a change of mostly the same row reverts it, instants apart. Sees creations, updates and deletions with an
instant. Does not see rows that are not logged, late changes, changes that no goal asks for, other writers of a row."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import polars as pl

from extractors.outcomes.evidence import VOTES, Evidence, once, votes
from extractors.outcomes.refusals import declined_only
from extractors.tasks.answers import singles
from extractors.tasks.arguments import names_of_things, slots_of
from extractors.tasks.words import key_of


class _CompletedCall(NamedTuple):
    turn_id: str
    tool: str
    values: Mapping[str, Sequence[str]]


def matches_request(evidence: Evidence) -> pl.DataFrame:
    """1 where every goal was done as its words ask; -1 where one was not, or something else was done, as an exception."""
    return _requests_matched(evidence, exceptions=True)


def differs_from_request(evidence: Evidence) -> pl.DataFrame:
    """1 (as a mark, not as good) where what was done differs from the words as it usually does."""
    return _requests_matched(evidence, exceptions=False)


def _requests_matched(evidence: Evidence, exceptions: bool) -> pl.DataFrame:
    declined, compared = declined_only(evidence), _comparisons(evidence)
    n_met, n_against = Counter[_Reason](), Counter[_Reason]()
    for each in compared.values():
        n_met.update(each.met)
        n_against.update(each.against)
    usual = {reason for reason, n in n_against.items() if n > max(1, _USUAL * (n + n_met[reason]))}
    rows = []
    for session, each in compared.items():
        against = [reason for reason in each.against if not (session in declined and reason.what == _NOT_DONE)]
        unusual = [str(reason) for reason in against if reason not in usual]
        if exceptions and (unusual or (each.n_compared and not each.against)):
            vote = -1.0 if unusual else 1.0
            rows.append((session, vote, "; ".join(unusual) or "all was done as asked", each.turn_ids))
        elif not exceptions and against and not unusual:
            rows.append((session, 1.0, "; ".join(map(str, against)), each.turn_ids))
    return pl.DataFrame(rows, schema=VOTES, orient="row")


@once
def _comparisons(evidence: Evidence) -> dict[str, _Comparison]:
    """Hold the goals of each session against its calls; of sessions that only declined nothing is compared."""
    of_turn: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for turn, path, value in evidence.values.iter_rows():
        of_turn[turn][path].append(value)
    done: dict[str, list[_CompletedCall]] = defaultdict(list)   # calls that acted with success, in order
    first_writes = evidence.writes.sort("session_id", "position").unique(
        ["session_id", "tool", "arguments"], keep="first", maintain_order=True)
    for session_id, turn, tool in first_writes.select("session_id", "turn_id", "tool").iter_rows():
        done[session_id].append(_CompletedCall(turn, tool, of_turn[turn]))
    acting = {call.tool for calls in done.values() for call in calls}
    goals_of_session: dict[str, list[tuple[str, dict[str, list[str]]]]] = defaultdict(list)
    for session, label, slots in evidence.goals.sort("session_id", "place").select("session_id", "asks", "slots").iter_rows():
        goals_of_session[session].append((label, slots_of(slots)))
    of_kinds = acting & {label for goals in goals_of_session.values() for label, _ in goals}
    declined = declined_only(evidence)
    return {session: _compare([goal for goal in goals if goal[0] in of_kinds],
                              [call for call in done[session] if call.tool in of_kinds])
            for session, goals in sorted(goals_of_session.items()) if session not in declined or done[session]}


_USUAL = 0.35
"""Share of the cases in which a deed differs from the words in the same way, above which the words were misread."""
_NOT_DONE, _NOT_ASKED, _OTHER = "asked for and not done", "done and not asked for", "given another"


class _Reason(NamedTuple):
    tool: str
    what: str
    slot: str = ""

    def __str__(self) -> str:
        return f"{self.tool} was {self.what} {self.slot}".rstrip()


class _Comparison(NamedTuple):
    against: list[_Reason]
    met: list[_Reason]
    """Reasons that could have spoken against the session, and did not."""
    turn_ids: list[str]
    n_compared: int


def _compare(goals: Sequence[tuple[str, dict[str, list[str]]]], done: Sequence[_CompletedCall]) -> _Comparison:
    """Hold the goals of a session against its calls."""
    unmatched, used, n_compared = list(done), list[str](), 0
    against: list[_Reason] = []
    met: list[_Reason] = []
    for label, slots in goals:
        calls = [call for call in unmatched if call.tool == label]
        (met if calls else against).append(_Reason(label, _NOT_DONE))
        if not calls:
            continue
        other, best = min(((_otherwise(call, slots), call) for call in calls), key=lambda each: len(each[0]))
        unmatched.remove(best)
        used.append(best.turn_id)
        met.append(_Reason(label, _NOT_ASKED))
        n_compared += len(slots)
        for name in sorted(slots):
            (against if name in other else met).append(_Reason(label, _OTHER, name))
    against += [_Reason(call.tool, _NOT_ASKED) for call in unmatched]
    return _Comparison(against, met, used + [call.turn_id for call in unmatched], n_compared)


def _otherwise(call: _CompletedCall, slots: Mapping[str, Sequence[str]]) -> list[str]:
    return [name for name, values in sorted(slots.items()) if _alike(call.values.get(name, ())) != _alike(values)]


def _alike(values: Sequence[str]) -> list[str]:
    return sorted(value.strip().lower() for value in values)


_FEW = 12
"""An argument with more values than this in a service is no choice among few."""
_STATED = 0.6
"""Share of its uses in which a choice's value stands in the user's words, from which on it counts as told by users."""

_MADE_UP = 0.8
"""Share of an argument's names that nothing showed before, from which agents make them up."""


def untraced(evidence: Evidence) -> pl.DataFrame:
    """-1 where a write took a name that the user did not say and no result or instruction showed.

    Arguments for which nearly all agents make a name up, such as a key against repeats, say nothing.
    """
    shown = (
        evidence.turns.filter((pl.col("kind") == "call") | pl.col("role").is_in(["user", "system", "developer"]))
        .group_by("session_id").agg(pl.col("content").drop_nulls().str.join("\n").str.to_lowercase().alias("known")))
    is_traced = pl.col("known").str.contains(pl.col("value").str.to_lowercase(), literal=True)
    place = "service", "tool", "path"
    made_up = (pl.len().over(place) >= _ENOUGH) & (pl.col("is_traced").mean().over(place) <= 1 - _MADE_UP)
    names = (
        names_of_things(_written(evidence)).join(shown, on="session_id").with_columns(is_traced.alias("is_traced"))
        .filter(~made_up & ~pl.col("is_traced")))
    rows = (
        names.sort("session_id", "turn_id", "value").group_by("session_id", maintain_order=True)
        .agg(pl.col("value").unique(maintain_order=True).str.join(", "), pl.col("turn_id").unique(maintain_order=True)))
    return votes(rows, -1.0, pl.lit("wrote what nobody said and nothing showed: ") + pl.col("value"), pl.col("turn_id"))


def contradicts_user(evidence: Evidence) -> pl.DataFrame:
    """-1 where a write chose among few values, and the user's words name another of them but not this one."""
    written = _written(evidence).filter(pl.col("value").str.contains(r"\p{L}{3,}"))
    place = "service", "tool", "path"
    stated = written.join(
        evidence.session_requests.select("session_id", pl.col("said").str.to_lowercase()), on="session_id"
    ).with_columns(pl.col("said").str.contains(pl.col("value").str.to_lowercase(), literal=True).alias("told"))
    choices = stated.filter(
        (pl.col("value").n_unique().over(place) <= _FEW) & (pl.col("value").n_unique().over(place) > 1)
        & (pl.col("told").mean().over(place) >= _STATED) & (pl.len().over(place) >= 20))
    others = choices.select(*place, pl.col("value").alias("other")).unique()
    contrary = (
        choices.filter(~pl.col("told")).join(others, on=place)
        .filter(pl.col("said").str.contains(pl.col("other").str.to_lowercase(), literal=True)))
    rows = (
        contrary.sort("session_id", "turn_id", "path", "value", "other").group_by("session_id", maintain_order=True)
        .agg(pl.col("value", "other").first(), pl.col("turn_id").unique(maintain_order=True)))
    return votes(rows, -1.0, pl.format("wrote {} where the user said {}", "value", "other"), pl.col("turn_id"))


def _written(evidence: Evidence) -> pl.DataFrame:
    return evidence.writes.select("session_id", "service", "tool", "turn_id").join(evidence.values, on="turn_id")


_ENOUGH = 5
"""Goals with a change, below which nothing is learnt of their kind."""
_MOSTLY = 0.5
"""Share of a kind's goals with a change, from which on the kind changes rows."""
_HOLDING = 0.9
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


class _RowGoal(NamedTuple):
    session_id: str
    kind: str
    asks: str
    slots: Mapping[str, _Values]

    @property
    def names(self) -> _Values:
        """Names of entities in the goal: long words with a digit."""
        values = _Values().union(*self.slots.values())
        return _Values(v for v in values if len(v) >= _NAME and " " not in v and any(map(str.isdigit, v)))


class _RowMove(NamedTuple):
    at: datetime
    change_id: str
    before: _Values
    after: _Values


def changed(evidence: Evidence) -> pl.DataFrame:
    """1 where every goal of a kind that changes rows changed them as asked; -1 where one did not."""
    goals = _changes_of_goals(evidence, _changes(evidence.row_changes))
    kinds = _ChangingKinds(goals)
    by_session: dict[str, list[tuple[str | None, list[_RowMove]]]] = defaultdict(list)
    for goal, own in goals:
        if goal.kind in kinds.changing:
            by_session[goal.session_id].append((kinds.against(goal, own), own))
    rows = []
    for session, compared in sorted(by_session.items()):
        against = [sentence for sentence, _ in compared if sentence]
        change_ids = sorted({change.change_id for _, own in compared for change in own})
        rows.append((session, -1.0 if against else 1.0, "; ".join(against) or "the rows changed as asked", change_ids))
    return pl.DataFrame(rows, schema=VOTES, orient="row")


def undone(evidence: Evidence) -> pl.DataFrame:
    """-1 where a change of a session's goals was undone after it."""
    changes = _changes(evidence.row_changes)
    rows: dict[str, list[str]] = {}
    for goal, own in _changes_of_goals(evidence, changes):
        for change in own:
            later = _about(goal.names, changes, change.at, change.at + _DAYS)
            back = next((each for each in later if each not in own and _undoes(each, change)), None)
            if back is not None:
                rows.setdefault(goal.session_id, [change.change_id, back.change_id])
    table = [(session, -1.0, "what it changed was undone later on", ids) for session, ids in sorted(rows.items())]
    return pl.DataFrame(table, schema=VOTES, orient="row")


def _undoes(later: _RowMove, change: _RowMove) -> bool:
    if len(later.before & change.after) < _SAME * len(later.before | change.after):
        return False
    brought, took = _lasting(change.after - change.before), _lasting(change.before - change.after)
    return bool(brought or took) and brought <= later.before - later.after and took <= later.after - later.before


def _lasting(values: _Values) -> _Values:
    """Values without instants: the time of a change does not come back."""
    return _Values(value for value in values if not _INSTANT.match(value))


def _changes_of_goals(evidence: Evidence, changes: Sequence[_RowMove]) -> list[tuple[_RowGoal, list[_RowMove]]]:
    """Goals that name something, each with the changes of it while its session ran."""
    rows = evidence.goals.sort("session_id", "place").select("session_id", "kind", "asks", "slots")
    goals = [_RowGoal(session, kind, asks, {slot: _Values(map(key_of, values)) for slot, values in slots_of(slots).items()})
             for session, kind, asks, slots in (rows if changes else rows.clear()).iter_rows()]
    ran = evidence.turns.group_by("session_id").agg(
        pl.col("happened_at").min(), pl.max_horizontal("happened_at", "answered_at").max().alias("ended")).drop_nulls()
    spans = {session: (began - _SLACK, ended + _SLACK) for session, began, ended in ran.iter_rows()}
    return [(goal, _about(goal.names, changes, *spans[goal.session_id]))
            for goal in goals if goal.names and goal.session_id in spans]


class _ChangingKinds:
    """Which kinds of request change rows, and which of their slots the rows then hold."""

    def __init__(self, goals: Sequence[tuple[_RowGoal, list[_RowMove]]]) -> None:
        n_goals = Counter(goal.kind for goal, _ in goals)
        n_changed = Counter(goal.kind for goal, own in goals if own)
        n_slot = Counter((goal.kind, slot) for goal, own in goals if own for slot in goal.slots)
        n_holding = Counter((goal.kind, slot) for goal, own in goals if own for slot, values in goal.slots.items()
                         if values <= _after(own))
        self.changing = {kind for kind, n in n_changed.items() if n >= max(_ENOUGH, _MOSTLY * n_goals[kind])}
        self._holding = {key for key, n in n_slot.items() if n >= _ENOUGH and n_holding[key] >= _HOLDING * n}

    def against(self, goal: _RowGoal, own: list[_RowMove]) -> str | None:
        """Return what speaks against the goal's having been done; None where nothing does."""
        if not own:
            return f"{goal.asks} was asked for and no row changed"
        after = _after(own)
        looked_for = (slot for slot in sorted(goal.slots) if (goal.kind, slot) in self._holding)
        other = next((slot for slot in looked_for if not goal.slots[slot] <= after), None)
        return f"the rows of {goal.asks} hold another {other}" if other else None


def _after(own: Sequence[_RowMove]) -> _Values:
    return _Values().union(*(change.after for change in own))


def _about(names: _Values, changes: Sequence[_RowMove], began: datetime, ended: datetime) -> list[_RowMove]:
    first = bisect_left(changes, began, key=lambda change: change.at)
    last = bisect_right(changes, ended, key=lambda change: change.at)
    return [change for change in changes[first:last] if names & change.before or names & change.after]


def _changes(rows: pl.DataFrame) -> list[_RowMove]:
    moved = rows.filter((pl.col("operation") != "snapshot") & pl.col("happened_at").is_not_null())
    ordered = moved.sort("happened_at", "change_id").select("happened_at", "change_id", "key", "before", "after")
    return [_RowMove(at, change_id, _values(key, before), _values(key, after))
            for at, change_id, key, before, after in ordered.iter_rows()]


def _values(*texts: str | None) -> _Values:
    return _Values(key_of(value) for text in texts if text for _, value in singles(text) or (("", text),))
