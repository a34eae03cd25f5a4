"""Which signals there are: ours, and the entry points of the group `traceroom.signals`.

A signal is a small function that looks at the evidence and votes on sessions, or abstains. Signals of one group see the same
thing and have one vote together. What a vote is worth is estimated (`combining`); the weight here is where that begins."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import NamedTuple

import polars as pl

from extractors.outcomes import endings
from extractors.outcomes.accounted import as_stated, unaccounted
from extractors.outcomes.code import code_change
from extractors.outcomes.conditions import condition
from extractors.outcomes.consensus import end_state, in_part
from extractors.outcomes.evidence import Evidence
from extractors.outcomes.feedback import from_feedback
from extractors.outcomes.given import misstated, other_record, superseded, unsaid
from extractors.outcomes.injections import obeyed_instruction
from extractors.outcomes.manner import effort
from extractors.outcomes.matching import changed, contradicts_user, differs_from_request, matches_request, undone, untraced
from extractors.outcomes.rechecks import rechecked
from extractors.outcomes.refusals import cites, gave_in
from extractors.outcomes.steps import left, promised, skipped
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
    settled: bool = False
    """The vote means what it says in any service: its weight keeps its sign and most of its size."""
    decisive: bool = False
    """A vote against makes the session no example, however well the rest of it went: only a person overrides it."""
    of_faultless: bool = False
    """Its vote for counts only if no settled signal speaks against the session: it tells nothing of what these look at."""


OURS = (
    Signal("asked_again", endings.repeated_request, "aftermath"), Signal("changed", changed, "changed", 2.0),
    Signal("code_change", code_change, "code_change", graded=True),
    Signal("cites", cites, "refusal", 3.0, settled=True), Signal("claimed", endings.claimed, "claimed"),
    Signal("left", left, "left", 3.0, settled=True), Signal("promised", promised, "promised", 3.0, settled=True),
    Signal("skipped", skipped, "skipped", 3.0, settled=True),
    Signal("tests", endings.tests, "tests", 2.0),
    Signal("as_asked", matches_request, "asked_done", 2.0),
    Signal("as_stated", as_stated, "accounted", 3.0, settled=True, of_faultless=True),
    Signal("closing", endings.closing, "closing"),
    Signal("condition", condition, "refusal", 3.0, settled=True),
    Signal("differs", differs_from_request, "differs"),
    Signal("complaint", endings.complaint, "words", 1.0), Signal("effort", effort, "effort", graded=True),
    Signal("end_state", end_state, "end_state", graded=True), Signal("error_last", endings.error_last, "trouble", 1.0),
    Signal("feedback", from_feedback, "feedback", 2.5), Signal("gave_in", gave_in, "gave_in", 4.0, settled=True),
    Signal("handover", endings.handover, "handover"),
    Signal("in_part", in_part, "in_part", graded=True),
    Signal("obeyed", obeyed_instruction, "obeyed", 5.0, settled=True, decisive=True),
    Signal("rechecked", rechecked, "rechecked", graded=True), Signal("repeats", endings.repeats, "words", 1.0),
    Signal("said_otherwise", contradicts_user, "contradicted", 3.0), Signal("thanks", endings.thanks, "thanks", 0.2),
    Signal("unanswered", endings.unanswered, "trouble", 1.0), Signal("unserved", endings.unserved, "unserved", graded=True),
    Signal("misstated", misstated, "misstated", 3.0, settled=True), Signal("unsaid", unsaid, "given", 3.0, settled=True),
    Signal("superseded", superseded, "given", 3.0, settled=True),
    Signal("other_record", other_record, "given", 3.0, settled=True), Signal("undone", undone, "aftermath"),
    Signal("unaccounted", unaccounted, "unaccounted", graded=True), Signal("untraced", untraced, "untraced", 2.0))


@cache
def registered() -> dict[str, Signal]:
    """All signals by name; an entry point with the name of one of ours takes its place."""
    signals = {signal.name: signal for signal in OURS}
    for point in entry_points(group=GROUP):
        loaded = point.load()
        if not isinstance(loaded, Signal):
            raise InputError(
                "the entry point is no Signal", f"{GROUP}: {point.name} = {point.value}",
                "name an instance of extractors.outcomes.signals.Signal there")
        signals[loaded.name] = loaded
    return dict(sorted(signals.items()))
