"""A signal from reads that are made again after a write: does the last one show another answer than the first?

Who acts and then looks again checks that it worked. If the same question has the same answer as before, the write did not do
what it was for. Sees the last question of a session that is asked again with a successful write between, by the agent or by the
user's own tools, to tools whose answers change over writes in other sessions too. Does not see: a change in a field that the
answer does not show, whether the new answer is the wanted one, sessions that look only once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import polars as pl

from extractors.outcomes.evidence import VOTES, Evidence, votes

_FEWEST = 5
"""Other sessions that asked a tool again, below which nothing is known of whether it shows changes."""
_SHOWING = 0.2
"""Share of them with another answer, from which on a tool shows what writes change."""
_UNCHANGED, _CHANGED = -2.0, 0.7
"""Log odds of a session whose last answer is the same, and of one where it is another: something happened, though perhaps not
what was wanted. Their mean over a service counts as nothing: the base rate holds it."""


class _Recheck(NamedTuple):
    """A question that was asked again after a write: its last answer."""

    position: int
    turn_id: str
    place: tuple[str, str]
    """Service and tool."""
    changed: bool


def rechecked(evidence: Evidence) -> pl.DataFrame:
    """Return a probability, as -1..1, below one half where the last read that was made again after a write shows what it
    showed before, and above where it shows something else."""
    calls = evidence.everyones_calls.sort("session_id", "position")
    rechecks = {session: _rechecks(own)
                for session, own in groupby(calls.iter_rows(named=True), itemgetter("session_id"))}
    changes: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    for session, own in rechecks.items():
        for each in own:
            changes[each.place][session] = changes[each.place].get(session, False) or each.changed
    rows = []
    for session, own in sorted(rechecks.items()):
        showing = [each for each in own if _shows_changes(changes[each.place], session)]
        if showing:
            last = max(showing)
            answer = "another" if last.changed else "the same"
            rows.append((session, _CHANGED if last.changed else _UNCHANGED,
                         f"{last.place[1]} has {answer} answer after a write as before", [last.turn_id]))
    found = pl.DataFrame(rows, schema=VOTES, orient="row").join(
        evidence.session_requests.select("session_id", "service", "worded"), on="session_id")
    odds = pl.col("vote") - pl.col("vote").mean().over("service", "worded")
    return votes(found, (2.0 / (1.0 + (-odds).exp()) - 1.0).round(6), pl.col("description"), pl.col("evidence"))


def _rechecks(calls: Iterable[dict[str, Any]]) -> list[_Recheck]:
    """Return the last repetition of each question of a session that was asked before and after a write."""
    n_writes = 0
    first: dict[tuple[str, str], tuple[str, int]] = {}
    again: dict[tuple[str, str], _Recheck] = {}
    for call in calls:
        question = call["tool"] or "", call["arguments"] or ""
        if call["acts"]:
            n_writes += not call["failed"]
        elif question not in first:
            first[question] = call["content"] or "", n_writes
        elif n_writes > first[question][1]:
            changed = (call["content"] or "") != first[question][0]
            again[question] = _Recheck(call["position"], call["turn_id"], (call["service"], question[0]), changed)
    return list(again.values())


def _shows_changes(changes: dict[str, bool], session: str) -> bool:
    """Return whether answers of a tool change over writes in the other sessions. `changes`: session -> whether one did."""
    others = [changed for other, changed in changes.items() if other != session]
    return len(others) >= _FEWEST and sum(others) >= _SHOWING * len(others)
