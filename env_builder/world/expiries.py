"""Sessions that run out: calls that are refused until one tool is called again, and then work as they stood.

In: calls by session and position. Out: which failures say no more than that, which tool renews, and after how many calls that
happens. They are left out of all that is learnt of tools and world, as faults are (`faults`), and a rollout may draw them
(`env_builder.conditions`). Sees: tools that had worked in the same session, or after the renewing tool, before they were
refused; the same call made again after the renewing one, but for arguments that hold what that one answered. Does not see:
who was never let in at all (that is a refusal); what runs out by the clock alone: it is told in calls, since in a rollout
nobody waits.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from env_builder.runtime.relevance import leaves
from env_builder.world.calls import Call

SOON_CALLS = 10
MINIMUM_SEEN = 3
"""Times that a session must have run out and been renewed in the same way."""


class Expiry(NamedTuple):
    """Sessions that run out, and how they are renewed."""

    renewing: str
    """The tool that renews."""
    tools: tuple[str, ...]
    """Tools that were refused."""
    failures: tuple[Call, ...]
    hazards: tuple[tuple[int, float], ...]
    """(calls of these tools that worked since the last renewal, share of the sessions that ran out there)."""
    beyond: float
    """Share of all calls at which they ran out: for lives longer than any that was seen."""


class Renewed(NamedTuple):
    """A refused call, what renewed, and the message without what differs from call to call."""

    failures: tuple[Call, ...]
    renewing: str
    """Empty: the call worked again by itself."""
    mould: str
    is_token: bool = False
    """The call that worked was given something that the renewing one answered."""


def find(calls: Iterable[Call]) -> list[Expiry]:
    """What runs out, by renewing tool."""
    sessions = [list(mine) for _, mine in groupby(calls, key=lambda call: call.session_id)]
    renewed = [one for session in sessions for one in _renewed(session)]
    n_failed = Counter(mould(call) for session in sessions for call in session if call.failed)
    seen = Counter((one.mould, one.renewing) for one in renewed)
    cleared: Counter[tuple[str, str]] = Counter()
    for one in renewed:
        cleared[one.mould, one.renewing] += len(one.failures)
    of_tool: dict[str, set[str]] = defaultdict(set)
    for (message, tool), n in seen.items():
        passes = seen[message, ""] > 0
        if tool and not passes and n >= MINIMUM_SEEN and 2 * cleared[message, tool] > n_failed[message] and _lets_in(
            [one for one in renewed if (one.mould, one.renewing) == (message, tool)]
        ):
            of_tool[tool].add(message)
    return [_expiry(tool, moulds, sessions) for tool, moulds in sorted(of_tool.items())]


def _lets_in(renewed: list[Renewed]) -> bool:
    """Is it about who is calling, and not about what one tool needs: several tools were refused, or a token was handed on."""
    return len({call.tool for one in renewed for call in one.failures}) > 1 or all(one.is_token for one in renewed)


def mould(call: Call) -> str:
    """The message without what differs from call to call."""
    message = call.content
    for value in sorted({str(leaf) for leaf in leaves(call.arguments)}, key=lambda text: (-len(text), text)):
        if len(value) > 2:
            message = message.replace(value, "·").replace(json.dumps(value)[1:-1], "·")
    return re.sub(r"\S*\d\S*", "·", message)


def _renewed(session: list[Call]) -> Iterator[Renewed]:
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
        if renewing and again and not again.failed and _same(failures[-1], again, renewing) and _let_in(
            session[:start], failures, renewing.tool
        ):
            yield Renewed(tuple(failures), renewing.tool, message, again.arguments != failures[-1].arguments)


def _same(failure: Call, again: Call, renewing: Call) -> bool:
    """Is it the same call, but for arguments that hold what the renewing one answered? The renewing one names none of them."""
    answered = {str(leaf) for leaf in leaves(renewing.parsed)} if renewing.parsed is not None else set(renewing.content.split())
    kept = [name for name in failure.arguments if failure.arguments[name] == again.arguments.get(name)]
    others = {name for name in (*failure.arguments, *again.arguments) if name not in kept}
    named = {str(leaf) for name in kept for leaf in leaves(failure.arguments[name])}
    return all(str(again.arguments.get(name)) in answered for name in others) and named.isdisjoint(
        str(leaf) for leaf in leaves(renewing.arguments))


def _let_in(before: list[Call], failures: list[Call], renewing: str) -> bool:
    """Did the session work before: the tool itself, or the one that lets in?"""
    return any(not call.failed and call.tool in (failures[0].tool, renewing) for call in before)


def _expiry(renewing: str, moulds: set[str], sessions: list[list[Call]]) -> Expiry:
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


def _run_out(session: list[Call], renewing: str, moulds: set[str]) -> Iterator[Call]:
    """Refusals with these messages in a session that had worked before, also where nobody renewed it."""
    was_in = False
    worked: set[str] = set()
    for call in session:
        was_in |= call.tool == renewing and not call.failed
        if not call.failed:
            worked.add(call.tool)
        elif mould(call) in moulds and (was_in or call.tool in worked):
            yield call


def failures_of(expiries: Iterable[Expiry]) -> Mapping[str, str]:
    """Event id of every such failure -> the tool that renews."""
    return {call.event_id: one.renewing for one in expiries for call in one.failures}
