"""From where a world is looked at, and what is known of one thing from there.

In: rows of one thing, or of one question, each of all sessions or of one, some with the time for which they hold. Out: the row
that holds at an instant, in the eyes of some sessions.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

Row = dict[str, Any]
NOBODY: dict[str, list[Row]] = {}
"""Rows by session where there are none; shared, so never changed."""


class View(NamedTuple):
    """From where the world is looked at."""

    instant: str | None
    """ISO instant; None: the world has no clock."""
    session_ids: frozenset[str]
    """Sessions of which most see alike: what they saw counts first."""


class Held:
    """What is known of one thing, or told after the same acts to one question."""

    __slots__ = ("_by_all", "_own", "_own_by_session")

    def __init__(self, rows: list[Row]) -> None:
        self._by_all = [(row["from"], row["to"], row) for row in rows if row["session"] is None]
        """(from, to, row) of rows that speak for everybody."""
        self._own = [row for row in rows if row["session"] is not None]
        """Rows that speak for one session each."""
        self._own_by_session: dict[str, list[Row]] = {} if self._own else NOBODY
        for row in self._own:
            self._own_by_session.setdefault(row["session"], []).append(row)

    @property
    def own(self) -> list[Row]:
        """Rows that speak for one session each."""
        return list(self._own)

    def at(self, view: View) -> Row | None:
        """The row that holds at the view's instant; what most of the view's sessions saw themselves counts before it.

        One of many sessions that saw something else (its answer was cut, wrapped, withheld) does not speak for the others.
        """
        sessions = view.session_ids
        own: list[Row] | None
        if len(sessions) == 1:
            (session,) = sessions
            own = self._own_by_session.get(session)
            if own is not None and len(own) == 1:
                return own[0]
        elif self._own_by_session.keys().isdisjoint(sessions):
            own = None
        else:
            own = [row for row in self._own if row["session"] in sessions]
        found = self._then(view.instant) if self._by_all else None
        return found if own is None else _counting(own, len(sessions), found)

    def _then(self, instant: str | None) -> Row | None:
        """The row that speaks for everybody at the instant."""
        for since, until, row in self._by_all:
            if instant is None or ((since is None or since <= instant) and (until is None or instant < until)):
                return row
        return None


def _counting(own: list[Row], n_sessions: int, found: Row | None) -> Row | None:
    """What most of the sessions saw, else what all are told (`found`), else what more of them saw than anything else."""
    if len(own) == 1:
        return own[0] if found is None or n_sessions == 1 else found
    text, n = Counter(map(text_of, own)).most_common(1)[0]
    if found is None or 2 * n > n_sessions:
        return next(row for row in own if text_of(row) == text)
    return found


def text_of(row: Row) -> str:
    """What the row says."""
    text: str = row["content"] if "content" in row else row["value"]
    return text
