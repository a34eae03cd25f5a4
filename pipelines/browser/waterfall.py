"""Lay out the calls of a session over time: when each began, and how long it took.

Input: turns of a session. Output: rows for a page, with begin and width in percent of the time that is shown; None if the log
has no times. A call takes until its answer, or its latency; a call without either is a mark. Gaps without a call are the
agent's and the user's own time. Does not see calls outside the page's turns.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

Row = dict[str, Any]


class Bar(NamedTuple):
    """A call in the picture."""

    position: int
    tool: str
    is_error: bool
    at_s: float
    """Seconds from the first turn that is shown."""
    took_ms: float | None
    """None: the log does not say."""
    begins: int
    """Percent of the width."""
    width: int
    """Percent of the width, at least 1."""


class Waterfall(NamedTuple):
    """The picture: bars from first to last."""

    bars: list[Bar]
    span_s: float
    """Seconds that the whole width stands for."""
    calls_s: float
    """Seconds in which at least one call ran."""
    slowest: Bar | None


def waterfall(turns: list[Row]) -> Waterfall | None:
    """Return the picture of the turns' calls."""
    times = [turn["happened_at"] for turn in turns if turn["happened_at"] is not None]
    calls = [(turn, turn["happened_at"], _took(turn)) for turn in turns
             if turn["kind"] == "call" and turn["happened_at"] is not None]
    if not calls or all(took is None for _, _, took in calls):
        return None
    first = min(times)
    last = max([*times, *(at + (took or timedelta()) for _, at, took in calls)])
    span = max((last - first).total_seconds(), 1e-3)
    bars = [_bar(turn, (at - first).total_seconds(), took, span) for turn, at, took in calls]
    timed = [bar for bar in bars if bar.took_ms is not None]
    return Waterfall(bars, span, _covered([(at, at + (took or timedelta())) for _, at, took in calls]),
                     max(timed, key=lambda bar: bar.took_ms or 0.0, default=None))


def _took(turn: Row) -> timedelta | None:
    if turn["latency_ms"] is not None:
        return timedelta(milliseconds=max(turn["latency_ms"], 0.0))
    if turn["answered_at"] is not None and turn["answered_at"] >= turn["happened_at"]:
        took: timedelta = turn["answered_at"] - turn["happened_at"]
        return took
    return None


def _bar(turn: Row, at_s: float, took: timedelta | None, span: float) -> Bar:
    seconds = took.total_seconds() if took is not None else 0.0
    begins = min(int(100 * at_s / span), 99)
    width = min(max(round(100 * seconds / span), 1), 100 - begins)
    took_ms = None if took is None else 1000 * seconds
    return Bar(turn["position"], turn["tool"], bool(turn["is_error"]), at_s, took_ms, begins, width)


def _covered(spans: list[tuple[datetime, datetime]]) -> float:
    """Return the seconds that are in at least one span."""
    total, end = 0.0, None
    for begin, until in sorted(spans):
        begin = begin if end is None else max(begin, end)
        if until > begin:
            total += (until - begin).total_seconds()
        end = until if end is None else max(end, until)
    return total
