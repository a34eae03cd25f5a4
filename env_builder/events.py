"""Steps of other people in a session, such as a user's taps on a device, and the moment at which the environment plays each.

In: the turns of one session, in order. Out: `SessionEvents`. An event is a successful call of the session's user after the
agent's first move. If the user then speaks before the agent moves again, the event belongs to these words, and is played when
the user says them. Else it follows the agent's call before it, and is played after the same call.

Does not see: what a user did before the agent's first move or silently after words of the agent, which have no clear moment
(`unplaced`); whether the event needed the agent's words; events that the log takes for the agent's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime.answers import failed, parse

COLUMNS = ("kind", "role", "by_agent", "tool", "arguments", "content", "is_error")
"""Columns of a turn that events are found in; `by_agent`: is it a move of the agent?"""
Call = dict[str, Any]
"""{"tool", "arguments"}."""


class SessionEvents(NamedTuple):
    """The steps of other people in a session."""

    by_turn: dict[int, list[Call]]
    """Place of the user's turn after the agent's first move -> the events that come with it."""
    by_call: list[dict[str, Any]]
    """{"after": the agent's call, "tool", "arguments"} of the events that follow a call."""
    unplaced: list[str]
    """Tools of the calls that have no clear moment."""

    def rows(self) -> list[dict[str, Any]]:
        """Return the events as a task's `user` row has them."""
        return [{"turn": place, **call} for place, calls in sorted(self.by_turn.items()) for call in calls] + self.by_call


def events_of(turns: Iterable[tuple[Any, ...]]) -> SessionEvents:
    """Return the events of a session. `turns`: COLUMNS of each."""
    events = SessionEvents({}, [], [])
    waiting: list[Call] = []
    last: Call | str | None = None
    place, has_spoken, is_new = -1, False, True
    for kind, role, by_agent, tool, arguments, content, is_error in turns:
        is_call = kind == "call"
        if by_agent:
            _place_silent(waiting, last, events)
            waiting, is_new = [], is_new or is_call or has_spoken
            if is_call or (kind == "message" and has_spoken):
                last = _move(is_call, tool, arguments)
        elif is_call and arguments is not None and not failed(content or "", parse(content or ""), is_error):
            waiting.append({"tool": tool, "arguments": json.loads(arguments)})
        elif role == "user" and not is_call:
            has_spoken = True
            if kind == "message" and content is not None and last is not None:
                place, is_new = place + is_new, False
                events.by_turn.setdefault(place, []).extend(waiting)
                waiting = []
    _place_silent(waiting, last, events)
    return events


def _move(is_call: bool, tool: str, arguments: str | None) -> Call | str:
    """Return the agent's call, or "" for words and calls that cannot be made again."""
    return {"tool": tool, "arguments": json.loads(arguments)} if is_call and arguments is not None else ""


def _place_silent(waiting: list[Call], last: Call | str | None, events: SessionEvents) -> None:
    """Place the events after which the user said nothing: after the agent's call before them."""
    if isinstance(last, dict):
        events.by_call.extend({"after": last, **call} for call in waiting)
    else:
        events.unplaced.extend(call["tool"] for call in waiting)


def events_by(name: str, turns: pl.DataFrame) -> dict[str, SessionEvents]:
    """Return the events of each task or session (the column `name`) in whose turns a user calls something, in order."""
    calling = turns.filter((pl.col("kind") == "call") & ~pl.col("by_agent"))[name].unique()
    own = turns.filter(pl.col(name).is_in(calling.implode())).select(name, *COLUMNS)
    return {str(key): events_of(rows.drop(name).iter_rows()) for (key,), rows in own.group_by(name, maintain_order=True)}
