"""Which signals there are: ours, and the entry points of the group `traceroom.signals`.

A signal is a small function that looks at the evidence and votes on sessions, or abstains. Signals of one group see the same
thing and have one vote together. What a vote is worth is estimated (`combining`); the weight here is where that begins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import NamedTuple

import polars as pl

from extractors.outcomes.aftermath import asked_again
from extractors.outcomes.as_asked import as_asked
from extractors.outcomes.asked_done import said_otherwise, untraced
from extractors.outcomes.changes import changed, undone
from extractors.outcomes.closing import closing
from extractors.outcomes.consensus import end_state, in_part
from extractors.outcomes.effort import effort
from extractors.outcomes.endings import complaint, error_last, handover, repeats, thanks, unanswered
from extractors.outcomes.evidence import Evidence
from extractors.outcomes.feedback import from_feedback
from extractors.outcomes.results import claimed, tests, unserved
from warehouse.errors import InputError

GROUP = "traceroom.signals"


class Signal(NamedTuple):
    """A function that votes on sessions, and what its votes are taken for."""

    name: str
    see: Callable[[Evidence], pl.DataFrame]
    """Evidence in, a frame of `evidence.VOTES` out: one row a session that it votes on, vote in -1..1."""
    group: str
    """Signals that see the same thing share a group; its strongest vote counts."""
    weight: float = 0.0
    """Log odds of a full vote where nothing is known yet; 0: the sign is not known either."""
    graded: bool = False
    """The vote is 2 * probability - 1, and counts as that; else it is for or against, and its worth is estimated."""


OURS = (
    Signal("asked_again", asked_again, "aftermath"),
    Signal("changed", changed, "changed", 2.0),
    Signal("claimed", claimed, "claimed"),
    Signal("tests", tests, "tests", 2.0),
    Signal("as_asked", as_asked, "asked_done", 2.0),
    Signal("closing", closing, "closing"),
    Signal("complaint", complaint, "words", 1.0),
    Signal("effort", effort, "effort", graded=True),
    Signal("end_state", end_state, "end_state", graded=True),
    Signal("error_last", error_last, "trouble", 1.0),
    Signal("feedback", from_feedback, "feedback", 2.5),
    Signal("handover", handover, "handover"),
    Signal("in_part", in_part, "in_part", graded=True),
    Signal("repeats", repeats, "words", 1.0),
    Signal("said_otherwise", said_otherwise, "asked_done", 2.0),
    Signal("thanks", thanks, "thanks", 0.2),
    Signal("unanswered", unanswered, "trouble", 1.0),
    Signal("unserved", unserved, "unserved", graded=True),
    Signal("undone", undone, "aftermath"),
    Signal("untraced", untraced, "asked_done", 2.0),
)


@cache
def registered() -> dict[str, Signal]:
    """All signals by name; an entry point with the name of one of ours takes its place."""
    found = {signal.name: signal for signal in OURS}
    for point in entry_points(group=GROUP):
        loaded = point.load()
        if not isinstance(loaded, Signal):
            raise InputError(
                "the entry point is no Signal", f"{GROUP}: {point.name} = {point.value}",
                "name an instance of extractors.outcomes.signals.Signal there")
        found[loaded.name] = loaded
    return dict(sorted(found.items()))
