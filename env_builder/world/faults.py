"""Failures that say nothing of the world: the same call worked soon after, and nothing was done between.

In: calls by session and position, and what is known of each tool's effect. Out: the ids of such failures. They are left out of
all that is learnt of tools and world (a transient fault never becomes a guard), and make the rate at which a tool fails by
itself (`env_builder.conditions`). Sees: calls of one session that were made again; messages that were nearly always followed
by a success, wherever else they stand. Does not see: a fault that nobody tried again; that somebody else put right, between
the two, what was wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import groupby

import polars as pl

from env_builder.runtime.programs import ACTING
from env_builder.world import expiries
from env_builder.world.calls import Call, calls_of
from env_builder.world.expiries import mould

SOON = timedelta(minutes=15)
SOON_CALLS = 10
MINIMUM_SEEN = 3
"""Failures with one message that passed by themselves, from which on the message alone tells a fault."""


def find(calls: Iterable[Call], effects: Mapping[str, str]) -> frozenset[str]:
    """Event ids of the failures that passed by themselves, and of those of sessions that had run out (`expiries`).
    `effects`: tool -> effect."""
    calls = list(calls)
    run_out = expiries.failures_of(expiries.find(calls))
    passed: set[str] = set()
    for _, session in groupby(calls, key=lambda call: call.session_id):
        passed |= _passed(list(session), effects)
    failures = [call for call in calls if call.failed]
    moulds = Counter(map(mould, failures))
    passing = Counter(mould(call) for call in failures if call.event_id in passed)
    faults = {message for message, n in passing.items() if n >= MINIMUM_SEEN and 2 * n > moulds[message]}
    return frozenset({*passed, *run_out} | {call.event_id for call in failures if mould(call) in faults})


def without(turns: pl.DataFrame, effects: pl.DataFrame) -> pl.DataFrame:
    """Turns without the calls that failed by themselves. `effects`: (service, tool, effect)."""
    found: list[str] = []
    for service in turns["service"].unique().sort():
        known = dict(effects.filter(pl.col("service") == service).select("tool", "effect").iter_rows())
        found += find(calls_of(turns.filter(pl.col("service") == service)), known)
    return turns.filter(~pl.coalesce("result_id", "turn_id").is_in(found)) if found else turns


def _passed(session: list[Call], effects: Mapping[str, str]) -> set[str]:
    waiting: dict[tuple[str, str], list[Call]] = {}
    found: set[str] = set()
    for call in session:
        asked = (call.tool, call.key)
        if call.failed:
            before = waiting.get(asked, [])
            waiting[asked] = [*before, call] if before and mould(before[-1]) == mould(call) else [call]
            continue
        found.update(failure.event_id for failure in waiting.pop(asked, ()) if _soon(failure, call))
        if effects.get(call.tool, "unknown") in ACTING:
            waiting.clear()  # what failed before may work now for a reason
    return found


def _soon(failure: Call, call: Call) -> bool:
    if call.position - failure.position > SOON_CALLS:
        return False
    return not (failure.called_at and call.called_at) or call.called_at - failure.called_at <= SOON
