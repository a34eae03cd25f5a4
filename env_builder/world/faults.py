"""Failures that say nothing of the world: the same call worked soon after, with nothing done between, or the session ran out.

In: calls by session and position, and what is known of each tool's effect. Out: the ids of such failures. They are left out of
all that is learnt of tools and world (a transient fault never becomes a guard), and make the rate at which a tool fails by
itself (`env_builder.perturbations`). Sees: calls of one session that were made again; messages that were nearly always followed
by a success, wherever else they stand; of those that several tools give, as often as the call was made again. Does not see: a
fault that nobody tried again; that somebody else put right, between the two, what was wrong.

A session that ran out: calls are refused until one tool is called again, and then work as they stood. Sees: tools that had
worked in the same session, or after the renewing tool, before they were refused; the same call made again after the renewing
one, but for arguments that hold what that one answered. Does not see: who was never let in at all (that is a refusal); what
runs out by the clock alone: it is told in calls, since in a rollout nobody waits.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import groupby
from typing import NamedTuple

import polars as pl

from env_builder.runtime.programs import ACTING
from env_builder.runtime.relevance import leaves
from env_builder.world.calls import LoggedCall, ReadCalls, calls_of, read_call

SOON = timedelta(minutes=15)
SOON_CALLS = 10
MINIMUM_SEEN = 3
"""Failures with one message that passed by themselves, from which on the message alone tells a fault; times that a session must
have run out and been renewed in the same way."""
SEVERAL_TOOLS = 3
"""Tools that give a message, from which it is about what stands before them, and those who did not try again say nothing."""


def find_faults(calls: Iterable[LoggedCall], effects: Mapping[str, str]) -> frozenset[str]:
    """Event ids of the failures that passed by themselves, and of those of sessions that had run out.
    `effects`: tool -> effect."""
    calls = list(calls)
    sessions = groupby(calls, key=lambda call: call.session_id)
    tried, passed = set[str](), set[str]()
    for _, session in sessions:
        for event_id, worked in _tried_again(session, effects):
            tried.add(event_id)
            passed.update([event_id] if worked else [])
    failures = [call for call in calls if call.failed]
    moulds = Counter(map(mould, failures))
    passing = Counter(mould(call) for call in failures if call.event_id in passed)
    n_tried = Counter(mould(call) for call in failures if call.event_id in tried)
    tools: dict[str, set[str]] = defaultdict(set)
    for call in failures:
        tools[mould(call)].add(call.tool)
    faults = {message for message, n in passing.items() if n >= MINIMUM_SEEN and 2 * n > (
        n_tried if len(tools[message]) >= SEVERAL_TOOLS else moulds)[message]}
    return failures_of(find_expiries(calls)) | passed | {call.event_id for call in failures if mould(call) in faults}


def without(turns: pl.DataFrame, effects: pl.DataFrame, read: ReadCalls = read_call) -> pl.DataFrame:
    """Return turns without the calls that failed by themselves. `effects`: (service, tool, presumed); `read`: as `calls_of`."""
    turn_ids: list[str] = []
    for service in turns["service"].unique().sort():
        effect_of = dict(effects.filter(pl.col("service") == service).select("tool", "presumed").iter_rows())
        turn_ids += find_faults(calls_of(turns.filter(pl.col("service") == service), read), effect_of)
    return turns.filter(~pl.coalesce("result_id", "turn_id").is_in(turn_ids)) if turn_ids else turns


def _tried_again(session: Iterable[LoggedCall], effects: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Yield the event ids of failures after which the same was called soon and with nothing done between; did it work?"""
    waiting: dict[tuple[str, str], list[LoggedCall]] = {}
    for call in session:
        question = (call.tool, call.key)
        before = [failure for failure in waiting.pop(question, ()) if _soon(failure, call)]
        yield from ((failure.event_id, not call.failed) for failure in before)
        if call.failed:
            waiting[question] = [*before, call] if before and mould(before[-1]) == mould(call) else [call]
            continue
        if effects.get(call.tool, "unknown") in ACTING:
            waiting.clear()  # what failed before may work now for a reason


def _soon(failure: LoggedCall, call: LoggedCall) -> bool:
    if call.position - failure.position > SOON_CALLS:
        return False
    return not (failure.called_at and call.called_at) or call.called_at - failure.called_at <= SOON


class Expiry(NamedTuple):
    """Sessions that run out, and how they are renewed."""

    renewing: str
    """The tool that renews."""
    tools: tuple[str, ...]
    """Tools that were refused."""
    failures: tuple[LoggedCall, ...]
    hazards: tuple[tuple[int, float], ...]
    """(calls of these tools that worked since the last renewal, share of the sessions that ran out there)."""
    beyond: float
    """Share of all calls at which they ran out: for lives longer than any that was seen."""


class Renewed(NamedTuple):
    """A refused call, what renewed, and the message without what differs from call to call."""

    failures: tuple[LoggedCall, ...]
    renewing: str
    """Empty: the call worked again by itself."""
    mould: str
    is_token: bool = False
    """The call that worked was given something that the renewing one answered."""


def find_expiries(calls: Iterable[LoggedCall]) -> list[Expiry]:
    """Return what runs out, by renewing tool."""
    sessions = [list(mine) for _, mine in groupby(calls, key=lambda call: call.session_id)]
    renewed = [one for session in sessions for one in _renewed(session)]
    n_failed = Counter(mould(call) for session in sessions for call in session if call.failed)
    counts = Counter((one.mould, one.renewing) for one in renewed)
    cleared: Counter[tuple[str, str]] = Counter()
    for one in renewed:
        cleared[one.mould, one.renewing] += len(one.failures)
    of_tool: dict[str, set[str]] = defaultdict(set)
    for (message, tool), n in counts.items():
        passes = counts[message, ""] > 0
        if tool and not passes and n >= MINIMUM_SEEN and 2 * cleared[message, tool] > n_failed[message] and _lets_in(
            [one for one in renewed if (one.mould, one.renewing) == (message, tool)]
        ):
            of_tool[tool].add(message)
    return [_expiry(tool, moulds, sessions) for tool, moulds in sorted(of_tool.items())]


def _lets_in(renewed: list[Renewed]) -> bool:
    """Is it about who is calling, and not about what one tool needs: several tools were refused, or a token was handed on."""
    return len({call.tool for one in renewed for call in one.failures}) > 1 or all(one.is_token for one in renewed)


def mould(call: LoggedCall) -> str:
    """Return the message without what differs from call to call."""
    message = call.content
    for value in sorted({str(leaf) for leaf in leaves(call.arguments)}, key=lambda text: (-len(text), text)):
        if len(value) > 2:
            message = message.replace(value, "·").replace(json.dumps(value)[1:-1], "·")
    return re.sub(r"\S*\d\S*", "·", message)


def _renewed(session: list[LoggedCall]) -> Iterator[Renewed]:
    """Every time that calls were refused, one tool was called, and the last refused call then worked."""
    at = 0
    while at < len(session):
        first, at = session[at], at + 1
        if not first.failed:
            continue
        message = mould(first)
        start = at - 1
        while at < len(session) and session[at].failed and mould(session[at]) == message:
            at += 1
        failures, rest = session[start:at], session[at:at + SOON_CALLS]
        if rest and not rest[0].failed and (rest[0].tool, rest[0].key) == (failures[-1].tool, failures[-1].key):
            yield Renewed(tuple(failures), "", message)
        refused = {call.tool for call in failures}
        renewing = next((call for call in rest[:1] if not call.failed and call.tool not in refused), None)
        again = next((call for call in rest[1:] if call.tool == failures[-1].tool), None) if renewing else None
        if not renewing or not again or again.failed or not _same(failures[-1], again, renewing):
            continue
        if any(not call.failed and call.tool in (failures[0].tool, renewing.tool) for call in session[:start]):
            yield Renewed(tuple(failures), renewing.tool, message, again.arguments != failures[-1].arguments)


def _same(failure: LoggedCall, again: LoggedCall, renewing: LoggedCall) -> bool:
    """Is it the same call, but for arguments that hold what the renewing one answered? The renewing one names none of them."""
    answered = {str(leaf) for leaf in leaves(renewing.parsed)} if renewing.parsed is not None else set(renewing.content.split())
    kept = [name for name in failure.arguments if failure.arguments[name] == again.arguments.get(name)]
    others = {name for name in (*failure.arguments, *again.arguments) if name not in kept}
    named = {str(leaf) for name in kept for leaf in leaves(failure.arguments[name])}
    return all(str(again.arguments.get(name)) in answered for name in others) and named.isdisjoint(
        str(leaf) for leaf in leaves(renewing.arguments))


def _expiry(renewing: str, moulds: set[str], sessions: list[list[LoggedCall]]) -> Expiry:
    failures = tuple(call for session in sessions for call in _run_out(session, renewing, moulds))
    tools = tuple(sorted({call.tool for call in failures}))
    ended, reached = Counter[int](), Counter[int]()
    marks = {call.event_id for call in failures}
    for session in sessions:
        life, is_out = 0, False
        for call in session:
            if call.tool == renewing and not call.failed:
                life, is_out = 0, False
            elif call.event_id in marks:
                reached[life] += not is_out
                ended[life] += not is_out
                is_out = True
            elif call.tool in tools and not call.failed:
                reached[life] += 1
                life += 1
    hazards = tuple((life, round(ended[life] / reached[life], 6)) for life in sorted(reached))
    return Expiry(renewing, tools, failures, hazards, round(ended.total() / max(1, reached.total()), 6))


def _run_out(session: list[LoggedCall], renewing: str, moulds: set[str]) -> Iterator[LoggedCall]:
    """Refusals with these messages in a session that had worked before, also where nobody renewed it."""
    was_in = False
    worked: set[str] = set()
    for call in session:
        was_in |= call.tool == renewing and not call.failed
        if not call.failed:
            worked.add(call.tool)
        elif mould(call) in moulds and (was_in or call.tool in worked):
            yield call


def failures_of(expiries: Iterable[Expiry]) -> frozenset[str]:
    """Event ids of all such failures."""
    return frozenset(call.event_id for one in expiries for call in one.failures)
